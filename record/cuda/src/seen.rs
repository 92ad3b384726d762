//! Caches of recorded objects, which many threads use at once.

use core::sync::atomic::{AtomicU64, Ordering};

/// A cache of numbers other than 0. A number that another has replaced is new again.
pub(crate) struct Seen<const N: usize>([AtomicU64; N]);

impl<const N: usize> Seen<N> {
    pub(crate) const fn new() -> Seen<N> {
        Seen([const { AtomicU64::new(0) }; N])
    }

    /// True if the number is not in the cache, which then has it.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        let place = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % N;
        let Some(place) = self.0.get(place) else {
            return true;
        };
        place.load(Ordering::Relaxed) != number && place.swap(number, Ordering::Relaxed) != number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_new_once_until_they_are_replaced() {
        let seen: Seen<4> = Seen::new();
        assert!(seen.is_new(7) && !seen.is_new(7));
        let again = (8..100).filter(|number| seen.is_new(*number)).count();
        assert_eq!(again, 92);
        assert!(seen.is_new(7));
    }
}
