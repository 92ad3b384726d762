//! Rules of the workspace: which crate may import which, that the files of a crate do not import
//! each other in large circles, and that libraries do not print.
//!
//! ARCHITECTURE.md describes these rules.

mod circles;
mod manifests;
mod modules;
mod no_test_is_lost;
mod printing;
