//! Activity of a thread between coming to a CPU and leaving it.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Beginning, CallStretch, EndedCall, Exited};
use tracebraid_kernel_model::Syscall;

use crate::call_class::{CallClass, CallClasses};
use crate::waker_facts::WakerFacts;

/// A system call that has begun.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BegunCall {
    /// Number of the system call.
    pub call: Syscall,
    /// Class of the system call.
    pub class: CallClass,
    /// Operation of a futex call, as numbered by the analysis; 0 for other calls.
    pub operation: u8,
    /// Begin time, in nanoseconds from the origin.
    pub time: i64,
    /// Address of a futex, or a descriptor; -1 for calls without such an argument.
    pub argument: i64,
}

impl BegunCall {
    /// Descriptor argument of the call; -1 if there is no such argument.
    fn descriptor(&self) -> i32 {
        i32::try_from(self.argument).unwrap_or(-1)
    }
}

impl Beginning for BegunCall {
    #[inline(always)]
    fn call(&self) -> Syscall {
        self.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.time
    }
}

/// Activity of a thread since it was switched in.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadActs {
    /// The thread's calls.
    pub calls: CallStretch<BegunCall>,
    /// Time at which a call last began or ended, in nanoseconds from the origin.
    called: Option<i64>,
    has_entered: bool,
    /// Whether the thread may be in the kernel without a call; `None` if no call has ended that
    /// would show it.
    lingers: Option<bool>,
    requested: bool,
    is_dying: bool,
}

/// Facts that other CPUs need about a thread that leaves its CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ParkedThread {
    /// Id of the thread.
    pub tid: i32,
    /// The open call, if it began since the thread was switched in.
    pub open: Option<BegunCall>,
    /// Time at which a call last began or ended, in nanoseconds from the origin; the least number
    /// if none did.
    pub called: i64,
    /// A call began.
    pub has_entered: bool,
    /// See [`WakingThread::lingers`](crate::WakingThread::lingers); `None` if unchanged.
    pub lingers: Option<bool>,
    /// The thread has issued block requests since its last call began.
    pub requested: bool,
    /// The thread dies.
    pub is_dying: bool,
}

impl ParkedThread {
    /// True if the thread has begun or ended calls, or dies: it is not, or no longer, a kernel
    /// thread.
    #[inline]
    pub fn has_called(&self) -> bool {
        self.called > i64::MIN || self.is_dying || self.open.is_some()
    }
}

impl ThreadActs {
    /// The activity of `tid`, which comes to the CPU; `None` for an unknown thread.
    #[inline]
    pub fn new(tid: Option<i32>) -> ThreadActs {
        ThreadActs {
            calls: CallStretch::new(tid),
            ..ThreadActs::default()
        }
    }

    /// Begins a call; true if this is the first event of a call since the thread was switched in.
    #[inline(always)]
    pub fn enter(&mut self, begun: BegunCall) -> bool {
        self.called = Some(begun.time);
        self.has_entered = true;
        (self.requested, self.is_dying) = (false, false);
        self.calls.enter(begun)
    }

    /// Ends a call.
    #[inline(always)]
    pub fn exit(&mut self, exited: &Exited, classes: &CallClasses) -> EndedCall<BegunCall> {
        self.called = Some(exited.time);
        let ended = self.calls.exit(exited);
        let class = match ended {
            EndedCall::Call(begun) => Some(begun.class),
            EndedCall::Elsewhere => exited.call.map(|call| classes.of(call)),
            EndedCall::Nothing => None,
        };
        self.lingers = Some(class == Some(CallClass::Close));
        ended
    }

    /// Records a block request.
    #[inline]
    pub fn request(&mut self) {
        self.requested = true;
    }

    /// Records that the thread has processed io_uring requests, perhaps on return from a call.
    pub fn linger(&mut self) {
        self.lingers = Some(true);
    }

    /// Records that the thread dies: its call will not end.
    pub fn die(&mut self) {
        self.is_dying = true;
        self.calls.forget();
    }

    /// True if the thread dies.
    pub fn is_dying(&self) -> bool {
        self.is_dying
    }

    /// The activity, if other CPUs need it.
    #[inline]
    pub fn parked(&self) -> Option<ParkedThread> {
        if !self.calls.has_calls() && !self.requested && !self.is_dying && self.lingers.is_none() {
            return None;
        }
        Some(ParkedThread {
            tid: self.calls.caller()?,
            open: self.calls.open(),
            called: self.called.unwrap_or(i64::MIN),
            has_entered: self.has_entered,
            lingers: self.lingers,
            requested: self.requested,
            is_dying: self.is_dying,
        })
    }

    /// The thread as the waker of another thread.
    #[inline]
    pub fn waker(&self) -> WakerFacts {
        let Some(tid) = self.calls.caller() else {
            return WakerFacts::Nobody;
        };
        if !self.calls.has_calls() && !self.is_dying {
            let requested = self.requested;
            return WakerFacts::Other { tid, requested };
        }
        let open = self.calls.open();
        WakerFacts::Caller {
            tid,
            descriptor: open.map_or(-1, |open| open.descriptor()),
            call: match self.is_dying {
                true => Some(CallClass::Exit),
                false => open.map(|open| open.class),
            },
            lingers: self.lingers.unwrap_or(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parked_threads_are_small() {
        assert_eq!(size_of::<BegunCall>(), size_of::<Option<BegunCall>>());
        assert!(
            size_of::<ParkedThread>() <= 40,
            "{}",
            size_of::<ParkedThread>()
        );
        assert!(size_of::<WakerFacts>() <= 12, "{}", size_of::<WakerFacts>());
    }
}
