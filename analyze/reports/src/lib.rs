//! Reports on kernel traces: one module each, from [`count`] to [`waits`], and the [`overview`] of
//! all.
//!
//! In: a trace set. Out: tables as plain data that can be serialized. Promise: each report is an
//! [`Analysis`](tracebraid_engine::Analysis) whose outcome depends neither on the number of threads
//! nor on the size of chunks. No other crate of `analyze` builds on this one.
//!
//! All follow each CPU alone (`kernel/follow`); most are rules for events
//! ([`PerCpu`](tracebraid_follow::PerCpu)), while `cpu`, `io` and `count` implement the analysis
//! themselves. Results that depend on other CPUs are put together in the order of time, in slices
//! of time wherever the head of a module does not say otherwise. Rows become tables of
//! `tracebraid-tables`, from which the program makes text, JSON, CSV and LAMI.
//!
//! `docs/reports.md` and `docs/reports-NAME.md` define each figure. `ARCHITECTURE.md` lists the
//! steps to add a report.
#![forbid(unsafe_code)]

pub mod count;
pub mod cpu;
pub mod disk;
pub mod files;
mod garbage;
mod groups;
pub mod io;
pub mod irq;
pub mod memory;
pub mod net;
pub mod overview;
mod packed;
mod pages;

pub mod processes;

pub mod sched;

pub mod syscalls;
pub mod waits;
