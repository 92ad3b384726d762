//! The steps of a CPU, and the items that other CPUs need.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Interrupt, InterruptStep};
use tracebraid_kernel_model::{Comm, Syscall, UserWake};
use tracebraid_threads::{
    BegunCall, DeviceClass, LeftAs, MigrateEvent, ParkedThread, WakeEvent, WakeSource, WakerFacts,
    WakingThread,
};

use crate::names::Told;

/// A step of a CPU, by the thread that the event's context names, if any.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CpuStep {
    pub(crate) tid: Option<i32>,
    pub(crate) act: Act,
}

/// The action of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Act {
    /// Begins a call.
    Enter(BegunCall),
    /// Ends a call with a result: the named call, or whichever is open.
    Exit(Option<Syscall>, i64),
    /// Wakes a thread.
    Wake(WakeEvent),
    /// Begins or ends an interrupt.
    Interrupt(InterruptStep, DeviceClass),
    /// Makes a block request; its details follow when it is queued or issued.
    Request,
    /// Queues a block request, or passes it to its driver.
    Issue(RequestKey, Issued),
    /// Completes a block request.
    Complete(RequestKey),
    /// Passes a TCP segment to a network device.
    Send(Segment),
    /// Receives a TCP segment.
    Receive(Segment),
    /// Queues work at that address in the queue of that number.
    Queue(i64, u32),
    /// Begins the execution of work.
    Execute(i64),
    /// A stage of an io_uring request.
    Ring(RingEvent),
    /// A thread begins to exit: it makes no more calls.
    Die(i32),
    /// Events other than scheduling events were lost, among them events of calls if `of_calls`.
    Lose { of_calls: bool },
    /// An item that does not depend on the running thread.
    Tell(GraphItem),
}

/// Identifies a block request while it is in progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct RequestKey {
    pub(crate) device: u32,
    pub(crate) sector: i64,
}

/// A stage of a block request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Issued {
    /// Size in sectors of 512 bytes.
    pub(crate) sectors: u32,
    /// True if the driver takes it; false if it is put into a queue.
    pub(crate) is_taken: bool,
}

/// An event of an io_uring request.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RingEvent {
    pub(crate) step: RingStep,
    /// Address of the ring.
    pub(crate) ring: i64,
    /// Address of the request, which the kernel reuses.
    pub(crate) request: i64,
    /// Operation code.
    pub(crate) operation: u8,
}

/// A stage of an io_uring request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RingStep {
    Submit,
    /// Goes to the queue of the ring's worker threads.
    Queue,
    /// Is completed.
    Complete,
    /// A thread is about to wait for any completion.
    Wait,
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    /// Hash of both ends; the hashes of both directions differ in the lowest bit.
    pub(crate) connection: u64,
    pub(crate) sequence: u32,
    /// Length field of the IP header, in bytes: TCP headers and options are included.
    pub(crate) length: u32,
    pub(crate) acknowledged: u32,
}

/// The origin of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WakeOrigin {
    /// An interrupt without a more specific cause.
    Interrupt(WakeSource),
    /// The running thread.
    Thread(WakerFacts),
    /// The running thread, in a call in which it sent a segment by that connection.
    Sender(u64, WakerFacts),
    /// The arrival of that segment.
    Network(Segment),
    /// The runtime of a user-level thread, on the running thread.
    User(UserWake, WakerFacts),
}

impl WakeOrigin {
    pub(crate) fn source(self) -> WakeSource {
        /// The softirq `NET_RX`.
        const RECEIVES: Interrupt = Interrupt::Softirq(3);
        match self {
            WakeOrigin::Interrupt(source) => source,
            WakeOrigin::Thread(_) | WakeOrigin::Sender(..) => WakeSource::Thread,
            WakeOrigin::User(by, _) => WakeSource::User(by),
            WakeOrigin::Network(_) => WakeSource::Interrupt(RECEIVES, DeviceClass::Other),
        }
    }

    /// The waking thread, if there is one.
    pub(crate) fn by(self) -> WakerFacts {
        match self {
            WakeOrigin::Thread(by) | WakeOrigin::Sender(_, by) | WakeOrigin::User(_, by) => by,
            WakeOrigin::Interrupt(_) | WakeOrigin::Network(_) => WakerFacts::Nobody,
        }
    }

    /// Completes the facts about a waker: a sender's wake-up is not local, since the packets
    /// contain its segment.
    pub(crate) fn describes(self, waking: WakingThread) -> WakingThread {
        WakingThread {
            is_local: !matches!(self, WakeOrigin::Sender(..)),
            ..waking
        }
    }

    /// The waking thread, if any: a thread that runs in user space wakes only user-level threads.
    pub(crate) fn waker(self, waking: Option<WakingThread>) -> Option<i32> {
        let tid = self.by().tid();
        if let WakeOrigin::User(..) = self {
            return tid;
        }
        tid.filter(|_| waking.is_some_and(|waking| !waking.is_in_program()))
    }
}

/// An item for all CPUs, played in the order of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum GraphItem {
    /// The thread's first call event since it came is an entry: no call was open.
    Enter(i32),
    /// The thread's first call event since it came is an exit with that result, of that call if the
    /// event names it.
    Arrive(i32, Option<Syscall>, i64),
    /// The calls of a thread since it came to its CPU.
    Park(ParkedThread),
    /// A CPU goes from one thread to another; `None` for idle threads.
    Switch {
        prev: Option<i32>,
        next: Option<i32>,
        left: LeftAs,
        /// Names of both threads, if recorded.
        names: [Comm; 2],
    },
    /// A thread is woken.
    Wake(WakeEvent, WakeOrigin),
    /// The thread was interrupted, from that time up to now.
    Interrupted(i32, i64, Interrupt),
    Issue(RequestKey, Option<i32>, Issued),
    Complete(RequestKey),
    /// That thread sends a segment.
    Send(Segment, Option<i32>),
    /// Work is queued.
    Queue {
        work: i64,
        queue: u32,
        origin: WakeOrigin,
    },
    /// The thread begins work.
    Execute(i32, i64),
    /// The thread causes an event of an io_uring request.
    Ring(RingEvent, i32),
    /// A thread migrates to another CPU; only used if not all CPUs were recorded.
    Migrate(MigrateEvent),
    /// A thread is created by another.
    Made(i32, Option<i32>),
    Die(i32),
    /// The second id's thread has the first id from now on.
    TakeOver(i32, i32),
    /// The process of a thread.
    Belongs {
        tid: i32,
        pid: i32,
    },
    /// The name of a thread.
    Named(i32, Comm),
    /// The name of an interrupt, a disk or a queue.
    Tells(Box<Told>),
    /// Events of the CPU were lost.
    Lose,
}

impl GraphItem {
    /// True for the most frequent items: switches, wake-ups and interrupts.
    #[inline(always)]
    pub(crate) fn is_activity(&self) -> bool {
        matches!(
            self,
            GraphItem::Switch { .. } | GraphItem::Wake(..) | GraphItem::Interrupted(..)
        )
    }
}

impl Segment {
    /// True for the opposite direction of that connection.
    pub(crate) fn answers(&self, connection: u64) -> bool {
        self.connection ^ connection == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_small() {
        assert!(size_of::<GraphItem>() <= 56, "{}", size_of::<GraphItem>());
    }
}
