//! Functions that this library interposes, as the next library has them.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the C library, or of another library that interposes it.
pub(crate) struct Next {
    name: &'static CStr,
    function: AtomicPtr<c_void>,
}

impl Next {
    pub(crate) const fn new(name: &'static CStr) -> Next {
        Next {
            name,
            function: AtomicPtr::new(null_mut()),
        }
    }

    /// Its address; null if no library has it.
    pub(crate) fn find(&self) -> *mut c_void {
        let mut function = self.function.load(Ordering::Relaxed);
        if function.is_null() {
            // SAFETY: a name with a NUL.
            function = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
            self.function.store(function, Ordering::Relaxed);
        }
        function
    }
}
