//! Reports as lists of tables: the one form from which every format is made.
//!
//! In: the results of an analysis. Out: a [`Report`]: a head, totals and [`Section`]s. A section is
//! a table whose [`Column`]s have a key for programs, a title for people and a [`Unit`], and whose
//! rows are [`Value`]s. [`Forms`] restricts a column or a table to some formats. Promise: text,
//! JSON, CSV and LAMI 1.0 show the same values, since each is made from this form by one module
//! (here `serialize`; in the program `commands/sections.rs` and `lami.rs`).
#![forbid(unsafe_code)]

mod column;
mod columns;
mod command;
mod report;
mod section;
mod sentence;
mod serialize;
mod unmatched;
mod value;

pub use column::{Column, Forms, Unit};
pub use columns::{
    DISTRIBUTION, Group, distribution_columns, distribution_values, frequencies, histogram,
    lengths, nothing_to_list,
};
pub use command::{seconds, shell_word};
pub use report::{Report, Total};
pub use section::{Row, Section};
pub use sentence::{Phrase, Sentence};
pub use tracebraid_follow::View;
pub use unmatched::{is_named, unmatched, unmatched_known};
pub use value::{Branch, Value};
