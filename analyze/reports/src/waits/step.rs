//! What happens on a CPU, and what of it others have to know.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};

use crate::waits::context::{Change, Source};
use crate::waits::futex::Operation;
use crate::waits::kind::Kind;

/// Something happens on a CPU, by the thread that the event's context names, if it names one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) tid: Option<i32>,
    pub(super) what: What,
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum What {
    /// A call begins.
    Enter(Syscall, Details),
    /// A call ends, that one or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
    /// The call that has begun, or is about to end, has to do with that peer.
    Peer(Box<Peer>),
    /// A thread is woken. `is_ready`: it can run from now on; the waker may have been told before.
    Wake {
        woken: i32,
        is_ready: bool,
        target: Option<u16>,
    },
    /// A block request is made.
    Request,
    /// Something interrupts the thread, or ends.
    Context(Change),
    /// A thread dies: it makes no more calls.
    Dies(i32),
    /// Events were lost, but none of those that tell who runs; some of those that tell of calls.
    Lost { of_calls: bool },
    /// It concerns others whoever does it.
    Item(Item),
}

/// What a call is about.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Details {
    /// The address of the futex, or the descriptor; of `socket` the family.
    pub(super) argument: i64,
    /// What it does to a futex.
    pub(super) operation: Operation,
}

/// What happens, as all have to know it: it is played in the order of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Item {
    /// The first event of a call since the thread came is an entry: no call of it was open.
    Enters(i32),
    /// It is an exit, with that result, of that call if the event names it.
    Arrives(i32, Option<Syscall>, i64),
    /// What a thread has done since it came.
    Parks(Parked),
    /// A thread's call on a futex or a descriptor ends, which began since it came.
    Call {
        tid: i32,
        call: Syscall,
        operation: Operation,
        argument: i64,
        begin: i64,
        result: i64,
    },
    /// The call of the thread that ends next, or is open, has to do with that peer.
    Peer(i32, Box<Peer>),
    /// A CPU goes from one thread to another; idle threads are none.
    Switch {
        prev: Option<i32>,
        next: Option<i32>,
        left: Left,
    },
    Wake {
        woken: i32,
        is_ready: bool,
        target: Option<u16>,
        source: Source,
        by: By,
    },
    /// A thread goes from one CPU to another, where not all CPUs were recorded.
    Moves {
        tid: i32,
        from: u32,
        to: u32,
    },
    /// A thread is made.
    Born(i32),
    Dies(i32),
    /// The thread, which had the second id, has the first one from now on.
    TakesOver(i32, i32),
    /// A thread belongs to that process.
    Belongs {
        tid: i32,
        pid: i32,
    },
    /// Events were lost on the CPU.
    Lost,
}

/// What a thread has done since it came to its CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Parked {
    pub(super) tid: i32,
    /// The call that is open, if one is that began since then; the next three are about it.
    pub(super) call: Option<Syscall>,
    pub(super) operation: Operation,
    pub(super) argument: i64,
    pub(super) begin: i64,
    /// When a call began or ended last; the least if none did.
    pub(super) called: i64,
    pub(super) has_entered: bool,
    /// Whether the last call that ended closed a descriptor, if any ended.
    pub(super) has_closed: Option<bool>,
    /// It has made block requests since its last call began.
    pub(super) requested: bool,
    pub(super) is_dying: bool,
}

/// The thread by which another one is woken.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum By {
    /// None that is known.
    Nobody,
    /// One that has made calls since it came, or dies: the call that it is in, and whether the last one
    /// that ended closed a descriptor.
    Caller {
        tid: i32,
        call: Option<Kind>,
        /// Object of its call: see [`Details::argument`].
        argument: i64,
        has_closed: bool,
    },
    /// One that has not; whether it has made block requests.
    Other { tid: i32, requested: bool },
}

/// How a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Left {
    /// It could run on.
    Runnable,
    /// It waits.
    Blocked,
    /// It waits where signals do not wake it.
    DiskSleep,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_small() {
        assert!(size_of::<Item>() <= 48, "{}", size_of::<Item>());
    }
}
