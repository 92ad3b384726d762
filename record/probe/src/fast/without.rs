//! Processors for which there is no restartable sequence here.

use crate::class::Class;
use crate::emit;

/// Takes room for a record of a class with that many bytes of fields; null when there is none, or
/// the class is off: then nothing is left to be done.
#[inline(always)]
pub(crate) fn reserve(class: &Class, payload: usize) -> *mut u8 {
    // SAFETY: none is needed.
    unsafe { tb_reserve(class, payload) }
}

/// # Safety
/// None; the sequence's function has the same type.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tb_reserve(class: &Class, payload: usize) -> *mut u8 {
    emit::reserve_exchanging(class, payload)
}
