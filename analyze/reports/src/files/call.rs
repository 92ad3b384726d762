//! A thread's calls: an entry and its exit, and what waits for either.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::Syscall;

use crate::files::class::Class;
use crate::files::interned::Text;
use crate::io::call::{Exit, Open};
use crate::io::change::Change;

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

/// What happens to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Step {
    /// A call begins; it may change descriptors at once.
    Enter(Option<Entered>, Option<Change>),
    Exit(Exited),
    Fork(Forked),
    Exec,
}

/// A thread makes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Forked {
    pub(super) child: i32,
    pub(super) child_pid: Option<i32>,
    pub(super) parent_pid: Option<i32>,
}

/// A [`Step`] that waits for its thread to be known, and the process that its context names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Waits {
    pub(super) step: Box<Step>,
    pub(super) pid: Option<i32>,
}

/// A call from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) begin: i64,
    pub(super) duration: u64,
    pub(super) result: i64,
    /// Descriptors that it names: reads from (or its only one) and writes to.
    pub(super) fds: (i32, i32),
    /// Place of the thread.
    pub(super) place: u32,
    pub(super) call: Syscall,
    pub(super) class: Class,
}

/// What is known of a thread's calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Calls {
    /// The first thing that happened is an exit: the chunks before know of what.
    pub(super) head: Option<Exited>,
    now: Now,
    /// Process that contexts told last, or that something else may have told since.
    pid: Option<Option<i32>>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Now {
    /// What it did when the chunk began.
    #[default]
    Before,
    /// No call, or one that is not known.
    Outside,
    Inside(Entered),
}

/// What an exit ends.
pub(super) enum Ends {
    Call(Entered),
    /// The chunks before know.
    Head,
    /// Nothing that is known.
    Nothing,
}

impl Calls {
    /// The thread is new.
    pub(super) fn begin(&mut self) {
        self.now = Now::Outside;
        self.pid = Some(None);
    }

    #[inline(always)]
    pub(super) fn enter(&mut self, entered: Option<Entered>) {
        self.now = entered.map_or(Now::Outside, Now::Inside);
    }

    #[inline(always)]
    pub(super) fn exit(&mut self, exited: &Exited) -> Ends {
        match std::mem::replace(&mut self.now, Now::Outside) {
            // If another one ends, the events between were lost.
            Now::Inside(entered) if exited.exit.call.is_none_or(|call| call == entered.open.call) => {
                Ends::Call(entered)
            }
            Now::Before => {
                self.head = Some(*exited);
                Ends::Head
            }
            _ => Ends::Nothing,
        }
    }

    /// True if a call is open whose latency would be told.
    pub(super) fn is_unfinished(&self) -> bool {
        matches!(self.now, Now::Inside(entered) if entered.class.is_some())
    }

    /// A context tells the process; true if that is news.
    pub(super) fn belongs(&mut self, pid: i32) -> bool {
        self.pid.replace(Some(pid)) != Some(Some(pid))
    }

    /// Something else may have told the process.
    pub(super) fn forget_process(&mut self) {
        self.pid = Some(None);
    }

    /// Texts have other numbers.
    pub(super) fn moved(&mut self, texts: &[Text]) {
        if let Now::Inside(entered) = &mut self.now {
            entered.text.moved(texts);
        }
        if let Some(exited) = &mut self.head {
            exited.text.moved(texts);
        }
    }

    /// Joins what comes later, whose head is done, to this.
    pub(super) fn merge(&mut self, later: Calls) {
        if later.now != Now::Before {
            self.now = later.now;
        }
        self.pid = later.pid.or(self.pid);
    }
}
