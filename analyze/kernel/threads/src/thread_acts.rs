//! What a thread does from when it comes to a CPU to when it leaves it.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Beginning, CallStretch, EndedCall, Exited};
use tracebraid_kernel_model::Syscall;

use crate::call_class::{CallClass, CallClasses};
use crate::waker_facts::WakerFacts;

/// A call that has begun.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct BegunCall {
    /// The call.
    pub call: Syscall,
    /// Its class.
    pub class: CallClass,
    /// Command of a call on a futex, as its analysis numbers them; else 0.
    pub operation: u8,
    /// When it begins, in nanoseconds from the origin.
    pub time: i64,
    /// The address of a futex, or a descriptor; -1 if there is none.
    pub argument: i64,
}

impl BegunCall {
    /// The descriptor that the call is about; -1 if there is none.
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

/// What a thread has done since it came to its CPU.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadActs {
    /// Its calls.
    pub calls: CallStretch<BegunCall>,
    /// When a call began or ended last.
    called: Option<i64>,
    has_entered: bool,
    /// Whether it may be in the kernel though it is in no call; `None` if no call has ended that
    /// would show it.
    lingers: Option<bool>,
    requested: bool,
    is_dying: bool,
}

/// What other CPUs must know of a thread that leaves its CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct ParkedThread {
    /// Its id.
    pub tid: i32,
    /// The open call, if it began since the thread came.
    pub open: Option<BegunCall>,
    /// When a call began or ended last; the least number if none did.
    pub called: i64,
    /// A call began.
    pub has_entered: bool,
    /// See [`WakingThread::lingers`](crate::WakingThread::lingers); `None` if that has not changed.
    pub lingers: Option<bool>,
    /// It has made block requests since its last call began.
    pub requested: bool,
    /// It dies.
    pub is_dying: bool,
}

impl ParkedThread {
    /// It has begun or ended calls, or dies: it is no thread of the kernel, or no more than that.
    #[inline]
    pub fn has_called(&self) -> bool {
        self.called > i64::MIN || self.is_dying || self.open.is_some()
    }
}

impl ThreadActs {
    /// That thread comes, if it is known which.
    #[inline]
    pub fn new(tid: Option<i32>) -> ThreadActs {
        ThreadActs {
            calls: CallStretch::new(tid),
            ..ThreadActs::default()
        }
    }

    /// A call begins; true if that is the first event of a call since the thread came.
    #[inline(always)]
    pub fn enter(&mut self, begun: BegunCall) -> bool {
        self.called = Some(begun.time);
        self.has_entered = true;
        (self.requested, self.is_dying) = (false, false);
        self.calls.enter(begun)
    }

    /// A call ends.
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

    /// It makes a block request.
    #[inline]
    pub fn request(&mut self) {
        self.requested = true;
    }

    /// It has done requests of an io_uring, perhaps on the way from a call back to its program.
    pub fn linger(&mut self) {
        self.lingers = Some(true);
    }

    /// It dies: its call will not end.
    pub fn die(&mut self) {
        self.is_dying = true;
        self.calls.forget();
    }

    /// True if it dies.
    pub fn is_dying(&self) -> bool {
        self.is_dying
    }

    /// What it has done, if others must know of it.
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

    /// What is known of it as the waker of another thread.
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
