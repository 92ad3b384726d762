//! What threads belonged to before.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::belongings::Belonging;

/// What threads belonged to before, of all of them in the order in which it ended. What ended first is forgotten first.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Earlier {
    all: VecDeque<Ended>,
    /// How many were forgotten.
    forgotten: u64,
}

/// A thread belonged to that up to a time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ended {
    belonging: Belonging,
    until: i64,
    before: Past,
}

/// The last that a thread belonged to before, by its number from 1 on; 0 if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Past(u64);

impl Earlier {
    /// Nothing in it overflows.
    pub(crate) fn is_sound(&self) -> bool {
        self.forgotten < 1 << 62
    }

    /// A thread belongs to something else from a time on, which is not before those of others. `past` leads to what it belonged
    /// to before that.
    pub(crate) fn push(&mut self, past: &mut Past, belonging: Belonging, until: i64) {
        let before = *past;
        self.all.push_back(Ended {
            belonging,
            until,
            before,
        });
        *past = Past(self.forgotten + self.all.len() as u64);
    }

    /// What a thread belonged to, from the last to the first.
    pub(crate) fn from(&self, past: Past) -> impl Iterator<Item = Belonging> {
        let get = |past: Past| {
            let at = past.0.checked_sub(1)?.checked_sub(self.forgotten)?;
            Some((past, self.all.get(usize::try_from(at).ok()?)?))
        };
        let all = std::iter::successors(get(past), move |(past, ended)| {
            // Each was before the other; bytes from elsewhere might tell otherwise.
            get(ended.before).filter(|(before, _)| before < past)
        });
        all.map(|(_, ended)| ended.belonging)
    }

    /// Forgets what ended up to a time.
    pub(crate) fn forget(&mut self, time: i64) {
        while self.all.front().is_some_and(|ended| ended.until <= time) {
            self.all.pop_front();
            self.forgotten += 1;
        }
    }
}
