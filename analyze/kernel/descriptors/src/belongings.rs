//! Which process each thread belongs to, and which table of descriptors it has.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;

use crate::acting::Acting;
use crate::change::Sharing;
use crate::earlier::{Earlier, Past};
use crate::members::Members;
use crate::shared::Shared;

/// Which process a thread belongs to, and which table it has, from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belonging {
    pub(crate) since: i64,
    pub(crate) pid: i32,
    pub(crate) table: i32,
    /// Process and table of the thread that made it, as long as nothing tells whether it has the
    /// same.
    pub(crate) maker: Option<(i32, i32)>,
}

impl Belonging {
    pub(crate) fn new(since: i64, pid: i32, table: i32) -> Belonging {
        Belonging {
            since,
            pid,
            table,
            maker: None,
        }
    }

    /// That of a thread of which nothing is known: it is alone in its process.
    pub(crate) fn alone(thread: ThreadKey) -> Belonging {
        Belonging {
            since: i64::MIN,
            pid: thread.tid,
            table: thread.tid,
            maker: None,
        }
    }
}

/// Process and table of a thread, and the users of the table whose number is the thread's id.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ThreadEntry {
    pub(crate) belonging: Option<Belonging>,
    /// Latest of its earlier belongings.
    pub(crate) before: Past,
    /// What it is about to make.
    pub(crate) cloning: Option<Sharing>,
    /// The contents of the table may be known from a source other than a copy of another table.
    pub(crate) is_touched: bool,
    /// Threads that have the table.
    pub(crate) users: Users,
}

/// Who has a table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Users {
    /// Threads that are known to have it, but for one.
    pub(crate) others: u32,
    /// Some of them are of other processes.
    pub(crate) shared: bool,
    /// The process whose id it has as its own has another one by now.
    pub(crate) lent: bool,
}

/// Something that decides which thread has which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// What is in the thread's table changes, perhaps. Looking ahead needs one before each thread's
    /// first change.
    Touch,
    /// The thread is about to make another one. Nothing where the trace does not tell how.
    Cloning(Option<Sharing>),
    /// The thread gets a copy of its table for itself, if others have it too.
    Unshare,
    /// The thread makes another one. If nothing tells its process, it is taken for a process of its
    /// own.
    Fork {
        /// Its id.
        child: i32,
        /// Its process, if that is told.
        child_pid: Option<i32>,
        /// The process of the thread that makes it, if that is told.
        parent_pid: Option<i32>,
    },
    /// The thread executes a program: what its process shared with other processes it shares no
    /// more.
    Exec,
    /// The thread ends. With the last thread that has a table everything in it is closed.
    End,
    /// The thread turns out to belong to a process, and that to have its table at an address, as a
    /// state dump tells.
    Member {
        /// The process.
        pid: i32,
        /// Address of its table.
        table: Option<i64>,
    },
    /// State dump: a process, or whoever has the table, has a descriptor.
    Holds(Holder),
}

/// Who has a descriptor, as a state dump tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    /// That process.
    Process(i32),
    /// Whoever has the table at that address.
    Table(i64),
}

/// What comes of an [`Act`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A thread belongs to a process, and has a table, from now on.
    Belongs(ThreadKey, Belonging),
    /// A table becomes a copy of another one.
    Copied { from: ThreadKey, to: ThreadKey },
    /// What is to be closed at exec is closed in that table.
    Executed(ThreadKey),
    /// Everything in that table is closed.
    Closed(ThreadKey),
    /// What a thread seemed to have alone, since that time, is its process's.
    Moved {
        from: ThreadKey,
        to: ThreadKey,
        since: i64,
    },
    /// Nobody has that table any more, which was never filled.
    Left(ThreadKey),
    /// The descriptor of a state dump is in that table.
    Held(ThreadKey),
}

/// It cannot be said what comes of an [`Act`] without knowing what is in tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclear;

/// Which process each thread belongs to, and which table it has. Takes a few dozen bytes a thread
/// that was met.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Belongings {
    pub(crate) threads: Shared<Members>,
    pub(crate) earlier: Earlier,
    /// Processes by trace and address of their table, in the state dump.
    pub(crate) addresses: BTreeMap<u32, BTreeMap<i64, i32>>,
    /// How many tables have negative numbers.
    pub(crate) numbered: i32,
}

impl Belongings {
    /// Whether acts can lead to this value: then nothing in it overflows.
    pub(crate) fn is_sound(&self) -> bool {
        const MOST: usize = 1 << 30;
        let are_few = |entry: &ThreadEntry| (entry.users.others as usize) < MOST;
        self.threads.is_sound()
            && self.earlier.is_sound()
            && (0..MOST as i32).contains(&self.numbered)
            && self.threads.entries().all(are_few)
    }

    /// What a thread belongs to now.
    pub(crate) fn belonging(&self, thread: ThreadKey) -> Belonging {
        self.threads.belonging(thread)
    }

    /// Belongings of a thread that are not forgotten, latest first.
    fn all(&self, thread: ThreadKey) -> impl Iterator<Item = Belonging> {
        let entry = self.threads.find(thread);
        let now = entry.and_then(|entry| entry.belonging);
        let before = entry.map(|entry| self.earlier.from(entry.before));
        now.into_iter().chain(before.into_iter().flatten())
    }

    /// The table of a thread at a time, and when it gets another one.
    pub(crate) fn table_at(&self, thread: ThreadKey, time: i64) -> (ThreadKey, Option<i64>) {
        let mut next = None;
        for belonging in self.all(thread) {
            if belonging.since <= time {
                return (thread.with(belonging.table), next);
            }
            next = Some(belonging.since);
        }
        (thread, next)
    }

    /// Whether a thread had that table at all times after one.
    pub(crate) fn had_since(&self, thread: ThreadKey, table: ThreadKey, time: i64) -> bool {
        let mut later = self
            .all(thread)
            .take_while(|belonging| belonging.since > time);
        later.all(|belonging| belonging.table == table.tid)
    }

    /// Borrows all fields to apply acts.
    pub(crate) fn acting<'a>(
        &'a mut self,
        effects: &'a mut Vec<Effect>,
        is_empty: Option<&'a dyn Fn(ThreadKey) -> bool>,
    ) -> Acting<'a> {
        Acting {
            threads: self.threads.change(),
            earlier: &mut self.earlier,
            addresses: &mut self.addresses,
            numbered: &mut self.numbered,
            effects,
            is_empty,
        }
    }

    /// Forgets what was before a time for which nobody will ask any more.
    pub(crate) fn forget(&mut self, before: i64) {
        self.earlier.forget(before);
    }
}
