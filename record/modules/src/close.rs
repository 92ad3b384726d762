//! `dlclose`, which unmaps modules: another module may soon be loaded at the same addresses.
//!
//! `dlopen` is not interposed: called from here, it would search for libraries on behalf of the
//! wrong module.
//!
//! Safety: the C library's function is found by `dlsym` and called with the caller's arguments.

#![allow(unsafe_code)]

use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::modules;

type Dlclose = unsafe extern "C" fn(*mut c_void) -> c_int;

static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // SAFETY: a name with a NUL.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr()) };
        NEXT.store(next, Ordering::Relaxed);
    }
    if next.is_null() {
        return -1;
    }
    // SAFETY: the C library's function and the caller's argument.
    let result = unsafe { transmute::<*mut c_void, Dlclose>(next)(handle) };
    modules::closed();
    result
}
