//! Questions in SQL about databases of executions and about traces.
//!
//! In: a database of executions, traces, or both ([`Questions`]), and a text in SQL. Out: rows
//! ([`Sink`]), one by one. Promise: nothing is ever written; any file, however damaged, gives rows
//! or an error.
//!
//! Compact parts of a database, and traces, are virtual tables, one module each. Nothing is copied,
//! and of a trace no more is read than a question about a range of time needs. `virtual_table` is
//! the only module with `unsafe`.
//!
//! `docs/reference/sql.md` documents the tables.

mod asked;
mod contexts;
mod error;
mod events;
mod fields;
mod interrupted;
mod intervals;
mod list;
mod questions;
mod segments;
mod table;
mod threads;
mod times;
mod trace_threads;
mod traces;
mod virtual_table;

pub use error::{SqlError, TextPosition};
pub use questions::{About, Questions, Sink, Stopper};
pub use rusqlite::types::{Value, ValueRef};
pub use table::Column;
pub use traces::{OpenTraces, Traces};
