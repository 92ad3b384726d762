//! A list whose elements keep their indexes when others are dropped.

use std::ops::Index;

use serde::{Deserialize, Serialize};

/// A list from which old elements can be dropped; the remaining ones keep their indexes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept<T> {
    /// Elements before this index are dropped, except for those in `old`.
    first: usize,
    list: Vec<T>,
    /// Elements before `first` that are still needed, by index, ascending.
    old: Vec<(usize, T)>,
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for Kept<T> {
    fn from(list: Vec<T>) -> Self {
        Kept {
            first: 0,
            list,
            old: Vec::new(),
        }
    }
}

impl<T> Kept<T> {
    /// The element at an index, unless it was dropped.
    pub fn get(&self, place: usize) -> Option<&T> {
        match place.checked_sub(self.first) {
            Some(at) => self.list.get(at),
            None => {
                let at = self.old.binary_search_by_key(&place, |of| of.0).ok()?;
                self.old.get(at).map(|(_, element)| element)
            }
        }
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        match place.checked_sub(self.first) {
            Some(at) => self.list.get_mut(at),
            None => {
                let at = self.old.binary_search_by_key(&place, |of| of.0).ok()?;
                self.old.get_mut(at).map(|(_, element)| element)
            }
        }
    }

    /// The index of the next element.
    pub(crate) fn next_place(&self) -> u32 {
        (self.first + self.list.len()) as u32
    }

    pub(crate) fn extend(&mut self, elements: impl Iterator<Item = T>) {
        self.list.extend(elements);
    }

    /// Appends an element. Returns its index.
    pub(crate) fn push(&mut self, element: T) -> u32 {
        self.list.push(element);
        (self.first + self.list.len() - 1) as u32
    }

    /// Remaining elements in the order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.old
            .iter()
            .map(|(_, element)| element)
            .chain(&self.list)
    }

    /// Elements after the last dropped one.
    pub fn recent(&self) -> &[T] {
        &self.list
    }

    /// The first remaining element.
    pub fn first(&self) -> Option<&T> {
        self.iter().next()
    }

    /// Number of remaining elements.
    pub fn len(&self) -> usize {
        self.old.len() + self.list.len()
    }

    /// True if no element remains.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops the first `count` recent elements and all old elements, except those at indexes for
    /// which `is_needed` is true.
    pub(crate) fn drop_front(&mut self, count: usize, is_needed: impl Fn(usize) -> bool) {
        let count = count.min(self.list.len());
        let dropped = (self.first..).zip(self.list.drain(..count));
        self.old.extend(dropped);
        self.first += count;
        self.old.retain(|(place, _)| is_needed(*place));
    }
}

impl<T> Kept<T> {
    /// The list without the elements at some indexes, which are sorted; later indexes decrease
    /// accordingly.
    pub(crate) fn without(self, places: &[u32]) -> Kept<T> {
        if places.is_empty() {
            return self;
        }
        let stays = |place: usize| {
            u32::try_from(place).is_ok_and(|place| places.binary_search(&place).is_err())
        };
        let new = |place: usize| place_without(places, place as u32) as usize;
        let old = self.old.into_iter().filter(|(place, _)| stays(*place));
        let list = (self.first..)
            .zip(self.list)
            .filter(|(place, _)| stays(*place));
        Kept {
            first: new(self.first),
            old: old.map(|(place, element)| (new(place), element)).collect(),
            list: list.map(|(_, element)| element).collect(),
        }
    }
}

/// The new index of an element after the elements at the indexes `places`, which are sorted, are
/// removed.
pub(crate) fn place_without(places: &[u32], place: u32) -> u32 {
    place - places.partition_point(|left_out| *left_out < place) as u32
}

impl<T> Index<usize> for Kept<T> {
    type Output = T;

    fn index(&self, place: usize) -> &T {
        match place.checked_sub(self.first) {
            Some(at) => &self.list[at],
            None => &self.old[self.old.partition_point(|of| of.0 < place)].1,
        }
    }
}

impl<'k, T> IntoIterator for &'k Kept<T> {
    type Item = &'k T;
    type IntoIter = std::iter::Chain<
        std::iter::Map<std::slice::Iter<'k, (usize, T)>, fn(&'k (usize, T)) -> &'k T>,
        std::slice::Iter<'k, T>,
    >;

    fn into_iter(self) -> Self::IntoIter {
        let element: fn(&'k (usize, T)) -> &'k T = |(_, element)| element;
        self.old.iter().map(element).chain(&self.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_stay() {
        let mut kept = Kept::default();
        let places: Vec<u32> = (0..10).map(|number| kept.push(number * 10)).collect();
        assert_eq!(places, (0..10).collect::<Vec<_>>());
        kept.drop_front(6, |place| place == 1 || place == 4);
        kept.push(100);
        let found: Vec<_> = (0..12).map(|place| kept.get(place).copied()).collect();
        let of = |place: usize| {
            [1, 4, 6, 7, 8, 9, 10]
                .contains(&place)
                .then_some(place as u32 * 10)
        };
        assert_eq!(found, (0..12).map(of).collect::<Vec<_>>());
        kept.drop_front(1, |place| place == 4);
        assert_eq!(
            kept.iter().copied().collect::<Vec<_>>(),
            [40, 70, 80, 90, 100]
        );
        assert_eq!(
            (kept.len(), kept.recent(), kept[4]),
            (5, &[70, 80, 90, 100][..], 40)
        );
        kept.drop_front(9, |_| false);
        assert_eq!((kept.is_empty(), kept.push(7), kept[11]), (true, 11, 7));
    }
}
