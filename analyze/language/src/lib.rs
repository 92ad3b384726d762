//! The filter language: text to a syntax tree to a predicate over event records.
//!
//! In: an expression such as `sched_switch && next_tid == 42`, and traces. Out: for each event
//! record, whether it is selected. Conditions that depend on metadata alone (names, hosts, which
//! fields exist) are decided once for each event class. Promise: no expression and no event record
//! makes it panic.
//!
//! Filters, periods, executions and user analyses have one syntax for conditions and fields and one
//! parser (`condition`); [`periods`] and [`executions`] are the definitions around it. [`near`]
//! suggests known names for unknown ones, and [`doubts`] finds parts of a valid expression that
//! select nothing in the given traces.
//!
//! The syntax is described in `docs/reference/filter.md`, the definitions in
//! `docs/reference/periods.md`, `docs/reference/executions.md` and
//! `docs/reference/user-analyses.md`.
#![forbid(unsafe_code)]

pub mod ast;
mod class_field;
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
pub use class_field::ClassField;
pub use compile::{At, ClassFilter, Filter, Subject};
pub use datum::Datum;
pub use field::OldForms;
pub use parse::{FilterError, parse, parse_noting, parse_with_times};
