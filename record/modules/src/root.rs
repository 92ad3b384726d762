//! `chroot`, after which the library may not exist: the loader would then complain on standard
//! error in each program started in the new root. [`crate::exec`] handles changes of the root by
//! other means, but `system`, `popen` and the functions with a list of arguments (`execl`) start
//! programs without it.
//!
//! Safety: the C library's function is found by `dlsym`. The environment is changed in place, in
//! the bytes of the variable itself, and only shortened; another thread that reads the variable at
//! that moment could read a mixture of both values.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;

use crate::next::Next;
use crate::preload::{PRELOAD, forget, is_there};
use crate::sys;

type Chroot = unsafe extern "C" fn(*const c_char) -> c_int;

static CHROOT: Next = Next::new(c"chroot");

/// # Safety
/// Same as the C library's function.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    let next = CHROOT.find();
    if next.is_null() {
        return -1;
    }
    // SAFETY: the C library's function and the caller's argument.
    let result = unsafe { transmute::<*mut c_void, Chroot>(next)(path) };
    if result == 0 {
        let errno = sys::errno();
        forget_libraries();
        sys::set_errno(errno);
    }
    result
}

unsafe extern "C" {
    static environ: *mut *mut c_char;
}

/// Removes our libraries from `LD_PRELOAD` unless the loader will find them.
fn forget_libraries() {
    // SAFETY: see the module documentation.
    unsafe {
        let mut variables = environ;
        while !variables.is_null() && !(*variables).is_null() {
            let text = CStr::from_ptr(*variables).to_bytes();
            if text.starts_with(PRELOAD) {
                let bytes =
                    core::slice::from_raw_parts_mut((*variables).cast::<u8>(), text.len() + 1);
                forget(bytes.get_mut(PRELOAD.len()..).unwrap_or_default(), is_there);
            }
            variables = variables.add(1);
        }
    }
}
