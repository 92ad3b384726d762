//! What happens to threads, by what each CPU tells.

use serde::{Deserialize, Serialize};

use crate::processes::life::{Life, Named, Parent, Sums};
use tracebraid_follow::{CallEvent, CallItem, CallStretch};

/// What a CPU does from one switch to the next.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) calls: CallStretch,
    /// Of the calls that ended in it.
    pub(super) sums: Sums,
    /// When it began.
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

    /// The calls that ended in it, and whose they are.
    pub(super) fn did(&self) -> Option<(i32, Sums)> {
        let sums = Some(self.sums).filter(|sums| sums.calls > 0);
        self.calls.tid().zip(sums)
    }
}

/// What happens on a CPU, in the stretch that it is in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ProcessStep {
    Call(CallEvent),
    Item(ProcessItem),
}

/// What happens to threads; played in the order of time over all CPUs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum ProcessItem {
    /// A CPU goes from one thread to another; the first one ran so long from that time on.
    Switch {
        prev: i32,
        next: i32,
        ran: u64,
        since: i64,
    },
    /// It did that in a stretch from that time on.
    Did(i32, Sums, i64),
    Call(CallItem),
    Told(Told),
}

/// Something that an event tells of a thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// It belongs to that process.
    Belongs(i32, i32),
    /// It is made: another life begins under its id.
    Made(i32, Box<Life>),
    Named(i32, Named),
    Ends(i32),
    /// It did not end, though that was told.
    GoesOn(i32),
    /// The thread, which had the second id, has the first one from now on.
    TakesOver(i32, i32),
    /// State dump: it is there, and so is who made it.
    IsThere {
        tid: i32,
        pid: i32,
        parent: Option<Parent>,
        named: Option<Named>,
    },
}

impl Told {
    /// The thread.
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

    /// What becomes of the thread's calls, if anything does.
    pub(super) fn call(&self) -> Option<CallItem> {
        match *self {
            Told::Made(tid, _) => Some(CallItem::Made(tid)),
            Told::TakesOver(tid, old) => Some(CallItem::TakesOver(tid, old)),
            _ => None,
        }
    }

    /// Changes what is known of the life that is lived.
    pub(super) fn change(&self, life: &mut Life, time: i64) {
        match *self {
            Told::Belongs(_, pid) => life.learn_pid(pid),
            Told::Named(_, named) => life.name(named),
            Told::Ends(_) => life.ends(time),
            Told::GoesOn(_) => life.goes_on(),
            Told::IsThere {
                pid, parent, named, ..
            } => life.is_there(pid, parent, named),
            // They concern more than one life.
            Told::Made(..) | Told::TakesOver(..) => {}
        }
    }
}
