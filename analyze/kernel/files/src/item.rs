//! Items that must be played in the order of time, because their effect depends on descriptors.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Act, Change, Deed, Holder, NO_FD, Text, descriptor};

use crate::call::{Call, Entered, Exited, Forked, Stretch};

/// Something happens on a CPU, by the thread and process that the event's context names, if it
/// names some.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileStep {
    pub(crate) tid: Option<i32>,
    pub(crate) pid: Option<i32>,
    pub(crate) what: FileAction,
}

/// The event of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum FileAction {
    /// A call begins; it may change descriptors at once.
    Enter(Option<Entered>, Option<Change>),
    /// A call ends.
    Exit(Exited),
    /// Events of calls were lost: whether the call that is open ends is not known.
    Lose,
    /// Whoever runs makes a thread.
    Fork(Forked),
    /// Whoever runs executes a program.
    Exec,
    /// It is known who does it.
    Item(FileItem),
}

/// Something that happened to descriptors, or a call that names some.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum FileItem {
    /// The first event of a call since the thread came is an entry: no call of it was open.
    Enters(i32),
    /// It is an exit.
    Arrives(i32, Box<Exited>),
    /// The thread leaves in a call.
    Leaves(i32, Box<Entered>),
    /// A call that moves bytes, brings them to the disk, or closes.
    Call(Call),
    /// A call that makes descriptors or changes what they are.
    Made(Box<Made>),
    /// The thread changes descriptors at the entry of a call.
    Change(i32, Change),
    /// A thread is made: no call of it is open, whoever had its id before.
    Born(i32),
    /// The thread, which had the second id, has the first one from now on.
    TakesOver(i32, i32),
    /// A thread makes another one.
    Fork(i32, Forked),
    /// The thread executes a program.
    Exec(i32),
    /// The thread ends.
    End(i32),
    /// The thread belongs to that process, as a context says each time.
    Context {
        /// Thread.
        tid: i32,
        /// Process.
        pid: i32,
    },
    /// The thread belongs to that process, which has the table at that address.
    Member {
        /// Thread.
        tid: i32,
        /// Process.
        pid: i32,
        /// Address of the table, where it was recorded.
        table: Option<i64>,
    },
    /// A state dump shows a descriptor.
    Holds(Box<Holds>),
    /// State of the CPU alone at a marked time.
    Stands(Box<Stretch>),
}

/// A call that makes descriptors or changes what they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Made {
    /// Thread.
    pub tid: i32,
    /// Its beginning.
    pub entered: Entered,
    /// Its end.
    pub exited: Exited,
    /// The call, if its latency is asked for.
    pub call: Option<Call>,
}

/// State dump: a process, or whoever has the table, has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Holds {
    /// Process or table.
    pub holder: Holder,
    /// Number of the descriptor.
    pub fd: i32,
    /// Its path, if it was recorded.
    pub text: Text,
    /// It is closed at exec.
    pub cloexec: bool,
}

impl Made {
    /// The descriptor that it makes.
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
    /// Gives the texts that it names to be changed.
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

    /// The thread of which it may change what is in its table.
    pub(crate) fn touches(&self) -> Option<i32> {
        match self {
            FileItem::Change(tid, change) => change.act().is_none().then_some(*tid),
            FileItem::Made(made) => Some(made.tid),
            FileItem::Arrives(tid, exited) => exited.may_change().then_some(*tid),
            FileItem::Leaves(tid, entered) => entered.may_change().then_some(*tid),
            _ => None,
        }
    }

    /// The thread, and its effect on which thread has which table, if it has one; the effect is
    /// `None` if it is unknown yet.
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
            // Where it ends it gets a table of its own.
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
