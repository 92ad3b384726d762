//! SQL queries over databases of executions and over traces.
//!
//! In: a database of executions, traces, or both ([`Questions`]), and a text in SQL. Out: rows
//! ([`Sink`]), as they are found. Promise: nothing is written; any file, however damaged, yields
//! rows or an error.
//!
//! The compact parts of a database, and traces, are virtual tables, one module each. No data is
//! copied, and a query over a range of time reads only the packets of a trace that it needs.
//! `virtual_table` is the only module with `unsafe`.
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
mod unknown_names;
mod virtual_table;

pub use error::{SqlError, TextPosition};
pub use questions::{About, Questions, Sink, Stopper};
pub use rusqlite::types::{Value, ValueRef};
pub use table::Column;
pub use traces::{OpenTraces, Traces};
