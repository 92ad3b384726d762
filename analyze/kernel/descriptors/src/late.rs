//! Changes by late calls: calls that end in a slice but began before it, so the slice does not know
//! which calls they are.

use crate::call::NO_FD;
use crate::change::Change;
use crate::contents::Held;

/// Effect of a call on its thread's table, once the call is known.
#[derive(Clone, Copy, Debug, Default)]
pub enum LateChange<K> {
    /// No effect.
    #[default]
    Nothing,
    /// A change; for an accepted connection, its file is known.
    Change {
        /// The change.
        change: Change<K>,
        /// For a copied descriptor, the file of its source.
        copied: K,
    },
    /// The descriptor with this number turns out to refer to this file.
    Rename(i32, K),
}

impl<K: Held> LateChange<K> {
    /// The descriptors that the call changes.
    pub fn fds(&self) -> [i32; 2] {
        match *self {
            LateChange::Rename(fd, _) => [fd, NO_FD],
            LateChange::Change { change, .. } => {
                change.fds().map_or([NO_FD; 2], |fds| [fds.0, fds.1])
            }
            LateChange::Nothing => [NO_FD; 2],
        }
    }

    /// File and close-on-exec flag of a descriptor after the change.
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
