//! Parts of a slice that composing finishes: calls that are late, and files that are known by what
//! was before.

use tracebraid_descriptors::{Moment, ValueId};
use tracebraid_files::{Call, Entered, Exited, File, Made, Naming, Parked};
use tracebraid_follow::{CpuKey, LaterCalls, ThreadKey};

/// A file in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SliceFile {
    /// It is known.
    File(File),
    /// The object of a descriptor of that trace, known or not.
    Held(ValueId, u32),
    /// It is called by what a descriptor is, or by a working directory.
    Named(Naming, Input),
}

/// The object on which the name of a file depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Input {
    /// A descriptor.
    Held(ValueId),
    /// A working directory, by its number among those that are asked for.
    Directory(u32),
}

/// A thread's call that is not of one stretch, in a slice.
pub(super) type Passing = LaterCalls<Parked<ValueId>, Exited>;

/// A thread's call that is not of one stretch, as far as the slice knows it.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    /// If it is known whether one is open.
    pub(super) open: Option<Passing>,
    /// Up to that time ends of calls may wait that are late.
    pub(super) late: Option<i64>,
}

/// A step of composing; steps are done in this order.
#[derive(Debug)]
pub(super) enum SliceStep {
    /// A process is made by another one.
    Fork(ThreadKey, ThreadKey),
    /// The working directory of a process is asked for.
    Directory(ThreadKey),
    Late(Box<Late>),
}

/// Something of which it is not known what it ends.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) cpu: CpuKey,
    pub(super) time: i64,
    pub(super) moment: Moment,
    pub(super) process: ThreadKey,
    pub(super) table: ThreadKey,
    /// Files that were met before.
    pub(super) files: usize,
    pub(super) what: LateWhat,
}

#[derive(Debug)]
pub(super) enum LateWhat {
    Call(Call),
    /// With the objects of the descriptors that it names at its beginning, if that is in the slice.
    Made(Box<Made>, Option<(ValueId, ValueId)>),
    Arrives(i32, Exited),
    /// With the objects of the descriptors that it names at its beginning, if that is in the slice.
    Leaves(i32, Entered, Option<(ValueId, ValueId)>),
    TakesOver(i32, i32),
    /// A thread's call, as far as the slice knows it.
    Known(ThreadKey, Cell),
}
