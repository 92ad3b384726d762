//! Tests of the whole crate: recordings of two machines, and random clocks.

mod recorded;
mod truth;
