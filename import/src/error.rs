//! Why a file was not imported.

use std::io;
use std::path::{Path, PathBuf};

use tracebraid_ctf::write::WriteError;

/// Why a file was not imported. Nothing is left of what had been written.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The system refused to read the file.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file is not what it says that it is.
    #[error("byte {offset}: {what}")]
    Malformed {
        /// Where, in bytes from the file's beginning.
        offset: u64,
        /// What is wrong there.
        what: String,
    },
    /// The file is sound, but of a kind that is not read.
    #[error("{0}")]
    Unsupported(String),
    /// The trace cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It was asked to stop.
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
