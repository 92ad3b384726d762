//! Lives of threads: an id that is used again names another thread.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Comm, Syscall};

/// The lives under one id that a chunk knows of, in the order of time, and the call that is open.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lives {
    /// The life that was there when the chunk began.
    before: Life,
    /// Those that began in it.
    after: Vec<Life>,
    /// The first thing that was done is the end of a call: the chunks before know of which.
    pub(super) head: Option<Exited>,
    now: Now,
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
pub enum NamedBy {
    /// It has that of the thread that made it.
    Fork,
    /// It executes that program.
    Exec,
    /// It took it.
    Rename,
    /// The state dump tells it.
    Dump,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
enum Now {
    /// What it did when the chunk began.
    #[default]
    Before,
    /// No call, or one that is not known.
    Outside,
    Inside(Syscall),
}

/// A call ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Exited {
    /// `None` if the event does not name it.
    pub(super) call: Option<Syscall>,
    pub(super) result: i64,
    pub(super) time: i64,
    pub(super) cpu: u32,
}

impl Life {
    /// Learns the pid of its process.
    pub(super) fn learn_pid(&mut self, pid: i64) {
        self.is_seen = true;
        self.pid = Some(pid as i32);
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

    /// Adds what comes later of the same life.
    fn absorb(&mut self, later: Life) {
        self.is_seen |= later.is_seen;
        self.begin = self.begin.or(later.begin);
        self.parent = self.parent.or(later.parent);
        self.pid = later.pid.or(self.pid);
        later.names.into_iter().for_each(|named| self.name(named));
        self.end = later.end.or(self.end);
        self.sums.add(&later.sums);
    }
}

impl Lives {
    /// The life of now.
    #[inline]
    pub(super) fn last(&mut self) -> &mut Life {
        self.after.last_mut().unwrap_or(&mut self.before)
    }

    /// The number of the life of now: 0 for the one that was there when the chunk began.
    #[inline]
    pub(super) fn number(&self) -> usize {
        self.after.len()
    }

    /// The life of that number.
    #[inline]
    pub(super) fn get(&mut self, number: usize) -> Option<&mut Life> {
        match number.checked_sub(1) {
            None => Some(&mut self.before),
            Some(at) => self.after.get_mut(at),
        }
    }

    /// Another life begins under the id.
    pub(super) fn begin(&mut self, life: Life) {
        self.after.push(life);
        self.now = Now::Outside;
    }

    #[inline]
    pub(super) fn enter(&mut self, call: Syscall) {
        self.now = Now::Inside(call);
    }

    /// The call that ends, if it is known.
    #[inline]
    pub(super) fn exit(&mut self, exited: Exited) -> Option<Syscall> {
        match std::mem::replace(&mut self.now, Now::Outside) {
            // If another one ends, the events between were lost.
            Now::Inside(open) => exited.call.is_none_or(|call| call == open).then_some(open),
            Now::Outside => None,
            Now::Before => {
                self.head = Some(exited);
                None
            }
        }
    }

    /// Joins what comes later, whose head is done, to this.
    pub(super) fn merge(&mut self, later: Lives) {
        if !matches!(later.now, Now::Before) {
            self.now = later.now;
        }
        self.last().absorb(later.before);
        self.after.extend(later.after);
    }

    /// All lives; not the one before the trace if others tell that there was none.
    pub(super) fn all(&self) -> impl Iterator<Item = &Life> {
        let is_there = |life: &&Life| life.is_seen || life.sums != Sums::default();
        let before = Some(&self.before).filter(|life| self.after.is_empty() || is_there(life));
        before.into_iter().chain(&self.after)
    }
}
