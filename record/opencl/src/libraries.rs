//! Libraries of the process, by the addresses in them.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::ptr::{self, NonNull};

/// The path of the library that contains an address; `None` outside all libraries.
pub(crate) fn path_of(address: usize) -> Option<&'static CStr> {
    // SAFETY: zeros are a valid value of this structure of pointers.
    let mut place: libc::Dl_info = unsafe { mem::zeroed() };
    // SAFETY: `dladdr` accepts every address, and fills in the structure if it returns not 0.
    let found = unsafe { libc::dladdr(address as *const _, &raw mut place) };
    // SAFETY: the path ends with NUL. It lives as long as the library, which is in use.
    (found != 0 && !place.dli_fname.is_null()).then(|| unsafe { CStr::from_ptr(place.dli_fname) })
}

/// Keeps the library that contains an address loaded until the process ends.
pub(crate) fn keep(address: usize) {
    if let Some(path) = path_of(address) {
        let how = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: the library is loaded already.
        unsafe { libc::dlopen(path.as_ptr(), how) };
    }
}

/// The first loaded library whose file name is that of a loader.
pub(crate) fn loader() -> Option<NonNull<c_void>> {
    let mut found: *mut c_void = ptr::null_mut();
    // SAFETY: the callback gets `found`, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(open_loader), (&raw mut found).cast()) };
    NonNull::new(found)
}

unsafe extern "C" fn open_loader(
    library: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a library, and what `loader` gave it.
    let (path, found) = unsafe { ((*library).dlpi_name, &mut *found.cast::<*mut c_void>()) };
    // SAFETY: paths of loaded libraries end with NUL.
    if path.is_null() || !is_of_loader(unsafe { CStr::from_ptr(path) }) {
        return 0;
    }
    // SAFETY: the path ends with NUL; the library is loaded already.
    *found = unsafe { libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    c_int::from(!found.is_null())
}

/// True if a path is that of a loader of OpenCL: its file name begins with `libOpenCL`.
pub(crate) fn is_of_loader(path: &CStr) -> bool {
    let name = path.to_bytes().rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| name.starts_with(b"libOpenCL"))
}
