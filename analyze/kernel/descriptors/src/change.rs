//! Changes of a process's descriptors.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::call::{Deed, Exit, NO_FD, Open, descriptor};

/// A change of descriptors. What was there before under the same number is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change<K = FdType> {
    /// A descriptor of that type; is it closed at exec?
    Opened {
        /// Its number.
        fd: i32,
        /// What it is.
        kind: K,
        /// It is closed at exec.
        cloexec: bool,
    },
    /// Two of them.
    Pair {
        /// Their numbers.
        fds: (i32, i32),
        /// What they are.
        kind: K,
        /// They are closed at exec.
        cloexec: bool,
    },
    /// A connection from a listening socket; the family of the peer tells its type, if known.
    Accepted {
        /// Its number.
        fd: i32,
        /// The listening socket.
        from: i32,
        /// What it is, if that is known.
        kind: Option<K>,
        /// It is closed at exec.
        cloexec: bool,
    },
    /// A copy.
    Duplicated {
        /// Of that number.
        from: i32,
        /// Its own number.
        to: i32,
        /// It is closed at exec.
        cloexec: bool,
    },
    /// Only the flag.
    CloseOnExec {
        /// Its number.
        fd: i32,
        /// It is closed at exec from now on.
        cloexec: bool,
    },
    /// Closed.
    Closed {
        /// Its number.
        fd: i32,
    },
    /// All from the first to the last are closed, or get the flag; in a copy of its own, where
    /// others had the same.
    Range {
        /// The first one.
        first: i64,
        /// The last one.
        last: i64,
        /// They get the flag.
        only_flag: bool,
        /// The thread gets a copy of its own before that.
        unshared: bool,
    },
    /// The thread is about to make another one. Nothing where the trace does not tell how.
    Cloning(Option<Sharing>),
    /// The thread has a copy of its own.
    Unshared,
}

/// What a new thread has in common with the one that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharing {
    /// The process.
    pub process: bool,
    /// The descriptors, not a copy of them.
    pub files: bool,
}

/// Flags of Linux.
const CLOSE_RANGE_UNSHARE: i64 = 2;
const CLOSE_RANGE_CLOEXEC: i64 = 4;
pub(crate) const CLONE_FILES: i64 = 0x400;
const CLONE_THREAD: i64 = 0x1_0000;
/// An argument that the tracer did not record: before all descriptors.
const BEFORE_ALL: i64 = i64::MIN;

impl Change {
    /// What a call that has ended changed.
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
            // A copy of a descriptor to itself is none, and keeps its flag.
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

    /// What a call changes as soon as it begins: whoever uses the descriptor while it is being
    /// closed uses another one, if any. Its exit tells nothing.
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

    /// The same, of which it is told what the descriptors are by something else than their type.
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
    /// The same, of which it is told otherwise what the descriptors are.
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

    /// The descriptors that it changes; `None` if it does not say which.
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
