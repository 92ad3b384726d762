//! Changes by calls of which a slice does not know which they are: it does not contain their
//! beginnings.

use crate::call::NO_FD;
use crate::change::Change;
use crate::contents::Held;

/// What a call does to its thread's table, once it is known which call it is.
#[derive(Clone, Copy, Debug, Default)]
pub enum LateChange<K> {
    /// It changes nothing.
    #[default]
    Nothing,
    /// It changes that; what it accepts is known.
    Change {
        /// The change.
        change: Change<K>,
        /// Of a copy: what it is a copy of.
        copied: K,
    },
    /// The descriptor of that number turns out to be something else.
    Rename(i32, K),
}

impl<K: Held> LateChange<K> {
    /// The descriptors that it changes.
    pub fn fds(&self) -> [i32; 2] {
        match *self {
            LateChange::Rename(fd, _) => [fd, NO_FD],
            LateChange::Change { change, .. } => {
                change.fds().map_or([NO_FD; 2], |fds| [fds.0, fds.1])
            }
            LateChange::Nothing => [NO_FD; 2],
        }
    }

    /// What becomes of a descriptor of the table, which was that; whether it is closed at exec.
    pub fn of(&self, fd: i32, before: (K, bool)) -> (K, bool) {
        match *self {
            LateChange::Rename(to, kind) if to == fd => (kind, before.1),
            LateChange::Change { change, copied } => match change {
                Change::Opened {
                    fd: to,
                    kind,
                    cloexec,
                } if to == fd => (kind, cloexec),
                Change::Pair { fds, kind, cloexec } if fds.0 == fd || fds.1 == fd => {
                    (kind, cloexec)
                }
                Change::Accepted {
                    fd: to,
                    kind: Some(kind),
                    cloexec,
                    ..
                } if to == fd => (kind, cloexec),
                Change::Duplicated { to, cloexec, .. } if to == fd => (copied, cloexec),
                Change::CloseOnExec { fd: to, cloexec } if to == fd => (before.0, cloexec),
                _ => before,
            },
            _ => before,
        }
    }
}
