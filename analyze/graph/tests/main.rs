//! Tests of the graph and its paths: on recordings with known causes, and of properties of random
//! graphs.

mod devices;
mod ends;
mod handover;
mod hosts;
mod queues;
mod random;
mod support;
mod truth;
