//! Paged lists.

use serde::{Deserialize, Serialize};

/// A list in pages of one size. Growth moves no entries, and a page that one thread frees fits the
/// next allocation of another. One allocation for each list would leave gaps of all sizes, and up
/// to half of each unused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pages<T> {
    /// All pages but the last are full.
    pages: Vec<Vec<T>>,
    len: usize,
}

/// Maximum size of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Pages {
            pages: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Copy> Pages<T> {
    /// Entries in a page: a power of two.
    const PER_PAGE: usize = 1 << (PAGE_BYTES / size_of::<T>()).ilog2();

    /// Appends an entry.
    #[inline]
    pub(crate) fn push(&mut self, entry: T) {
        if self.len.is_multiple_of(Self::PER_PAGE) {
            self.add_page();
        }
        if let Some(page) = self.pages.last_mut() {
            page.push(entry);
            self.len += 1;
        }
    }

    #[cold]
    fn add_page(&mut self) {
        // Many lists stay very short.
        let first = self.pages.is_empty();
        let entries = if first { 0 } else { Self::PER_PAGE };
        self.pages.push(Vec::with_capacity(entries));
    }

    /// Number of entries.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// True if there are no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry at an index.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.pages
            .get(at / Self::PER_PAGE)?
            .get(at % Self::PER_PAGE)
    }

    /// As [`Pages::get`].
    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        self.pages
            .get_mut(at / Self::PER_PAGE)?
            .get_mut(at % Self::PER_PAGE)
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flatten()
    }

    /// Removes and returns the entries from an index on.
    pub(crate) fn split_off(&mut self, at: usize) -> Vec<T> {
        let rest = (at..self.len)
            .filter_map(|at| self.get(at).copied())
            .collect();
        self.len = self.len.min(at);
        self.pages.truncate(self.len.div_ceil(Self::PER_PAGE));
        if let (Some(last), rest @ 1..) = (self.pages.last_mut(), self.len % Self::PER_PAGE) {
            last.truncate(rest);
        }
        rest
    }
}

impl<T: Copy> Extend<T> for Pages<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, entries: I) {
        entries.into_iter().for_each(|entry| self.push(entry));
    }
}

impl<T: Copy> FromIterator<T> for Pages<T> {
    fn from_iter<I: IntoIterator<Item = T>>(entries: I) -> Self {
        let mut pages = Pages::default();
        pages.extend(entries);
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two words.
    type Entry = (u64, u64);
    const FULL: u64 = 256;

    fn entries(count: u64) -> Vec<Entry> {
        (0..count).map(|number| (number, !number)).collect()
    }

    #[test]
    fn entries_are_found_by_index() {
        for count in [0, 1, FULL - 1, FULL, FULL + 1, 5 * FULL + 7] {
            let mut pages: Pages<Entry> = entries(count).into_iter().collect();
            assert_eq!(pages.len() as u64, count);
            assert!(pages.iter().eq(&entries(count)));
            for at in 0..count {
                assert_eq!(pages.get(at as usize), Some(&(at, !at)));
            }
            assert_eq!(pages.get(count as usize), None);
            if let Some(entry) = pages.get_mut(FULL as usize) {
                entry.1 = 0;
                assert_eq!(pages.iter().nth(FULL as usize), Some(&(FULL, 0)));
            }
        }
    }

    #[test]
    fn lists_are_cut_anywhere() {
        for (count, at) in [
            (0, 0),
            (5, 0),
            (5, 5),
            (5, 2),
            (3 * FULL, FULL),
            (3 * FULL, 2 * FULL + 1),
            (FULL, FULL),
        ] {
            let mut pages: Pages<Entry> = entries(count).into_iter().collect();
            let rest = pages.split_off(at as usize);
            assert_eq!(
                rest,
                entries(count).split_off(at as usize),
                "{count} at {at}"
            );
            assert_eq!(pages.len() as u64, at);
            pages.extend(rest);
            assert!(pages.iter().eq(&entries(count)), "{count} at {at}");
        }
    }
}
