//! Changes of a process's descriptors.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType};

use crate::io::call::{Exit, NONE, Open, descriptor};

/// A change of descriptors. What was there before under the same number is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Change {
    /// A descriptor of that type; is it closed at exec?
    Opened { fd: i32, kind: FdType, cloexec: bool },
    /// Two of them.
    Pair {
        fds: (i32, i32),
        kind: FdType,
        cloexec: bool,
    },
    /// A connection from a listening socket; the family of the peer tells its type, if known.
    Accepted {
        fd: i32,
        from: i32,
        kind: Option<FdType>,
        cloexec: bool,
    },
    /// A copy.
    Duplicated { from: i32, to: i32, cloexec: bool },
    /// Only the flag.
    CloseOnExec { fd: i32, cloexec: bool },
    /// Closed.
    Closed { fd: i32 },
    /// All from the first to the last are closed, or get the flag; in a copy of its own, where
    /// others had the same.
    Range {
        first: i64,
        last: i64,
        only_flag: bool,
        unshared: bool,
    },
    /// The thread is about to make another one. Nothing where the trace does not tell how.
    Cloning(Option<Sharing>),
    /// The thread has a copy of its own.
    Unshared,
}

/// What a new thread has in common with the one that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sharing {
    /// The process.
    pub(super) process: bool,
    /// The descriptors, not a copy of them.
    pub(super) files: bool,
}

/// Flags and commands of Linux.
const O_CLOEXEC: i64 = 0o2_000_000;
const CLOSE_RANGE_UNSHARE: i64 = 2;
const CLOSE_RANGE_CLOEXEC: i64 = 4;
const F_DUPFD: i64 = 0;
const F_SETFD: i64 = 2;
const F_DUPFD_CLOEXEC: i64 = 1030;
const FD_CLOEXEC: i64 = 1;
const CLONE_FILES: i64 = 0x400;
const CLONE_THREAD: i64 = 0x1_0000;

fn has(flags: i64, mask: i64) -> bool {
    flags != NONE && flags & mask != 0
}

impl Change {
    /// What a call that has ended changed.
    pub(super) fn of(open: &Open, exit: &Exit) -> Option<Change> {
        if exit.result < 0 {
            return None;
        }
        let [first, second, third] = open.arguments;
        let made = descriptor(exit.result);
        Some(match open.call.action() {
            Action::Open(kind, mask) => Change::Opened {
                fd: made,
                kind,
                cloexec: has(first, mask),
            },
            Action::Socket => {
                let kind = if first == NONE {
                    FdType::Socket
                } else {
                    FdType::of_family(first)
                };
                Change::Opened {
                    fd: made,
                    kind,
                    cloexec: has(second, O_CLOEXEC),
                }
            }
            Action::Accept => Change::Accepted {
                fd: made,
                from: descriptor(first),
                kind: exit.family.filter(|&family| family > 0).map(FdType::of_family),
                cloexec: has(second, O_CLOEXEC),
            },
            Action::Pipe => Change::Pair {
                fds: exit.pair?,
                kind: FdType::Pipe,
                cloexec: has(first, O_CLOEXEC),
            },
            Action::SocketPair => {
                let kind = if first == NONE {
                    FdType::Socket
                } else {
                    FdType::of_family(first)
                };
                Change::Pair {
                    fds: exit.pair?,
                    kind,
                    cloexec: has(second, O_CLOEXEC),
                }
            }
            Action::Duplicate => Change::Duplicated {
                from: descriptor(first),
                to: made,
                cloexec: false,
            },
            // A copy of a descriptor to itself is none, and keeps its flag.
            Action::DuplicateTo if descriptor(first) == made => return None,
            Action::DuplicateTo => Change::Duplicated {
                from: descriptor(first),
                to: made,
                cloexec: has(third, O_CLOEXEC),
            },
            Action::Control => match second {
                F_DUPFD | F_DUPFD_CLOEXEC => Change::Duplicated {
                    from: descriptor(first),
                    to: made,
                    cloexec: second == F_DUPFD_CLOEXEC,
                },
                F_SETFD => Change::CloseOnExec {
                    fd: descriptor(first),
                    cloexec: has(third, FD_CLOEXEC),
                },
                _ => return None,
            },
            Action::Unshare if has(first, CLONE_FILES) => Change::Unshared,
            _ => return None,
        })
    }

    /// What a call changes as soon as it begins: whoever uses the descriptor while it is being
    /// closed uses another one, if any.
    pub(super) fn at_entry(open: &Open) -> Option<Change> {
        let [first, second, third] = open.arguments;
        match open.call.action() {
            Action::Close => Some(Change::Closed {
                fd: descriptor(first),
            }),
            Action::CloseRange => Some(Change::Range {
                first,
                last: second,
                only_flag: has(third, CLOSE_RANGE_CLOEXEC),
                unshared: has(third, CLOSE_RANGE_UNSHARE),
            }),
            Action::Clone => {
                let without_flags = open.call.arguments() == 0;
                let told = without_flags || first != NONE;
                Some(Change::Cloning(told.then_some(Sharing {
                    process: has(first, CLONE_THREAD),
                    files: has(first, CLONE_FILES),
                })))
            }
            Action::CloneByMemory => Some(Change::Cloning(None)),
            _ => None,
        }
    }
}
