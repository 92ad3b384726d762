//! Earlier belongings of threads.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::belongings::Belonging;

/// Earlier belongings of all threads, in the order of their ends. The first to end is forgotten
/// first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Earlier {
    all: VecDeque<Ended>,
    /// Number of forgotten belongings.
    forgotten: u64,
}

/// A belonging that a thread had up to `until`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ended {
    belonging: Belonging,
    until: i64,
    before: Past,
}

/// Number of the latest earlier belonging of a thread, starting at 1; 0 for no earlier belonging.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Past(u64);

impl Earlier {
    /// True if no number overflows.
    pub(crate) fn is_sound(&self) -> bool {
        self.forgotten < 1 << 62
    }

    /// Appends a belonging that ended at `until`, which must not be less than the end of any
    /// appended before. `past` leads to the earlier belongings of the thread, and afterwards also
    /// to this one.
    pub(crate) fn push(&mut self, past: &mut Past, belonging: Belonging, until: i64) {
        let before = *past;
        self.all.push_back(Ended {
            belonging,
            until,
            before,
        });
        *past = Past(self.forgotten + self.all.len() as u64);
    }

    /// Earlier belongings of a thread, latest first.
    pub(crate) fn from(&self, past: Past) -> impl Iterator<Item = Belonging> {
        let get = |past: Past| {
            let at = past.0.checked_sub(1)?.checked_sub(self.forgotten)?;
            Some((past, self.all.get(usize::try_from(at).ok()?)?))
        };
        let all = std::iter::successors(get(past), move |(past, ended)| {
            // Numbers decrease from each belonging to the previous one; deserialized data may
            // violate this.
            get(ended.before).filter(|(before, _)| before < past)
        });
        all.map(|(_, ended)| ended.belonging)
    }

    /// Forgets the belongings that ended at or before a time.
    pub(crate) fn forget(&mut self, time: i64) {
        while self.all.front().is_some_and(|ended| ended.until <= time) {
            self.all.pop_front();
            self.forgotten += 1;
        }
    }
}
