//! Recordings of real programs: what they, or their clients, count themselves stands in the trace,
//! one to one.
//!
//! Servers that are not installed are those that `scripts/programs` unpacks.

#[path = "../support/mod.rs"]
mod support;

mod checks;
mod nginx;
mod postgres;
mod programs;
mod python;
mod redis;
mod runtimes;
mod server;
mod threads;
