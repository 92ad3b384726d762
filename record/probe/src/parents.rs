//! The directories below a session's in which processes make theirs: `ust` and `pid` in it.
//!
//! A server that root starts gives up root in its children before they do anything worth recording,
//! and they cannot make directories in one of root's. So where root makes them, `ust` lets
//! everybody through (mode 0711), and everybody may make something in `ust/pid`, but neither see
//! what is there nor touch what is others' (mode 1733). What they make is theirs alone. Whoever
//! reads all that as root takes care not to be led elsewhere ([`crate::finish`]).

use std::io;
use std::os::unix::ffi::OsStrExt;

use crate::sys::{self, Path, below};

const THROUGH: u32 = 0o711;
const FOR_ALL: u32 = 0o1733;

/// Makes them, if they are not there; gives the path of `ust/pid`. If they cannot be made, what
/// follows fails.
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

/// Makes them before a session's processes do, the first of which may not be allowed to.
///
/// # Errors
/// When they cannot be made.
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

/// Removes them again if no process has made anything there.
pub fn remove_if_empty(session: &std::path::Path) {
    let ust = session.join("ust");
    // They stay if something is in them.
    let _ = std::fs::remove_dir(ust.join("pid")).and_then(|()| std::fs::remove_dir(ust));
}
