//! What happens to threads besides calls that begin and end in one stretch.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Exit, Holder, Open};

/// Something that happened to a thread at a time, to be looked at in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct IoItem {
    pub(super) time: i64,
    pub(super) tid: i32,
    pub(super) what: IoAction,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum IoAction {
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
    /// Among acts only ([`Act::Touch`]).
    Touch,
}

impl IoAction {
    /// What it does to the question which thread has which table, if it does; nothing if that
    /// cannot be said yet.
    pub(super) fn act(&self) -> Option<Option<Act>> {
        let act = match *self {
            IoAction::Change(change) => change.act()?,
            IoAction::Fork {
                child,
                child_pid,
                parent_pid,
            } => Act::Fork {
                child,
                child_pid,
                parent_pid,
            },
            IoAction::Exec => Act::Exec,
            IoAction::End => Act::End,
            IoAction::Member { pid, table } => Act::Member { pid, table },
            IoAction::Holds { holder, .. } => Act::Holds(holder),
            IoAction::Touch => Act::Touch,
            // Where it ends the thread gets a table of its own.
            IoAction::Park(open) if open.deed == Deed::Unshare => return Some(None),
            _ => return None,
        };
        Some(Some(act))
    }

    /// Whether it may change what is in the thread's table.
    pub(super) fn touches(&self) -> bool {
        match self {
            IoAction::Change(change) => !matches!(change, Change::Cloning(_)),
            IoAction::Exit(exit) => exit.may_change(),
            IoAction::Park(open) => !matches!(open.deed, Deed::Io | Deed::Nothing),
            _ => false,
        }
    }
}

/// Stands for a thread that will be known later.
pub(super) const UNNAMED: i32 = i32::MIN;

/// It turns out whose the items are that do not tell it themselves.
pub(super) fn name(items: &mut [IoItem], tid: i32) {
    let unnamed = items.iter_mut().filter(|item| item.tid == UNNAMED);
    unnamed.for_each(|item| item.tid = tid);
}
