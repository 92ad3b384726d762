//! Queries compared with the library's own tables and with a plain reading of traces.

mod database;
mod questions;
mod support;
mod traces;
