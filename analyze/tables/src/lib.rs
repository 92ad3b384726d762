//! Reports as lists of tables: one form from which every format is made.
//!
//! In: the results of an analysis. Out: a [`Report`]: a head, some totals and [`Section`]s, tables
//! whose [`Column`]s have a key for programs, a title for people and a [`Unit`], and whose rows are
//! [`Value`]s. Promise: text, JSON, CSV and LAMI 1.0 show the same values, since each is made from
//! this form in one place (here `serialize`; in the program `commands/sections.rs` and `lami.rs`).
#![forbid(unsafe_code)]

mod columns;
mod lists;
mod serialize;
mod unmatched;

pub use columns::{distribution_columns, distribution_values, frequencies};
pub use lists::Lists;
pub use tracebraid_follow::View;
pub use unmatched::unmatched;

use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;

use tracebraid_follow::{Head, KernelReport, Process, Thread, ThreadFilter};
use tracebraid_statistics::Ranges;

/// A report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The range and the machines.
    pub head: Head,
    /// What is said of all of it together.
    pub totals: Vec<Total>,
    /// The tables.
    pub sections: Vec<Section>,
    /// For a second pass; not shown.
    pub ranges: Ranges,
    /// What of the choice chose nothing, in sentences for people; no part of the tables.
    pub notes: Vec<String>,
}

/// Something that is said of all together.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// For programs.
    pub key: &'static str,
    /// For people, behind the value: `system calls`.
    pub title: &'static str,
    /// The same behind 1: `system call`.
    pub one: &'static str,
    /// How much.
    pub value: Value,
    /// Of what.
    pub unit: Unit,
}

impl Total {
    /// That of which there is so much.
    pub fn new(key: &'static str, title: &'static str, value: Value) -> Total {
        Total {
            key,
            title,
            one: title,
            value,
            unit: Unit::Count,
        }
    }

    /// Says what stands behind 1.
    pub fn or_one(self, one: &'static str) -> Total {
        Total { one, ..self }
    }

    /// Says that it is no number of things.
    pub fn of(self, unit: Unit) -> Total {
        Total { unit, ..self }
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// For programs.
    pub key: &'static str,
    /// For people.
    pub title: String,
    /// Of which view it is a part.
    pub view: View,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, each with a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// True if there is a row for each thread and the like: people see the first ones only.
    pub is_long: bool,
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// For programs.
    pub key: &'static str,
    /// For people.
    pub title: &'static str,
    /// What its values are.
    pub unit: Unit,
    /// Order in which columns are left out where a table is too wide; 0 for those that stay.
    pub left_out: u8,
}

impl Column {
    /// A column that stays.
    pub const fn new(key: &'static str, title: &'static str, unit: Unit) -> Column {
        Column {
            key,
            title,
            unit,
            left_out: 0,
        }
    }

    /// Says that it may be left out, after those with smaller numbers (from 1).
    pub const fn left_out(mut self, order: u8) -> Column {
        self.left_out = order;
        self
    }
}

/// What the values of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// An id: a number that is not added up.
    Id,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Duration,
    /// Nanoseconds from the origin.
    Time,
    /// A part of a whole, from 0 to 1.
    Share,
    /// A number with a fraction.
    Number,
    /// Text.
    Text,
    /// A thread.
    Thread,
    /// A process: the thread after which it is named.
    Process,
    /// A CPU.
    Cpu,
    /// A system call.
    Syscall,
    /// An interrupt.
    Irq,
    /// A block device.
    Disk,
    /// A network interface.
    Interface,
    /// A path.
    Path,
    /// A descriptor.
    Descriptor,
    /// What to type.
    Command,
}

/// What stands in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// It is not known, or there is none.
    None,
    /// A number.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i64),
    /// A number with a fraction.
    Float(f64),
    /// A time.
    Time(Timestamp),
    /// Text.
    Text(String),
    /// A thread; the rows of a log share those of few.
    Thread(Arc<Thread>),
}

impl Value {
    /// Text.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::None, T::into)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Unsigned(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Signed(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Value {
        Value::Time(value)
    }
}

impl From<Thread> for Value {
    fn from(value: Thread) -> Value {
        Value::Thread(Arc::new(value))
    }
}

impl From<Arc<Thread>> for Value {
    fn from(value: Arc<Thread>) -> Value {
        Value::Thread(value)
    }
}

impl From<&Process> for Value {
    fn from(value: &Process) -> Value {
        Thread::from(value).into()
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::text(value)
    }
}

impl Report {
    /// The table with that key.
    pub fn section(&self, key: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.key == key)
    }

    /// What is said of all together under that key.
    pub fn total(&self, key: &str) -> Value {
        let total = self.totals.iter().find(|total| total.key == key);
        total.map_or(Value::None, |total| total.value.clone())
    }
}

impl Section {
    /// A table of statistics that has a row for each thread and the like.
    pub fn new(key: &'static str, title: &str, columns: Vec<Column>, rows: Vec<Vec<Value>>) -> Section {
        Section {
            key,
            title: title.to_owned(),
            view: View::Stats,
            columns,
            rows,
            is_long: true,
        }
    }

    /// Says that it has few rows.
    pub fn short(self) -> Section {
        Section {
            is_long: false,
            ..self
        }
    }

    /// The cell of a row in the column with that key.
    pub fn cell<'r>(&self, row: &'r [Value], key: &str) -> Option<&'r Value> {
        let columns = self.columns.iter().zip(row);
        columns
            .filter(|(column, _)| column.key == key)
            .map(|(_, value)| value)
            .next()
    }
}

impl KernelReport for Report {
    fn head(&self) -> &Head {
        &self.head
    }

    fn is_empty(&self) -> bool {
        self.sections.iter().all(|section| section.rows.is_empty())
    }

    /// Tables of what belongs to nobody have rows all the same.
    fn lacks_threads(&self, filter: &ThreadFilter) -> bool {
        let tells = |section: &&Section| {
            let mut units = section.columns.iter().map(|column| column.unit);
            units.any(|unit| matches!(unit, Unit::Thread | Unit::Process))
        };
        let is_shown = |(column, value): (&Column, &Value)| match (column.unit, value) {
            // It is named after its first thread, whichever were asked for.
            (Unit::Process, Value::Thread(_)) => true,
            (_, Value::Thread(thread)) => filter.shows(thread),
            _ => false,
        };
        let has = |section: &Section| {
            let mut rows = section.rows.iter();
            rows.any(|row| section.columns.iter().zip(row).any(is_shown))
        };
        let mut telling = self.sections.iter().filter(tells).peekable();
        telling.peek().is_some() && !telling.any(has)
    }

    fn truncate(&mut self, rows: usize) {
        let long = self.sections.iter_mut().filter(|section| section.is_long);
        long.for_each(|section| section.rows.truncate(rows));
    }
}

#[cfg(test)]
mod tests {
    /// Logs have millions of them.
    #[test]
    fn values_are_small() {
        assert_eq!(size_of::<super::Value>(), 24);
    }
}
