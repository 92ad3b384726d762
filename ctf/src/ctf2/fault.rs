//! Errors within the front end: a byte offset and a message.

/// An error at a byte offset of the metadata text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) at: usize,
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

pub(super) type Result<T> = std::result::Result<T, Fault>;
