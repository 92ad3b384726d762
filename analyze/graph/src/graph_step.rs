//! What happens on a CPU, and what of it others have to know.

use serde::{Deserialize, Serialize};
use tracebraid_follow::{Interrupt, InterruptStep};
use tracebraid_kernel_model::{Comm, Syscall};
use tracebraid_threads::{
    BegunCall, DeviceClass, LeftAs, MigrateEvent, ParkedThread, WakeEvent, WakeSource, WakerFacts,
    WakingThread,
};

use crate::names::Told;

/// Something happens on a CPU, by the thread that the event's context names, if it names one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CpuStep {
    pub(crate) tid: Option<i32>,
    pub(crate) act: Act,
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Act {
    /// A call begins.
    Enter(BegunCall),
    /// A call ends, that one or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
    /// A thread is woken.
    Wake(WakeEvent),
    /// Something interrupts the thread, or ends.
    Interrupt(InterruptStep, DeviceClass),
    /// A block request is made, of which more is told when it goes to a queue or driver.
    Request,
    /// A block request goes to its queue or driver.
    Issue(RequestKey, Issued),
    /// A block request is done.
    Complete(RequestKey),
    /// A TCP segment goes to a device.
    Send(Segment),
    /// One has come in.
    Receive(Segment),
    /// Work is put into the queue of that number.
    Queue(i64, u32),
    /// A thread turns to work.
    Execute(i64),
    /// Something happens to a request of an io_uring.
    Ring(RingEvent),
    /// A thread dies: it makes no more calls.
    Die(i32),
    /// Events were lost, but none of those that tell who runs; some of those that tell of calls.
    Lose { of_calls: bool },
    /// It concerns others whoever does it.
    Tell(GraphItem),
}

/// A block request from its making to its end.
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

/// Something happens to a request of an io_uring.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RingEvent {
    pub(crate) step: RingStep,
    /// Address of the ring.
    pub(crate) ring: i64,
    /// That of the request, which others may get later.
    pub(crate) request: i64,
    /// What it does.
    pub(crate) operation: u8,
}

/// What happens to a request of an io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RingStep {
    Submit,
    /// It goes to the queue of the ring's worker threads.
    Queue,
    /// It is done.
    Complete,
    /// A thread is going to wait for any.
    Wait,
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Segment {
    /// Hash of both ends; that of the other direction differs in the lowest bit.
    pub(crate) connection: u64,
    pub(crate) sequence: u32,
    /// Bytes that it carries.
    pub(crate) length: u32,
    pub(crate) acknowledged: u32,
}

/// Where a wake-up comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WakeOrigin {
    /// From an interrupt, of which nothing else is known.
    Interrupt(WakeSource),
    /// From the thread that runs.
    Thread(WakerFacts),
    /// The same, in a call in which it has sent something by that connection.
    Sender(u64, WakerFacts),
    /// From what has just taken that segment in.
    Network(Segment),
}

impl WakeOrigin {
    /// The context of the wake-up.
    pub(crate) fn source(self) -> WakeSource {
        /// The softirq `NET_RX`.
        const RECEIVES: Interrupt = Interrupt::Softirq(3);
        match self {
            WakeOrigin::Interrupt(source) => source,
            WakeOrigin::Thread(_) | WakeOrigin::Sender(..) => WakeSource::Thread,
            WakeOrigin::Network(_) => WakeSource::Interrupt(RECEIVES, DeviceClass::Other),
        }
    }

    /// What is known of the thread, if it comes from one.
    pub(crate) fn by(self) -> WakerFacts {
        match self {
            WakeOrigin::Thread(by) | WakeOrigin::Sender(_, by) => by,
            WakeOrigin::Interrupt(_) | WakeOrigin::Network(_) => WakerFacts::Nobody,
        }
    }

    /// The waker, of which the rest is known: what it sends is among the packets.
    pub(crate) fn describes(self, waking: WakingThread) -> WakingThread {
        WakingThread {
            is_local: !matches!(self, WakeOrigin::Sender(..)),
            ..waking
        }
    }

    /// The waking thread, if any: a thread that runs its program outside of the kernel cannot wake
    /// others.
    pub(crate) fn waker(self, waking: Option<WakingThread>) -> Option<i32> {
        let tid = self.by().tid();
        tid.filter(|_| waking.is_some_and(|waking| !waking.is_in_program()))
    }
}

/// What happens, as all have to know it: it is played in the order of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum GraphItem {
    /// The first event of a call since the thread came is an entry: no call of it was open.
    Enter(i32),
    /// It is an exit, with that result, of that call if the event names it.
    Arrive(i32, Option<Syscall>, i64),
    /// What a thread has done since it came.
    Park(ParkedThread),
    /// A CPU goes from one thread to another; idle threads are none.
    Switch {
        prev: Option<i32>,
        next: Option<i32>,
        left: LeftAs,
        /// What both are called, if that is told.
        names: [Comm; 2],
    },
    /// A thread is woken.
    Wake(WakeEvent, WakeOrigin),
    /// The thread was interrupted by that, from then up to now.
    Interrupted(i32, i64, Interrupt),
    Issue(RequestKey, Option<i32>, Issued),
    Complete(RequestKey),
    /// A segment is sent, by that thread.
    Send(Segment, Option<i32>),
    /// Work is put into the queue of that number.
    Queue {
        work: i64,
        queue: u32,
        origin: WakeOrigin,
    },
    /// The thread turns to that work.
    Execute(i32, i64),
    /// Something happens to a request of an io_uring, by that thread.
    Ring(RingEvent, i32),
    /// A thread goes from one CPU to another, where not all CPUs were recorded.
    Migrate(MigrateEvent),
    /// A thread is made, by that one.
    Made(i32, Option<i32>),
    Die(i32),
    /// The thread, which had the second id, has the first one from now on.
    TakeOver(i32, i32),
    /// A thread belongs to that process.
    Belongs {
        tid: i32,
        pid: i32,
    },
    /// A thread has that name.
    Named(i32, Comm),
    /// What something else is called.
    Tells(Box<Told>),
    /// Events were lost on the CPU.
    Lose,
}

impl GraphItem {
    /// True for what is much: switches, wake-ups and interrupts.
    #[inline(always)]
    pub(crate) fn is_activity(&self) -> bool {
        matches!(
            self,
            GraphItem::Switch { .. } | GraphItem::Wake(..) | GraphItem::Interrupted(..)
        )
    }
}

impl Segment {
    /// True if it goes the other way of that connection.
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
