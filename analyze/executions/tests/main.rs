//! Trees of executions: the paper's figure, and a naive way on random graphs.

mod figure;
mod naive;
mod told;
