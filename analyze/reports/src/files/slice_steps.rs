//! Steps of a slice that composing completes: late calls, and files whose names depend on the state
//! before the slice.

use tracebraid_descriptors::{Moment, ValueId};
use tracebraid_files::{Call, Entered, Exited, File, Made, Naming, Parked};
use tracebraid_follow::{CpuKey, LaterCalls, ThreadKey};

/// A file in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SliceFile {
    /// A known file.
    File(File),
    /// The file of a descriptor value in the trace with that index, known or not.
    Held(ValueId, u32),
    /// A file named relative to a descriptor or to a working directory.
    Named(Naming, Input),
}

/// The file on which the name of another file depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Input {
    /// The file of a descriptor.
    Held(ValueId),
    /// A working directory, by number among the requested ones.
    Directory(u32),
}

/// A thread's call that spans several stretches, in a slice.
pub(super) type Passing = LaterCalls<Parked<ValueId>, Exited>;

/// A slice's knowledge of a thread's call that spans several stretches.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// The open call; `None` while it is unknown whether one is open.
    pub(super) open: Option<Passing>,
    /// Late exits before this time may be pending.
    pub(super) late: Option<i64>,
}

/// A step of composing, in this order.
#[derive(Debug)]
pub(super) enum SliceStep {
    /// A process creates another.
    Fork(ThreadKey, ThreadKey),
    /// The working directory of a process is requested.
    Directory(ThreadKey),
    Late(Box<Late>),
}

/// A step whose effect depends on the state before the slice.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) cpu: CpuKey,
    pub(super) time: i64,
    pub(super) moment: Moment,
    pub(super) process: ThreadKey,
    pub(super) table: ThreadKey,
    /// Number of files that the slice used before.
    pub(super) files: usize,
    pub(super) what: LateWhat,
}

#[derive(Debug)]
pub(super) enum LateWhat {
    Call(Call),
    /// With the files of the descriptors at the call's start, if that is in the slice.
    Made(Box<Made>, Option<(ValueId, ValueId)>),
    Arrives(i32, Exited),
    /// With the files of the descriptors at the call's start, if that is in the slice.
    Leaves(i32, Entered, Option<(ValueId, ValueId)>),
    TakesOver(i32, i32),
    /// A thread's call, as known in the slice.
    Known(ThreadKey, Cell),
}
