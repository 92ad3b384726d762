//! Values by number. Ids of user-level threads are mostly small and consecutive, and indices always
//! are. Their values are in pages, so that successive numbers share cache lines; a hash map would
//! spread them. Other ids, such as addresses, are in a hash map.

use crate::survey::Map;

/// Values of a page.
const PAGE: usize = 64;
/// Number of first pages that may always exist.
const LEAST_PAGES: usize = 64;
/// Further pages that may exist for each existing page: bounds the memory of scattered numbers.
const MOST_VACANT: usize = 8;

/// Values by number.
#[derive(Debug)]
pub(crate) struct ByNumber<T> {
    pages: Vec<Option<Box<[Option<T>; PAGE]>>>,
    /// Number of pages that exist.
    existing: usize,
    others: Map<u64, Option<T>>,
}

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        ByNumber {
            pages: Vec::new(),
            existing: 0,
            others: Map::default(),
        }
    }
}

impl<T: Copy> ByNumber<T> {
    /// For numbers below `count`, all of which are in pages.
    pub(crate) fn below(count: usize) -> ByNumber<T> {
        let pages = std::iter::repeat_with(|| None).take(count.div_ceil(PAGE));
        ByNumber {
            pages: pages.collect(),
            ..ByNumber::default()
        }
    }

    /// The value of a number.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> Option<T> {
        let page = self.pages.get((number / PAGE as u64) as usize);
        let in_page = page
            .and_then(|page| page.as_deref())
            .and_then(|page| page[number as usize % PAGE]);
        if in_page.is_some() || self.others.is_empty() {
            return in_page;
        }
        self.others.get(&number).copied().flatten()
    }

    /// The value of a number, to be changed.
    #[inline]
    pub(crate) fn slot(&mut self, number: u64) -> &mut Option<T> {
        let (page, at) = (number / PAGE as u64, number as usize % PAGE);
        let is_paged = page < self.pages.len() as u64 || page <= self.most_pages();
        if !is_paged || !self.others.is_empty() && self.others.contains_key(&number) {
            return self.others.entry(number).or_default();
        }
        let page = page as usize;
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let existing = &mut self.existing;
        let page = self.pages[page].get_or_insert_with(|| {
            *existing += 1;
            Box::new([None; PAGE])
        });
        &mut page[at]
    }

    fn most_pages(&self) -> u64 {
        (LEAST_PAGES + self.existing * MOST_VACANT) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn values_are_those_of_a_map() {
        let mut own = ByNumber::default();
        let mut map = HashMap::new();
        // Small ids, some with large gaps, ids that get a page later, and addresses.
        let numbers = (0..40_000u64).map(|step| match step % 4 {
            0 | 1 => step / 3,
            2 => step * 37 % 70_000,
            _ => 0x7f00_0000_0000 + step % 500 * 4096,
        });
        for (value, number) in numbers.enumerate() {
            assert_eq!(own.get(number), map.get(&number).copied());
            *own.slot(number) = Some(value);
            map.insert(number, value);
            if value % 5 == 0 {
                let gone = number / 2;
                assert_eq!(own.slot(gone).take(), map.remove(&gone));
            }
        }
        for number in (0..80_000).chain([u64::MAX, 1 << 40]) {
            assert_eq!(own.get(number), map.get(&number).copied());
        }
    }

    #[test]
    fn scattered_numbers_take_little_memory() {
        let mut own = ByNumber::default();
        (0..1000).for_each(|step| *own.slot(step << 24) = Some(step));
        assert!(own.pages.len() <= LEAST_PAGES + 1);
        assert_eq!(own.get(999 << 24), Some(999));
    }

    #[test]
    fn indices_of_a_list_have_pages() {
        let mut own = ByNumber::below(1_000_000);
        *own.slot(999_999) = Some(1);
        assert!(own.others.is_empty());
        assert_eq!(own.get(999_999), Some(1));
    }
}
