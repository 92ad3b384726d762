//! The case studies of `docs/case-studies`, from the program to the result of the comparison: the
//! injected cause of slow executions must come first.

#[path = "../support/mod.rs"]
mod support;

mod alone;
mod study;
