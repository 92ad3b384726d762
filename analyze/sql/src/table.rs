//! The interface of virtual tables, without SQLite.

use rusqlite::types::Value;

use crate::asked::Asked;

/// A column of a virtual table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in SQL.
    pub name: &'static str,
    /// Type in SQL.
    pub kind: &'static str,
    /// Description.
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

/// A table whose rows are computed on request.
pub(crate) trait Table: Send + Sync + 'static {
    /// Name in SQL.
    fn name(&self) -> &'static str;

    /// Description of the rows.
    fn about(&self) -> &'static str;

    fn columns(&self) -> &'static [Column];

    /// Index of the key: an integer column by which rows are found without a full scan.
    fn key(&self) -> usize;

    /// True if rows are sorted by the key.
    fn is_sorted(&self) -> bool {
        true
    }

    /// Estimated number of rows.
    fn size(&self) -> f64;

    /// Estimated cost of the first row, where each further row costs 1.
    fn start(&self) -> f64 {
        1.0
    }

    /// Rows: all whose key is in the requested range, and possibly others.
    ///
    /// # Errors
    /// If the rows cannot be read; a message for users.
    fn rows(&self, asked: &Asked) -> Result<Box<dyn Rows>, String>;
}

/// A cursor over rows.
pub(crate) trait Rows {
    /// Moves to the next row, at first to the first; false after the last row.
    ///
    /// # Errors
    /// If the row cannot be read; a message for users.
    fn next(&mut self) -> Result<bool, String>;

    /// A value of the current row.
    ///
    /// # Errors
    /// If the value cannot be read; a message for users.
    fn value(&mut self, column: usize) -> Result<Value, String>;
}

/// The statement that declares the columns to SQLite.
pub(crate) fn declaration(table: &dyn Table) -> String {
    let columns = table.columns().iter();
    let columns: Vec<String> = columns
        .map(|column| format!("\"{}\" {}", column.name, column.kind))
        .collect();
    format!("CREATE TABLE x({})", columns.join(", "))
}

pub(crate) fn integer(value: Option<i64>) -> Value {
    value.map_or(Value::Null, Value::Integer)
}

pub(crate) fn text(value: Option<impl Into<String>>) -> Value {
    value.map_or(Value::Null, |text| Value::Text(text.into()))
}

/// A duration; values beyond the range of SQL integers become the greatest integer.
pub(crate) fn duration(nanoseconds: u64) -> Value {
    Value::Integer(i64::try_from(nanoseconds).unwrap_or(i64::MAX))
}
