//! Errors inside the front end: a place and a message.

/// What is wrong at a byte offset of the metadata text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Byte offset.
    pub(super) at: usize,
    /// The message.
    pub(super) message: String,
}

impl Fault {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Fault {
            at,
            message: message.into(),
        }
    }
}

/// The result of a part of the front end.
pub(super) type Result<T> = std::result::Result<T, Fault>;
