//! Errors of databases.

use std::path::{Path, PathBuf};

/// Reasons for which a database of executions cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// The file cannot be opened, read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Path of the database.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// SQLite reports an error.
    #[error("{path}: {source}", path = path.display())]
    Sqlite {
        /// Path of the database.
        path: PathBuf,
        /// Cause.
        source: rusqlite::Error,
    },
    /// Neither a file nor a directory.
    #[error("{path}: this is {what}; a database must be a regular file", path = path.display())]
    Special {
        /// Path of the file.
        path: PathBuf,
        /// Type of the file: a pipe, a device.
        what: &'static str,
    },
    /// The file is not a database of executions.
    #[error("{path}: not a database of executions; create one with `tracebraid executions build`", path = path.display())]
    Foreign {
        /// Path of the file.
        path: PathBuf,
    },
    /// Another process is appending to the database.
    #[error("{path}: another build is appending to this database; try again when it has finished", path = path.display())]
    Busy {
        /// Path of the database.
        path: PathBuf,
    },
    /// The database already contains the trace with the same label.
    #[error("{path}: {trace} is already in the database with the label {label}; choose another one with --label", path = path.display())]
    Twice {
        /// Path of the database.
        path: PathBuf,
        /// Path of the trace.
        trace: String,
        /// Label of both.
        label: String,
    },
    /// The database has another schema version.
    #[error("{path}: the database has schema version {found}, but this program reads version {known}; rebuild it from its traces", path = path.display(), known = super::VERSION)]
    Version {
        /// Path of the database.
        path: PathBuf,
        /// Version of the database.
        found: i64,
    },
    /// The contents are invalid.
    #[error("{path}: the database is damaged: {what}", path = path.display())]
    Damaged {
        /// Path of the database.
        path: PathBuf,
        /// The damage.
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

    /// Converts errors of SQLite for that file.
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

/// Describes a value that does not have the type of its column; `None` for other errors.
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
