//! `chroot`, after which the library may not be found: the loader of each program that is started
//! there would complain on standard error. [`crate::exec`] handles changes of the root that are not
//! made by this function; but `system`, `popen` and the functions with a list of arguments
//! (`execl`) start programs without it.
//!
//! Safety: the function is called as the C library's is, which `dlsym` finds. The environment is
//! changed in place, in the bytes of its own variable, and only made shorter; a program that reads
//! it in another thread at that moment could read a mixture of both.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;

use crate::next::Next;
use crate::preload::{PRELOAD, forget, is_there};
use crate::sys;

type Chroot = unsafe extern "C" fn(*const c_char) -> c_int;

static CHROOT: Next = Next::new(c"chroot");

/// # Safety
/// As the C library's.
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

/// Takes our libraries out of the variable unless the loader will find them.
fn forget_libraries() {
    // SAFETY: see the module's text.
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
