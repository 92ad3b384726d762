//! Processors for which there is no restartable sequence here.

use crate::class::Class;
use crate::emit;

pub(crate) fn begin() {}

pub(crate) fn is_watched() -> bool {
    false
}

/// # Safety
/// None; the sequence's function has the same type.
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn tb_reserve(class: &Class, payload: usize) -> *mut u8 {
    emit::reserve_exchanging(class, payload)
}
