//! A thread's calls: an entry and its exit.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Exit, Open, Text};
use tracebraid_kernel_model::Syscall;

use crate::files::class::Class;
use crate::kernel::{Beginning, CallStretch, Ending};

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

    /// Texts have other numbers.
    pub(super) fn moved(&mut self, texts: &[Text]) {
        if let Some(open) = self.calls.open_mut() {
            open.text.moved(texts);
        }
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
