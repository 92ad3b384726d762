//! What begins and ends, paired by a key that both events name.
//!
//! A chunk does not know what was open when it began. The first end of a key that it has not seen
//! beginning waits, and is paired when the chunk is merged with the one before.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

use serde::{Deserialize, Serialize};

use crate::kernel::table::KeyHasher;

/// Beginnings `B` that wait for their ends `E`, by key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Packed<K, B, E>", into = "Packed<K, B, E>")]
#[serde(bound(
    serialize = "K: Key + Serialize, B: Clone + Serialize, E: Clone + Serialize",
    deserialize = "K: Key + Deserialize<'de>, B: Deserialize<'de>, E: Deserialize<'de>"
))]
pub(crate) struct Pairs<K, B, E> {
    slots: HashMap<K, Slot<B>, BuildHasherDefault<KeyHasher>>,
    /// In the order of time, one at most of each key.
    heads: Vec<(K, E)>,
    /// Nothing came before.
    is_first: bool,
}

/// What names a thing.
pub(crate) trait Key: Copy + Eq + Hash {}
impl<K: Copy + Eq + Hash> Key for K {}

/// What is known of a key; of keys that no event named in the chunk, nothing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Slot<B> {
    Open(B),
    Closed,
}

/// What ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended<B> {
    /// That which began so.
    Begun(B),
    /// Nothing that is known.
    Nothing,
    /// The chunks before know.
    Waits,
}

/// As partial states are sent: maps have keys of text in most formats.
#[derive(Serialize, Deserialize)]
struct Packed<K, B, E> {
    slots: Vec<(K, Slot<B>)>,
    heads: Vec<(K, E)>,
    is_first: bool,
}

impl<K, B, E> Default for Pairs<K, B, E> {
    fn default() -> Self {
        Pairs {
            slots: HashMap::default(),
            heads: Vec::new(),
            is_first: false,
        }
    }
}

impl<K: Key, B, E> Pairs<K, B, E> {
    /// Before the first chunk: then nothing waits.
    pub(crate) fn first() -> Self {
        Pairs {
            is_first: true,
            ..Pairs::default()
        }
    }

    /// It begins; what had its key has no end. True if there was something.
    #[inline]
    pub(crate) fn begin(&mut self, key: K, begun: B) -> bool {
        matches!(self.slots.insert(key, Slot::Open(begun)), Some(Slot::Open(_)))
    }

    /// It ends; `end` is kept if the chunks before know what.
    #[inline]
    pub(crate) fn end(&mut self, key: K, end: E) -> Ended<B> {
        if self.is_first {
            return match self.slots.remove(&key) {
                Some(Slot::Open(begun)) => Ended::Begun(begun),
                _ => Ended::Nothing,
            };
        }
        match self.slots.insert(key, Slot::Closed) {
            Some(Slot::Open(begun)) => Ended::Begun(begun),
            Some(Slot::Closed) => Ended::Nothing,
            None => {
                self.heads.push((key, end));
                Ended::Waits
            }
        }
    }

    /// All beginnings that have no end yet, to be changed.
    pub(crate) fn open(&mut self) -> impl Iterator<Item = &mut B> {
        self.slots.values_mut().filter_map(|slot| match slot {
            Slot::Open(begun) => Some(begun),
            Slot::Closed => None,
        })
    }

    /// Joins what comes later to this; gives the ends that waited, in the order of time, with what
    /// they end.
    pub(crate) fn merge(&mut self, later: Pairs<K, B, E>, ended: impl FnMut(K, Option<B>, E))
    where
        E: Clone,
    {
        self.merge_all(later, ended, |_| {});
    }

    /// The same; also gives the keys of beginnings here that another one follows there, and no end.
    pub(crate) fn merge_all(
        &mut self,
        later: Pairs<K, B, E>,
        mut ended: impl FnMut(K, Option<B>, E),
        mut replaced: impl FnMut(K),
    ) where
        E: Clone,
    {
        for (key, end) in later.heads {
            match self.end(key, end.clone()) {
                Ended::Begun(begun) => ended(key, Some(begun), end),
                Ended::Nothing => ended(key, None, end),
                Ended::Waits => {}
            }
        }
        for (key, slot) in later.slots {
            let before = match slot {
                Slot::Closed if self.is_first => self.slots.remove(&key),
                slot => self.slots.insert(key, slot),
            };
            if matches!(before, Some(Slot::Open(_))) {
                replaced(key);
            }
        }
    }

    /// The ends that wait, when nothing came before.
    pub(crate) fn waiting(&mut self) -> Vec<(K, E)> {
        std::mem::take(&mut self.heads)
    }

    /// The keys of beginnings that have no end yet.
    pub(crate) fn open_keys(&self) -> impl Iterator<Item = &K> {
        let open = self
            .slots
            .iter()
            .filter(|(_, slot)| matches!(slot, Slot::Open(_)));
        open.map(|(key, _)| key)
    }
}

impl<K: Key, B, E> From<Packed<K, B, E>> for Pairs<K, B, E> {
    fn from(packed: Packed<K, B, E>) -> Self {
        Pairs {
            slots: packed.slots.into_iter().collect(),
            heads: packed.heads,
            is_first: packed.is_first,
        }
    }
}

impl<K, B, E> From<Pairs<K, B, E>> for Packed<K, B, E> {
    fn from(pairs: Pairs<K, B, E>) -> Self {
        Packed {
            slots: pairs.slots.into_iter().collect(),
            heads: pairs.heads,
            is_first: pairs.is_first,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Chunk = Pairs<u8, usize, usize>;

    /// Plays steps (key, beginning or end) that have these places.
    fn play(
        mut pairs: Chunk,
        steps: &[(u8, bool)],
        from: usize,
        to: &mut Vec<(Option<usize>, usize)>,
        replaced: &mut Vec<u8>,
    ) -> Chunk {
        for (at, &(key, begins)) in steps.iter().enumerate() {
            let at = at + from;
            if begins {
                replaced.extend(pairs.begin(key, at).then_some(key));
                continue;
            }
            match pairs.end(key, at) {
                Ended::Begun(begun) => to.push((Some(begun), at)),
                Ended::Nothing => to.push((None, at)),
                Ended::Waits => {}
            }
        }
        pairs
    }

    proptest! {
        #[test]
        fn chunks_give_what_one_pass_gives(
            steps in prop::collection::vec((0u8..4, any::<bool>()), 0..60),
            cuts in prop::collection::vec(0usize..60, 0..4),
            from_the_left: bool,
        ) {
            let mut expected = Vec::new();
            let (mut replaced, mut all_replaced) = (Vec::new(), Vec::new());
            let whole = play(Chunk::first(), &steps, 0, &mut expected, &mut all_replaced);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(steps.len())).collect();
            cuts.extend([0, steps.len()]);
            cuts.sort_unstable();
            let mut found = Vec::new();
            let mut chunks = Vec::new();
            for range in cuts.windows(2) {
                let begin = if range[0] == 0 && chunks.is_empty() { Chunk::first() } else { Chunk::default() };
                chunks.push(play(begin, &steps[range[0]..range[1]], range[0], &mut found, &mut replaced));
            }
            while chunks.len() > 1 {
                let at = if from_the_left { 0 } else { chunks.len() - 2 };
                let later = chunks.remove(at + 1);
                let text = serde_json::to_string(&chunks[at]).unwrap();
                chunks[at] = serde_json::from_str(&text).unwrap();
                let ended = |_, begun, end| found.push((begun, end));
                chunks[at].merge_all(later, ended, |key| replaced.push(key));
            }
            found.sort_by_key(|pair| pair.1);
            prop_assert_eq!(found, expected);
            prop_assert!(chunks[0].waiting().is_empty());
            replaced.sort_unstable();
            all_replaced.sort_unstable();
            prop_assert_eq!(replaced, all_replaced);
            let sorted = |chunk: &Chunk| {
                let mut keys: Vec<u8> = chunk.open_keys().copied().collect();
                keys.sort_unstable();
                keys
            };
            prop_assert_eq!(sorted(&chunks[0]), sorted(&whole));
        }
    }
}
