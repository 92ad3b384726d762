//! Selection of wait reasons.

use tracebraid_language::glob::Glob;
use tracebraid_tables::{is_named, unmatched_known};
use tracebraid_threads::WaitReason;

use crate::waits::sums::CallSums;
use crate::waits::tables;
use crate::waits::thread_waits::Parts;

/// The selected wait reasons. Of a call, only the parts with these reasons count; a call without
/// any does not count.
#[derive(Debug)]
pub(super) struct ChosenReasons {
    /// By [`WaitReason::index`]; `None` selects all.
    chosen: Option<[bool; WaitReason::ALL.len()]>,
    /// The reason of the whole time of calls that did nothing but run.
    plain: WaitReason,
}

impl ChosenReasons {
    pub(super) fn new(globs: &[Glob]) -> ChosenReasons {
        let chosen = WaitReason::ALL.map(|why| is_named(globs, why.name()));
        ChosenReasons {
            chosen: (!globs.is_empty()).then_some(chosen),
            plain: WaitReason::Running,
        }
    }

    /// No switches show who ran: the time of all calls is unknown.
    pub(super) fn lacks_switches(&mut self) {
        self.plain = WaitReason::Unknown;
    }

    #[inline]
    pub(super) fn contain(&self, why: WaitReason) -> bool {
        self.chosen.is_none_or(|chosen| chosen[why.index()])
    }

    /// True if calls count that did nothing but run.
    #[inline]
    pub(super) fn contain_plain(&self) -> bool {
        self.contain(self.plain)
    }

    /// True if a call with these parts counts; without, it did nothing but run.
    pub(super) fn contain_any(&self, parts: Option<&Parts>) -> bool {
        let Some(chosen) = self.chosen else {
            return true;
        };
        let Some(parts) = parts else {
            return self.contain_plain();
        };
        parts.iter().zip(chosen).any(|(&time, is)| is && time > 0)
    }

    /// The parts with these reasons, and their sum; `None` if all reasons are selected.
    pub(super) fn of(&self, parts: &Parts) -> Option<(Parts, u64)> {
        let chosen = self.chosen?;
        let mut own = *parts;
        for (part, is_chosen) in own.iter_mut().zip(chosen) {
            *part *= u64::from(is_chosen);
        }
        Some((own, own.iter().sum()))
    }
}

/// A note for each pattern that matches no reason of the calls.
pub(super) fn unmatched(globs: &[Glob], all: &CallSums) -> Vec<String> {
    let parts = all.parts();
    let met: Vec<&str> = parts.iter().map(|(why, _)| why.name()).collect();
    let known = tables::reason_names();
    let no_match = "no wait of a call that ended in the selection";
    unmatched_known("--why", globs, (&met, &known), no_match)
}
