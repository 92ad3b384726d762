//! Events of threads, apart from calls that begin and end in one stretch.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Exit, Holder, Open};

/// An event of a thread, to be played in the order of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct IoItem {
    pub(super) time: i64,
    pub(super) tid: i32,
    pub(super) what: IoAction,
}

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum IoAction {
    /// The first event of a stretch was an exit.
    Exit(Exit),
    /// The first event of a stretch was an entry: the exit of the parked call was lost.
    Entry,
    /// A stretch ended within a call.
    Park(Open),
    /// The exit of a call that moves bytes, and that began at the given time, was lost.
    Unfinished(i64),
    /// The entry of a call that moves bytes was lost.
    Unstarted,
    /// Descriptors changed.
    Change(Change),
    /// The thread created another.
    Fork {
        child: i32,
        child_pid: Option<i32>,
        parent_pid: Option<i32>,
    },
    /// The thread executed a program.
    Exec,
    /// The thread ended.
    End,
    /// The thread belongs to the process `pid`.
    Member { pid: i32, table: Option<i64> },
    /// A process, or the owner of a table, has a descriptor.
    Holds {
        holder: Holder,
        fd: i32,
        kind: tracebraid_kernel_model::FdType,
        cloexec: bool,
    },
    /// Only in lists of acts ([`Act::Touch`]).
    Touch,
}

impl IoAction {
    /// The effect on which thread uses which descriptor table: `None` without effect, `Some(None)`
    /// if the effect is not known yet.
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
            // At its end the thread gets a table of its own.
            IoAction::Park(open) if open.deed == Deed::Unshare => return Some(None),
            _ => return None,
        };
        Some(Some(act))
    }

    /// Whether the event may change entries of the thread's table.
    pub(super) fn touches(&self) -> bool {
        match self {
            IoAction::Change(change) => !matches!(change, Change::Cloning(_)),
            IoAction::Exit(exit) => exit.may_change(),
            IoAction::Park(open) => !matches!(open.deed, Deed::Io | Deed::Nothing),
            _ => false,
        }
    }
}

/// Placeholder for a thread that will be known later.
pub(super) const UNNAMED: i32 = i32::MIN;

/// Sets the thread of the unnamed items.
pub(super) fn name(items: &mut [IoItem], tid: i32) {
    let unnamed = items.iter_mut().filter(|item| item.tid == UNNAMED);
    unnamed.for_each(|item| item.tid = tid);
}
