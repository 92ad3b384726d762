//! Reads memory at addresses that may be invalid.
//!
//! Safety: a page is read immediately after the kernel has found it readable. In between, another
//! thread might unmap the page: therefore only headers of modules in the loader's list are read,
//! while the loader's state is consistent (see [`crate::modules`]).

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use crate::sys;

const PAGE: u64 = 4096;
/// Upper bound of user-space addresses (47 bits); the kernel rejects higher addresses anyway.
const MOST: u64 = 1 << 56;

/// Direct-mapped cache of pages found readable in this scan of modules, by page number. The headers
/// of a module are about twenty pieces of one page.
static SCANNED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Marks a cached page address as valid, since 0 is an address, too.
const KNOWN: u64 = 1;

/// Starts a scan; there is only one at a time.
pub(crate) fn begin_scan() {
    SCANNED
        .iter()
        .for_each(|place| place.store(0, Ordering::Relaxed));
}

/// Copies bytes, in a scan; `false` if any byte is unreadable. Each page is checked once.
pub(crate) fn scan(address: u64, into: &mut [u8]) -> bool {
    copy_if(address, into, |page| {
        let place = SCANNED.get((page / PAGE % 64) as usize);
        let is_known = place.is_some_and(|place| place.load(Ordering::Relaxed) == page | KNOWN);
        let is_readable = is_known || sys::is_readable(page);
        if let (Some(place), true) = (place, is_readable) {
            place.store(page | KNOWN, Ordering::Relaxed);
        }
        is_readable
    })
}

fn copy_if(address: u64, into: &mut [u8], is_readable: impl Fn(u64) -> bool) -> bool {
    let bytes = into.len() as u64;
    if address == 0 || address > MOST {
        return false;
    }
    let mut page = address & !(PAGE - 1);
    while page < address + bytes {
        if !is_readable(page) {
            return false;
        }
        page += PAGE;
    }
    // SAFETY: see the module documentation.
    unsafe { core::ptr::copy_nonoverlapping(address as *const u8, into.as_mut_ptr(), into.len()) };
    true
}

/// A word, in a scan; `None` if it cannot be read.
pub(crate) fn word(address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    scan(address, &mut bytes).then(|| u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_memory_is_not_touched() {
        let bytes = 3 * PAGE as usize;
        let address = sys::map(bytes).unwrap();
        // SAFETY: the pages were just mapped.
        unsafe { sys::forbid(address.add(2 * PAGE as usize), PAGE as usize) };
        let at = address as u64;
        begin_scan();
        assert_eq!((word(at), word(at + PAGE)), (Some(0), Some(0)));
        assert_eq!(
            (word(at + 2 * PAGE), word(3), word(u64::MAX - 7)),
            (None, None, None)
        );
        assert!(!scan(at + PAGE, &mut [0; 4097]));
        assert!(scan(at + PAGE, &mut [0; 4096]));
        assert_eq!((word(0), word(8), word(u64::MAX)), (None, None, None));
        // SAFETY: the pages are no longer in use.
        unsafe { sys::unmap(address, bytes) };
    }
}
