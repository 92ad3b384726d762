//! Plain models of reports, written to be obviously right, and what tests of several crates share: generated kernel traces, recorded
//! ones, the law that a report depends neither on threads nor on chunks, and reports of other tools.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

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
