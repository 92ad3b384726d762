//! Lives of threads: an id that is reused names another thread.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, Comm, Syscall};

/// The lives under one id, in the order of time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lives {
    /// The life that existed when the trace began.
    before: Life,
    /// Lives that began in the trace, one list for each slice of time with such lives.
    after: Vec<Box<[Life]>>,
}

/// Facts about one life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Life {
    /// True if the trace contains any event of it.
    pub(super) is_seen: bool,
    /// Time of creation.
    pub(super) begin: Option<i64>,
    /// The creator.
    pub(super) parent: Option<Parent>,
    /// Process id.
    pub(super) pid: Option<i32>,
    /// Names in the order of time.
    pub(super) names: Vec<Named>,
    /// Time of the end.
    pub(super) end: Option<i64>,
    pub(super) sums: Sums,
}

/// Sums of a life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) active: u64,
    pub(super) calls: u64,
    pub(super) read: u64,
    pub(super) written: u64,
}

impl Sums {
    /// Sums for `active` nanoseconds on CPUs.
    pub(super) fn active(active: u64) -> Sums {
        Sums {
            active,
            ..Sums::default()
        }
    }

    /// Counts a call with its result.
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

/// The creator of a life: thread id or process id, whichever the event contains, at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Parent {
    pub(super) tid: Option<i32>,
    pub(super) pid: Option<i32>,
    pub(super) time: i64,
}

/// A name of a life.
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
    /// Inherited from the thread that created it.
    Fork,
    /// From the program that it executed.
    Exec,
    /// By renaming itself.
    Rename,
    /// From the state dump.
    Dump,
}

impl Life {
    /// Records the process id.
    pub(super) fn learn_pid(&mut self, pid: i32) {
        self.is_seen = true;
        self.pid = Some(pid);
    }

    /// Records the end.
    pub(super) fn ends(&mut self, time: i64) {
        self.is_seen = true;
        self.end = Some(time);
    }

    /// Removes the end: the first thread's end was recorded only because another thread took over
    /// its id.
    pub(super) fn goes_on(&mut self) {
        self.end = None;
    }

    /// Records facts from the state dump.
    pub(super) fn is_there(&mut self, pid: i32, parent: Option<Parent>, named: Option<Named>) {
        self.learn_pid(pid);
        self.parent = self.parent.or(parent);
        named.into_iter().for_each(|named| self.name(named));
    }

    /// Records a name, unless it equals the last one and does not come from exec.
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
    /// The current life.
    #[inline]
    pub(super) fn last(&mut self) -> &mut Life {
        let last = self.after.last_mut().and_then(|lives| lives.last_mut());
        last.unwrap_or(&mut self.before)
    }

    /// Begins another life under the id.
    pub(super) fn begin(&mut self, life: Life) {
        self.after.push(Box::new([life]));
    }

    /// Begins other lives under the id.
    pub(super) fn extend(&mut self, lives: Box<[Life]>) {
        if !lives.is_empty() {
            if self.after.is_empty() {
                self.after.reserve_exact(1);
            }
            self.after.push(lives);
        }
    }

    /// The life at a time.
    pub(super) fn at(&mut self, time: i64) -> &mut Life {
        let begun = |life: &&mut Life| life.begin.is_none_or(|begin| begin <= time);
        let mut after = self
            .after
            .iter_mut()
            .rev()
            .flat_map(|lives| lives.iter_mut().rev());
        after.find(begun).unwrap_or(&mut self.before)
    }

    /// All lives. The one before the trace is left out if it has no events and another life exists.
    pub(super) fn all(&self) -> impl Iterator<Item = &Life> {
        let is_there = |life: &&Life| life.is_seen || life.sums != Sums::default();
        let before = Some(&self.before).filter(|life| self.after.is_empty() || is_there(life));
        before.into_iter().chain(self.after.iter().flatten())
    }
}
