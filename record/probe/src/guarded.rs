//! Access to trace files in directories that may belong to another user (see [`crate::parents`]),
//! without following links to other directories.
//!
//! A directory is opened once, and its files are reached through the descriptor, even if its path
//! is replaced meanwhile. Only regular files with a single hard link are opened.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A directory that stays the same as long as this value lives.
pub(crate) struct Directory {
    _file: File,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory; `None` if it does not exist or is not a directory.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Directory>> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        match OpenOptions::new().read(true).custom_flags(flags).open(path) {
            Ok(file) => {
                let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                Ok(Some(Directory { _file: file, path }))
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::ENOTDIR | libc::ELOOP | libc::ENOENT) => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// A path that refers to the open directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens a regular file for reading and, if `write`, for writing.
pub(crate) fn open(path: &Path, write: bool) -> io::Result<File> {
    // Does not block if the file is a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let refused = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "not a regular file with a single hard link",
        )
    };
    let opened = OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(flags)
        .open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ELOOP | libc::EISDIR | libc::ENXIO) => refused(),
        _ => error,
    })?;
    let about = file.metadata()?;
    (about.is_file() && about.nlink() <= 1)
        .then_some(file)
        .ok_or_else(refused)
}

/// Creates a file in place of any existing file.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}
