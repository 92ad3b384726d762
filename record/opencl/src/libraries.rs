//! Libraries of the process, by the addresses in them.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_int, c_void};
use core::mem;
use core::ptr::NonNull;

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

/// Maximum length of a path, with its NUL.
const MOST: usize = libc::PATH_MAX as usize;

/// The first loaded library whose file name is that of a loader.
pub(crate) fn loader() -> Option<NonNull<c_void>> {
    let mut path = [0_u8; MOST];
    // SAFETY: the callback gets `path`, which lives until the call returns.
    unsafe { libc::dl_iterate_phdr(Some(copy_loader), (&raw mut path).cast()) };
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    if path.is_empty() {
        return None;
    }
    // Not in the callback, which has a lock that a thread in `dlopen` waits for, with the lock that
    // `dlopen` waits for.
    // SAFETY: the path ends with NUL; the library is loaded already.
    NonNull::new(unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) })
}

/// Copies the path of a loader.
unsafe extern "C" fn copy_loader(
    library: *mut libc::dl_phdr_info,
    _size: usize,
    copy: *mut c_void,
) -> c_int {
    // SAFETY: `dl_iterate_phdr` passes a library, and what `loader` gave it.
    let (path, copy) = unsafe { ((*library).dlpi_name, &mut *copy.cast::<[u8; MOST]>()) };
    if path.is_null() {
        return 0;
    }
    // SAFETY: paths of loaded libraries end with NUL.
    let path = unsafe { CStr::from_ptr(path) };
    let bytes = path.to_bytes_with_nul();
    let is_found = is_of_loader(path) && bytes.len() <= MOST;
    if is_found {
        copy.iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
    }
    c_int::from(is_found)
}

/// True if a path is that of a loader of OpenCL: its file name begins with `libOpenCL`.
pub(crate) fn is_of_loader(path: &CStr) -> bool {
    let name = path.to_bytes().rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| name.starts_with(b"libOpenCL"))
}
