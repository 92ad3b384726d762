//! The greatest N items.

use serde::{Deserialize, Serialize};

/// Collects items and keeps the greatest `most`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Top<T> {
    /// The greatest items so far, and some that will be dropped.
    items: Vec<T>,
    /// Items that are not greater are dropped at once.
    floor: Option<T>,
}

impl<T> Default for Top<T> {
    fn default() -> Self {
        Top {
            items: Vec::new(),
            floor: None,
        }
    }
}

/// Surplus of items at which the list is reduced to `most`, unless `most` is greater.
const SLACK: usize = 32;

impl<T: Ord + Copy> Top<T> {
    /// Adds an item, of which at most `most` are kept.
    #[inline]
    pub fn add(&mut self, item: T, most: usize) {
        if most == 0 || self.floor.is_some_and(|floor| item <= floor) {
            return;
        }
        self.items.push(item);
        if self.items.len() >= most.saturating_add(most.max(SLACK)) {
            self.sort_out(most);
        }
    }

    /// Adds the items of another collection, each after `change`.
    pub fn merge(&mut self, other: Top<T>, most: usize, change: impl Fn(&mut T)) {
        for mut item in other.items {
            change(&mut item);
            self.add(item, most);
        }
    }

    /// Reduces the list to the greatest `most` items.
    #[cold]
    fn sort_out(&mut self, most: usize) {
        let (_, least, _) = self.items.select_nth_unstable_by(most - 1, |a, b| b.cmp(a));
        self.floor = Some(*least);
        self.items.truncate(most);
    }

    /// The greatest items, at most `most`, unordered.
    pub fn into_greatest(mut self, most: usize) -> Vec<T> {
        if self.items.len() > most && most > 0 {
            self.sort_out(most);
        }
        self.items.truncate(most);
        self.items
    }

    /// The greatest items, at most `most`, in descending order.
    pub fn into_sorted(mut self, most: usize) -> Vec<T> {
        self.items.sort_unstable_by(|a, b| b.cmp(a));
        self.items.truncate(most);
        self.items
    }
}

/// Keeps the first `most` items in the order of their keys, sorted. Keys must differ if the order
/// of two items matters.
pub fn keep_first_by_key<T, K: Ord>(items: &mut Vec<T>, most: usize, key: impl Fn(&T) -> K) {
    if items.len() > most && most > 0 {
        items.select_nth_unstable_by_key(most - 1, &key);
    }
    items.truncate(most);
    items.sort_unstable_by_key(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_greatest_stay() {
        let mut top = Top::default();
        (0..1000u32).for_each(|number| top.add(number * 7919 % 1009, 3));
        let mut others = Top::default();
        others.add(2500, 3);
        top.merge(others, 3, |item| *item *= 2);
        let mut greatest = top.clone().into_greatest(3);
        greatest.sort_unstable();
        assert_eq!(greatest, [1007, 1008, 5000]);
        assert!(top.clone().into_greatest(0).is_empty());
        assert_eq!(top.into_sorted(3), [5000, 1008, 1007]);
        let mut none = Top::default();
        none.add(1, 0);
        assert_eq!(none.into_sorted(0), Vec::<u32>::new());
    }

    #[test]
    fn the_first_stay_in_their_order() {
        for most in 0..8 {
            let mut items = vec![4, 1, 3, 5, 2];
            keep_first_by_key(&mut items, most, |item| *item);
            assert_eq!(items, (1..=5).take(most).collect::<Vec<_>>());
        }
    }
}
