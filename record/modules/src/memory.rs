//! Reading memory of which only an address is known.
//!
//! Safety: a page is read when the kernel has found it readable just before. Between the question
//! and the reading another thread might unmap the page: only headers of modules of the loader's
//! list are read, while the loader's state is consistent (see [`crate::modules`]).

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use crate::sys;

const PAGE: u64 = 4096;
/// End of user space with 47 bits; the kernel refuses what lies beyond anyway.
const MOST: u64 = 1 << 56;

/// Pages that were found readable in this scan of modules, each at its number modulo how many there
/// are. The headers of a module are some twenty pieces of one page.
static SCANNED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Set with the address of a page: the first page of all is one as well.
const KNOWN: u64 = 1;

/// A scan begins, which is the only one.
pub(crate) fn begin_scan() {
    SCANNED
        .iter()
        .for_each(|place| place.store(0, Ordering::Relaxed));
}

/// Copies bytes, in a scan; `false` if they cannot all be read. No page is asked for twice.
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
    // SAFETY: see the module's text.
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
        // SAFETY: the pages were just made.
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
        // SAFETY: nobody uses them any more.
        unsafe { sys::unmap(address, bytes) };
    }
}
