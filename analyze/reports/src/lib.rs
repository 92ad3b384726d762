//! Reports on kernel traces: one module each, from [`count`] to [`waits`], and the [`overview`] of
//! several reports on one page.
//!
//! In: a trace set. Out: tables as plain data that can be serialized. Promise: each report is an
//! [`Analysis`](tracebraid_engine::Analysis) whose outcome depends neither on the number of threads
//! nor on the size of chunks. No other crate of `analyze` builds on this one.
//!
//! All follow each CPU alone (`kernel/follow`). Most are rules for events
//! ([`PerCpu`](tracebraid_follow::PerCpu)), while `cpu`, `io` and `count` implement the analysis
//! themselves. Results that depend on other CPUs are combined in the order of time, in slices of
//! time unless the head of a module states otherwise. Rows become tables of `tracebraid-tables`,
//! from which the program makes text, JSON, CSV and LAMI.
//!
//! `docs/reference/reports.md` and `docs/reference/NAME.md` define each figure. `ARCHITECTURE.md`
//! lists the steps to add a report.
#![forbid(unsafe_code)]

pub mod count;
pub mod cpu;
pub mod disk;
pub mod files;
mod garbage;
pub mod gpu;
mod groups;
pub mod io;
pub mod irq;
pub mod levels;
pub mod memory;
pub mod net;
pub mod overview;
mod packed;
mod pages;
mod returned;

pub mod processes;

pub mod sched;

pub mod syscalls;
pub mod waits;
