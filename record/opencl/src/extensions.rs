//! Functions that programs get by name.
//!
//! A name may stand for a function of each platform. The arguments of a
//! call do not identify the platform, so each function gets one of four wrappers.

#![allow(unsafe_code)]

use core::ffi::CStr;
use core::mem::transmute_copy;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::functions::{NAMES, SLOTS};
use crate::{libraries, next};

const WRAPPERS: usize = 4;

/// The wrapped functions, by number of their name.
static WRAPPED: [[AtomicUsize; WRAPPERS]; NAMES.len()] =
    [const { [const { AtomicUsize::new(0) }; WRAPPERS] }; NAMES.len()];

/// The function that a wrapper calls.
///
/// # Safety
/// `F` is the type of functions with that number.
#[inline(always)]
pub(crate) unsafe fn next<F: Copy>(number: usize, wrapper: usize) -> F {
    let address = WRAPPED[number][wrapper].load(Ordering::Relaxed);
    // SAFETY: programs know the wrapper only after its function was stored.
    unsafe { transmute_copy(&address) }
}

/// The wrapper of a function that has a name. The function itself if it is null, unknown, or has
/// more than four variants, or if its calls are recorded already.
pub(crate) fn wrapper(name: &CStr, function: usize) -> usize {
    if function == 0 || !tracebraid_probe::has_session() || is_recorded(function) {
        return function;
    }
    let Some(number) = NAMES.iter().position(|known| *known == name) else {
        return function;
    };
    for (place, wrapper) in WRAPPED[number].iter().zip(SLOTS.0[number]) {
        let stored = place.compare_exchange(0, function, Ordering::AcqRel, Ordering::Acquire);
        if stored.is_ok() || stored == Err(function) {
            return wrapper as usize;
        }
    }
    function
}

/// True if a function is one of this library's, which a loader may find by the name of its own, or
/// of a loader, which passes its calls through layers.
fn is_recorded(function: usize) -> bool {
    let own = libraries::path_of(libraries::path_of as *const () as usize);
    let found = libraries::path_of(function);
    found.is_some_and(|path| {
        own == found || (!next::is_recorded_by_exports() && libraries::is_of_loader(path))
    })
}
