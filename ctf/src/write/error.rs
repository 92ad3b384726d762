//! Errors of the writer.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::schema::{CtfVersion, Name};

/// The reason why an item was not written. All items that were written earlier are still valid.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// A file could not be created or written.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The version of the format cannot express the schema.
    #[error("{version} cannot express {what}")]
    Inexpressible {
        /// Version of the format.
        version: Version,
        /// The construct that cannot be expressed, and its location.
        what: String,
    },
    /// The schema is valid, but this writer does not support streams of it.
    #[error("streams with {what} cannot be written")]
    Unsupported {
        /// The unsupported or missing construct.
        what: String,
    },
    /// An argument refers to an item that does not exist, or that exists already.
    #[error("{0}")]
    Misuse(String),
    /// The events of a stream are not in the order of time.
    #[error("time goes backwards in a stream: {time} cycles come after {last}")]
    TimeBackwards {
        /// Time of the latest event or packet boundary, in cycles.
        last: u64,
        /// Time of the rejected event, in cycles.
        time: u64,
    },
    /// An event record that does not fit into any packet.
    #[error(
        "an event record `{event}` does not fit in an empty packet, which has room for {room} bytes"
    )]
    EventTooLarge {
        /// Name of the event class.
        event: Name,
        /// Number of bytes after the head of a packet of the largest size.
        room: u64,
    },
    /// The values are not those of the event class.
    #[error("event `{event}`: field `{field}`: {problem}")]
    Field {
        /// Name of the event class.
        event: Name,
        /// Name of the field; empty for an element, or after the last field.
        field: Name,
        /// The fault of the value.
        problem: FieldProblem,
    },
}

/// The fault of a value for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldProblem {
    /// The field has no value.
    Missing,
    /// A value follows the last field.
    TooMany,
    /// The value has a different kind from the field.
    Kind,
    /// The value does not fit the bits or bytes of the field.
    Range,
    /// A null-terminated string contains a null character.
    Null,
    /// The bytes are not a whole number of the encoding's code units.
    Units,
    /// The selector's value selects no option.
    NoOption,
    /// The field would share a byte with a field of the other byte order.
    ByteOrder,
    /// The encoded bytes do not have the size of the fields.
    Encoded,
    /// The field is aligned to more than a byte, so encoded bytes cannot be used.
    Alignment,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldProblem::Missing => "it has no value",
            FieldProblem::TooMany => "there is a value after the last field",
            FieldProblem::Kind => "the value has the wrong kind",
            FieldProblem::Range => "the value does not fit",
            FieldProblem::Null => "the string has a null character, which would end it",
            FieldProblem::Units => "the bytes are not a whole number of code units",
            FieldProblem::NoOption => "the selector's value selects no option",
            FieldProblem::ByteOrder => "it shares a byte with a field of the other byte order",
            FieldProblem::Encoded => "the encoded bytes are not those of the event's fields",
            FieldProblem::Alignment => {
                "encoded bytes are only accepted if all fields are aligned to bytes"
            }
        })
    }
}

/// A version of the format, displayed by its usual name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub CtfVersion);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            CtfVersion::V1_8 => "CTF 1.8",
            CtfVersion::V2_0 => "CTF 2",
        })
    }
}

impl WriteError {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
        move |error| WriteError::Io {
            path: path.to_owned(),
            error,
        }
    }

    pub(super) fn inexpressible(version: CtfVersion, what: impl Into<String>) -> WriteError {
        WriteError::Inexpressible {
            version: Version(version),
            what: what.into(),
        }
    }

    pub(super) fn unsupported(what: impl Into<String>) -> WriteError {
        WriteError::Unsupported { what: what.into() }
    }
}
