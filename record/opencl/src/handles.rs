//! Small sets of handles that many threads use at once.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Number of places at which a handle may be.
const WAYS: usize = 8;

/// A set of at most `N` handles; none is 0. Of handles with the same hash, the set takes [`WAYS`] and
/// refuses others. Memory that no handle needs is never touched.
pub(crate) struct Handles<const N: usize> {
    places: [AtomicUsize; N],
    count: AtomicUsize,
}

impl<const N: usize> Handles<N> {
    pub(crate) const fn new() -> Handles<N> {
        Handles {
            places: [const { AtomicUsize::new(0) }; N],
            count: AtomicUsize::new(0),
        }
    }

    /// True if the set may contain handles.
    #[inline(always)]
    pub(crate) fn is_used(&self) -> bool {
        self.count.load(Ordering::Relaxed) != 0
    }

    /// Adds a handle; false if there is no room. A handle that is there already is added again.
    pub(crate) fn add(&self, handle: usize) -> bool {
        let was_added = self.at(handle).any(|place| {
            place.load(Ordering::Relaxed) == 0
                && place
                    .compare_exchange(0, handle, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
        });
        if was_added {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        was_added
    }

    pub(crate) fn has(&self, handle: usize) -> bool {
        // Free places contain 0.
        handle != 0
            && self.is_used()
            && self
                .at(handle)
                .any(|place| place.load(Ordering::Acquire) == handle)
    }

    /// Removes a handle once; true if it was there.
    pub(crate) fn remove(&self, handle: usize) -> bool {
        let was_there = handle != 0
            && self.is_used()
            && self.at(handle).any(|place| {
                place
                    .compare_exchange(handle, 0, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            });
        if was_there {
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        was_there
    }

    /// Replaces any other handle at the first place of this one. For sets that are caches.
    pub(crate) fn put(&self, handle: usize) {
        if let Some(place) = self.at(handle).next()
            && place.swap(handle, Ordering::AcqRel) == 0
        {
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn at(&self, handle: usize) -> impl Iterator<Item = &AtomicUsize> {
        // Handles are addresses of allocated objects: the lowest bits are equal.
        let first = (handle >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        (0..WAYS).filter_map(move |way| self.places.get((first + way) % N))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_found_until_they_are_removed() {
        let set: Handles<64> = Handles::new();
        assert!(!set.is_used() && !set.has(16) && !set.remove(16));
        assert!(set.add(16) && set.add(16) && set.add(32));
        assert!(set.has(16) && set.has(32) && !set.has(48));
        assert!(set.remove(16) && set.has(16) && set.remove(16) && !set.has(16));
        assert!(!set.has(0) && !set.remove(0));
        assert!(set.is_used() && set.remove(32) && !set.is_used());
    }

    #[test]
    fn full_sets_refuse() {
        let set: Handles<8> = Handles::new();
        let added = (1..=20).filter(|at| set.add(at * 16)).count();
        assert_eq!(added, 8);
        assert_eq!((1..=20).filter(|at| set.has(at * 16)).count(), 8);
    }

    #[test]
    fn caches_forget_what_is_replaced() {
        let set: Handles<8> = Handles::new();
        (1..=100).for_each(|at| set.put(at * 16));
        assert!(set.has(1600));
        let kept = (1..=100).filter(|at| set.has(at * 16)).count();
        assert!((1..=8).contains(&kept), "{kept}");
    }
}
