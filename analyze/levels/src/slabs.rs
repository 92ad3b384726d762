//! A list that grows without copying its entries. When a `Vec` doubles, it copies all entries, and
//! the kernel clears the new pages.

use serde::{Deserialize, Serialize};

/// Entries of a slab.
const SLAB: usize = 4096;

/// A list in slabs of equal size.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Slabs<T>(Vec<Vec<T>>);

impl<T> Default for Slabs<T> {
    fn default() -> Self {
        Slabs(Vec::new())
    }
}

impl<T> Slabs<T> {
    /// Number of entries.
    pub(crate) fn count(&self) -> usize {
        let last = self.0.last().map_or(0, Vec::len);
        self.0.len().saturating_sub(1) * SLAB + last
    }

    #[inline]
    pub(crate) fn get(&self, place: u32) -> Option<&T> {
        let place = place as usize;
        self.0.get(place / SLAB)?.get(place % SLAB)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let place = place as usize;
        self.0.get_mut(place / SLAB)?.get_mut(place % SLAB)
    }

    /// Appends an entry and returns its index.
    pub(crate) fn push(&mut self, entry: T) -> u32 {
        let place = self.count() as u32;
        match self.0.last_mut() {
            Some(last) if last.len() < SLAB => last.push(entry),
            _ => {
                let mut slab = Vec::with_capacity(SLAB);
                slab.push(entry);
                self.0.push(slab);
            }
        }
        place
    }

    /// All entries with their indices.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(self.0.iter().flatten())
    }

    /// The slabs, so that they can be dropped in parallel.
    pub(crate) fn into_slabs(self) -> Vec<Vec<T>> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_keep_their_indices() {
        let mut list = Slabs::default();
        for number in 0..3 * SLAB as u32 {
            assert_eq!(list.push(number), number);
            assert_eq!(list.count(), number as usize + 1);
        }
        *list.get_mut(5000).expect("an entry") += 1;
        assert_eq!(
            (list.get(5000), list.get(3 * SLAB as u32)),
            (Some(&5001), None)
        );
        assert_eq!(
            list.iter().filter(|(place, own)| place == *own).count(),
            3 * SLAB - 1
        );
    }
}
