//! Files of traces whose directories may be another user's (see [`crate::parents`]): nothing there
//! leads elsewhere.
//!
//! A directory is opened once, and what is in it is reached by that, whatever takes its name
//! meanwhile; files are opened only if they are files, of no other name, and not in the way of what
//! is written.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A directory that stays the same as long as this lives.
pub(crate) struct Directory {
    _file: File,
    path: PathBuf,
}

impl Directory {
    /// Opens a directory; `None` if it is something else, or gone.
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

    /// A path by which it is reached.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// Opens a file, to be read, or to be changed too.
pub(crate) fn open(path: &Path, write: bool) -> io::Result<File> {
    // Not to wait for anybody, if it is a pipe.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let refused = || io::Error::new(io::ErrorKind::InvalidData, "not a file of its own");
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

/// Makes a file, in place of what may be there.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(path)
}
