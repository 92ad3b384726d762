//! Calls: an entry and its exit.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::change::CLONE_FILES;

/// A call that has begun. Many wait at a time: only what its exit needs of the arguments is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open {
    /// When it begins, in nanoseconds from the origin.
    pub time: i64,
    /// Descriptors that it names: reads from (or its only one) and writes to.
    pub fds: (i32, i32),
    /// Which call.
    pub call: Syscall,
    /// Its effect on descriptors.
    pub deed: Deed,
    /// Type of the descriptors that it makes.
    pub kind: FdType,
    /// They are closed at exec, or are to be.
    pub cloexec: bool,
}

/// What a call does to descriptors, as far as its entry tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Deed {
    /// Moves bytes.
    Io,
    /// Makes one.
    Make,
    /// Makes two.
    MakePair,
    /// Makes one from a socket.
    Accept,
    /// Copies one to a number that the kernel chooses.
    Duplicate,
    /// Copies one to a given number.
    DuplicateTo,
    /// Sets or clears the flag of one.
    Flag,
    /// Gets a copy of those that it shares.
    Unshare,
    /// None of these.
    Nothing,
}

impl Deed {
    /// All, in their order.
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

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// Its result: below 0 an error.
    pub result: i64,
    /// The two descriptors that the call made, or [`Exit::NO_PAIR`].
    pub pair: (i32, i32),
    /// `None`: whatever call is open.
    pub call: Option<Syscall>,
    /// Type of a socket by the address family of its peer, if that is told.
    pub peer: Option<FdType>,
    /// True if calls that end here and now are asked for.
    pub counts: bool,
}

impl Exit {
    /// Of a call that made no two descriptors.
    pub const NO_PAIR: (i32, i32) = (NO_FD, NO_FD);

    /// Whether it may be the end of a call that makes or changes descriptors.
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

/// No descriptor.
pub const NO_FD: i32 = -1;

/// A descriptor; what is none becomes [`NO_FD`].
pub fn descriptor(argument: i64) -> i32 {
    // Tracers give it as `unsigned int`, `int` or `unsigned long`.
    i32::try_from(argument).unwrap_or(NO_FD)
}

/// Flags and commands of Linux.
pub const O_CLOEXEC: i64 = 0o2_000_000;
const F_DUPFD: i64 = 0;
const F_SETFD: i64 = 2;
const F_DUPFD_CLOEXEC: i64 = 1030;
const FD_CLOEXEC: i64 = 1;

impl Open {
    /// A call whose arguments, as [`Action`] describes them, are `None` where the tracer did not
    /// record them.
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

    /// One that moves bytes.
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

    /// Of a call that moves no bytes.
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

    /// True if its loss is to be told.
    pub fn is_io(&self) -> bool {
        self.deed == Deed::Io
    }
}
