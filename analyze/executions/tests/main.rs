//! Trees of executions: the paper's figure, a naive way on random graphs, and requests whose
//! slowness was injected.

mod counts;
mod database;
mod delimit;
mod figure;
mod handover;
mod naive;
mod random_groups;
mod recorded;
mod stream;
mod told;
mod truth;
mod ways;
