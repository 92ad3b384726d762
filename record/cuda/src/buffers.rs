//! Buffers for CUPTI's records.
//!
//! CUPTI requests an empty buffer, on a thread of the program or its own, and returns it with records.
//! Returned buffers are kept for the next requests.

#![allow(unsafe_code)]

use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use tracebraid_probe::probe;

use crate::commands;
use crate::cupti::{CUPTI, Cupti};

/// Size of a buffer in bytes: about 4,000 kernels.
const SIZE: usize = 1 << 20;
/// Number of buffers that are kept.
const MOST_KEPT: usize = 8;

static KEPT: [AtomicPtr<u8>; MOST_KEPT] = [const { AtomicPtr::new(ptr::null_mut()) }; MOST_KEPT];

/// Called by CUPTI: an empty buffer is requested.
///
/// # Safety
/// The arguments point to values.
pub(crate) unsafe extern "C" fn requested(
    buffer: *mut *mut u8,
    size: *mut usize,
    most_records: *mut usize,
) {
    let kept = KEPT
        .iter()
        .map(|place| place.swap(ptr::null_mut(), Ordering::AcqRel));
    let found = kept.into_iter().find(|kept| !kept.is_null());
    let found = found.unwrap_or_else(map);
    // SAFETY: as above. Without a buffer CUPTI counts its records as dropped.
    unsafe {
        *buffer = found;
        *size = if found.is_null() { 0 } else { SIZE };
        *most_records = 0;
    }
}

fn map() -> *mut u8 {
    let (access, kind) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
    );
    // SAFETY: new memory.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), SIZE, access, kind, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return ptr::null_mut();
    }
    mapped.cast()
}

/// Called by CUPTI: a buffer has `filled` bytes of records.
///
/// # Safety
/// The buffer is one of [`requested`], which CUPTI no longer uses.
pub(crate) unsafe extern "C" fn completed(
    _context: usize,
    _stream: u32,
    buffer: *mut u8,
    _size: usize,
    filled: usize,
) {
    if buffer.is_null() {
        return;
    }
    if let Some(cupti) = CUPTI.get() {
        let mut record = ptr::null_mut();
        // SAFETY: CUPTI returns records of the buffer one after the other, until it has no more.
        unsafe {
            while filled > 0 && (cupti.next_record)(buffer, filled, &raw mut record) == 0 {
                commands::record(record);
            }
        }
        count_dropped(cupti);
    }
    let is_kept = KEPT.iter().any(|place| {
        let free = ptr::null_mut();
        place
            .compare_exchange(free, buffer, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    if !is_kept {
        // SAFETY: a mapping of this size, which nothing uses.
        unsafe { libc::munmap(buffer.cast(), SIZE) };
    }
}

/// Records how many records CUPTI had no room for since the last call.
pub(crate) fn count_dropped(cupti: &Cupti) {
    let mut count = 0_usize;
    // SAFETY: there is room for a number; without a context it is that of all.
    let status = unsafe { (cupti.dropped)(0, 0, &raw mut count) };
    if status == 0 && count > 0 {
        probe!(tracebraid_cuda, records_dropped, count: u64 = count as u64);
    }
}
