//! Reading memory of which only an address is known.
//!
//! Safety: a page is read when the kernel has found it readable just before, or when it belongs to the stack of this
//! thread and was found readable at an earlier signal: what lies above the stack pointer stays mapped while the thread
//! runs on it. Between the question and the reading another thread might unmap the page; unwinding meets
//! only stacks of the own thread, headers of modules of the loader's list, and tables of modules that `dlclose` waits
//! for (see [`crate::modules`]).

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicU64, Ordering};

use crate::sys;

const PAGE: u64 = 4096;
/// End of user space with 47 bits; the kernel refuses what lies beyond anyway.
const MOST: u64 = 1 << 56;

/// Copies bytes; `false` if they cannot all be read.
pub(crate) fn copy(address: u64, into: &mut [u8]) -> bool {
    copy_if(address, into, sys::is_readable)
}

/// Pages that were found readable in this scan of modules, each at its number modulo how many there are. The headers of
/// a module are some twenty pieces of one page.
static SCANNED: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// Set with the address of a page: the first page of all is one as well.
const KNOWN: u64 = 1;

/// A scan begins, which is the only one.
pub(crate) fn begin_scan() {
    SCANNED.iter().for_each(|place| place.store(0, Ordering::Relaxed));
}

/// As [`copy`], in a scan: no page is asked for twice.
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

/// Frames that step over more bytes are not followed up: what lies between would take too long to ask for.
const MOST_GAP: u64 = 64 * PAGE;

/// A stack, read upwards from its pointer.
pub(crate) struct Stack<'a> {
    /// First address known to be readable and that behind the last, multiples of a page.
    known: &'a mut [u64; 2],
}

impl<'a> Stack<'a> {
    /// The stack that a pointer lies in. What is known of it from earlier is used if it is the same.
    pub(crate) fn at(pointer: u64, known: &'a mut [u64; 2]) -> Stack<'a> {
        let page = pointer & !(PAGE - 1);
        if !(known[0]..known[1]).contains(&page) {
            *known = [page, page];
        }
        known[0] = page;
        Stack { known }
    }

    /// A word on the stack; `None` if it cannot be read.
    #[inline]
    pub(crate) fn word(&mut self, address: u64) -> Option<u64> {
        let [first, end] = *self.known;
        if address >= first && address <= end.wrapping_sub(8) && end != 0 && address & 7 == 0 {
            // SAFETY: see the module's text.
            return Some(unsafe { (address as *const u64).read() });
        }
        self.unknown_word(address)
    }

    /// A page above the known ones can be read. If those between can be, too, they all belong to the stack: a frame with much
    /// data steps over whole pages, which would otherwise be asked for again at each word behind it.
    fn extend(&mut self, page: u64) {
        let end = self.known[1];
        let gap = page.checked_sub(end).filter(|gap| *gap <= MOST_GAP);
        let between = gap.map(|gap| (end..end + gap).step_by(PAGE as usize));
        if between.is_some_and(|mut between| between.all(sys::is_readable)) {
            self.known[1] = page + PAGE;
        }
    }

    #[cold]
    fn unknown_word(&mut self, address: u64) -> Option<u64> {
        let page = address & !(PAGE - 1);
        if address > MOST || address & 7 != 0 || !sys::is_readable(page) {
            return None;
        }
        self.extend(page);
        // SAFETY: see the module's text; aligned words do not cross pages.
        Some(unsafe { (address as *const u64).read() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_memory_is_told_and_not_touched() {
        let bytes = 3 * PAGE as usize;
        let address = sys::map(bytes).unwrap();
        // SAFETY: the pages were just made.
        unsafe { sys::forbid(address.add(2 * PAGE as usize), PAGE as usize) };
        let at = address as u64;
        let mut known = [0; 2];
        let mut stack = Stack::at(at + 8, &mut known);
        assert_eq!(stack.word(at + 16), Some(0));
        assert_eq!(stack.word(at + PAGE), Some(0));
        assert_eq!(stack.word(at + 2 * PAGE), None);
        assert_eq!(stack.word(3), None);
        assert_eq!(stack.word(u64::MAX - 7), None);
        assert_eq!(known, [at, at + 2 * PAGE]);
        // A frame may step over pages, but not over one that cannot be read.
        let mut known = [0; 2];
        let mut stack = Stack::at(at, &mut known);
        assert_eq!(stack.word(at + 8), Some(0));
        known = [at, at];
        let mut stack = Stack::at(at, &mut known);
        assert_eq!(stack.word(at + PAGE + 8), Some(0));
        assert_eq!(known, [at, at + 2 * PAGE]);
        assert!(!copy(at + PAGE, &mut [0; 4097]));
        assert!(copy(at + PAGE, &mut [0; 4096]));
        assert_eq!((word(0), word(8), word(u64::MAX)), (None, None, None));
        // SAFETY: nobody uses them any more.
        unsafe { sys::unmap(address, bytes) };
    }
}
