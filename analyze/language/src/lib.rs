//! The filter language: text to a syntax tree to a predicate over event records.
//!
//! In: an expression like `sched_switch && next_tid == 42`, and traces. Out: for every event
//! record, whether it is wanted. What the metadata decides (names, hosts, which fields there are)
//! is decided once per event class. Promise: no expression and no event record makes it panic.
//! Filters, periods, executions and user analyses have one syntax for conditions and fields,
//! `docs/filter.md`, and one parser (`condition`). Definitions around them are described in
//! `docs/reports-periods.md`, `docs/executions.md` and `docs/user-analyses.md`.
#![forbid(unsafe_code)]

pub mod ast;
pub mod compile;
mod condition;
pub mod datum;
pub mod doubts;
pub mod executions;
mod field;
pub mod glob;
mod lexer;
mod logic;
pub mod near;
pub mod parse;
pub mod periods;
pub mod tasks;
pub use tracebraid_kernel_model::{Cpus, head_cpu};

pub use ast::Expr;
pub use compile::{At, ClassField, ClassFilter, Filter, Subject};
pub use datum::Datum;
pub use field::OldForms;
pub use parse::{FilterError, parse, parse_noting, parse_with_times};
