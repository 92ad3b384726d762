//! Recordings of real programs: the trace must match the numbers that the programs or their clients
//! count themselves.
//!
//! Servers that are not installed come from `scripts/programs`.

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
