//! Trees of executions: the paper's figure, a naive algorithm on random graphs, and requests with
//! injected causes of slowness.

mod counts;
mod database;
mod delimit;
mod devices;
mod figure;
mod handover;
mod naive;
mod random_groups;
mod recorded;
mod stream;
mod told;
mod truth;
mod ways;
