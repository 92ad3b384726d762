//! A thread's calls: an entry and its exit.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Deed, Exit, NO_FD, Open, Text};
use tracebraid_kernel_model::{Action, Syscall, errno_of};

use crate::class::Class;
use tracebraid_follow::{Beginning, CallStretch, Ending};

/// A call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entered {
    /// Arguments.
    pub open: Open,
    /// Nothing for those that only change something, as `connect`.
    pub class: Option<Class>,
    /// Name of what it opens, or to what it connects.
    pub text: Text,
    /// Descriptor of the directory to which the name is relative, if it is told.
    pub dir: i32,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exited {
    /// Result and descriptors that it made.
    pub exit: Exit,
    /// When it ends, in nanoseconds from the origin.
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

/// A call that a thread takes from one stretch to another, and what the descriptors that it names
/// were when it began.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Parked<F> {
    /// The call.
    pub entered: Entered,
    /// The directory to which the name is relative, or else the descriptor that it reads from (or
    /// its only one); and that which it writes to.
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
    /// The descriptors that it names, for what they were when it began: see [`Parked`].
    #[inline]
    pub fn named(&self) -> (i32, i32) {
        match self.open.deed {
            Deed::Make => (self.dir, NO_FD),
            _ => self.open.fds,
        }
    }

    /// When its descriptors were what it names.
    #[inline]
    pub fn named_at(&self) -> i64 {
        named_at(self.class, self.open.time)
    }

    /// Whether the call may change what descriptors are, however it ends.
    pub fn may_change(&self) -> bool {
        match self.open.deed {
            Deed::Io => false,
            Deed::Nothing => self.open.call.action() == Action::Connect,
            _ => true,
        }
    }
}

/// When the descriptors of a call were what it names that began then.
#[inline]
pub fn named_at(class: Option<Class>, begin: i64) -> i64 {
    match class {
        // What it closes was closed when it began.
        Some(Class::Close) => begin.saturating_sub(1),
        _ => begin,
    }
}

/// A stretch of time of a CPU with one thread.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Stretch {
    pub(crate) calls: CallStretch<Entered>,
    /// The process in its last context.
    pub(crate) pid: Option<i32>,
    /// The next time at which it is to be marked how it stands; below all times where that is not
    /// looked up yet.
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

/// A thread makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forked {
    /// Its thread.
    pub child: i32,
    /// Its process, if recorded.
    pub child_pid: Option<i32>,
    /// The process of its maker, if recorded.
    pub parent_pid: Option<i32>,
}

impl Forked {
    /// Its effect on which thread has which table.
    pub fn act(&self) -> Act {
        Act::Fork {
            child: self.child,
            child_pid: self.child_pid,
            parent_pid: self.parent_pid,
        }
    }

    /// The process of what is made, as far as is told; else itself.
    #[inline]
    pub fn process(&self) -> i32 {
        self.child_pid.unwrap_or(self.child)
    }
}

/// A call from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// In nanoseconds from the origin.
    pub begin: i64,
    /// In nanoseconds.
    pub duration: u64,
    /// Below 0 an error.
    pub result: i64,
    /// Descriptors that it names: reads from (or its only one) and writes to.
    pub fds: (i32, i32),
    /// Thread.
    pub tid: i32,
    /// System call.
    pub call: Syscall,
    /// Its class.
    pub class: Class,
}

/// The side of a call on which a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Bytes come from it.
    From,
    /// Bytes go to it.
    To,
}

/// `connect` does not wait, and goes on without the program.
const EINPROGRESS: i64 = -115;

/// Whether a call with that result connects a socket.
#[inline]
pub fn connects(call: Syscall, result: i64) -> bool {
    call.action() == Action::Connect && matches!(result, 0 | EINPROGRESS)
}

/// Bytes that a call with that result moved, if it moves bytes and did not fail.
#[inline]
pub fn bytes(call: Syscall, result: i64) -> Option<u64> {
    match call.action() {
        Action::Read | Action::Write | Action::Copy => u64::try_from(result).ok(),
        _ => None,
    }
}

impl Call {
    /// Bytes that it moved, if it moves bytes and did not fail.
    #[inline]
    pub fn bytes(&self) -> Option<u64> {
        bytes(self.call, self.result)
    }

    /// True if its result is an error.
    #[inline]
    pub fn failed(&self) -> bool {
        errno_of(self.result).is_some()
    }

    /// The descriptors that it uses: number, side, and whether it is the second one that it names.
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
    /// Whether the call may change what descriptors are, whichever it is.
    pub fn may_change(&self) -> bool {
        let connects = |call| connects(call, self.exit.result);
        self.exit.may_change() || self.exit.call.is_some_and(connects)
    }
}
