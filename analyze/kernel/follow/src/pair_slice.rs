//! Pairs in a slice of time, without knowledge of earlier beginnings.

use std::hash::Hash;

use crate::number_index::NumberIndex;
use crate::pairs::Pairs;
use crate::table::KeyHasher;

/// Beginnings and ends in a slice, by key. Ends whose beginnings are not in the slice are kept for
/// the state at its beginning.
#[derive(Clone, Debug)]
pub struct PairSlice<K, B, E> {
    /// Keys that began in the slice, each with its latest beginning; `None` if that has ended.
    begun: Vec<(K, Option<B>)>,
    /// Indexes in `begun`, by key.
    index: NumberIndex,
    ends: Vec<(K, E)>,
}

impl<K, B, E> Default for PairSlice<K, B, E> {
    fn default() -> Self {
        PairSlice {
            begun: Vec::new(),
            index: NumberIndex::default(),
            ends: Vec::new(),
        }
    }
}

impl<K: Copy + Eq + Hash, B, E> PairSlice<K, B, E> {
    fn find(&self, hash: u64, key: &K) -> Option<usize> {
        let is_key = |at: u32| {
            self.begun
                .get(at as usize)
                .is_some_and(|begun| begun.0 == *key)
        };
        Some(self.index.find(hash, is_key)? as usize)
    }

    /// Adds a beginning, replacing an open beginning with the same key; true if the slice had one.
    #[inline]
    pub fn begin(&mut self, key: K, begun: B) -> bool {
        let hash = KeyHasher::hash_of(&key);
        match self.find(hash, &key).and_then(|at| self.begun.get_mut(at)) {
            Some((_, known)) => known.replace(begun).is_some(),
            None => {
                self.index.insert(hash, self.begun.len() as u32);
                self.begun.push((key, Some(begun)));
                false
            }
        }
    }

    /// Adds an end: returns the open beginning, if there is one, and the end; `None` if it may have
    /// begun before the slice.
    #[inline]
    pub fn end(&mut self, key: K, end: E) -> Option<(Option<B>, E)> {
        let at = self.find(KeyHasher::hash_of(&key), &key);
        match at.and_then(|at| self.begun.get_mut(at)) {
            Some((_, begun)) => Some((begun.take(), end)),
            None => {
                self.ends.push((key, end));
                None
            }
        }
    }

    /// Applies the slice to the earlier beginnings. Calls `ended` for each kept end with its
    /// beginning, and `replaced` for each earlier beginning that is replaced by a later one with
    /// its key.
    pub fn compose(
        mut self,
        pairs: &mut Pairs<K, B>,
        mut ended: impl FnMut(K, Option<B>, E),
        mut replaced: impl FnMut(K),
    ) {
        for (key, end) in std::mem::take(&mut self.ends) {
            ended(key, pairs.end(key), end);
        }
        if pairs.len() < self.begun.len() {
            pairs.forget(|key| {
                let is_replaced = self.find(KeyHasher::hash_of(key), key).is_some();
                if is_replaced {
                    replaced(*key);
                }
                is_replaced
            });
        } else {
            let keys = self.begun.iter().map(|(key, _)| *key);
            keys.filter(|key| pairs.end(*key).is_some())
                .for_each(replaced);
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
            let (mut expected, mut expected_replaced) = (Vec::new(), 0);
            for (number, (key, begins)) in steps.iter().enumerate() {
                match begins {
                    true => expected_replaced += u32::from(pairs.begin(*key, number)),
                    false => expected.push((*key, pairs.end(*key), number)),
                }
            }
            let mut open: Vec<_> = pairs.open().map(|(key, begun)| (*key, *begun)).collect();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(steps.len())).collect();
            cuts.sort_unstable();
            let (mut pairs, mut found, mut replaced, mut from) = (Pairs::default(), Vec::new(), 0, 0);
            for cut in cuts.into_iter().chain([steps.len()]) {
                let mut slice = PairSlice::default();
                for (number, step) in steps.iter().enumerate().take(cut).skip(from) {
                    match *step {
                        (key, true) => replaced += u32::from(slice.begin(key, number)),
                        (key, false) => {
                            found.extend(slice.end(key, number).map(|(begun, end)| (key, begun, end)));
                        }
                    }
                }
                slice.compose(&mut pairs, |key, begun, end| found.push((key, begun, end)), |_| replaced += 1);
                from = cut;
            }
            let mut rest: Vec<_> = pairs.open().map(|(key, begun)| (*key, *begun)).collect();
            for list in [&mut open, &mut rest] {
                list.sort_unstable();
            }
            found.sort_by_key(|ended| ended.2);
            prop_assert_eq!((found, replaced, rest), (expected, expected_replaced, open));
        }
    }
}
