//! What happens on a CPU, and what of it others have to know.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};
use tracebraid_threads::{
    BegunCall, ContextStep, LeftAs, MigrateEvent, ParkedThread, WakeEvent, WakeSource, WakerFacts,
};

/// Something happens on a CPU, by the thread that the event's context names, if it names one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CpuStep {
    pub(super) tid: Option<i32>,
    pub(super) act: Act,
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Act {
    /// A call begins.
    Enter(BegunCall),
    /// A call ends, that one or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
    /// The call that has begun, or is about to end, has to do with that peer.
    Peer(Box<Peer>),
    /// A thread is woken.
    Wake(WakeEvent),
    /// A block request is made.
    Request,
    /// Requests of an io_uring are done.
    Linger,
    /// An interruption begins or ends, or a block request is completed.
    Context(ContextStep),
    /// A thread dies: it makes no more calls.
    Die(i32),
    /// Events were lost, but none of those that tell who runs; some of those that tell of calls.
    Lose { of_calls: bool },
    /// It concerns others whoever does it.
    Tell(WaitItem),
}

/// What happens, as all have to know it: it is played in the order of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum WaitItem {
    /// The first event of a call since the thread came is an entry: no call of it was open.
    Enter(i32),
    /// It is an exit, with that result, of that call if the event names it.
    Arrive(i32, Option<Syscall>, i64),
    /// What a thread has done since it came.
    Park(ParkedThread),
    /// A thread's call on a futex or a descriptor ends, which began since it came, with that
    /// result.
    Call(i32, BegunCall, i64),
    /// The call of the thread that ends next, or is open, has to do with that peer.
    Peer(i32, Box<Peer>),
    /// A CPU goes from one thread to another; idle threads are none.
    Switch {
        prev: Option<i32>,
        next: Option<i32>,
        left: LeftAs,
    },
    /// A thread is woken.
    Wake(WakeEvent, WakeSource, WakerFacts),
    /// A thread goes from one CPU to another, where not all CPUs were recorded.
    Migrate(MigrateEvent),
    /// A thread is made.
    Made(i32),
    Die(i32),
    /// The thread, which had the second id, has the first one from now on.
    TakeOver(i32, i32),
    /// A thread belongs to that process.
    Belongs {
        tid: i32,
        pid: i32,
    },
    /// Events were lost on the CPU.
    Lose,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_small() {
        assert!(size_of::<WaitItem>() <= 48, "{}", size_of::<WaitItem>());
    }
}
