//! A reaction: its source and the times of its steps.

use serde::{Deserialize, Serialize};
use tracebraid_follow::Interrupt;

/// The cause of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum ReactionSource {
    Interrupt(Interrupt),
    /// A thread, in the kernel.
    Thread,
    /// A user-level thread, or the runtime by itself.
    Runtime,
}

/// Times of the steps of a reaction, in nanoseconds from the clock's origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Reaction {
    pub(super) source: ReactionSource,
    /// Entry of the interrupt, or the first wake-up.
    pub(super) begin: i64,
    pub(super) woken: i64,
    /// The LWP is on a CPU.
    pub(super) lwp: Option<i64>,
    /// The scheduler wakes the user-level thread.
    pub(super) ult_woken: Option<i64>,
    /// The user-level thread has an LWP.
    pub(super) ult: Option<i64>,
}

/// Parts of a reaction, in order.
pub(super) const PARTS: [&str; 5] = ["interrupt", "kernel", "scheduler", "lwp", "thread"];

impl Reaction {
    pub(super) fn new(source: ReactionSource, begin: i64, woken: i64) -> Reaction {
        Reaction {
            source,
            begin,
            woken,
            lwp: None,
            ult_woken: None,
            ult: None,
        }
    }

    /// The reaction that a wake-up by the runtime begins or continues. `scheduler`: the reaction of
    /// the LWP whose scheduler wakes.
    pub(super) fn passed_on(scheduler: Option<Reaction>, time: i64) -> Reaction {
        let begun = scheduler.filter(Reaction::has_lwp);
        let begun = begun.unwrap_or(Reaction {
            lwp: Some(time),
            ..Reaction::new(ReactionSource::Runtime, time, time)
        });
        Reaction {
            ult_woken: Some(time),
            ult: None,
            ..begun
        }
    }

    pub(super) fn has_lwp(&self) -> bool {
        self.lwp.is_some()
    }

    /// Durations of [`PARTS`] up to the act at `end`.
    pub(super) fn parts(&self, end: i64) -> [u64; 5] {
        let lwp = self.lwp.unwrap_or(self.woken);
        let ult_woken = self.ult_woken.unwrap_or(lwp);
        let ult = self.ult.unwrap_or(ult_woken);
        [
            self.woken.abs_diff(self.begin),
            lwp.abs_diff(self.woken),
            ult_woken.abs_diff(lwp),
            ult.abs_diff(ult_woken),
            end.abs_diff(ult),
        ]
    }

    /// True if the next act ends the reaction.
    pub(super) fn is_running(&self) -> bool {
        self.lwp.is_some() && self.ult_woken.is_none() || self.ult.is_some()
    }
}
