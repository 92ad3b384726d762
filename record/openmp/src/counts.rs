//! Counts by which the library determines the end of a wait: a wait ends when its count is 0.

use core::sync::atomic::{AtomicU64, Ordering};

/// A number of unfinished tasks, and whether a task waits for their end.
#[derive(Default)]
pub(crate) struct Awaited(AtomicU64);

const WAITED_FOR: u64 = 1 << 63;

impl Awaited {
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// Counts one less; true if that ends a wait.
    pub(crate) fn finish(&self) -> bool {
        let ends = self.0.fetch_sub(1, Ordering::AcqRel) == WAITED_FOR | 1;
        if ends {
            self.end_wait();
        }
        ends
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.load(Ordering::Acquire) & !WAITED_FOR == 0
    }

    /// Marks that a task waits; false if there is nothing left to wait for.
    pub(crate) fn begin_wait(&self) -> bool {
        let must_wait = self.0.fetch_or(WAITED_FOR, Ordering::AcqRel) & !WAITED_FOR != 0;
        if !must_wait {
            self.end_wait();
        }
        must_wait
    }

    pub(crate) fn end_wait(&self) {
        self.0.fetch_and(!WAITED_FOR, Ordering::AcqRel);
    }
}

/// The number of a team's threads that have not arrived at its barrier, and of its unfinished
/// explicit tasks. The upper half is the size of the team, with which the count starts again.
#[derive(Default)]
pub(crate) struct BarrierCount(AtomicU64);

const LEFT: u64 = 0xffff_ffff;

impl BarrierCount {
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Sets the size of the team, which each member knows; the first one counts.
    pub(crate) fn begin(&self, size: u32) {
        let size = u64::from(size);
        let whole = size << 32 | size;
        let _ = (self.0).compare_exchange(0, whole, Ordering::AcqRel, Ordering::Relaxed);
    }

    pub(crate) fn add_task(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    /// True if only the caller is awaited: no other thread can change the count.
    pub(crate) fn is_last(&self) -> bool {
        self.0.load(Ordering::Acquire) & LEFT == 1
    }

    /// Counts a thread that arrives, or a task that ends; true if that ends the barrier.
    pub(crate) fn finish(&self) -> bool {
        let mut word = self.0.load(Ordering::Acquire);
        loop {
            // A runtime that reports more ends than begins must not wrap the count.
            let (next, ends) = match word & LEFT {
                0 => return false,
                1 => (word >> 32 << 32 | word >> 32, true),
                _ => (word - 1, false),
            };
            match (self.0).compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return ends,
                Err(now) => word = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_child_ends_a_wait_once() {
        let children = Awaited::default();
        assert!(children.is_zero() && !children.begin_wait());
        children.add();
        children.add();
        assert!(!children.finish());
        assert!(children.begin_wait());
        children.add();
        assert!(!children.finish());
        assert!(children.finish() && children.is_zero());
        children.add();
        assert!(!children.finish(), "none waits any more");
    }

    #[test]
    fn a_barrier_ends_with_the_last_thread_or_task() {
        let barrier = BarrierCount::default();
        barrier.begin(2);
        barrier.begin(2);
        assert!(!barrier.is_last() && !barrier.finish());
        assert!(barrier.is_last() && barrier.finish());
        barrier.add_task();
        assert!(!barrier.finish() && !barrier.finish());
        assert!(barrier.finish(), "the task was last");
        assert!(!barrier.is_last());
    }
}
