//! Reports of the kernel: one module each, from `count` to `waits`, and the overview of all.
//!
//! In: a trace set. Out: tables as plain data that can be serialized. Promise: each is an
//! [`Analysis`](tracebraid_engine::Analysis), whose report does not depend on the number of threads or on the size of chunks. No other
//! crate of `analyze` builds on this one.
#![forbid(unsafe_code)]

pub mod count;
pub mod cpu;
pub mod disk;
pub mod files;
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
