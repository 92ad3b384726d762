//! Lives of threads: an id that is used again names another thread.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, Comm, Syscall};

/// The lives under one id, in the order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lives {
    /// The life that was there when the trace began.
    before: Life,
    /// Lives that began in the trace, one list for each slice of time with such lives.
    after: Vec<Box<[Life]>>,
}

/// What is known of a life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Life {
    /// True if anything happened to it.
    pub(super) is_seen: bool,
    /// When it was made.
    pub(super) begin: Option<i64>,
    /// By whom.
    pub(super) parent: Option<Parent>,
    /// Its process.
    pub(super) pid: Option<i32>,
    /// The names that it was given, and when.
    pub(super) names: Vec<Named>,
    /// When it ended.
    pub(super) end: Option<i64>,
    pub(super) sums: Sums,
}

/// What is added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) active: u64,
    pub(super) calls: u64,
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Sums {
    /// A thread ran so long.
    pub(super) fn active(active: u64) -> Sums {
        Sums {
            active,
            ..Sums::default()
        }
    }

    /// A call ends, with that result.
    #[inline(always)]
    pub(super) fn call(&mut self, call: Syscall, result: i64) {
        self.calls += 1;
        let bytes = u64::try_from(result).unwrap_or(0);
        let (reads, writes) = match call.action() {
            Action::Read => (bytes, 0),
            Action::Write => (0, bytes),
            Action::Copy => (bytes, bytes),
            _ => return,
        };
        self.read = self.read.saturating_add(reads);
        self.written = self.written.saturating_add(writes);
    }

    pub(super) fn add(&mut self, other: &Sums) {
        self.active += other.active;
        self.calls += other.calls;
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
    }
}

/// Who made a life: a thread or its process, whatever is told, as of then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parent {
    pub(super) tid: Option<i32>,
    pub(super) pid: Option<i32>,
    pub(super) time: i64,
}

/// A name that a life was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Named {
    pub(super) time: i64,
    pub(super) name: Comm,
    pub(super) by: NamedBy,
}

/// How a life got a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum NamedBy {
    /// It has that of the thread that made it.
    Fork,
    /// It executes that program.
    Exec,
    /// It took it.
    Rename,
    /// The state dump tells it.
    Dump,
}

impl Life {
    /// Learns the pid of its process.
    pub(super) fn learn_pid(&mut self, pid: i32) {
        self.is_seen = true;
        self.pid = Some(pid);
    }

    /// It ends.
    pub(super) fn ends(&mut self, time: i64) {
        self.is_seen = true;
        self.end = Some(time);
    }

    /// It did not end: its first thread was told to end to make room for another one.
    pub(super) fn goes_on(&mut self) {
        self.end = None;
    }

    /// The state dump tells of it.
    pub(super) fn is_there(&mut self, pid: i32, parent: Option<Parent>, named: Option<Named>) {
        self.learn_pid(pid);
        self.parent = self.parent.or(parent);
        named.into_iter().for_each(|named| self.name(named));
    }

    /// It is given a name; the same one again is none.
    pub(super) fn name(&mut self, named: Named) {
        self.is_seen = true;
        let last = self.names.last();
        let is_same = last.is_some_and(|last| last.name == named.name);
        if !is_same || named.by == NamedBy::Exec {
            self.names.push(named);
        }
    }
}

impl Lives {
    /// The life of now.
    #[inline]
    pub(super) fn last(&mut self) -> &mut Life {
        let last = self.after.last_mut().and_then(|lives| lives.last_mut());
        last.unwrap_or(&mut self.before)
    }

    /// Another life begins under the id.
    pub(super) fn begin(&mut self, life: Life) {
        self.after.push(Box::new([life]));
    }

    /// Other lives begin under the id.
    pub(super) fn extend(&mut self, lives: Box<[Life]>) {
        if !lives.is_empty() {
            if self.after.is_empty() {
                self.after.reserve_exact(1);
            }
            self.after.push(lives);
        }
    }

    /// The life that was lived then.
    pub(super) fn at(&mut self, time: i64) -> &mut Life {
        let begun = |life: &&mut Life| life.begin.is_none_or(|begin| begin <= time);
        let mut after = self
            .after
            .iter_mut()
            .rev()
            .flat_map(|lives| lives.iter_mut().rev());
        after.find(begun).unwrap_or(&mut self.before)
    }

    /// All lives; not the one before the trace if others tell that there was none.
    pub(super) fn all(&self) -> impl Iterator<Item = &Life> {
        let is_there = |life: &&Life| life.is_seen || life.sums != Sums::default();
        let before = Some(&self.before).filter(|life| self.after.is_empty() || is_there(life));
        before.into_iter().chain(self.after.iter().flatten())
    }
}
