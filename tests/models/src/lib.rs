//! Plain models of reports, and code that the tests of several crates share.
//!
//! In: a trace set, or a seed. Out: reports by plain passes in the order of time, written to be
//! obviously correct (`model_*`); generated kernel traces ([`synthetic`]), recorded traces
//! ([`traces`]), reports of other tools ([`lttng`]). [`law`] checks the law of folding for every
//! report: it depends on neither threads nor chunks, and equals its model. Promise: a model shares
//! no rule and no state machine with the report that it checks; both use the reader, statistics and
//! tables. [`bounds`] measures the state of an analysis.
//!
//! The crate exists because parallel analyses are hard to verify by reading: chunks begin in the
//! middle of a call, partial states contain unknowns, slices are composed. Each report is therefore
//! written a second time, as a single pass that keeps all state and ignores speed, and both are
//! compared on generated traces with losses, migrations and reused ids. Expected values written by
//! hand would repeat the author's mistakes, and recorded traces contain few of the rare cases. The
//! crate is separate because the tests of reports, histories and executions use it; the program
//! does not depend on it.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

pub mod bounds;
pub mod devices;
pub mod events;
mod forwarding;
pub mod law;
pub mod levels;
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
