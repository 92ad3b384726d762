//! Tests of questions: against the library's own tables, and against traces that are read in a
//! plain way.

mod database;
mod questions;
mod support;
mod traces;
