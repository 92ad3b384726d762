//! The case studies of `docs/case-studies`, each from its program to what the comparison says: what
//! slows executions down, on purpose, is what stands first.

#[path = "../support/mod.rs"]
mod support;

mod alone;
mod study;
