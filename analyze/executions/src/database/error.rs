//! What can be wrong with a database.

use std::path::{Path, PathBuf};

/// What is wrong with a database of executions.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file cannot be opened, read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// SQLite refuses.
    #[error("{path}: {source}", path = path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// Neither a file nor a directory.
    #[error("{path}: this is {what}; a database must be a regular file", path = path.display())]
    Special {
        /// Where it is.
        path: PathBuf,
        /// Type of the file: a pipe, a device.
        what: &'static str,
    },
    /// It is something else.
    #[error("{path}: is no database of executions: make one by `tracebraid executions build`", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else appends to it.
    #[error("{path}: another build appends to it: try again when that has ended", path = path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// What is to be appended is there already.
    #[error("{path}: {trace} is in it already, labelled {label}: give these executions another label (--label)", path = path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The trace.
        trace: String,
        /// What both are called.
        label: String,
    },
    /// It has another version.
    #[error("{path}: has version {found} of the schema, and this program knows {known}: build it anew from its traces", path = path.display(), known = super::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// What stands in it cannot be.
    #[error("{path}: is damaged: {what}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl DatabaseError {
    pub(super) fn file(path: &Path, source: std::io::Error) -> Self {
        let path = path.to_owned();
        DatabaseError::File { path, source }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> Self {
        DatabaseError::Damaged {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    /// SQLite's refusals as such of that file.
    pub(super) fn sqlite(path: &Path) -> impl Fn(rusqlite::Error) -> Self + '_ {
        |source| {
            let path = path.to_owned();
            match source.sqlite_error_code() {
                Some(rusqlite::ErrorCode::NotADatabase) => DatabaseError::Foreign { path },
                _ => match wrong_value(&source) {
                    Some(what) => DatabaseError::Damaged { path, what },
                    None => DatabaseError::Sqlite { path, source },
                },
            }
        }
    }
}

/// What is wrong with a value that is not what its column has.
fn wrong_value(error: &rusqlite::Error) -> Option<String> {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, Utf8Error,
    };
    Some(match error {
        InvalidColumnType(_, column, kind) => format!("a value of `{column}` is of type {kind}"),
        IntegralValueOutOfRange(_, number) => format!("{number} is out of range"),
        FromSqlConversionFailure(..) | Utf8Error(..) => format!("a value cannot be read: {error}"),
        _ => return None,
    })
}
