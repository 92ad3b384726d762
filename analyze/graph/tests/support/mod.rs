//! What the tests share.

pub(crate) mod script;
pub(crate) mod traces;
pub(crate) mod user;
