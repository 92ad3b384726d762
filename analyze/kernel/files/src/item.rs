//! Items that must be played in time order, because their effect depends on descriptors.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Holder, NO_FD, Text, descriptor};

use crate::call::{Call, Entered, Exited, Forked, Stretch};

/// An action on a CPU, with the thread and process in the event's context, if recorded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileStep {
    pub(crate) tid: Option<i32>,
    pub(crate) pid: Option<i32>,
    pub(crate) what: FileAction,
}

/// The action of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FileAction {
    /// A call begins; the change takes effect at once.
    Enter(Option<Entered>, Option<Change>),
    /// A call ends.
    Exit(Exited),
    /// Events of system calls were lost: the open call may have ended.
    Lose,
    /// The thread that runs creates a thread.
    Fork(Forked),
    /// The thread that runs executes a program.
    Exec,
    /// An item whose thread is known.
    Item(FileItem),
}

/// A change of descriptors, or a call that names descriptors.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FileItem {
    /// The first event of a call since the thread was switched in is an entry: no call of the
    /// thread was open.
    Enters(i32),
    /// The first event of a call since the thread was switched in is an exit.
    Arrives(i32, Box<Exited>),
    /// The thread leaves its CPU in a call.
    Leaves(i32, Box<Entered>),
    /// A call that moves bytes, syncs, or closes.
    Call(Call),
    /// A call that creates or changes descriptors.
    Made(Box<Made>),
    /// The thread changes descriptors at the entry of a call.
    Change(i32, Change),
    /// A thread is created: no call of it is open, even if an earlier thread with its id had one.
    Born(i32),
    /// The thread whose id was the second id has the first id from now on.
    TakesOver(i32, i32),
    /// A thread creates another one.
    Fork(i32, Forked),
    /// The thread executes a program.
    Exec(i32),
    /// The thread ends.
    End(i32),
    /// The thread belongs to this process, as recorded in the context of events.
    Context {
        /// Id of the thread.
        tid: i32,
        /// Id of the process.
        pid: i32,
    },
    /// The thread belongs to this process, whose table is at this address, according to a state
    /// dump.
    Member {
        /// Id of the thread.
        tid: i32,
        /// Id of the process.
        pid: i32,
        /// Address of the table, if recorded.
        table: Option<i64>,
    },
    /// A state dump shows a descriptor.
    Holds(Box<Holds>),
    /// State of the CPU alone at a marked time.
    Stands(Box<Stretch>),
}

/// A call that creates or changes descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Id of the thread.
    pub tid: i32,
    /// Entry of the call.
    pub entered: Entered,
    /// Exit of the call.
    pub exited: Exited,
    /// The call, if its latency is requested.
    pub call: Option<Call>,
}

/// State dump: a process, or the owner of a table, has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holds {
    /// Process or table.
    pub holder: Holder,
    /// Number of the descriptor.
    pub fd: i32,
    /// Path, if recorded.
    pub text: Text,
    /// Closed at exec.
    pub cloexec: bool,
}

impl Made {
    /// The descriptor that the call creates; the first one of a pair.
    pub fn fd(&self) -> i32 {
        let exit = &self.exited.exit;
        match self.entered.open.deed {
            _ if exit.result < 0 => NO_FD,
            Deed::MakePair => exit.pair.0,
            _ => descriptor(exit.result),
        }
    }
}

impl FileItem {
    /// Passes each text in the item to `change`.
    #[inline]
    pub fn texts(&mut self, mut change: impl FnMut(&mut Text)) {
        match self {
            FileItem::Arrives(_, exited) => change(&mut exited.text),
            FileItem::Leaves(_, entered) => change(&mut entered.text),
            FileItem::Made(made) => {
                change(&mut made.entered.text);
                change(&mut made.exited.text);
            }
            FileItem::Holds(holds) => change(&mut holds.text),
            FileItem::Stands(stretch) => {
                let open = stretch.calls.open_mut();
                open.into_iter().for_each(|open| change(&mut open.text));
            }
            _ => {}
        }
    }

    /// The thread whose table the item may change.
    pub(crate) fn touches(&self) -> Option<i32> {
        match self {
            FileItem::Change(tid, change) => change.act().is_none().then_some(*tid),
            FileItem::Made(made) => Some(made.tid),
            FileItem::Arrives(tid, exited) => exited.may_change().then_some(*tid),
            FileItem::Leaves(tid, entered) => entered.may_change().then_some(*tid),
            _ => None,
        }
    }

    /// The thread and the effect of the item on the tables of threads, if it has one. The effect is
    /// `None` while it is unknown.
    pub(crate) fn ahead(&self) -> Option<(i32, Option<Act>)> {
        Some(match self {
            FileItem::Change(tid, change) => (*tid, Some(change.act()?)),
            FileItem::Made(made) => {
                let change = Change::of(&made.entered.open, &made.exited.exit)?;
                (made.tid, Some(change.act()?))
            }
            FileItem::Fork(tid, forked) => (*tid, Some(forked.act())),
            FileItem::Exec(tid) => (*tid, Some(Act::Exec)),
            FileItem::End(tid) => (*tid, Some(Act::End)),
            FileItem::Context { tid, pid } => (
                *tid,
                Some(Act::Member {
                    pid: *pid,
                    table: None,
                }),
            ),
            FileItem::Member { tid, pid, table } => {
                let (pid, table) = (*pid, *table);
                (*tid, Some(Act::Member { pid, table }))
            }
            FileItem::Holds(holds) => (0, Some(Act::Holds(holds.holder))),
            // At its end, the call may give the thread a table of its own.
            FileItem::Leaves(tid, entered) if entered.open.deed == Deed::Unshare => (*tid, None),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_small() {
        assert!(size_of::<FileItem>() <= 40, "{}", size_of::<FileItem>());
    }
}
