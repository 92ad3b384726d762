//! The threads that held each thread id over time: ids are reused, and a thread that executes a
//! program takes over the id of its process.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use serde::{Deserialize, Serialize};
use tracebraid_follow::{KeyHasher, ThreadKey};

use crate::cause::ActorId;

/// The threads that had each id, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Holders {
    /// By id: index in `all` of the last holder.
    last: HashMap<ThreadKey, usize, BuildHasherDefault<KeyHasher>>,
    /// One list for all ids, since many short-lived threads have many ids.
    all: Vec<Holder>,
}

/// The holder of an id from `since` on.
#[derive(Clone, Copy, Debug)]
struct Holder {
    /// In nanoseconds from the origin.
    since: i64,
    /// `None` if the id is free.
    actor: Option<ActorId>,
    /// Index of the previous holder of the id.
    before: Option<usize>,
}

/// From `since` on, `actor` has the id `key`; `None` if the id is free.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Held {
    pub(crate) key: ThreadKey,
    pub(crate) since: i64,
    pub(crate) actor: Option<ActorId>,
}

impl Holders {
    /// Appends a holder; times ascend.
    pub(crate) fn add(&mut self, held: Held) {
        let before = self.last.insert(held.key, self.all.len());
        self.all.push(Holder {
            since: held.since,
            actor: held.actor,
            before,
        });
    }

    /// Holders of an id, from the one at index `place` to the first.
    fn last_first(&self, place: usize) -> impl Iterator<Item = &Holder> {
        let last = self.all.get(place);
        std::iter::successors(last, |holder| self.all.get(holder.before?))
    }

    /// The holder of an id at a time; `begin` returns the first time at which a thread is known.
    pub(crate) fn at(
        &self,
        key: ThreadKey,
        time: i64,
        begin: impl Fn(ActorId) -> Option<i64>,
    ) -> Option<ActorId> {
        let mut of_key = self.last_first(*self.last.get(&key)?);
        of_key.find(|holder| holder.holds(time, &begin))?.actor
    }

    /// Drops the entries for earlier times; later queries must not ask for them.
    pub(crate) fn drop_before(&mut self, cut: i64, begin: impl Fn(ActorId) -> Option<i64>) {
        let mut kept = Holders::default();
        for (&key, &last) in &self.last {
            let mut of_key: Vec<&Holder> = Vec::new();
            for holder in self.last_first(last) {
                of_key.push(holder);
                if holder.holds(cut, &begin) {
                    break;
                }
            }
            for &&Holder { since, actor, .. } in of_key.iter().rev() {
                kept.add(Held { key, since, actor });
            }
        }
        *self = kept;
    }
}

impl Holder {
    /// True if it holds the id at a time, unless a later holder does.
    fn holds(&self, time: i64, begin: impl Fn(ActorId) -> Option<i64>) -> bool {
        let has_begun = |actor: ActorId| begin(actor).is_some_and(|begin| begin <= time);
        self.since <= time && self.actor.is_none_or(has_begun)
    }
}

impl FromIterator<Held> for Holders {
    fn from_iter<I: IntoIterator<Item = Held>>(all: I) -> Self {
        let mut holders = Holders::default();
        let all = all.into_iter();
        holders.all.reserve_exact(all.size_hint().0);
        all.for_each(|held| holders.add(held));
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
        let find = |holders: &Holders, tid| {
            times.map(|time| holders.at(key(tid), time, begin).map(|of| of.0))
        };
        let of_4 = [None, Some(0), Some(0), Some(0), Some(1), Some(1), Some(1)];
        let of_5 = [None, None, Some(1), Some(1), None, None, Some(2)];
        assert_eq!((find(&holders, 4), find(&holders, 5)), (of_4, of_5));
        holders.drop_before(60, begin);
        assert_eq!(find(&holders, 4)[4..], of_4[4..]);
        assert_eq!(find(&holders, 5)[4..], of_5[4..]);
        assert_eq!(holders.last_first(holders.last[&key(4)]).count(), 1);
        assert_eq!(holders.at(key(9), 60, begin), None);
    }
}
