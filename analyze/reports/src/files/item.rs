//! What must be looked at in the order of time: it needs to be known what descriptors are.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Change, Holder, Text};

use crate::files::call::{Call, Entered, Exited, Forked, Stretch};

/// Something happens on a CPU, by the thread and process that the event's context names, if it names some.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Step {
    pub(super) tid: Option<i32>,
    pub(super) pid: Option<i32>,
    pub(super) what: What,
}

/// What happens.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum What {
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
    Item(Item),
}

/// Something that happened to descriptors, or a call that names some.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Item {
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
    Change(i32, Change),
    /// A thread is made: no call of it is open, whoever had its id before.
    Born(i32),
    /// The thread, which had the second id, has the first one from now on.
    TakesOver(i32, i32),
    /// A thread makes another one.
    Fork(i32, Forked),
    Exec(i32),
    End(i32),
    /// The thread belongs to that process, as a context says each time.
    Context {
        tid: i32,
        pid: i32,
    },
    /// The thread belongs to that process, which has the table at that address.
    Member {
        tid: i32,
        pid: i32,
        table: Option<i64>,
    },
    Holds(Box<Holds>),
    /// What was known of the CPU alone at a marked time.
    Stands(Box<Stretch>),
}

/// A call that makes descriptors or changes what they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) tid: i32,
    pub(super) entered: Entered,
    pub(super) exited: Exited,
    /// It as one of those whose latency is told.
    pub(super) call: Option<Call>,
}

/// State dump: a process, or whoever has the table, has a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Holds {
    pub(super) holder: Holder,
    pub(super) fd: i32,
    pub(super) text: Text,
    pub(super) cloexec: bool,
}

impl Step {
    /// Texts have other numbers.
    pub(super) fn moved(&mut self, texts: &[Text]) {
        match &mut self.what {
            What::Enter(Some(entered), _) => entered.text.moved(texts),
            What::Exit(exited) => exited.text.moved(texts),
            What::Item(item) => item.moved(texts),
            What::Enter(None, _) | What::Lose | What::Fork(_) | What::Exec => {}
        }
    }
}

impl Item {
    /// Texts have other numbers.
    #[inline]
    pub(super) fn moved(&mut self, texts: &[Text]) {
        match self {
            Item::Arrives(_, exited) => exited.text.moved(texts),
            Item::Leaves(_, entered) => entered.text.moved(texts),
            Item::Made(made) => {
                made.entered.text.moved(texts);
                made.exited.text.moved(texts);
            }
            Item::Holds(holds) => holds.text.moved(texts),
            Item::Stands(stretch) => stretch.moved(texts),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_small() {
        assert!(size_of::<Item>() <= 40, "{}", size_of::<Item>());
    }
}
