//! Facts about the thread that wakes another one: those that its CPU knows, and those that all CPUs
//! know together.

use serde::{Deserialize, Serialize};

use crate::call_class::CallClass;

/// Facts that a CPU knows about its current thread when this thread wakes another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WakerFacts {
    /// No thread, or an unknown one.
    Nobody,
    /// A thread that has made calls since it was switched in, or dies.
    Caller {
        /// Id of the thread.
        tid: i32,
        /// Descriptor of its call; -1 if the call has none.
        descriptor: i32,
        /// Class of the open call, if any. A dying thread counts as [`CallClass::Exit`].
        call: Option<CallClass>,
        /// The thread may be in the kernel without a call: see [`WakingThread::lingers`].
        lingers: bool,
    },
    /// A thread that has made no calls: other CPUs know its open call.
    Other {
        /// Id of the thread.
        tid: i32,
        /// The thread has issued block requests since it was switched in.
        requested: bool,
    },
}

impl WakerFacts {
    /// Id of the thread, if known.
    #[inline]
    pub fn tid(&self) -> Option<i32> {
        match *self {
            WakerFacts::Nobody => None,
            WakerFacts::Caller { tid, .. } | WakerFacts::Other { tid, .. } => Some(tid),
        }
    }
}

/// The thread in whose context a wake-up happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakingThread {
    /// Class of the open call; a dying thread counts as [`CallClass::Exit`].
    pub call: Option<CallClass>,
    /// The thread has made calls since the trace began, so it is not a kernel thread.
    pub has_called: bool,
    /// The last call that ended closed a descriptor, or io_uring requests were processed: the
    /// kernel finishes such work on return to user space.
    pub lingers: bool,
    /// The call uses no network although its class may: its socket is of the family AF_UNIX.
    pub is_local: bool,
    /// The last wait was for a disk, or block requests were issued since.
    pub is_at_disk: bool,
}

impl WakingThread {
    /// A thread that has made calls.
    #[inline]
    pub fn caller(call: Option<CallClass>, lingers: bool) -> WakingThread {
        WakingThread {
            call,
            has_called: true,
            lingers,
            is_local: false,
            is_at_disk: false,
        }
    }

    /// True if the thread is known to run in user space, where it cannot wake other threads.
    #[inline]
    pub fn is_in_program(&self) -> bool {
        self.call.is_none() && self.has_called && !self.lingers
    }
}
