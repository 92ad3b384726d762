//! A thread's system calls.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Syscall, errno_of};

use crate::stats::{Bins, Distribution, Top};

/// What is known of a thread's calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    /// The first thing that happened is an exit: the chunks before know of what.
    pub(super) head: Option<Exited>,
    now: Now,
    /// The calls that occurred; `stats` goes with it.
    ids: Vec<Syscall>,
    stats: Vec<CallStats>,
    top: Top<Call>,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
enum Now {
    /// What it did when the chunk began.
    #[default]
    Before,
    /// No call, or one that is not known.
    Outside,
    Inside(Entered),
}

/// A call begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Entered {
    pub(super) call: Syscall,
    pub(super) time: i64,
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

/// A call from its beginning to its end; the longest is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) duration: u64,
    pub(super) begin: i64,
    pub(super) call: Syscall,
    pub(super) result: i64,
    /// Place of the thread.
    pub(super) place: usize,
}

impl Call {
    /// The error that it gave. What `rt_sigreturn` gives is what the program had in the register
    /// when the signal came.
    pub(super) fn error(&self) -> Option<i64> {
        errno_of(self.result).filter(|_| !matches!(self.call.name(), "rt_sigreturn" | "sigreturn"))
    }

    /// When it ends.
    pub(super) fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }

    /// With the thread's place in another list.
    pub(super) fn moved(self, places: &[usize]) -> Call {
        let place = places.get(self.place).copied().unwrap_or(self.place);
        Call { place, ..self }
    }
}

/// What is known of calls of one kind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallStats {
    pub(super) durations: Distribution,
    /// Errors and how often they occurred, in the order of their numbers.
    pub(super) errors: Vec<(u16, u64)>,
    /// In a second pass, instead of the others.
    pub(super) bins: Option<Box<Bins>>,
}

impl CallStats {
    pub(super) fn merge(&mut self, other: &CallStats) {
        self.durations.merge(&other.durations);
        other
            .errors
            .iter()
            .for_each(|&(errno, count)| self.add_error(errno, count));
        if let Some(bins) = &other.bins {
            self.bins.get_or_insert_default().merge(bins);
        }
    }

    fn add_error(&mut self, errno: u16, count: u64) {
        match self.errors.binary_search_by_key(&errno, |error| error.0) {
            Ok(at) => self.errors[at].1 += count,
            Err(at) => self.errors.insert(at, (errno, count)),
        }
    }

    /// How many calls gave an error.
    pub(super) fn failed(&self) -> u64 {
        self.errors.iter().map(|error| error.1).sum()
    }
}

impl Calls {
    /// The thread is new.
    pub(super) fn begin(&mut self) {
        self.now = Now::Outside;
    }

    #[inline(always)]
    pub(super) fn enter(&mut self, entered: Entered) {
        self.now = Now::Inside(entered);
    }

    /// The call that ends, if it is known.
    #[inline(always)]
    pub(super) fn exit(&mut self, exited: Exited) -> Option<Entered> {
        match std::mem::replace(&mut self.now, Now::Outside) {
            Now::Inside(entered) => Some(entered).filter(|entered| {
                // If another one ends, the events between were lost.
                exited.call.is_none_or(|call| call == entered.call)
            }),
            Now::Outside => None,
            Now::Before => {
                self.head = Some(exited);
                None
            }
        }
    }

    /// The call that is open, if it is to end.
    pub(super) fn unfinished(&self) -> Option<Syscall> {
        match self.now {
            Now::Inside(entered) => Some(entered.call),
            Now::Before | Now::Outside => None,
        }
        .filter(|call| !matches!(call.name(), "exit" | "exit_group"))
    }

    pub(super) fn of(&mut self, call: Syscall) -> &mut CallStats {
        let at = self.ids.iter().position(|&id| id == call);
        let at = at.unwrap_or_else(|| {
            self.ids.push(call);
            self.stats.push(CallStats::default());
            self.ids.len() - 1
        });
        &mut self.stats[at]
    }

    #[inline(always)]
    pub(super) fn count(&mut self, call: Call, top: usize) {
        let stats = self.of(call.call);
        stats.durations.add(call.duration);
        if let Some(errno) = call.error() {
            stats.add_error(errno as u16, 1);
        }
        self.top.add(call, top);
    }

    /// Joins what comes later, whose head is done, to this.
    pub(super) fn merge(&mut self, later: Calls, place: usize, top: usize) {
        if !matches!(later.now, Now::Before) {
            self.now = later.now;
        }
        for (id, stats) in later.ids.iter().zip(&later.stats) {
            self.of(*id).merge(stats);
        }
        self.top.merge(later.top, top, |call| call.place = place);
    }

    /// All kinds of calls, in the order of their numbers.
    pub(super) fn sorted(&self) -> Vec<(Syscall, &CallStats)> {
        let mut sorted: Vec<_> = self.ids.iter().copied().zip(&self.stats).collect();
        sorted.sort_by_key(|(call, _)| *call);
        sorted
    }

    /// The longest ones.
    pub(super) fn into_top(self, most: usize) -> Vec<Call> {
        self.top.into_sorted(most)
    }
}
