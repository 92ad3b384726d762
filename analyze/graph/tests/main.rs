//! The graph and its paths: against recordings whose causes are known, and against what must always
//! hold.

mod ends;
mod handover;
mod hosts;
mod queues;
mod random;
mod support;
mod truth;
