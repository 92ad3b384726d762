//! Values to which the pointers of a program lead.
//!
//! Every function here trusts the program as OpenCL itself does: a pointer is null, or points to as
//! many values as its count states.

#![allow(unsafe_code)]

use core::ffi::CStr;

/// Maximum number of values of a list that ends with 0.
const MOST_LISTED: usize = 128;

/// A text; null is the empty text.
///
/// # Safety
/// `text` is null or points to a text that ends with NUL and outlives the use of the result.
#[inline]
pub(crate) unsafe fn text<'a>(text: usize) -> &'a CStr {
    if text == 0 {
        return c"";
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text as *const _) }
}

/// An array; empty if it is null or misaligned.
///
/// # Safety
/// A pointer that is not null points to `count` values that outlive the use of the result.
#[inline]
pub(crate) unsafe fn array<'a, T>(values: usize, count: usize) -> &'a [T] {
    if values == 0 || count == 0 || !values.is_multiple_of(align_of::<T>()) {
        return &[];
    }
    // SAFETY: as above.
    unsafe { core::slice::from_raw_parts(values as *const T, count) }
}

/// A list without the 0 that ends it: the first value that is 0 at a multiple of `step`.
///
/// # Safety
/// A pointer that is not null points to such a list, which outlives the use of the result.
pub(crate) unsafe fn list<'a>(values: usize, step: usize) -> &'a [u64] {
    if values == 0 || !values.is_multiple_of(align_of::<u64>()) {
        return &[];
    }
    let first = values as *const u64;
    let mut count = 0;
    // SAFETY: the list continues up to that value.
    unsafe {
        while count < MOST_LISTED && *first.add(count) != 0 {
            count += step;
        }
        core::slice::from_raw_parts(first, count)
    }
}

/// A value that a function wrote; 0 if the program did not want it.
///
/// # Safety
/// `value` is null or points to a value.
#[inline]
pub(crate) unsafe fn out<T: Copy + Default>(value: usize) -> T {
    if value == 0 {
        return T::default();
    }
    // SAFETY: as above.
    unsafe { (value as *const T).read_unaligned() }
}

/// Writes a value, if the program wants it.
///
/// # Safety
/// `place` is null or points to a value.
#[inline]
pub(crate) unsafe fn set<T>(place: usize, value: T) {
    if place != 0 {
        // SAFETY: as above.
        unsafe { (place as *mut T).write_unaligned(value) };
    }
}

/// The values that a function wrote to an array of `most` values; `used` points to their number.
/// Empty if the program did not want that number: values after them were not written.
///
/// # Safety
/// As [`array`] and [`out`].
#[inline]
pub(crate) unsafe fn filled<'a, T>(values: usize, most: usize, used: usize) -> &'a [T] {
    // SAFETY: as above.
    unsafe {
        let used: u32 = out(used);
        array(values, most.min(used as usize))
    }
}
