//! The filter language: text to a syntax tree to a predicate over event records.
//!
//! In: an expression such as `sched_switch && next_tid == 42`, and traces. Out: for each event
//! record, whether it is selected. Conditions that depend on metadata alone (names, hosts, which
//! fields exist) are decided once for each event class. Promise: no expression and no event record
//! makes it panic.
//!
//! Two languages build on expressions: that of periods, which relates event records to each other
//! ([`periods`]), and that of executions ([`executions`]). [`near`] suggests known names for
//! unknown ones, and [`doubts`] finds parts of a valid expression that select nothing in the given
//! traces.
//!
//! The languages are described in `docs/filter.md`, `docs/reports-periods.md` and
//! `docs/executions.md`.
#![forbid(unsafe_code)]

pub mod ast;
pub mod compile;
pub mod datum;
pub mod doubts;
pub mod executions;
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
pub use parse::{FilterError, parse, parse_with_times};
