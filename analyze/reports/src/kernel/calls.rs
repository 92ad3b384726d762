//! System calls of a stretch: of a thread, from one switch to the next, on one CPU.
//!
//! Most calls end in the stretch in which they began. What a thread leaves open, or ends that it began
//! elsewhere, becomes an item: see [`Lane`](crate::kernel::Lane).

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Body, Syscall, SyscallExit};

/// What happens on a CPU, by whoever runs there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum CallStep {
    Enter(Syscall),
    /// Exit, of that call or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
    /// A thread with that id is made.
    Make(i32),
}

/// The same, by the thread that the event's context names, if it names one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CallEvent {
    pub(crate) tid: Option<i32>,
    pub(crate) step: CallStep,
}

/// What a thread leaves to other stretches, or finds that they left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum CallItem {
    /// The stretch's first event of a call is an entry: no call of the thread was open.
    Enters(i32),
    /// The stretch's first event of a call is an exit.
    Arrives(i32, Exited),
    /// The stretch ends in a call.
    Leaves(i32, Entered),
    /// The thread is made: no call of it is open, whoever had its id before.
    Made(i32),
}

/// A call begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Entered {
    pub(crate) call: Syscall,
    pub(crate) time: i64,
}

/// A call ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Exited {
    /// `None` if the event does not name it.
    pub(crate) call: Option<Syscall>,
    pub(crate) result: i64,
    pub(crate) time: i64,
}

impl Exited {
    /// True if it ends that call: if another one ends, the events between were lost.
    #[inline(always)]
    pub(crate) fn ends(&self, entered: &Entered) -> bool {
        self.call.is_none_or(|call| call == entered.call)
    }
}

impl CallStep {
    /// What an exit tells.
    #[inline(always)]
    pub(crate) fn of_exit(exit: &SyscallExit, body: &mut Body<'_, '_>) -> CallStep {
        // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
        let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
        CallStep::Exit(call, exit.result.get(body).unwrap_or(0))
    }
}

/// The calls of a stretch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CallStretch {
    /// Who runs, if that is known.
    tid: Option<i32>,
    /// Some call began or ended.
    has_calls: bool,
    open: Option<Entered>,
}

/// What ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EndedCall {
    /// That call, which began in the stretch.
    Call(Entered),
    /// A call that began in an earlier stretch, if any.
    Elsewhere,
    /// Nothing that is known.
    Nothing,
}

impl CallStretch {
    pub(crate) fn new(tid: Option<i32>) -> CallStretch {
        CallStretch {
            tid,
            has_calls: false,
            open: None,
        }
    }

    /// Who runs.
    #[inline(always)]
    pub(crate) fn tid(&self) -> Option<i32> {
        self.tid
    }

    /// True if another thread than this one runs there, as that context tells.
    #[inline(always)]
    pub(crate) fn is_left(&self, tid: Option<i32>) -> bool {
        tid.is_some() && tid != self.tid
    }

    /// Who makes calls: idle threads make none, the switch to whoever did was lost.
    #[inline(always)]
    pub(crate) fn caller(&self) -> Option<i32> {
        self.tid.filter(|&tid| tid != 0)
    }

    /// A call begins; true if that is the stretch's first event of a call.
    #[inline(always)]
    pub(crate) fn enter(&mut self, entered: Entered) -> bool {
        self.open = Some(entered);
        !std::mem::replace(&mut self.has_calls, true)
    }

    /// A call ends: that one, if the event names it.
    #[inline(always)]
    pub(crate) fn exit(&mut self, exited: &Exited) -> EndedCall {
        let had_calls = std::mem::replace(&mut self.has_calls, true);
        match self.open.take() {
            Some(entered) if exited.ends(&entered) => EndedCall::Call(entered),
            None if !had_calls => EndedCall::Elsewhere,
            _ => EndedCall::Nothing,
        }
    }

    /// The call that is open, and whose it is.
    pub(crate) fn into_open(self) -> Option<(i32, Entered)> {
        self.tid.zip(self.open)
    }
}
