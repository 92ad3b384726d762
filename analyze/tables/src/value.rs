//! Values in the cells of tables.

use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_follow::{Process, Thread, share};

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unknown or not applicable.
    None,
    /// A non-negative integer.
    Unsigned(u64),
    /// An integer that may be negative.
    Signed(i64),
    /// A floating-point number.
    Float(f64),
    /// A truth value.
    Flag(bool),
    /// A part and its whole, shown as a share; 0 if the whole is 0.
    Part(u64, u64),
    /// A time.
    Time(Timestamp),
    /// Text.
    Text(String),
    /// A thread. The rows of a log share few of them, hence the reference count.
    Thread(Arc<Thread>),
    /// A process.
    Process(Arc<Process>),
    /// A process in a tree.
    Branch(Arc<Branch>),
    /// Several values.
    List(Arc<[Value]>),
    /// A row of the nested table whose columns the column lists.
    Row(Arc<[Value]>),
    /// Rows of the nested table.
    Rows(Arc<[Vec<Value>]>),
    /// Values with names that users chose: an object in JSON; in CSV a column for each name.
    Named(Arc<[(String, Value)]>),
}

/// A process in the tree of parents and children. Parents precede their children.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// First thread; the name lists all names that the process had.
    pub thread: Thread,
    /// Number of ancestors.
    pub depth: u32,
    /// True if the trace contains the creation of the process.
    pub is_maker_known: bool,
}

impl Value {
    /// A text cell.
    pub fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// The value as a number; for a part, its share. `None` for other kinds.
    pub fn number(&self) -> Option<f64> {
        match *self {
            Value::Unsigned(number) => Some(number as f64),
            Value::Signed(number) => Some(number as f64),
            Value::Float(number) => Some(number),
            Value::Part(part, whole) => Some(share(part, whole)),
            _ => None,
        }
    }

    /// Formats named values: `NAME = VALUE, NAME = VALUE`. Ambiguous text is quoted.
    pub fn named_text(values: &[(String, Value)]) -> String {
        let text = |(name, value): &(String, Value)| match value {
            Value::None => format!("{name} = -"),
            Value::Unsigned(number) => format!("{name} = {number}"),
            Value::Signed(number) => format!("{name} = {number}"),
            Value::Float(number) => format!("{name} = {number:?}"),
            Value::Text(text) => format!("{name} = {}", unambiguous(text)),
            value => format!("{name} = {value:?}"),
        };
        let texts: Vec<String> = values.iter().map(text).collect();
        texts.join(", ")
    }
}

/// Quotes text that is empty, looks like a number, or contains separators.
fn unambiguous(text: &str) -> String {
    let is_plain = |letter: char| !letter.is_control() && !"\",=".contains(letter);
    let looks_else = text.parse::<f64>().is_ok() || text.is_empty() || text == "-";
    match text.chars().all(is_plain) && !looks_else {
        true => text.to_owned(),
        false => format!("{text:?}"),
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

impl From<Process> for Value {
    fn from(value: Process) -> Value {
        Value::Process(Arc::new(value))
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::text(value)
    }
}

#[cfg(test)]
mod tests {
    /// Logs contain millions of values.
    #[test]
    fn values_are_small() {
        assert_eq!(size_of::<super::Value>(), 24);
    }
}
