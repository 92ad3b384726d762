//! The parent directories of process traces below a session's directory: `ust`, and `pid` in it.
//!
//! A server that root starts gives up root in its children before their first event, and such
//! children cannot create directories in a directory of root. So if root creates the parents, `ust`
//! can be traversed by all users (mode 0711), and all users can create entries in `ust/pid`, but
//! neither list it nor change entries of other users (mode 1733). Created directories are private
//! to their users. A reader that runs as root must not follow links there ([`crate::finish`]).

use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::sys::{self, Path, below};

const THROUGH: u32 = 0o711;
const FOR_ALL: u32 = 0o1733;

/// Creates the directories if they do not exist; returns the path of `ust/pid`. If creation fails,
/// the caller's next step fails.
pub(crate) fn make(session: &Path) -> Path {
    let ust = below(session, b"/ust");
    let pid = below(session, b"/ust/pid");
    for (path, mode) in [(&ust, THROUGH), (&pid, FOR_ALL)] {
        if sys::make_directory(path).is_ok() && sys::is_root() {
            sys::set_mode(path, mode);
        }
    }
    pid
}

/// Creates the directories before the first process needs them, because that process may lack the
/// permission.
///
/// # Errors
/// If they cannot be created.
pub fn prepare(session: &std::path::Path) -> io::Result<()> {
    let mut path = Path::new();
    path.push(session.as_os_str().as_bytes());
    let pid = make(&path);
    match std::fs::metadata(session.join("ust/pid")) {
        Ok(about) if about.is_dir() && !pid.overflowed() => Ok(()),
        Ok(_) => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        Err(error) => Err(error),
    }
}

/// Removes the directories if no process has created a trace.
pub fn remove_if_empty(session: &std::path::Path) {
    let ust = session.join("ust");
    // Fails if the directory is not empty.
    let _ = std::fs::remove_dir(ust.join("pid")).and_then(|()| std::fs::remove_dir(ust));
}
