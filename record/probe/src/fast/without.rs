//! Fallback for processors without an implementation of the restartable sequence.

use crate::class::Class;
use crate::emit;

/// Reserves a record of a class with `payload` bytes of fields. Null if there is no room or the
/// class is disabled; the caller then has nothing more to do.
#[inline(always)]
pub(crate) fn reserve(class: &Class, payload: usize) -> *mut u8 {
    // SAFETY: the function has no requirements.
    unsafe { tb_reserve(class, payload) }
}

/// # Safety
/// None; `unsafe` because the sequence's function has the same type.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tb_reserve(class: &Class, payload: usize) -> *mut u8 {
    emit::reserve_exchanging(class, payload)
}
