//! User-level threads of real schedulers, recorded with the kernel's scheduling and compared with
//! what the programs log themselves.

mod boost_fiber;
mod examples;
mod go;
mod merged;
mod mn_truth;
mod recorded_schedule;
mod super_trace;
#[path = "../support/mod.rs"]
mod support;
