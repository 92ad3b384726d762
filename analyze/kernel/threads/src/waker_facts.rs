//! What a CPU knows of the thread by which another thread is woken there, and what all CPUs know
//! together.

use serde::{Deserialize, Serialize};

use crate::call_class::CallClass;

/// What a CPU knows of the thread that runs there when that wakes another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WakerFacts {
    /// No thread, or an unknown one.
    Nobody,
    /// A thread that has made calls since it came to the CPU, or dies.
    Caller {
        /// Its id.
        tid: i32,
        /// Descriptor of its call; -1 if the call has none.
        descriptor: i32,
        /// Class of the call that it is in, if it is in one. Dying counts as [`CallClass::Exit`].
        call: Option<CallClass>,
        /// It may be in the kernel though it is in no call: see [`WakingThread::lingers`].
        lingers: bool,
    },
    /// A thread that has made none: other CPUs know which call it is in.
    Other {
        /// Its id.
        tid: i32,
        /// It has made block requests since it came.
        requested: bool,
    },
}

impl WakerFacts {
    /// The thread, if it is known.
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
    /// Class of the call that it is in; dying counts as [`CallClass::Exit`].
    pub call: Option<CallClass>,
    /// It has made calls since the trace began: it is no thread of the kernel.
    pub has_called: bool,
    /// The last call that ended closed a descriptor, or requests of an io_uring were done: the
    /// kernel finishes such work on the way back to the program.
    pub lingers: bool,
    /// Its call uses no network, though its class may: the socket is of the family AF_UNIX.
    pub is_local: bool,
    /// It waited for a disk last, or has made block requests since.
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

    /// True if the thread is known to run its program, where it can wake nobody.
    #[inline]
    pub fn is_in_program(&self) -> bool {
        self.call.is_none() && self.has_called && !self.lingers
    }
}
