//! What happens to threads besides calls that begin and end in one stretch.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Change, Exit, Holder, Open};

/// Something that happened to a thread at a time, to be looked at in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Item {
    pub(super) time: i64,
    pub(super) tid: i32,
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum What {
    /// The first event of a stretch was an exit.
    Exit(Exit),
    /// It was an entry: what was parked has lost its exit.
    Entry,
    /// A stretch ended in the middle of a call.
    Park(Open),
    /// A call that moves bytes, and that began at that time, lost its exit.
    Unfinished(i64),
    /// The exit of a call that moves bytes lost its entry.
    Unstarted,
    /// Descriptors changed.
    Change(Change),
    /// A thread was made by this one.
    Fork {
        child: i32,
        child_pid: Option<i32>,
        parent_pid: Option<i32>,
    },
    /// It executed a program.
    Exec,
    /// It ended.
    End,
    /// It belongs to that process.
    Member { pid: i32, table: Option<i64> },
    /// A process, or the owner of a table, has a descriptor.
    Holds {
        holder: Holder,
        fd: i32,
        kind: tracebraid_kernel_model::FdType,
        cloexec: bool,
    },
}

/// Stands for a thread that will be known later.
pub(super) const UNNAMED: i32 = i32::MIN;

/// It turns out whose the items are that do not tell it themselves.
pub(super) fn name(items: &mut [Item], tid: i32) {
    let unnamed = items.iter_mut().filter(|item| item.tid == UNNAMED);
    unnamed.for_each(|item| item.tid = tid);
}
