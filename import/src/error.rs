//! Errors of the import.

use std::io;
use std::path::{Path, PathBuf};

use tracebraid_ctf::write::WriteError;

/// The reason why a file was not imported. All partial output is removed.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file could not be read.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file that could not be read.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file is malformed.
    #[error("byte {offset}: {what}")]
    Malformed {
        /// Position of the fault, in bytes from the beginning of the file.
        offset: u64,
        /// Description of the fault.
        what: String,
    },
    /// The file is valid, but its kind is not supported.
    #[error("{0}")]
    Unsupported(String),
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The import was stopped by its caller.
    #[error("interrupted")]
    Interrupted,
}

impl ImportError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ImportError {
        move |error| ImportError::Io {
            path: path.to_owned(),
            error,
        }
    }

    pub(crate) fn malformed(offset: u64, what: impl Into<String>) -> ImportError {
        ImportError::Malformed {
            offset,
            what: what.into(),
        }
    }
}
