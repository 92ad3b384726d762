//! Why something was not written.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::schema::{CtfVersion, Name};

/// Why something was not written. What had been written before is still valid.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The system refused to write or to make a file.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// A version of the format cannot say what the schema says.
    #[error("{version} cannot express {what}")]
    Inexpressible {
        /// The version.
        version: Version,
        /// What it cannot express, and where it is.
        what: String,
    },
    /// The schema is valid, but streams of it are not written by this writer.
    #[error("streams with {what} cannot be written")]
    Unsupported {
        /// What it has, or lacks.
        what: String,
    },
    /// Something was asked for that is not there, or is there already.
    #[error("{0}")]
    Misuse(String),
    /// The events of a stream must come in the order of time.
    #[error("time goes backwards in a stream: {time} cycles come after {last}")]
    TimeBackwards {
        /// Time of the latest event or packet boundary, in cycles.
        last: u64,
        /// The time that was given, in cycles.
        time: u64,
    },
    /// An event record that fits in no packet.
    #[error(
        "an event record `{event}` does not fit in an empty packet, which has room for {room} bytes"
    )]
    EventTooLarge {
        /// Name of its class.
        event: Name,
        /// Bytes behind the head of a packet of the largest size.
        room: u64,
    },
    /// The fields that were given are not those of the event class.
    #[error("event `{event}`: field `{field}`: {problem}")]
    Field {
        /// Name of the event class.
        event: Name,
        /// Name of the field; empty for an element, or for what comes behind the last one.
        field: Name,
        /// What is wrong with it.
        problem: FieldProblem,
    },
}

/// What is wrong with a value that was given for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldProblem {
    /// No value was given for it.
    Missing,
    /// A value was given behind the last field.
    TooMany,
    /// The value is of another kind than the field.
    Kind,
    /// The value does not fit the bits or bytes of the field.
    Range,
    /// A null character is in a string that ends with one.
    Null,
    /// The bytes are not a whole number of the encoding's code units.
    Units,
    /// The selector's value selects no option.
    NoOption,
    /// Its first bits would share a byte with a field of the other byte order.
    ByteOrder,
    /// The bytes that were given as encoded already do not have the size of the fields.
    Encoded,
    /// It is aligned to more than the place of bytes that are encoded already.
    Alignment,
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FieldProblem::Missing => "no value was given for it",
            FieldProblem::TooMany => "a value was given behind the last field",
            FieldProblem::Kind => "the value is of another kind",
            FieldProblem::Range => "the value does not fit",
            FieldProblem::Null => "the string has a null character, which would end it",
            FieldProblem::Units => "the bytes are no whole number of code units",
            FieldProblem::NoOption => "the selector's value selects no option",
            FieldProblem::ByteOrder => "it shares a byte with a field of the other byte order",
            FieldProblem::Encoded => "the encoded bytes are not those of the event's fields",
            FieldProblem::Alignment => {
                "encoded bytes can only be given where all fields are aligned to bytes"
            }
        })
    }
}

/// A version of the format, as people call it.
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
