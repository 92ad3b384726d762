//! Environment variables as they were when this library was loaded: programs may clear their
//! environment or overwrite it (servers write their titles there), and their children must be
//! recorded all the same.
//!
//! Safety: the bytes are written once, by a constructor, before their number is published.

#![allow(unsafe_code)]

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::sys;

const MOST: usize = 4096;

pub(crate) struct Kept {
    name: &'static CStr,
    bytes: UnsafeCell<[u8; MOST]>,
    length: AtomicUsize,
}

// SAFETY: see the module documentation.
unsafe impl Sync for Kept {}

/// The session's directory.
pub(crate) static SESSION: Kept = Kept::new(c"TRACEBRAID_SESSION");
/// Options in addition to those of the session.
pub(crate) static OPTIONS: Kept = Kept::new(c"TRACEBRAID_PROBE");

impl Kept {
    const fn new(name: &'static CStr) -> Kept {
        Kept {
            name,
            bytes: UnsafeCell::new([0; MOST]),
            length: AtomicUsize::new(0),
        }
    }

    /// Keeps the current value. Only for constructors.
    pub(crate) fn keep(&self) {
        let Some(value) = sys::environment(self.name).filter(|value| value.len() <= MOST) else {
            return;
        };
        if self.length.load(Ordering::Relaxed) == 0 {
            // SAFETY: only this thread accesses the bytes before their number is published.
            let bytes = unsafe { &mut *self.bytes.get() };
            bytes
                .iter_mut()
                .zip(value)
                .for_each(|(place, &byte)| *place = byte);
            self.length.store(value.len(), Ordering::Release);
        }
    }

    /// Discards the kept value.
    pub(crate) fn forget(&self) {
        self.length.store(0, Ordering::Release);
    }

    /// The variable's current or kept value; never empty.
    pub(crate) fn value(&self) -> Option<&[u8]> {
        let length = self.length.load(Ordering::Acquire);
        // SAFETY: published bytes are not written any more.
        let kept = unsafe { &*self.bytes.get() }
            .get(..length)
            .unwrap_or_default();
        let now = sys::environment(self.name).filter(|value| !value.is_empty());
        now.or(Some(kept)).filter(|value| !value.is_empty())
    }
}
