//! Damage: a fault in a trace, its position, and the bytes that were skipped because of it.

use std::fmt;
use std::path::PathBuf;

/// A single fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Damage {
    /// The damaged file.
    pub path: PathBuf,
    /// Byte offset in the file.
    pub offset: Option<u64>,
    /// Description of the fault.
    pub message: String,
    /// Number of bytes that were skipped, if any.
    pub skipped: Option<u64>,
    /// The index of the file contradicts the head of the packet: times and losses that were taken
    /// from the index before the packet was read may be wrong. A trace that is opened with
    /// [`IndexCheck::Every`](crate::index::IndexCheck) does not use such an index.
    pub contradicts_index: bool,
}

impl Damage {
    /// Damage at an offset in a file.
    pub fn at(path: impl Into<PathBuf>, offset: u64, message: impl Into<String>) -> Self {
        Damage {
            path: path.into(),
            offset: Some(offset),
            message: message.into(),
            skipped: None,
            contradicts_index: false,
        }
    }

    /// Damage of a file as a whole.
    pub fn of(path: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Damage {
            path: path.into(),
            offset: None,
            message: message.into(),
            skipped: None,
            contradicts_index: false,
        }
    }

    /// Sets the number of bytes that were skipped.
    pub fn skipping(mut self, bytes: u64) -> Self {
        self.skipped = Some(bytes);
        self
    }

    /// Marks the damage as a contradiction between a packet head and the index of its file.
    pub(crate) fn contradicting_index(mut self) -> Self {
        self.contradicts_index = true;
        self
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, ": byte {offset}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(skipped) = self.skipped.filter(|&skipped| skipped > 0) {
            write!(f, "; skipped {skipped} bytes")?;
        }
        Ok(())
    }
}
