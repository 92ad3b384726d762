//! The next definition of a function that this library interposes.

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

    /// The function's address; null if no library defines it.
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
