//! The only thread-local variable: a pointer to the state of this thread's buffer.
//!
//! A `thread_local!` of a shared library is found by `__tls_get_addr`, which may allocate in a
//! signal handler and costs nanoseconds. On x86-64 the variable is defined and read in assembly
//! with the initial-exec model: two loads. The C library reserves space for such small variables of
//! libraries that are opened later.
//!
//! Safety: the variable is 24 bytes, initially zero, private to the thread, and read and written by
//! single instructions only, so a signal handler sees either the old or the new value.

#![allow(unsafe_code)]

use core::ffi::c_void;

#[cfg(target_arch = "x86_64")]
mod place {
    core::arch::global_asm!(
        ".pushsection .tbss.tracebraid_probe_thread,\"awT\",@nobits",
        ".balign 8",
        ".globl tracebraid_probe_thread",
        ".hidden tracebraid_probe_thread",
        ".type tracebraid_probe_thread, @object",
        ".size tracebraid_probe_thread, 24",
        "tracebraid_probe_thread:",
        ".zero 24",
        ".popsection",
    );

    /// Reads the first word.
    #[inline(always)]
    pub(super) fn get() -> usize {
        let value: usize;
        // SAFETY: the variable above is defined in this link unit; see the module documentation.
        unsafe {
            core::arch::asm!(
                "mov {value}, qword ptr [rip + tracebraid_probe_thread@GOTTPOFF]",
                "mov {value}, qword ptr fs:[{value}]",
                value = out(reg) value,
                options(nostack, preserves_flags, readonly),
            );
        }
        value
    }

    /// The address of the three words.
    pub(super) fn address() -> *mut usize {
        let value: usize;
        // SAFETY: as above; the thread pointer's own address is at fs:0 by the ABI.
        unsafe {
            core::arch::asm!(
                "mov {value}, qword ptr [rip + tracebraid_probe_thread@GOTTPOFF]",
                "add {value}, qword ptr fs:[0]",
                value = out(reg) value,
                options(nostack, readonly),
            );
        }
        value as *mut usize
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod place {
    use core::cell::UnsafeCell;
    thread_local! {
        static WORDS: UnsafeCell<[usize; 3]> = const { UnsafeCell::new([0; 3]) };
    }

    pub(super) fn address() -> *mut usize {
        WORDS.with(|words| words.get().cast())
    }

    #[inline(always)]
    pub(super) fn get() -> usize {
        // SAFETY: see the module documentation.
        unsafe { address().read_volatile() }
    }
}

/// The state of this thread's buffer; null before its first event record.
#[inline(always)]
pub(crate) fn get() -> *const c_void {
    place::get() as *const c_void
}

/// Sets the result of [`get`].
pub(crate) fn set(state: *const c_void) {
    // SAFETY: see the module documentation.
    unsafe { place::address().write_volatile(state as usize) }
}

/// Stores address and size of the mapping of this thread's buffer, in memory that a forked child
/// keeps.
pub(crate) fn set_mapping(address: usize, bytes: usize) {
    // SAFETY: see the module's text; the words belong to this thread.
    unsafe {
        place::address().add(1).write_volatile(address);
        place::address().add(2).write_volatile(bytes);
    }
}

/// The values of [`set_mapping`].
pub(crate) fn mapping() -> (usize, usize) {
    // SAFETY: as above.
    unsafe {
        (
            place::address().add(1).read_volatile(),
            place::address().add(2).read_volatile(),
        )
    }
}
