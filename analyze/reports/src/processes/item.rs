//! Events of threads, as recorded on each CPU.

use serde::{Deserialize, Serialize};

use crate::processes::life::{Life, Named, Parent, Sums};
use tracebraid_follow::{CallEvent, CallItem, CallStretch};

/// Activity on a CPU from one switch to the next.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) calls: CallStretch,
    /// Sums over the calls that ended in it.
    pub(super) sums: Sums,
    /// Start of the stretch.
    pub(super) since: i64,
}

impl Stretch {
    pub(super) fn new(tid: Option<i32>, since: i64) -> Stretch {
        Stretch {
            since,
            calls: CallStretch::new(tid),
            sums: Sums::default(),
        }
    }

    /// The thread and the sums of its calls, if any ended.
    pub(super) fn did(&self) -> Option<(i32, Sums)> {
        let sums = Some(self.sums).filter(|sums| sums.calls > 0);
        self.calls.tid().zip(sums)
    }
}

/// An event on a CPU that depends on the current stretch.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ProcessStep {
    Call(CallEvent),
    Item(ProcessItem),
}

/// An event of threads, to be played in the order of time over all CPUs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ProcessItem {
    /// A switch; `prev` ran for `ran` nanoseconds from `since` on.
    Switch {
        prev: i32,
        next: i32,
        ran: u64,
        since: i64,
    },
    /// The sums of a thread in a stretch that began at the given time.
    Did(i32, Sums, i64),
    Call(CallItem),
    Told(Told),
}

/// A fact about a thread from an event.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// The thread belongs to a process.
    Belongs(i32, i32),
    /// The thread was created: another life begins under its id.
    Made(i32, Box<Life>),
    Named(i32, Named),
    Ends(i32),
    /// The thread continues, although its end was recorded.
    GoesOn(i32),
    /// The thread with the second id has the first id from now on.
    TakesOver(i32, i32),
    /// In the state dump: the thread exists, with this parent.
    IsThere {
        tid: i32,
        pid: i32,
        parent: Option<Parent>,
        named: Option<Named>,
    },
}

impl Told {
    /// The thread id.
    pub(super) fn tid(&self) -> i32 {
        match *self {
            Told::Belongs(tid, _)
            | Told::Made(tid, _)
            | Told::Named(tid, _)
            | Told::Ends(tid)
            | Told::GoesOn(tid)
            | Told::TakesOver(tid, _)
            | Told::IsThere { tid, .. } => tid,
        }
    }

    /// The effect on the thread's open call, if any.
    pub(super) fn call(&self) -> Option<CallItem> {
        match *self {
            Told::Made(tid, _) => Some(CallItem::Made(tid)),
            Told::TakesOver(tid, old) => Some(CallItem::TakesOver(tid, old)),
            _ => None,
        }
    }

    /// Applies the fact to the current life.
    pub(super) fn change(&self, life: &mut Life, time: i64) {
        match *self {
            Told::Belongs(_, pid) => life.learn_pid(pid),
            Told::Named(_, named) => life.name(named),
            Told::Ends(_) => life.ends(time),
            Told::GoesOn(_) => life.goes_on(),
            Told::IsThere {
                pid, parent, named, ..
            } => life.is_there(pid, parent, named),
            // These facts affect more than one life.
            Told::Made(..) | Told::TakesOver(..) => {}
        }
    }
}
