//! Pairs in a slice of time, without knowledge of what had begun before.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};

use crate::pairs::Pairs;
use crate::table::KeyHasher;

/// What begins and ends in a slice, by key. Ends whose beginnings are not in it are kept for the state at its
/// beginning.
#[derive(Clone, Debug)]
pub struct PairSlice<K, B, E> {
    /// By key that began in the slice: what has no end yet.
    begun: HashMap<K, Option<B>, BuildHasherDefault<KeyHasher>>,
    ends: Vec<(K, E)>,
}

impl<K, B, E> Default for PairSlice<K, B, E> {
    fn default() -> Self {
        PairSlice {
            begun: HashMap::default(),
            ends: Vec::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, B, E> PairSlice<K, B, E> {
    /// It begins; what had its key has no end.
    #[inline]
    pub fn begin(&mut self, key: K, begun: B) {
        self.begun.insert(key, Some(begun));
    }

    /// It ends: gives that which began so in the slice, and the end.
    #[inline]
    pub fn end(&mut self, key: K, end: E) -> Option<(B, E)> {
        match self.begun.get_mut(&key) {
            Some(begun) => begun.take().map(|begun| (begun, end)),
            None => {
                self.ends.push((key, end));
                None
            }
        }
    }

    /// Goes on with what had begun before; gives what ends by that.
    pub fn compose(self, pairs: &mut Pairs<K, B>, mut ended: impl FnMut(K, B, E)) {
        for (key, end) in self.ends {
            if let Some(begun) = pairs.end(key) {
                ended(key, begun, end);
            }
        }
        // What had begun before under the same key has no end.
        if pairs.len() < self.begun.len() {
            let is_replaced = |key: &K| self.begun.contains_key(key);
            pairs.forget(is_replaced);
        } else {
            self.begun.keys().for_each(|key| drop(pairs.end(*key)));
        }
        for (key, begun) in self.begun {
            if let Some(begun) = begun {
                pairs.begin(key, begun);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slices_are_composed_to_the_whole(
            steps in prop::collection::vec((0..6_u32, any::<bool>()), 0..60),
            cuts in prop::collection::vec(0..60_usize, 0..4),
        ) {
            let mut pairs = Pairs::default();
            let mut expected = Vec::new();
            for (number, (key, begins)) in steps.iter().enumerate() {
                match begins {
                    true => drop(pairs.begin(*key, number)),
                    false => expected.extend(pairs.end(*key).map(|begun| (*key, begun, number))),
                }
            }
            let mut open: Vec<_> = pairs.open().map(|(key, begun)| (*key, *begun)).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(steps.len())).collect();
            cuts.sort_unstable();
            let (mut pairs, mut found, mut from) = (Pairs::default(), Vec::new(), 0);
            for cut in cuts.into_iter().chain([steps.len()]) {
                let mut slice = PairSlice::default();
                for number in from..cut {
                    match steps[number] {
                        (key, true) => slice.begin(key, number),
                        (key, false) => found.extend(slice.end(key, number).map(|(begun, end)| (key, begun, end))),
                    }
                }
                slice.compose(&mut pairs, |key, begun, end| found.push((key, begun, end)));
                from = cut;
            }
            let mut rest: Vec<_> = pairs.open().map(|(key, begun)| (*key, *begun)).collect();
            for list in [&mut open, &mut rest] {
                list.sort_unstable();
            }
            found.sort_by_key(|ended| ended.2);
            prop_assert_eq!((found, rest), (expected, open));
        }
    }
}
