//! A lock of one word, all zero when free: pages that are wiped in a forked child hold free locks.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU32, Ordering};

/// 0: free, 1: taken, 2: taken with waiters (Drepper, "Futexes Are Tricky", 2011, mutex 2).
pub(crate) struct Futex(AtomicU32);

/// Holds the lock until it is dropped.
pub(crate) struct Held<'a>(&'a Futex);

impl Futex {
    /// Takes the lock. Signals must be blocked, since a handler could otherwise wait for its own
    /// thread.
    pub(crate) fn lock(&self) -> Held<'_> {
        if self
            .0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            while self.0.swap(2, Ordering::Acquire) != 0 {
                self.call(libc::FUTEX_WAIT, 2);
            }
        }
        Held(self)
    }

    fn call(&self, operation: libc::c_int, value: u32) {
        // SAFETY: the word lives as long as `self`; FUTEX_WAIT and FUTEX_WAKE take no other
        // pointer.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.0.as_ptr(),
                operation | libc::FUTEX_PRIVATE_FLAG,
                value,
                core::ptr::null::<libc::timespec>(),
            );
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.0.0.swap(0, Ordering::Release) == 2 {
            self.0.call(libc::FUTEX_WAKE, 1);
        }
    }
}
