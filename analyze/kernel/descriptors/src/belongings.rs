//! The process and the table of descriptors of each thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::ThreadKey;

use crate::acting::Acting;
use crate::change::Sharing;
use crate::earlier::{Earlier, Past};
use crate::members::Members;
use crate::shared::Shared;

/// Process and table of a thread from `since` on, in nanoseconds from the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Belonging {
    pub(crate) since: i64,
    pub(crate) pid: i32,
    pub(crate) table: i32,
    /// Process and table of the creating thread, as long as no record shows whether the new thread
    /// shares them.
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

    /// Belonging of a thread without records: the only thread of its process.
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
    /// Latest of the thread's earlier belongings.
    pub(crate) before: Past,
    /// How the thread is about to create another thread.
    pub(crate) cloning: Option<Sharing>,
    /// The contents of the table may be known from a source other than a copy of another table.
    pub(crate) is_touched: bool,
    /// Threads that have the table.
    pub(crate) users: Users,
}

/// Users of a table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Users {
    /// Number of threads known to have the table, minus one.
    pub(crate) others: u32,
    /// Some of the users belong to other processes.
    pub(crate) shared: bool,
    /// The process whose id is the table's number has another table by now.
    pub(crate) lent: bool,
}

/// An act that decides the tables of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// The contents of the thread's table may change. Looking ahead needs this act before each
    /// thread's first change.
    Touch,
    /// The thread is about to create another thread; `None` if the trace does not show how.
    Cloning(Option<Sharing>),
    /// The thread gets a copy of its table for itself if other threads have the table too.
    Unshare,
    /// The thread creates another thread. Without a recorded process, the new thread becomes a
    /// process of its own.
    Fork {
        /// Id of the new thread.
        child: i32,
        /// Process of the new thread, if recorded.
        child_pid: Option<i32>,
        /// Process of the creating thread, if recorded.
        parent_pid: Option<i32>,
    },
    /// The thread executes a program: its process no longer shares its table with other processes.
    Exec,
    /// The thread ends. When the last thread of a table ends, all its descriptors are closed.
    End,
    /// According to a state dump, the thread belongs to a process whose table is at an address.
    Member {
        /// Id of the process.
        pid: i32,
        /// Address of the table.
        table: Option<i64>,
    },
    /// State dump: a process, or the owner of a table, has a descriptor.
    Holds(Holder),
}

/// Owner of a descriptor in a state dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holder {
    /// The process with this id.
    Process(i32),
    /// The process whose table is at this address.
    Table(i64),
}

/// Effect of an [`Act`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A thread belongs to a process and has a table from now on.
    Belongs(ThreadKey, Belonging),
    /// A table becomes a copy of another one.
    Copied { from: ThreadKey, to: ThreadKey },
    /// Descriptors of the table that are flagged close-on-exec are closed.
    Executed(ThreadKey),
    /// All descriptors of the table are closed.
    Closed(ThreadKey),
    /// Descriptors that a thread seemed to have alone since `since` belong to its process.
    Moved {
        from: ThreadKey,
        to: ThreadKey,
        since: i64,
    },
    /// The table, which was never filled, has no users any more.
    Left(ThreadKey),
    /// The descriptor of a state dump is in this table.
    Held(ThreadKey),
}

/// The effect of an [`Act`] cannot be determined without the contents of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unclear;

/// The process and the table of each thread. Takes a few dozen bytes per known thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Belongings {
    pub(crate) threads: Shared<Members>,
    pub(crate) earlier: Earlier,
    /// Processes by trace and address of their table, from state dumps.
    pub(crate) addresses: BTreeMap<u32, BTreeMap<i64, i32>>,
    /// Number of tables with negative numbers.
    pub(crate) numbered: i32,
}

impl Belongings {
    /// Whether acts can have produced this value. A sound value causes no overflow.
    pub(crate) fn is_sound(&self) -> bool {
        const MOST: usize = 1 << 30;
        let are_few = |entry: &ThreadEntry| (entry.users.others as usize) < MOST;
        self.threads.is_sound()
            && self.earlier.is_sound()
            && (0..MOST as i32).contains(&self.numbered)
            && self.threads.entries().all(are_few)
    }

    /// Current process and table of a thread.
    pub(crate) fn belonging(&self, thread: ThreadKey) -> Belonging {
        self.threads.belonging(thread)
    }

    /// Belongings of a thread that have not been forgotten, latest first.
    fn all(&self, thread: ThreadKey) -> impl Iterator<Item = Belonging> {
        let entry = self.threads.find(thread);
        let now = entry.and_then(|entry| entry.belonging);
        let before = entry.map(|entry| self.earlier.from(entry.before));
        now.into_iter().chain(before.into_iter().flatten())
    }

    /// The table of a thread at a time, and the time at which it gets another one.
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

    /// Whether a thread has had `table` at all times after `time`.
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

    /// Forgets belongings that ended at or before `before`; they must not be looked up any more.
    pub(crate) fn forget(&mut self, before: i64) {
        self.earlier.forget(before);
    }
}
