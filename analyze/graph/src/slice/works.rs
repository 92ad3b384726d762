//! Work of queues within a slice of time.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use tracebraid_follow::KeyHasher;

use crate::graph::Work;
use crate::slice::places::Places;
use crate::works::{Queued, Works};

type Key = (u32, i64);

/// State of a work item by key.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// Queued in the slice.
    Queued(Queued),
    /// Not queued.
    Nothing,
    /// Resolved by composing.
    Composed,
}

#[derive(Debug, Default)]
pub(crate) struct SliceWorks {
    works: HashMap<Key, Known, BuildHasherDefault<KeyHasher>>,
    /// True if events were lost: no earlier work is then queued.
    has_lost: bool,
}

impl SliceWorks {
    /// See [`Works::queues`].
    pub(crate) fn queues(&mut self, key: Key, queued: Queued) {
        self.works.insert(key, Known::Queued(queued));
    }

    /// See [`Works::begins`]; `None` if only composing can resolve it.
    pub(crate) fn begins(&mut self, key: Key, time: i64) -> Option<Option<Work>> {
        let unknown = match self.has_lost {
            true => Known::Nothing,
            false => Known::Composed,
        };
        match self.works.insert(key, Known::Nothing).unwrap_or(unknown) {
            Known::Queued(queued) => Some(Some(queued.begins(time))),
            Known::Nothing => Some(None),
            Known::Composed => None,
        }
    }

    /// Leaves the work to composing.
    pub(crate) fn is_composed(&mut self, key: Key) {
        self.works.insert(key, Known::Composed);
    }

    /// See [`Works::lose`].
    pub(crate) fn lose(&mut self) {
        self.has_lost = true;
        self.works.clear();
    }

    /// Adds the slice to the graph's queues.
    pub(crate) fn compose(self, all: &mut Works, places: &Places) {
        all.retain(|key| !matches!(self.works.get(key), Some(Known::Nothing)));
        for (key, known) in self.works {
            if let Known::Queued(queued) = known {
                let cause = places.wake(queued.cause);
                all.adds(key, Queued { cause, ..queued });
            }
        }
    }
}
