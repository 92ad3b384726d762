//! A thread's calls: an entry and its exit.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Deed, Exit, NO_FD, Open, Text};
use tracebraid_kernel_model::{Action, Syscall};

use crate::files::class::Class;
use crate::files::machine::connects;
use crate::files::stats::Side;
use tracebraid_follow::{Beginning, CallStretch, Ending};

/// A call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entered {
    pub(super) open: Open,
    /// Nothing for those that only change something, as `connect`.
    pub(super) class: Option<Class>,
    /// Name of what it opens, or to what it connects.
    pub(super) text: Text,
    /// Descriptor of the directory to which the name is relative, if it is told.
    pub(super) dir: i32,
}

/// A call that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exited {
    pub(super) exit: Exit,
    pub(super) time: i64,
    /// Address of the peer.
    pub(super) text: Text,
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

/// A call that a thread takes from one stretch to another, and what the descriptors that it names were when it began.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Parked<F> {
    pub(super) entered: Entered,
    /// The directory to which the name is relative, or else the descriptor that it reads from (or its only one); and that which it
    /// writes to.
    pub(super) held: (F, F),
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
    pub(super) fn named(&self) -> (i32, i32) {
        match self.open.deed {
            Deed::Make => (self.dir, NO_FD),
            _ => self.open.fds,
        }
    }

    /// When its descriptors were what it names.
    pub(super) fn named_at(&self) -> i64 {
        named_at(self.class, self.open.time)
    }
}

/// When the descriptors of a call were what it names that began then.
pub(super) fn named_at(class: Option<Class>, begin: i64) -> i64 {
    match class {
        // What it closes was closed when it began.
        Some(Class::Close) => begin.saturating_sub(1),
        _ => begin,
    }
}

/// What the thread does that runs on a CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) calls: CallStretch<Entered>,
    /// The process that its context told last.
    pub(super) pid: Option<i32>,
    /// The next time at which it is to be marked how it stands; below all times where that is not looked up yet.
    pub(super) until: i64,
}

impl Default for Stretch {
    fn default() -> Self {
        Stretch::new(None, i64::MIN)
    }
}

impl Stretch {
    pub(super) fn new(tid: Option<i32>, until: i64) -> Stretch {
        let calls = CallStretch::new(tid);
        let pid = None;
        Stretch { calls, pid, until }
    }
}

/// A thread makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forked {
    pub(super) child: i32,
    pub(super) child_pid: Option<i32>,
    pub(super) parent_pid: Option<i32>,
}

impl Forked {
    /// What the thread does that makes the other one.
    pub(super) fn act(&self) -> Act {
        Act::Fork {
            child: self.child,
            child_pid: self.child_pid,
            parent_pid: self.parent_pid,
        }
    }
}

impl Forked {
    /// The process of what is made, as far as is told; else itself.
    pub(super) fn process(&self) -> i32 {
        self.child_pid.unwrap_or(self.child)
    }
}

/// A call from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) begin: i64,
    pub(super) duration: u64,
    pub(super) result: i64,
    /// Descriptors that it names: reads from (or its only one) and writes to.
    pub(super) fds: (i32, i32),
    pub(super) tid: i32,
    pub(super) call: Syscall,
    pub(super) class: Class,
}

impl Call {
    /// The descriptors that it uses: number, side, and whether it is the second one that it names.
    #[inline(always)]
    pub(super) fn used(&self) -> [Option<(i32, Side, bool)>; 2] {
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
    pub(super) fn may_change(&self) -> bool {
        let connects = |call| connects(call, self.exit.result);
        self.exit.may_change() || self.exit.call.is_some_and(connects)
    }
}

impl Entered {
    /// Whether the call may change what descriptors are, however it ends.
    pub(super) fn may_change(&self) -> bool {
        match self.open.deed {
            Deed::Io => false,
            Deed::Nothing => self.open.call.action() == Action::Connect,
            _ => true,
        }
    }
}
