//! System calls, with their errors as numbers. All may be used in signal handlers; they change
//! `errno`.

#![allow(unsafe_code)]

use core::ptr::{null, null_mut};

/// A number of `errno`.
pub(crate) type Errno = libc::c_int;

pub(crate) fn errno() -> Errno {
    // SAFETY: the C library gives the address of this thread's.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(value: Errno) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// Nanoseconds of a clock.
pub(crate) fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: it is filled.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// Fresh zeroed pages.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping takes no one's place.
    let address = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address.cast())
}

/// # Safety
/// Nobody uses these pages.
pub(crate) unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { libc::munmap(address.cast(), bytes) };
}

/// Makes a page unreadable.
///
/// # Safety
/// Nobody uses it.
#[cfg(test)]
pub(crate) unsafe fn forbid(address: *mut u8, bytes: usize) {
    // SAFETY: the caller's.
    unsafe { libc::mprotect(address.cast(), bytes, libc::PROT_NONE) };
}

/// Whether eight bytes at a multiple of 8 can be read. The kernel looks at them before it finds
/// that the request makes no sense; this call is allowed in every sandbox.
pub(crate) fn is_readable(address: u64) -> bool {
    if address < 4096 {
        // The kernel takes a null for no mask.
        return false;
    }
    // SAFETY: nothing is changed: no such way to change a mask exists.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, -1, address & !7, null::<u64>(), 8) };
    result == 0 || errno() != libc::EFAULT
}

/// The path of the program, without a NUL.
pub(crate) fn program(buffer: &mut [u8]) -> usize {
    // SAFETY: as many bytes as there are.
    let count = unsafe {
        libc::readlink(
            c"/proc/self/exe".as_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    };
    usize::try_from(count).unwrap_or(0)
}

/// The path of the working directory and a slash, without a NUL; nothing if there is no room.
pub(crate) fn directory(buffer: &mut [u8]) -> usize {
    // SAFETY: as many bytes as there are.
    let count = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    // The kernel counts the NUL, in whose place the slash goes.
    let count = usize::try_from(count).unwrap_or(0);
    if let Some(end) = count.checked_sub(1).and_then(|end| buffer.get_mut(end)) {
        *end = b'/';
    }
    count
}

/// Whether there is something of that name; also true if unknown.
pub(crate) fn exists(path: &core::ffi::CStr) -> bool {
    // SAFETY: a path with a NUL.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 || errno() != libc::ENOENT }
}

/// Says something on standard error.
pub(crate) fn say(text: &[u8]) {
    // SAFETY: as many bytes as there are.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}
