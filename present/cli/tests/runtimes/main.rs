//! Recordings of programs with schedulers of their own, compared with what the programs log.

mod alone;
mod asyncio;
mod harmless;
mod java;
mod merged;
mod openmp;
mod recorded;
#[path = "../support/mod.rs"]
mod support;
mod truth;
