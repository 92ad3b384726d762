//! Plain models of reports, and what tests of several crates share.
//!
//! In: a trace set, or a seed. Out: reports by plain passes in the order of time, written to be
//! obviously right (`model_*`); generated kernel traces ([`synthetic`]), recorded ones
//! ([`traces`]), reports of other tools ([`lttng`]). [`law`] holds every report to the law of
//! folding: it depends on neither threads nor chunks, and equals its model. [`bounds`] measures what
//! an analysis keeps.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

pub mod bounds;
pub mod devices;
pub mod events;
pub mod law;
pub mod lttng;
pub mod lttng_sched;
pub mod model_cpu;
pub mod model_fds;
pub mod model_files;
pub mod model_io;
pub mod model_irq;
pub mod model_memory;
pub mod model_sched;
pub mod model_stretches;
pub mod model_waits;
pub mod naming;
pub mod plain;
pub mod synthetic;
pub mod traces;
