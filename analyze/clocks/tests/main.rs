//! Tests of the whole crate: against recordings of two machines, and against random clocks.

mod recorded;
mod truth;
