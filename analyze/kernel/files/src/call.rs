//! Calls of a thread: entries and exits.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Deed, Exit, NO_FD, Open, Text};
use tracebraid_kernel_model::{Action, Syscall, errno_of};

use crate::class::Class;
use tracebraid_follow::{Beginning, CallStretch, Ending};

/// A system call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// Arguments.
    pub open: Open,
    /// Class of the call; `None` for calls that only change state, such as `connect`.
    pub class: Option<Class>,
    /// Path that the call opens, or address that it connects to.
    pub text: Text,
    /// Descriptor of the directory that the path is relative to, if recorded.
    pub dir: i32,
}

/// A system call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exited {
    /// Result of the call and descriptors that it made.
    pub exit: Exit,
    /// End time, in nanoseconds from the origin.
    pub time: i64,
    /// Address of the peer.
    pub text: Text,
}

impl Beginning for Entered {
    #[inline(always)]
    fn call(&self) -> Syscall {
        self.open.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.open.time
    }
}

impl Ending for Exited {
    #[inline(always)]
    fn call(&self) -> Option<Syscall> {
        self.exit.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.time
    }
}

/// A call that a thread carries from one stretch to another, with the files that its descriptors
/// referred to when it began.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Parked<F> {
    /// The call.
    pub entered: Entered,
    /// Files of two descriptors: first the directory that the path is relative to, or else the
    /// descriptor that the call reads from (or its only one); second the descriptor that it writes
    /// to.
    pub held: (F, F),
}

impl<F: Copy> Beginning for Parked<F> {
    #[inline(always)]
    fn call(&self) -> Syscall {
        self.entered.open.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.entered.open.time
    }
}

impl Entered {
    /// Descriptors whose files at the beginning of the call matter: see [`Parked`].
    #[inline]
    pub fn named(&self) -> (i32, i32) {
        match self.open.deed {
            Deed::Make => (self.dir, NO_FD),
            _ => self.open.fds,
        }
    }

    /// Time for looking up the descriptors of the call, in nanoseconds from the origin.
    #[inline]
    pub fn named_at(&self) -> i64 {
        named_at(self.class, self.open.time)
    }

    /// Whether the call may change descriptors, whatever its result.
    pub fn may_change(&self) -> bool {
        match self.open.deed {
            Deed::Io => false,
            Deed::Nothing => self.open.call.action() == Action::Connect,
            _ => true,
        }
    }
}

/// Time for looking up the descriptors of a call that begins at `begin`.
#[inline]
pub fn named_at(class: Option<Class>, begin: i64) -> i64 {
    match class {
        // `close` takes effect at its beginning.
        Some(Class::Close) => begin.saturating_sub(1),
        _ => begin,
    }
}

/// A stretch of time of a CPU with one thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stretch {
    pub(crate) calls: CallStretch<Entered>,
    /// Process in the latest context.
    pub(crate) pid: Option<i32>,
    /// Next marked time for recording the state of the CPU; the least number if not looked up yet.
    pub(crate) until: i64,
}

impl Default for Stretch {
    fn default() -> Self {
        Stretch::new(None, i64::MIN)
    }
}

impl Stretch {
    pub(crate) fn new(tid: Option<i32>, until: i64) -> Stretch {
        let calls = CallStretch::new(tid);
        let pid = None;
        Stretch { calls, pid, until }
    }
}

/// Creation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// Id of the new thread.
    pub child: i32,
    /// Process of the new thread, if recorded.
    pub child_pid: Option<i32>,
    /// Process of the creating thread, if recorded.
    pub parent_pid: Option<i32>,
}

impl Forked {
    /// Effect on the tables of threads.
    pub fn act(&self) -> Act {
        Act::Fork {
            child: self.child,
            child_pid: self.child_pid,
            parent_pid: self.parent_pid,
        }
    }

    /// Process of the new thread, if recorded; else the id of the thread.
    #[inline]
    pub fn process(&self) -> i32 {
        self.child_pid.unwrap_or(self.child)
    }
}

/// A call from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Begin time, in nanoseconds from the origin.
    pub begin: i64,
    /// Duration in nanoseconds.
    pub duration: u64,
    /// Result; negative for an error.
    pub result: i64,
    /// Descriptors of the call: first the source (or the only descriptor), second the target.
    pub fds: (i32, i32),
    /// Id of the thread.
    pub tid: i32,
    /// Number of the system call.
    pub call: Syscall,
    /// Class of the call.
    pub class: Class,
}

/// Direction of bytes between a call and a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Bytes come from the file.
    From,
    /// Bytes go to the file.
    To,
}

/// Result of a `connect` that goes on in the background.
const EINPROGRESS: i64 = -115;

/// Whether a call with this result connects a socket.
#[inline]
pub fn connects(call: Syscall, result: i64) -> bool {
    call.action() == Action::Connect && matches!(result, 0 | EINPROGRESS)
}

/// Bytes moved by a call with this result; `None` if the call moves no bytes or failed.
#[inline]
pub fn bytes(call: Syscall, result: i64) -> Option<u64> {
    match call.action() {
        Action::Read | Action::Write | Action::Copy => u64::try_from(result).ok(),
        _ => None,
    }
}

impl Call {
    /// Bytes moved; `None` if the call moves no bytes or failed.
    #[inline]
    pub fn bytes(&self) -> Option<u64> {
        bytes(self.call, self.result)
    }

    /// True if the result is an error.
    #[inline]
    pub fn failed(&self) -> bool {
        errno_of(self.result).is_some()
    }

    /// Descriptors that the call uses: number, side, and whether it is the second of `fds`.
    #[inline(always)]
    pub fn used(&self) -> [Option<(i32, Side, bool)>; 2] {
        let side = match self.class {
            Class::Write => Side::To,
            _ => Side::From,
        };
        let is_of_file = self.fds.0 != NO_FD || self.class != Class::Sync;
        let first = is_of_file.then_some((self.fds.0, side, false));
        let second = (self.class == Class::Copy).then_some((self.fds.1, Side::To, true));
        [first, second]
    }
}

impl Exited {
    /// Whether the exit may belong to a call that changes descriptors.
    pub fn may_change(&self) -> bool {
        let connects = |call| connects(call, self.exit.result);
        self.exit.may_change() || self.exit.call.is_some_and(connects)
    }
}
