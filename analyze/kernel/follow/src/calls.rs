//! System calls of a stretch: of a thread, from one switch to the next, on one CPU.
//!
//! Most calls end in the stretch in which they began. What a thread leaves open, or ends that it
//! began elsewhere, becomes an item: see [`Lane`](crate::Lane).

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Body, Syscall, SyscallExit};

/// What happens on a CPU, by whoever runs there.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum CallStep {
    /// That call begins.
    Enter(Syscall),
    /// Exit, of that call or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
    /// A thread with that id is made.
    Make(i32),
    /// Events of calls were lost: whether the call that is open ends is not known.
    Lose,
}

/// The same, by the thread that the event's context names, if it names one.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CallEvent {
    /// The thread, if it is known.
    pub tid: Option<i32>,
    /// What it does.
    pub step: CallStep,
}

/// What is known of a call when it begins.
pub trait Beginning: Copy {
    /// The call.
    fn call(&self) -> Syscall;
    /// When it begins.
    fn time(&self) -> i64;
}

/// What is known of a call when it ends.
pub trait Ending: Copy {
    /// The call; `None` if the event does not name it.
    fn call(&self) -> Option<Syscall>;
    /// When it ends.
    fn time(&self) -> i64;

    /// True if it ends that call: if another one ends, the events between were lost.
    #[inline(always)]
    fn ends(&self, entered: &impl Beginning) -> bool {
        self.call().is_none_or(|call| call == entered.call())
    }
}

/// What a thread leaves to other stretches, or finds that they left.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum CallItem<E = Entered, X = Exited> {
    /// The stretch's first event of a call is an entry: no call of the thread was open.
    Enters(i32),
    /// The stretch's first event of a call is an exit.
    Arrives(i32, X),
    /// The stretch ends in a call.
    Leaves(i32, E),
    /// The thread is made: no call of it is open, whoever had its id before.
    Made(i32),
    /// The thread, which had the second id, has the first one from now on, and its call is open
    /// there.
    TakesOver(i32, i32),
}

/// A call begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Entered {
    /// Which call.
    pub call: Syscall,
    /// When it begins, in nanoseconds from the origin.
    pub time: i64,
}

/// A call ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Exited {
    /// `None` if the event does not name it.
    pub call: Option<Syscall>,
    /// What it gives: below 0 an error.
    pub result: i64,
    /// When it ends, in nanoseconds from the origin.
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
    /// What an exit tells.
    #[inline(always)]
    pub fn of_exit(exit: &SyscallExit, body: &mut Body<'_, '_>) -> CallStep {
        // `rt_sigreturn` forgets its number on the way: what has none ends whatever call is open.
        let call = exit.call(body).filter(|&call| call != Syscall::OTHER);
        CallStep::Exit(call, exit.result.get(body).unwrap_or(0))
    }
}

impl<E, X> CallItem<E, X> {
    /// The thread.
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
    /// Who runs, if that is known.
    tid: Option<i32>,
    /// Some call began or ended.
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

/// What ends.
#[derive(Clone, Copy, Debug)]
pub enum EndedCall<E = Entered> {
    /// That call, which began in the stretch.
    Call(E),
    /// A call that began in an earlier stretch, if any.
    Elsewhere,
    /// Nothing that is known.
    Nothing,
}

impl<E: Beginning> CallStretch<E> {
    /// That thread runs, if it is known who does.
    pub fn new(tid: Option<i32>) -> Self {
        CallStretch {
            tid,
            ..CallStretch::default()
        }
    }

    /// Who runs.
    #[inline(always)]
    pub fn tid(&self) -> Option<i32> {
        self.tid
    }

    /// True if another thread than this one runs there, as that context tells.
    #[inline(always)]
    pub fn is_left(&self, tid: Option<i32>) -> bool {
        tid.is_some() && tid != self.tid
    }

    /// Who makes calls: idle threads make none, the switch to whoever did was lost.
    #[inline(always)]
    pub fn caller(&self) -> Option<i32> {
        self.tid.filter(|&tid| tid != 0)
    }

    /// A call begins; true if that is the stretch's first event of a call.
    #[inline(always)]
    pub fn enter(&mut self, entered: E) -> bool {
        self.enter_any(Some(entered))
    }

    /// The same of a call that may be one of which nothing needs to be known.
    #[inline(always)]
    pub fn enter_any(&mut self, entered: Option<E>) -> bool {
        self.open = entered;
        !std::mem::replace(&mut self.has_calls, true)
    }

    /// Events of calls were lost; true if none began or ended before.
    pub fn lose(&mut self) -> bool {
        self.enter_any(None)
    }

    /// A call ends: that one, if the event names it.
    #[inline(always)]
    pub fn exit(&mut self, exited: &impl Ending) -> EndedCall<E> {
        let had_calls = std::mem::replace(&mut self.has_calls, true);
        match self.open.take() {
            Some(entered) if exited.ends(&entered) => EndedCall::Call(entered),
            None if !had_calls => EndedCall::Elsewhere,
            _ => EndedCall::Nothing,
        }
    }

    /// True if some call began or ended.
    #[inline(always)]
    pub fn has_calls(&self) -> bool {
        self.has_calls
    }

    /// The call that is open.
    #[inline(always)]
    pub fn open(&self) -> Option<E> {
        self.open
    }

    /// The same, to be changed.
    pub fn open_mut(&mut self) -> Option<&mut E> {
        self.open.as_mut()
    }

    /// The call that is open will not end.
    pub fn forget(&mut self) {
        self.open = None;
    }

    /// The call that is open, and whose it is.
    pub fn into_open(self) -> Option<(i32, E)> {
        self.tid.zip(self.open)
    }
}
