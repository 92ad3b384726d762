//! The reports: count, cpu, io.
//!
//! In: a trace set. Out: what is to be shown, as plain data that can be serialized. Promise: each
//! is an [`Analysis`](tracebraid_engine::Analysis), whose report does not depend on the number of
//! threads or on the size of chunks.
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
pub mod periods;
pub mod processes;
pub mod report;
pub mod sched;
pub mod stats;
pub mod syscalls;
pub mod waits;

pub use tracebraid_follow as kernel;
