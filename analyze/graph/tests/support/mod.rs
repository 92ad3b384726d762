//! Shared by the tests.

pub(crate) mod script;
pub(crate) mod traces;
pub(crate) mod user;
