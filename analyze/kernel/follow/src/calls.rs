//! System calls of a stretch: the time of a thread on one CPU, from one switch to the next.
//!
//! Most calls end in the stretch in which they began. A call that a thread leaves open, or ends
//! after beginning it elsewhere, becomes an item: see [`Lane`](crate::Lane).

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Body, Syscall, SyscallExit};

/// A step of the thread that runs on a CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum CallStep {
    /// A call begins.
    Enter(Syscall),
    /// A call ends with a result; `None` for the open call, whichever it is.
    Exit(Option<Syscall>, i64),
    /// A thread with this id is created.
    Make(i32),
    /// Events of system calls were lost: the open call may have ended.
    Lose,
}

/// A step, with the thread in the event's context, if recorded.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CallEvent {
    /// Id of the thread, if known.
    pub tid: Option<i32>,
    /// The step.
    pub step: CallStep,
}

/// The recorded entry of a call.
pub trait Beginning: Copy {
    /// Number of the system call.
    fn call(&self) -> Syscall;
    /// Begin time, in nanoseconds from the origin.
    fn time(&self) -> i64;
}

/// The recorded exit of a call.
pub trait Ending: Copy {
    /// Number of the system call; `None` if the event does not name it.
    fn call(&self) -> Option<Syscall>;
    /// End time, in nanoseconds from the origin.
    fn time(&self) -> i64;

    /// True if this exit may end the call. If another call ends, the events in between were lost.
    #[inline(always)]
    fn ends(&self, entered: &impl Beginning) -> bool {
        self.call().is_none_or(|call| call == entered.call())
    }
}

/// An item of a thread that concerns calls of other stretches.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum CallItem<E = Entered, X = Exited> {
    /// The stretch's first event of a call is an entry: no call of the thread was open.
    Enters(i32),
    /// The stretch's first event of a call is an exit.
    Arrives(i32, X),
    /// The stretch ends in a call.
    Leaves(i32, E),
    /// The thread is created: no call of it is open, even if an earlier thread with its id had one.
    Made(i32),
    /// The thread whose id was the second id has the first id from now on, with its open call.
    TakesOver(i32, i32),
}

/// The entry of a call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Entered {
    /// Number of the system call.
    pub call: Syscall,
    /// Begin time, in nanoseconds from the origin.
    pub time: i64,
}

/// The exit of a call.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Exited {
    /// Number of the system call; `None` if the event does not name it.
    pub call: Option<Syscall>,
    /// Result; negative for an error.
    pub result: i64,
    /// End time, in nanoseconds from the origin.
    pub time: i64,
}

impl Beginning for Entered {
    #[inline(always)]
    fn call(&self) -> Syscall {
        self.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.time
    }
}

impl Ending for Exited {
    #[inline(always)]
    fn call(&self) -> Option<Syscall> {
        self.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.time
    }
}

impl CallStep {
    /// The step of an exit.
    #[inline(always)]
    pub fn of_exit(exit: &SyscallExit, body: &mut Body<'_, '_>) -> CallStep {
        // `rt_sigreturn` loses its number on return: an exit without a number ends the open call.
        let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
        CallStep::Exit(call, exit.result.get(body).unwrap_or(0))
    }
}

impl<E, X> CallItem<E, X> {
    /// Id of the thread.
    #[inline]
    pub fn tid(&self) -> i32 {
        match *self {
            CallItem::Enters(tid)
            | CallItem::Arrives(tid, _)
            | CallItem::Leaves(tid, _)
            | CallItem::Made(tid)
            | CallItem::TakesOver(tid, _) => tid,
        }
    }
}

/// The calls of a stretch.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CallStretch<E = Entered> {
    /// The running thread, if known.
    tid: Option<i32>,
    /// A call began or ended in the stretch.
    has_calls: bool,
    open: Option<E>,
}

impl<E> Default for CallStretch<E> {
    fn default() -> Self {
        CallStretch {
            tid: None,
            has_calls: false,
            open: None,
        }
    }
}

/// The call that an exit ends.
#[derive(Clone, Copy, Debug)]
pub enum EndedCall<E = Entered> {
    /// A call that began in the stretch.
    Call(E),
    /// A call that began in an earlier stretch, if any.
    Elsewhere,
    /// No known call.
    Nothing,
}

impl<E: Beginning> CallStretch<E> {
    /// The stretch of a thread; `None` if the thread is unknown.
    pub fn new(tid: Option<i32>) -> Self {
        CallStretch {
            tid,
            ..CallStretch::default()
        }
    }

    /// The running thread, if known.
    #[inline(always)]
    pub fn tid(&self) -> Option<i32> {
        self.tid
    }

    /// True if the thread in an event's context is not the thread of the stretch.
    #[inline(always)]
    pub fn is_left(&self, tid: Option<i32>) -> bool {
        tid.is_some() && tid != self.tid
    }

    /// The running thread, unless it is idle: an idle thread makes no calls, so the switch to the
    /// calling thread was lost.
    #[inline(always)]
    pub fn caller(&self) -> Option<i32> {
        self.tid.filter(|&tid| tid != 0)
    }

    /// Begins a call; true if this is the stretch's first event of a call.
    #[inline(always)]
    pub fn enter(&mut self, entered: E) -> bool {
        self.enter_any(Some(entered))
    }

    /// Begins a call, or with `None` a call that need not be followed; true if this is the
    /// stretch's first event of a call.
    #[inline(always)]
    pub fn enter_any(&mut self, entered: Option<E>) -> bool {
        self.open = entered;
        !std::mem::replace(&mut self.has_calls, true)
    }

    /// Records a loss of events of calls; true if no call began or ended before.
    pub fn lose(&mut self) -> bool {
        self.enter_any(None)
    }

    /// Ends the open call, or the call that the exit names.
    #[inline(always)]
    pub fn exit(&mut self, exited: &impl Ending) -> EndedCall<E> {
        let had_calls = std::mem::replace(&mut self.has_calls, true);
        match self.open.take() {
            Some(entered) if exited.ends(&entered) => EndedCall::Call(entered),
            None if !had_calls => EndedCall::Elsewhere,
            _ => EndedCall::Nothing,
        }
    }

    /// True if a call began or ended.
    #[inline(always)]
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// The open call.
    #[inline(always)]
    pub fn open(&self) -> Option<E> {
        self.open
    }

    /// The open call, mutable.
    pub fn open_mut(&mut self) -> Option<&mut E> {
        self.open.as_mut()
    }

    /// Drops the open call, which will not end.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// The open call and its thread.
    pub fn into_open(self) -> Option<(i32, E)> {
        self.tid.zip(self.open)
    }
}
