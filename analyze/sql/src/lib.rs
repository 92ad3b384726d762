//! Questions in SQL about databases of executions and about traces.
//!
//! In: a database of executions, traces, or both ([`Questions`]), and a text in SQL. Out: rows ([`Sink`]), one by one. What is
//! kept in compact form, and what stands in traces, are virtual tables: nothing is copied, and of a trace no more
//! is read than a question about a range of time needs. Promise: nothing is ever written, and whatever a file says,
//! there is a row or an error.
//!
//! `docs/executions-sql.md` documents the tables.

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

pub use error::{Place, SqlError};
pub use questions::{About, Questions, Sink, Stopper};
pub use rusqlite::types::{Value, ValueRef};
pub use table::Column;
pub use traces::{OpenTraces, Traces};
