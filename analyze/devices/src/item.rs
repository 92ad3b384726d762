//! Facts from event records, which are played in the order of time.

use serde::{Deserialize, Serialize};

use crate::cuda::{Launch, Ran};
use crate::level_zero::{Counter, List};

/// A thread of a process, which has a number in `processes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct ThreadId {
    pub(crate) process: u32,
    pub(crate) tid: i32,
}

/// A handle: an address in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Handle {
    pub(crate) process: u32,
    pub(crate) handle: u64,
}

/// The begin of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entered {
    pub(crate) function: u32,
    pub(crate) begin: i64,
    pub(crate) queue: u64,
    pub(crate) kernel: u64,
    pub(crate) device: u64,
    /// Bytes of a transfer; 0 if unknown.
    pub(crate) bytes: u64,
    /// Work items of a kernel; 0 if unknown.
    pub(crate) items: u64,
    /// Events that the command waits for; the lists that a call executes.
    pub(crate) waits: Box<[u64]>,
    /// Name of a new kernel.
    pub(crate) name: Box<str>,
    /// The event that times its command is recorded.
    pub(crate) is_profiled: bool,
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Exited {
    pub(crate) function: u32,
    pub(crate) status: i32,
    /// The event of a command; 0 without one.
    pub(crate) event: u64,
    /// A new queue; 0 without one.
    pub(crate) queue: u64,
    /// A new kernel; 0 without one.
    pub(crate) kernel: u64,
}

/// A command that was enqueued: its call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Enqueued {
    pub(crate) call: Entered,
    pub(crate) end: i64,
    pub(crate) thread: ThreadId,
}

/// Source and unit of the times of a complete command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Times {
    /// All four are of the device.
    #[default]
    Device,
    /// Those of the start and the end are of the device, the others of the call.
    OfCall,
    /// The last two are cycles of the device's timer, the others unknown.
    Cycles,
    /// The last is the duration, the others are unknown.
    Duration,
}

/// A command that is complete, in nanoseconds of the clock of its device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Completed {
    /// 0, or an error.
    pub(crate) status: i32,
    /// False if the device has no times of the command.
    pub(crate) is_profiled: bool,
    /// Queued, submitted, started, ended.
    pub(crate) times: [u64; 4],
    pub(crate) kind: Times,
}

/// Properties of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Properties {
    pub(crate) platform: String,
    /// The device of which this is a part; 0 without one.
    pub(crate) parent: u64,
    /// UUID and address on the bus, as far as the device has them.
    pub(crate) identity: String,
}

/// A fact from an event record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Fact {
    /// A fact that has been played.
    #[default]
    None,
    /// A call begins, in a stream of several threads or at the end of a chunk.
    Enters(ThreadId, Entered),
    /// A call ends whose begin is not known.
    Exits(ThreadId, Exited),
    /// A command was enqueued; the handle is its event.
    Enqueued(Handle, Box<Enqueued>),
    /// A command is complete.
    Completed(Handle, Completed),
    /// The program completes an event of its own.
    Signal(Handle),
    /// A kernel has this name from now on.
    Kernel(Handle, String),
    /// A queue is of this device from now on.
    Queue(Handle, u64),
    /// A device has this name.
    DeviceName(Handle, String),
    /// Properties of a device.
    Device(Handle, Box<Properties>),
    /// A call of CUDA begins, with this number.
    Launched(Handle, Launch),
    /// A command of CUDA is complete; the handle is the number of its call.
    Ran(Handle, Box<Ran>),
    /// An event times the command of the open call of the thread.
    Profiles(ThreadId, u64),
    /// A list of commands is of this kind from now on.
    List(Handle, List),
    /// The commands of lists were queued.
    Executes(Box<Enqueued>),
    /// A list has no commands any more.
    Resets(Handle),
    /// A device has this timer.
    Timer(Handle, Counter),
    /// A reading of the timer of a device, in cycles.
    Reading(Handle, u64),
}

/// A fact at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Item {
    pub(crate) time: i64,
    /// Number of the stream among those of all traces.
    pub(crate) stream: u32,
    pub(crate) fact: Fact,
}

impl Item {
    /// Position in the order in which facts are played. Of one time, names come first, and the
    /// completion of a command after its call.
    pub(crate) fn order(&self) -> (i64, u8, u32) {
        let rank = match self.fact {
            Fact::None
            | Fact::Kernel(..)
            | Fact::Queue(..)
            | Fact::DeviceName(..)
            | Fact::Device(..)
            | Fact::List(..)
            | Fact::Timer(..)
            | Fact::Reading(..) => 0,
            Fact::Enters(..)
            | Fact::Exits(..)
            | Fact::Enqueued(..)
            | Fact::Signal(..)
            | Fact::Launched(..)
            | Fact::Profiles(..)
            | Fact::Executes(..)
            | Fact::Resets(..) => 1,
            Fact::Completed(..) | Fact::Ran(..) => 2,
        };
        (self.time, rank, self.stream)
    }
}
