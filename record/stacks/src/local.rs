//! What each thread keeps: a few words, reached without a call.
//!
//! A `thread_local!` of a shared library is found by `__tls_get_addr`, which may allocate in a signal handler. The
//! words are defined and read in assembly with the initial-exec model, which a library that is loaded with the
//! program may use.
//!
//! Safety: the words are zero at first, private to the thread and touched only by the handler, which is never
//! nested (all signals are blocked in it), and by a forked child before it goes on.

#![allow(unsafe_code)]

/// Words of one thread.
#[repr(C)]
pub(crate) struct Local {
    /// CLOCK_MONOTONIC and the thread's CPU time when it was looked at last, in nanoseconds; 0 for never.
    pub(crate) seen_at: u64,
    pub(crate) seen_cpu: u64,
    /// Voluntary context switches until then.
    pub(crate) seen_switches: u64,
    /// Stack that is known to be readable: its first address and that behind its last.
    pub(crate) stack: [u64; 2],
}

const _: () = assert!(size_of::<Local>() <= 64);

core::arch::global_asm!(
    ".pushsection .tbss.tracebraid_stacks_thread,\"awT\",@nobits",
    ".balign 64",
    ".globl tracebraid_stacks_thread",
    ".hidden tracebraid_stacks_thread",
    ".type tracebraid_stacks_thread, @object",
    ".size tracebraid_stacks_thread, 64",
    "tracebraid_stacks_thread:",
    ".zero 64",
    ".popsection",
);

/// The words of this thread.
///
/// # Safety
/// The caller is the handler, or a child just forked, and does not keep the reference.
pub(crate) unsafe fn local() -> &'static mut Local {
    let address: *mut Local;
    // SAFETY: the variable is defined above in this link unit; the thread pointer's own value is at fs:0 by the ABI.
    unsafe {
        core::arch::asm!(
            "mov {address}, qword ptr [rip + tracebraid_stacks_thread@GOTTPOFF]",
            "add {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(nostack, readonly),
        );
        &mut *address
    }
}
