//! Which thread had an id when: ids are used again, and a thread that executes a program takes over that of its process.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{KeyHasher, ThreadKey};

use crate::cause::ActorId;

/// The threads that had each id, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Holders(HashMap<ThreadKey, OfKey, BuildHasherDefault<KeyHasher>>);

/// A time in nanoseconds from the origin, and the holder of the id from then on; `None` if it is free.
type Holder = (i64, Option<ActorId>);

/// The threads that had an id: most often there is one.
#[derive(Clone, Debug)]
struct OfKey {
    first: Holder,
    later: Vec<Holder>,
}

impl OfKey {
    fn last_first(&self) -> impl Iterator<Item = &Holder> {
        self.later.iter().rev().chain([&self.first])
    }

    /// Leaves out so many.
    fn drop_front(&mut self, count: usize) {
        if let Some(first) = count.checked_sub(1).and_then(|at| self.later.get(at)) {
            self.first = *first;
            self.later.drain(..count);
        }
    }
}

/// From then on that thread has an id; without one, nobody has.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) key: ThreadKey,
    pub(crate) since: i64,
    pub(crate) actor: Option<ActorId>,
}

impl Holders {
    /// Adds what comes later.
    pub(crate) fn add(&mut self, held: Held) {
        let holder = (held.since, held.actor);
        let of_key = self.0.entry(held.key);
        let of_key = of_key.and_modify(|of_key| of_key.later.push(holder));
        of_key.or_insert(OfKey {
            first: holder,
            later: Vec::new(),
        });
    }

    /// Who had an id at a time, given when each thread is known first.
    pub(crate) fn at(
        &self,
        key: ThreadKey,
        time: i64,
        begin: impl Fn(ActorId) -> Option<i64>,
    ) -> Option<ActorId> {
        let mut of_key = self.0.get(&key)?.last_first();
        let has_begun = |actor: ActorId| begin(actor).is_some_and(|begin| begin <= time);
        let holds = of_key.find(|held| held.0 <= time && held.1.is_none_or(has_begun));
        holds.and_then(|held| held.1)
    }

    /// Nobody will be asked for before that time.
    pub(crate) fn drop_before(&mut self, cut: i64, begin: impl Fn(ActorId) -> Option<i64>) {
        for of_key in self.0.values_mut() {
            // The last one that holds then, and all behind it.
            let holds = |held: &Holder| {
                held.0 <= cut
                    && held
                        .1
                        .is_none_or(|actor| begin(actor).is_some_and(|begin| begin <= cut))
            };
            let behind = of_key.last_first().position(holds);
            if let Some(behind) = behind {
                of_key.drop_front(of_key.later.len() - behind);
            }
        }
    }
}

impl FromIterator<Held> for Holders {
    fn from_iter<I: IntoIterator<Item = Held>>(all: I) -> Self {
        let mut holders = Holders::default();
        all.into_iter().for_each(|held| holders.add(held));
        holders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_used_again_and_taken_over() {
        let key = |tid| ThreadKey { trace: 0, tid };
        let held = |tid, since, actor: Option<u32>| Held {
            key: key(tid),
            since,
            actor: actor.map(ActorId),
        };
        // Thread 5 takes over the id 4 at 50; later there is another 5.
        let mut holders: Holders = [
            held(4, i64::MIN, Some(0)),
            held(5, i64::MIN, Some(1)),
            held(5, 50, None),
            held(4, 50, Some(1)),
            held(5, i64::MIN, Some(2)),
        ]
        .into_iter()
        .collect();
        let begin = |actor: ActorId| [Some(10), Some(20), Some(70)][actor.0 as usize];
        let times = [5, 15, 25, 49, 50, 69, 70];
        let find =
            |holders: &Holders, tid| times.map(|time| holders.at(key(tid), time, begin).map(|of| of.0));
        let of_4 = [None, Some(0), Some(0), Some(0), Some(1), Some(1), Some(1)];
        let of_5 = [None, None, Some(1), Some(1), None, None, Some(2)];
        assert_eq!((find(&holders, 4), find(&holders, 5)), (of_4, of_5));
        holders.drop_before(60, begin);
        assert_eq!(find(&holders, 4)[4..], of_4[4..]);
        assert_eq!(find(&holders, 5)[4..], of_5[4..]);
        assert!(holders.0[&key(4)].later.is_empty());
        assert_eq!(holders.at(key(9), 60, begin), None);
    }
}
