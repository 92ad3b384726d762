//! `chroot`, after which the library may not be found: the loader of each program that is started there would
//! complain on standard error.
//!
//! Safety: the function is called as the C library's is, which `dlsym` finds. The environment is changed in place,
//! in the bytes of its own variable, and only made shorter; a program that reads it in another thread at that moment
//! could read a mixture of both.

#![allow(unsafe_code)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::sys;

type Chroot = unsafe extern "C" fn(*const c_char) -> c_int;

static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// The variable, and what the names of libraries have in common that are preloaded by recording.
const PRELOAD: &[u8] = b"LD_PRELOAD=";
const OURS: &[u8] = b"/libtracebraid_";
/// Bytes of a path at most.
const MOST_PATH: usize = 4096;

/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn chroot(path: *const c_char) -> c_int {
    let mut next = NEXT.load(Ordering::Relaxed);
    if next.is_null() {
        // SAFETY: a name with a NUL.
        next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"chroot".as_ptr()) };
        NEXT.store(next, Ordering::Relaxed);
    }
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
                let bytes = core::slice::from_raw_parts_mut((*variables).cast::<u8>(), text.len() + 1);
                forget(bytes.get_mut(PRELOAD.len()..).unwrap_or_default(), is_there);
            }
            variables = variables.add(1);
        }
    }
}

fn is_there(path: &[u8]) -> bool {
    let mut with_null = [0; MOST_PATH];
    let Some(place) = with_null
        .get_mut(..path.len())
        .filter(|place| place.len() < MOST_PATH)
    else {
        return false;
    };
    place.copy_from_slice(path);
    CStr::from_bytes_until_nul(&with_null).is_ok_and(sys::exists)
}

/// Takes our entries that are not there out of a list of libraries that ends with a null.
fn forget(list: &mut [u8], is_there: impl Fn(&[u8]) -> bool) {
    let end = list.iter().position(|&byte| byte == 0).unwrap_or(0);
    let (mut from, mut to) = (0, 0);
    while from < end {
        let rest = list.get(from..end).unwrap_or_default();
        let length = rest
            .iter()
            .position(|byte| b": ".contains(byte))
            .unwrap_or(rest.len());
        let entry = rest.get(..length).unwrap_or_default();
        let is_ours = entry.windows(OURS.len()).any(|part| part == OURS);
        if !is_ours || is_there(entry) {
            // With the separator before it.
            let begin = from.saturating_sub(usize::from(to > 0));
            list.copy_within(begin..from + length, to);
            to += from + length - begin;
        }
        from += length + 1;
    }
    list.iter_mut().skip(to).for_each(|byte| *byte = 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_libraries_that_are_gone_are_forgotten() {
        for (list, expected) in [
            ("/a/libtracebraid_modules.so", ""),
            (
                "/a/libtracebraid_modules.so:/usr/lib/other.so",
                "/usr/lib/other.so",
            ),
            ("/usr/lib/other.so:/a/libtracebraid_probe.so", "/usr/lib/other.so"),
            ("/x.so /a/libtracebraid_probe.so /y.so", "/x.so /y.so"),
            (
                "/here/libtracebraid_probe.so:/x.so",
                "/here/libtracebraid_probe.so:/x.so",
            ),
            ("", ""),
        ] {
            let mut bytes = [list.as_bytes(), &[0]].concat();
            forget(&mut bytes, |path| path.starts_with(b"/here"));
            let text = CStr::from_bytes_until_nul(&bytes).unwrap().to_str().unwrap();
            assert_eq!(text, expected, "{list}");
        }
    }
}
