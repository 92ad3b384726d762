//! Calls of functions and system calls by one thread, and the time of the thread on CPUs in them.
//!
//! A thread has a clock that advances while the thread is on a CPU ([`CallClock`]), so that calls may
//! span preemption, waits and migrations. A call ends with its exit, with the exit of a call
//! around it (a jump leaves several functions at once), or with its thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::Window;

/// Sums of the calls of one function or system call by one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallSums {
    /// Calls, including unfinished ones.
    pub(super) calls: u64,
    /// Calls without an exit.
    pub(super) unfinished: u64,
    /// Nanoseconds on a CPU. Calls within a call of the same function count once.
    pub(super) active_ns: i64,
    /// Nanoseconds on a CPU without calls of other functions.
    pub(super) own_ns: i64,
    /// Nanoseconds from entry to exit. Calls within a call of the same function count once.
    pub(super) wall_ns: u64,
}

impl CallSums {
    fn merge(&mut self, other: CallSums) {
        self.calls += other.calls;
        self.unfinished += other.unfinished;
        self.active_ns += other.active_ns;
        self.own_ns += other.own_ns;
        self.wall_ns += other.wall_ns;
    }
}

/// Sums of all calls of one kind by one thread.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallsOfThread {
    pub(super) by_key: BTreeMap<u64, CallSums>,
    /// Exits without an entry.
    pub(super) strays: u64,
}

impl CallsOfThread {
    pub(super) fn merge(&mut self, other: CallsOfThread) {
        for (key, sums) in other.by_key {
            self.by_key.entry(key).or_default().merge(sums);
        }
        self.strays += other.strays;
    }

    /// Adds the time of calls that are not within calls of the same function.
    pub(super) fn add_outermost(&mut self, key: u64, (active, wall): (i64, u64)) {
        let sums = self.by_key.entry(key).or_default();
        sums.active_ns += active;
        sums.wall_ns += wall;
    }
}

/// Nanoseconds of a thread on CPUs within the window of time, from an arbitrary zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallClock {
    /// Up to the last time at which the thread was switched out.
    pub(super) ns: i64,
    /// Time since which the thread has run.
    pub(super) since: Option<i64>,
}

impl CallClock {
    pub(super) fn now(&self, window: &Window, time: i64) -> i64 {
        let ran = self.since.map_or(0, |since| window.clip(since, time));
        self.ns.saturating_add_unsigned(ran)
    }

    pub(super) fn runs(&mut self, time: i64) {
        self.since.get_or_insert(time);
    }

    pub(super) fn stops(&mut self, window: &Window, time: i64) {
        *self = CallClock {
            ns: self.now(window, time),
            since: None,
        };
    }
}

/// A call that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnendedCall {
    pub(super) key: u64,
    pub(super) begin: i64,
    /// The thread's clock at the begin.
    pub(super) entered: i64,
    /// Nanoseconds on a CPU in calls from this one.
    pub(super) inner: i64,
}

/// A call that has ended.
pub(super) struct EndedCall {
    pub(super) key: u64,
    pub(super) begin: i64,
    pub(super) active: i64,
    pub(super) own: i64,
    /// Not within a call of the same function.
    pub(super) is_outermost: bool,
}

impl EndedCall {
    /// Adds all but the time of the outermost call. Returns that: on a CPU, and in all.
    pub(super) fn count(
        &self,
        sums: &mut CallsOfThread,
        window: &Window,
        (time, is_finished): (i64, bool),
    ) -> (i64, u64) {
        let wall = window.clip(self.begin, time);
        if wall == 0 && !window.contains(time) {
            return (0, 0);
        }
        let of = sums.by_key.entry(self.key).or_default();
        of.calls += 1;
        of.unfinished += u64::from(!is_finished);
        of.own_ns += self.own;
        (self.active, wall)
    }
}

/// Calls of a thread that have not ended, from the outermost to the innermost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallStack {
    calls: Vec<UnendedCall>,
    /// Number of these calls by function.
    open: BTreeMap<u64, u32>,
}

impl CallStack {
    pub(super) fn push(&mut self, call: UnendedCall) {
        *self.open.entry(call.key).or_default() += 1;
        self.calls.push(call);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.open.contains_key(&key)
    }

    pub(super) fn innermost(&self) -> Option<u64> {
        self.calls.last().map(|call| call.key)
    }

    /// Ends the innermost call; `now` is the thread's clock.
    pub(super) fn pop(&mut self, now: i64) -> Option<EndedCall> {
        let call = self.calls.pop()?;
        let active = now - call.entered;
        self.add_inner(active);
        let open = self.open.entry(call.key).or_default();
        *open = open.saturating_sub(1);
        let is_outermost = *open == 0;
        if is_outermost {
            self.open.remove(&call.key);
        }
        Some(EndedCall {
            key: call.key,
            begin: call.begin,
            active,
            own: active - call.inner,
            is_outermost,
        })
    }

    /// Adds the time of calls from the innermost call.
    pub(super) fn add_inner(&mut self, active: i64) {
        if let Some(around) = self.calls.last_mut() {
            around.inner += active;
        }
    }

    /// Takes all calls, which end without being counted.
    pub(super) fn take(&mut self) -> Vec<UnendedCall> {
        self.open.clear();
        std::mem::take(&mut self.calls)
    }
}

/// A position in time: nanoseconds from the origin, and the thread's clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct CallMoment {
    pub(super) time: i64,
    pub(super) clock: i64,
}

/// Plays the steps of calls of one kind on the stack of a thread.
pub(super) struct StackPlayer<'a> {
    pub(super) stack: &'a mut CallStack,
    pub(super) sums: &'a mut CallsOfThread,
    pub(super) window: &'a Window,
}

impl StackPlayer<'_> {
    pub(super) fn enter(&mut self, key: u64, at: CallMoment) {
        self.stack.push(UnendedCall {
            key,
            begin: at.time,
            entered: at.clock,
            inner: 0,
        });
    }

    /// Ends the innermost call of a function, and those within it.
    pub(super) fn exit(&mut self, key: u64, at: CallMoment) {
        if !self.stack.contains(key) {
            self.sums.strays += u64::from(self.window.contains(at.time));
            return;
        }
        while let Some(ended) = self.stack.pop(at.clock) {
            self.count(&ended, at.time, true);
            if ended.key == key {
                return;
            }
        }
    }

    /// Ends all calls, which have no exit.
    pub(super) fn end(&mut self, at: CallMoment) {
        while let Some(ended) = self.stack.pop(at.clock) {
            self.count(&ended, at.time, false);
        }
    }

    fn count(&mut self, ended: &EndedCall, time: i64, is_finished: bool) {
        let whole = ended.count(self.sums, self.window, (time, is_finished));
        if ended.is_outermost && whole != (0, 0) {
            self.sums.add_outermost(ended.key, whole);
        }
    }
}
