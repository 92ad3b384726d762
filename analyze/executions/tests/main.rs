//! Trees of executions: the paper's figure, a naive way on random graphs, and requests whose slowness was injected.

mod database;
mod counts;
mod delimit;
mod figure;
mod naive;
mod stream;
mod told;
mod truth;
