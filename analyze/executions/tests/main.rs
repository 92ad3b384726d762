//! Trees of executions: the paper's figure, a naive way on random graphs, and requests whose slowness was injected.

mod figure;
mod naive;
mod recorded;
mod told;
mod truth;
