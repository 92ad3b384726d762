//! Changes of a process's descriptors.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::call::{Deed, Exit, NO_FD, Open, descriptor};

/// A change of descriptors. The previous file of the same descriptor number is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change<K = FdType> {
    /// A descriptor is created.
    Opened {
        /// Number of the descriptor.
        fd: i32,
        /// The file of the descriptor.
        kind: K,
        /// The descriptor is close-on-exec.
        cloexec: bool,
    },
    /// Two descriptors are created.
    Pair {
        /// Numbers of the descriptors.
        fds: (i32, i32),
        /// The file of both descriptors.
        kind: K,
        /// The descriptors are close-on-exec.
        cloexec: bool,
    },
    /// A connection from a listening socket. Its type follows from the family of the peer, if
    /// recorded.
    Accepted {
        /// Number of the descriptor.
        fd: i32,
        /// The listening socket.
        from: i32,
        /// The file of the descriptor, if known.
        kind: Option<K>,
        /// The descriptor is close-on-exec.
        cloexec: bool,
    },
    /// A descriptor is copied.
    Duplicated {
        /// Number of the source.
        from: i32,
        /// Number of the copy.
        to: i32,
        /// The copy is close-on-exec.
        cloexec: bool,
    },
    /// Only the close-on-exec flag changes.
    CloseOnExec {
        /// Number of the descriptor.
        fd: i32,
        /// The new value of the flag.
        cloexec: bool,
    },
    /// A descriptor is closed.
    Closed {
        /// Number of the descriptor.
        fd: i32,
    },
    /// A range of descriptors is closed or flagged, in a copy of the table if `unshared`.
    Range {
        /// First number of the range.
        first: i64,
        /// Last number of the range, inclusive.
        last: i64,
        /// The descriptors are flagged close-on-exec instead of closed.
        only_flag: bool,
        /// A shared table is replaced by a copy first.
        unshared: bool,
    },
    /// The thread is about to create another thread; `None` if the trace does not show how.
    Cloning(Option<Sharing>),
    /// A shared table is replaced by a copy.
    Unshared,
}

/// Resources that a new thread shares with its creator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// The process.
    pub process: bool,
    /// The table of descriptors, as opposed to a copy.
    pub files: bool,
}

/// Flags of Linux.
const CLOSE_RANGE_UNSHARE: i64 = 2;
const CLOSE_RANGE_CLOEXEC: i64 = 4;
pub(crate) const CLONE_FILES: i64 = 0x400;
const CLONE_THREAD: i64 = 0x1_0000;
/// Stands for an argument that the tracer did not record; less than all descriptors.
const BEFORE_ALL: i64 = i64::MIN;

impl Change {
    /// The change made by a call that has ended.
    pub fn of(open: &Open, exit: &Exit) -> Option<Change> {
        if exit.result < 0 {
            return None;
        }
        let Open {
            fds: (from, _),
            kind,
            cloexec,
            ..
        } = *open;
        let made = descriptor(exit.result);
        Some(match open.deed {
            Deed::Make => Change::Opened {
                fd: made,
                kind,
                cloexec,
            },
            Deed::MakePair if exit.pair == Exit::NO_PAIR => return None,
            Deed::MakePair => Change::Pair {
                fds: exit.pair,
                kind,
                cloexec,
            },
            Deed::Accept => Change::Accepted {
                fd: made,
                from,
                kind: exit.peer,
                cloexec,
            },
            // Copying a descriptor to itself has no effect and keeps the flag.
            Deed::DuplicateTo if from == made => return None,
            Deed::Duplicate | Deed::DuplicateTo => Change::Duplicated {
                from,
                to: made,
                cloexec,
            },
            Deed::Flag => Change::CloseOnExec { fd: from, cloexec },
            Deed::Unshare => Change::Unshared,
            Deed::Io | Deed::Nothing => return None,
        })
    }

    /// The change that a call makes at its beginning: while a descriptor is being closed, its
    /// number may already refer to another file. The exit adds no information.
    #[inline]
    pub fn at_entry(
        call: Syscall,
        mut argument: impl FnMut(usize) -> Option<i64>,
    ) -> Option<Change> {
        let has = |flags: Option<i64>, mask: i64| flags.is_some_and(|flags| flags & mask != 0);
        match call.action() {
            Action::Close => Some(Change::Closed {
                fd: argument(0).map_or(NO_FD, descriptor),
            }),
            Action::CloseRange => {
                let flags = argument(2);
                Some(Change::Range {
                    first: argument(0).unwrap_or(BEFORE_ALL),
                    last: argument(1).unwrap_or(BEFORE_ALL),
                    only_flag: has(flags, CLOSE_RANGE_CLOEXEC),
                    unshared: has(flags, CLOSE_RANGE_UNSHARE),
                })
            }
            Action::Clone => {
                let flags = argument(0);
                let told = call.arguments() == 0 || flags.is_some();
                Some(Change::Cloning(told.then_some(Sharing {
                    process: has(flags, CLONE_THREAD),
                    files: has(flags, CLONE_FILES),
                })))
            }
            Action::CloneByMemory => Some(Change::Cloning(None)),
            _ => None,
        }
    }

    /// The same change, with `kind` as the file.
    pub fn with<K>(self, kind: K) -> Change<K> {
        match self {
            Change::Accepted {
                fd, from, cloexec, ..
            } => Change::Accepted {
                fd,
                from,
                kind: Some(kind),
                cloexec,
            },
            change => change.map(|_| kind),
        }
    }
}

impl<K> Change<K> {
    /// The same change, with its file converted by `kind_of`.
    pub fn map<L>(self, kind_of: impl FnOnce(K) -> L) -> Change<L> {
        match self {
            Change::Opened { fd, kind, cloexec } => Change::Opened {
                fd,
                kind: kind_of(kind),
                cloexec,
            },
            Change::Pair { fds, kind, cloexec } => Change::Pair {
                fds,
                kind: kind_of(kind),
                cloexec,
            },
            Change::Accepted {
                fd,
                from,
                kind,
                cloexec,
            } => Change::Accepted {
                fd,
                from,
                kind: kind.map(kind_of),
                cloexec,
            },
            Change::Duplicated { from, to, cloexec } => Change::Duplicated { from, to, cloexec },
            Change::CloseOnExec { fd, cloexec } => Change::CloseOnExec { fd, cloexec },
            Change::Closed { fd } => Change::Closed { fd },
            Change::Range {
                first,
                last,
                only_flag,
                unshared,
            } => Change::Range {
                first,
                last,
                only_flag,
                unshared,
            },
            Change::Cloning(sharing) => Change::Cloning(sharing),
            Change::Unshared => Change::Unshared,
        }
    }

    /// The descriptors that the change names; `None` for a change of the whole table or of a range.
    pub fn fds(&self) -> Option<(i32, i32)> {
        match *self {
            Change::Opened { fd, .. }
            | Change::Accepted { fd, .. }
            | Change::Duplicated { to: fd, .. }
            | Change::CloseOnExec { fd, .. }
            | Change::Closed { fd } => Some((fd, NO_FD)),
            Change::Pair { fds, .. } => Some(fds),
            Change::Cloning(_) => Some((NO_FD, NO_FD)),
            Change::Range { .. } | Change::Unshared => None,
        }
    }
}
