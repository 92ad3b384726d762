//! Events on a CPU, and the items to play over all CPUs.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Peer, Syscall};
use tracebraid_threads::{
    BegunCall, ContextStep, LeftAs, MigrateEvent, ParkedThread, WakeEvent, WakeSource, WakerFacts,
};

/// An event on a CPU, with the thread in the event's context, if any.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CpuStep {
    pub(super) tid: Option<i32>,
    pub(super) act: Act,
}

/// The kind of event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Act {
    /// A call begins.
    Enter(BegunCall),
    /// A call ends with a result: the given call, or the open one.
    Exit(Option<Syscall>, i64),
    /// The peer of the call that has begun or is about to end.
    Peer(Box<Peer>),
    /// A thread is woken.
    Wake(WakeEvent),
    /// A block request is made.
    Request,
    /// Requests of an io_uring are completed.
    Linger,
    /// An interrupt begins or ends, or a block request is completed.
    Context(ContextStep),
    /// A thread dies, and makes no more calls.
    Die(i32),
    /// Events were lost, but no switches; with `of_calls`, entries and exits may be among them.
    Lose { of_calls: bool },
    /// An item that does not depend on the running thread.
    Tell(WaitItem),
}

/// An item to play in the order of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum WaitItem {
    /// The first event of a call in the stretch is an entry: no call was open.
    Enter(i32),
    /// The first event of a call in the stretch is an exit, of the given call if the event contains
    /// it, with a result.
    Arrive(i32, Option<Syscall>, i64),
    /// The summary of a thread's stretch.
    Park(ParkedThread),
    /// A call on a futex or a descriptor that began in the stretch ends with a result.
    Call(i32, BegunCall, i64),
    /// The peer of the thread's open call, or of the next one that ends.
    Peer(i32, Box<Peer>),
    /// A CPU switches from one thread to another; `None` for idle threads.
    Switch {
        prev: Option<i32>,
        next: Option<i32>,
        left: LeftAs,
    },
    /// A thread is woken.
    Wake(WakeEvent, WakeSource, WakerFacts),
    /// A thread migrates between CPUs; used if not all CPUs were recorded.
    Migrate(MigrateEvent),
    /// A thread is created.
    Made(i32),
    Die(i32),
    /// The thread with the second id has the first id from now on.
    TakeOver(i32, i32),
    /// A thread belongs to a process.
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
