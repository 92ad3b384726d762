//! System calls, with errors as numbers. All are async-signal-safe; they change `errno`.

#![allow(unsafe_code)]

use core::ptr::{null, null_mut};

/// A value of `errno`.
pub(crate) type Errno = libc::c_int;

pub(crate) fn errno() -> Errno {
    // SAFETY: the C library returns the address of this thread's `errno`.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(value: Errno) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value }
}

/// The time of a clock in nanoseconds.
pub(crate) fn clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is valid for writing.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    (time.tv_sec as u64)
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec as u64)
}

/// Maps zeroed pages.
pub(crate) fn map(bytes: usize) -> Option<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping replaces no other mapping.
    let address = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
    (address != libc::MAP_FAILED).then_some(address.cast())
}

/// # Safety
/// The pages are not in use.
pub(crate) unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::munmap(address.cast(), bytes) };
}

/// Makes a page unreadable.
///
/// # Safety
/// The page is not in use.
#[cfg(test)]
pub(crate) unsafe fn forbid(address: *mut u8, bytes: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::mprotect(address.cast(), bytes, libc::PROT_NONE) };
}

/// True if the aligned eight bytes at an address are readable. The kernel copies the mask before it
/// rejects the invalid operation; this call is allowed in every sandbox.
pub(crate) fn is_readable(address: u64) -> bool {
    if address < 4096 {
        // The kernel interprets a null pointer as no mask.
        return false;
    }
    // SAFETY: changes nothing: -1 is not a valid operation.
    let result =
        unsafe { libc::syscall(libc::SYS_rt_sigprocmask, -1, address & !7, null::<u64>(), 8) };
    result == 0 || errno() != libc::EFAULT
}

/// Writes the path of the program to the buffer, without a NUL; returns its length.
pub(crate) fn program(buffer: &mut [u8]) -> usize {
    // SAFETY: the length is the buffer's.
    let count = unsafe {
        libc::readlink(
            c"/proc/self/exe".as_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    };
    usize::try_from(count).unwrap_or(0)
}

/// Writes the working directory and a slash to the buffer, without a NUL; returns 0 if there is no
/// room.
pub(crate) fn directory(buffer: &mut [u8]) -> usize {
    // SAFETY: the length is the buffer's.
    let count = unsafe { libc::syscall(libc::SYS_getcwd, buffer.as_mut_ptr(), buffer.len()) };
    // The kernel counts the NUL, which the slash replaces.
    let count = usize::try_from(count).unwrap_or(0);
    if let Some(end) = count.checked_sub(1).and_then(|end| buffer.get_mut(end)) {
        *end = b'/';
    }
    count
}

/// False if the path certainly does not exist.
pub(crate) fn exists(path: &core::ffi::CStr) -> bool {
    // SAFETY: a path with a NUL.
    unsafe { libc::access(path.as_ptr(), libc::F_OK) == 0 || errno() != libc::ENOENT }
}

/// Writes to standard error.
pub(crate) fn say(text: &[u8]) {
    // SAFETY: the length is the text's.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}
