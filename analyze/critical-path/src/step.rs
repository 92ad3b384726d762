//! What happens on a CPU, and what of it others have to know.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_fold::{Beginning, InterruptStep};
use tracebraid_kernel_model::{Comm, Syscall};

use crate::cause::Interrupt;
use crate::context::Source;
use crate::names::Told;

/// Something happens on a CPU, by the thread that the event's context names, if it names one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) tid: Option<i32>,
    pub(crate) what: What,
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum What {
    /// A call begins, about that address or descriptor.
    Enter(Syscall, i64),
    /// A call ends, that one or whatever call is open, with that result.
    Exit(Option<Syscall>, i64),
    /// A thread is woken. `is_ready`: it can run from now on; the waker may have been told before.
    Wake {
        woken: i32,
        is_ready: bool,
        cpu: Option<u32>,
    },
    /// Something interrupts the thread, or ends.
    Interrupt(InterruptStep),
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
    Dies(i32),
    /// Events were lost, but none of those that tell who runs; some of those that tell of calls.
    Lost { of_calls: bool },
    /// It concerns others whoever does it.
    Item(Item),
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

/// What happens, as all have to know it: it is played in the order of time.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Item {
    /// The first event of a call since the thread came is an entry: no call of it was open.
    Enters(i32),
    /// It is an exit, with that result, of that call if the event names it.
    Arrives(i32, Option<Syscall>, i64),
    /// What a thread has done since it came.
    Parks(Parked),
    /// A CPU goes from one thread to another; idle threads are none.
    Switch {
        prev: Option<i32>,
        next: Option<i32>,
        left: Left,
        /// What both are called, if that is told.
        names: [Comm; 2],
    },
    Wake {
        woken: i32,
        is_ready: bool,
        cpu: Option<u32>,
        source: Source,
        by: By,
    },
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
        source: Source,
        by: By,
    },
    /// The thread turns to that work.
    Executes(i32, i64),
    /// Something happens to a request of an io_uring, by that thread.
    Ring(RingEvent, i32),
    /// A thread goes from one CPU to another, where not all CPUs were recorded.
    Moves {
        tid: i32,
        from: u32,
        to: u32,
    },
    /// A thread is made, by that one.
    Born(i32, Option<i32>),
    Dies(i32),
    /// The thread, which had the second id, has the first one from now on.
    TakesOver(i32, i32),
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
    Lost,
}

/// What a thread has done since it came to its CPU.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Parked {
    pub(crate) tid: i32,
    /// The call that is open, if one is that began since then; the next two are about it.
    pub(crate) call: Option<Syscall>,
    pub(crate) argument: i64,
    pub(crate) begin: i64,
    /// When a call began or ended last.
    pub(crate) called: i64,
    /// The last call that ended closed a descriptor, or requests of an io_uring were done: there is something left to do
    /// for the kernel on the way back to the program.
    pub(crate) lingers: bool,
}

/// The thread by which another one is woken, if it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum By {
    /// None that is known.
    Nobody,
    /// That one.
    Thread(i32),
    /// That one, if it is in a call, which its CPU does not know.
    PerhapsThread(i32),
}

/// How a thread leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Left {
    /// It could run on.
    Runnable,
    /// It waits.
    Blocked,
    /// It waits for work, as threads of the kernel do that are no load.
    Idle,
    /// It ends.
    Ended,
}

/// What is known of a call when it begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) call: Syscall,
    pub(crate) time: i64,
    /// The address of a futex, or a descriptor.
    pub(crate) argument: i64,
}

impl Beginning for Begun {
    #[inline(always)]
    fn call(&self) -> Syscall {
        self.call
    }
    #[inline(always)]
    fn time(&self) -> i64 {
        self.time
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
        assert!(size_of::<Item>() <= 56, "{}", size_of::<Item>());
    }
}
