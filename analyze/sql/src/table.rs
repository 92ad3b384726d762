//! What a virtual table is.

use rusqlite::types::Value;

use crate::asked::Asked;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The type of its values, in SQL.
    pub kind: &'static str,
    /// What it is, for people.
    pub about: &'static str,
}

impl Column {
    pub(crate) const fn integer(name: &'static str, about: &'static str) -> Column {
        let kind = "INTEGER";
        Column { name, kind, about }
    }

    pub(crate) const fn text(name: &'static str, about: &'static str) -> Column {
        let kind = "TEXT";
        Column { name, kind, about }
    }
}

/// A table whose rows are made when they are asked for.
pub(crate) trait Table: Send + Sync + 'static {
    /// Its name.
    fn name(&self) -> &'static str;

    /// What its rows are, for people.
    fn about(&self) -> &'static str;

    /// Its columns.
    fn columns(&self) -> &'static [Column];

    /// The place of the column, of integers, by which rows are found without looking at all of
    /// them.
    fn key(&self) -> usize;

    /// True if rows come in the order of that column.
    fn is_sorted(&self) -> bool {
        true
    }

    /// About how many rows there are; it need not be exact.
    fn size(&self) -> f64;

    /// What it costs to begin to look for rows, if making a row costs 1.
    fn start(&self) -> f64 {
        1.0
    }

    /// Rows: at least those whose key is within what is asked for.
    ///
    /// # Errors
    /// For people, when there are none to be had.
    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String>;
}

/// Rows, one behind the other.
pub(crate) trait Rows {
    /// Goes to the next row, at first to the first one; false behind the last one.
    ///
    /// # Errors
    /// For people, when it cannot be had.
    fn next(&mut self) -> Result<bool, String>;

    /// A value of the row.
    ///
    /// # Errors
    /// For people, when it cannot be had.
    fn value(&mut self, column: usize) -> Result<Value, String>;
}

/// The statement that tells SQLite of the columns.
pub(crate) fn declaration(table: &dyn Table) -> String {
    let columns = table.columns().iter();
    let columns: Vec<String> = columns
        .map(|column| format!("\"{}\" {}", column.name, column.kind))
        .collect();
    format!("CREATE TABLE x({})", columns.join(", "))
}

/// An integer, if there is one.
pub(crate) fn integer(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Integer)
}

/// A text, if there is one.
pub(crate) fn text(value: Option<impl Into<String>>) -> Value {
    value.map_or(Value::Null, |text| Value::Text(text.into()))
}

/// A duration; one that SQL has no integer for is the longest that it has.
pub(crate) fn duration(nanoseconds: u64) -> Value {
    Value::Integer(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}
