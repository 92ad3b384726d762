//! System calls on descriptors: entries and exits.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::change::CLONE_FILES;

/// A system call that has begun. Many are open at a time, so only the arguments that the exit needs
/// are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// Begin time, in nanoseconds from the origin.
    pub time: i64,
    /// Descriptors of the call: first the source (or the only descriptor), second the target.
    pub fds: (i32, i32),
    /// Number of the system call.
    pub call: Syscall,
    /// Effect on descriptors.
    pub deed: Deed,
    /// Type of the descriptors that the call creates.
    pub kind: FdType,
    /// The descriptors are, or become, close-on-exec.
    pub cloexec: bool,
}

/// Effect of a call on descriptors, as far as its entry shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Deed {
    /// Moves bytes.
    Io,
    /// Creates a descriptor.
    Make,
    /// Creates two descriptors.
    MakePair,
    /// Creates a descriptor from a listening socket.
    Accept,
    /// Copies a descriptor to a number that the kernel chooses.
    Duplicate,
    /// Copies a descriptor to a given number.
    DuplicateTo,
    /// Sets or clears the close-on-exec flag of a descriptor.
    Flag,
    /// Replaces a shared table by a copy of it.
    Unshare,
    /// No effect on descriptors.
    Nothing,
}

impl Deed {
    /// All effects, in declaration order.
    pub const ALL: [Deed; 9] = [
        Deed::Io,
        Deed::Make,
        Deed::MakePair,
        Deed::Accept,
        Deed::Duplicate,
        Deed::DuplicateTo,
        Deed::Flag,
        Deed::Unshare,
        Deed::Nothing,
    ];
}

/// The end of a system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Result; negative for an error.
    pub result: i64,
    /// The two descriptors that the call created, or [`Exit::NO_PAIR`].
    pub pair: (i32, i32),
    /// Number of the system call; `None` matches any open call.
    pub call: Option<Syscall>,
    /// Type of a socket by the address family of its peer, if recorded.
    pub peer: Option<FdType>,
    /// True if calls that end at this time and CPU are selected.
    pub counts: bool,
}

impl Exit {
    /// For a call that did not create two descriptors.
    pub const NO_PAIR: (i32, i32) = (NO_FD, NO_FD);

    /// Whether the exit may belong to a call that creates or changes descriptors.
    pub fn may_change(&self) -> bool {
        use Action::*;
        let changes = |action| {
            matches!(
                action,
                Open(..)
                    | Socket
                    | SocketPair
                    | Pipe
                    | Accept
                    | Duplicate
                    | DuplicateTo
                    | Control
                    | Unshare
            )
        };
        self.result >= 0 && self.call.is_none_or(|call| changes(call.action()))
    }
}

/// Stands for no descriptor.
pub const NO_FD: i32 = -1;

/// Converts an argument to a descriptor; values outside of `i32` become [`NO_FD`].
pub fn descriptor(argument: i64) -> i32 {
    // Tracers record it as `unsigned int`, `int` or `unsigned long`.
    i32::try_from(argument).unwrap_or(NO_FD)
}

/// Flags and commands of Linux.
pub const O_CLOEXEC: i64 = 0o2_000_000;
const F_DUPFD: i64 = 0;
const F_SETFD: i64 = 2;
const F_DUPFD_CLOEXEC: i64 = 1030;
const FD_CLOEXEC: i64 = 1;

impl Open {
    /// A call with its arguments by position, as [`Action`] describes them; `None` for arguments
    /// that the tracer did not record.
    pub fn new(call: Syscall, time: i64, argument: &mut dyn FnMut(usize) -> Option<i64>) -> Open {
        let action = call.action();
        if action.is_io() {
            return Open::io(call, action, time, argument);
        }
        let mut open = Open {
            time,
            fds: (NO_FD, NO_FD),
            call,
            deed: Deed::Nothing,
            kind: FdType::Unknown,
            cloexec: false,
        };
        open.changes(action, argument);
        open
    }

    /// A call that moves bytes.
    #[inline(always)]
    pub fn io(
        call: Syscall,
        action: Action,
        time: i64,
        mut argument: impl FnMut(usize) -> Option<i64>,
    ) -> Open {
        let mut fds = (NO_FD, NO_FD);
        let places = if action == Action::Copy { 2 } else { 1 };
        for (place, fd) in [&mut fds.0, &mut fds.1]
            .into_iter()
            .enumerate()
            .take(places)
        {
            *fd = argument(place).map_or(NO_FD, descriptor);
        }
        Open {
            time,
            fds,
            call,
            deed: Deed::Io,
            kind: FdType::Unknown,
            cloexec: false,
        }
    }

    /// Decodes a call that moves no bytes.
    fn changes(&mut self, action: Action, argument: &mut dyn FnMut(usize) -> Option<i64>) {
        let socket = |family: Option<i64>| family.map_or(FdType::Socket, FdType::of_family);
        let has = |flags: Option<i64>, mask: i64| flags.is_some_and(|flags| flags & mask != 0);
        (self.deed, self.kind, self.cloexec) = match action {
            Action::Open(kind, mask) => (Deed::Make, kind, has(argument(0), mask)),
            Action::Socket => (Deed::Make, socket(argument(0)), has(argument(1), O_CLOEXEC)),
            Action::SocketPair => (
                Deed::MakePair,
                socket(argument(0)),
                has(argument(1), O_CLOEXEC),
            ),
            Action::Pipe => (Deed::MakePair, FdType::Pipe, has(argument(0), O_CLOEXEC)),
            Action::Accept => (Deed::Accept, FdType::Unknown, has(argument(1), O_CLOEXEC)),
            Action::Duplicate => (Deed::Duplicate, FdType::Unknown, false),
            Action::DuplicateTo => (
                Deed::DuplicateTo,
                FdType::Unknown,
                has(argument(2), O_CLOEXEC),
            ),
            Action::Control => match argument(1) {
                Some(command @ (F_DUPFD | F_DUPFD_CLOEXEC)) => {
                    (Deed::Duplicate, FdType::Unknown, command == F_DUPFD_CLOEXEC)
                }
                Some(F_SETFD) => (Deed::Flag, FdType::Unknown, has(argument(2), FD_CLOEXEC)),
                _ => return,
            },
            Action::Unshare if has(argument(0), CLONE_FILES) => {
                (Deed::Unshare, FdType::Unknown, false)
            }
            _ => return,
        };
        if !matches!(self.deed, Deed::Make | Deed::MakePair | Deed::Unshare) {
            self.fds.0 = argument(0).map_or(NO_FD, descriptor);
        }
    }

    /// True if the call moves bytes.
    pub fn is_io(&self) -> bool {
        self.deed == Deed::Io
    }
}
