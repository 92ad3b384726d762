//! Restartable sequences (rseq, Linux 4.18; glibc registers threads since 2.35): whether the kernel
//! watches this thread, and the position of the mark that shows the kernel that the thread is in
//! the sequence. [`crate::fast`] is the sequence.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicIsize, Ordering};

/// Offset of the mark from the thread pointer; 0 without restartable sequences.
pub(crate) static MARK: AtomicIsize = AtomicIsize::new(0);

/// Offset of the mark in the kernel's area (`rseq_cs` of `struct rseq`).
const MARK_IN_AREA: isize = 8;

/// Finds the kernel's area. Must be called before a thread gets a buffer.
pub(crate) fn begin() {
    let (size, offset): (*const u32, *const isize);
    // SAFETY: the loader resolves both symbols; they are null if the C library does not define
    // them.
    unsafe {
        core::arch::asm!(
            ".weak __rseq_size",
            ".weak __rseq_offset",
            "mov {size}, qword ptr [rip + __rseq_size@GOTPCREL]",
            "mov {offset}, qword ptr [rip + __rseq_offset@GOTPCREL]",
            size = out(reg) size,
            offset = out(reg) offset,
            options(nostack, preserves_flags, pure, readonly),
        );
        if !size.is_null() && !offset.is_null() && size.read_volatile() != 0 {
            MARK.store(offset.read_volatile() + MARK_IN_AREA, Ordering::Release);
        }
    }
}

/// True if the kernel watches this thread.
pub(crate) fn is_watched() -> bool {
    let mark = MARK.load(Ordering::Acquire);
    if mark == 0 {
        return false;
    }
    let cpu: i32;
    // SAFETY: the second word of the area is the number of the CPU, or negative if the thread is
    // not registered.
    unsafe {
        core::arch::asm!(
            "mov {cpu:e}, dword ptr fs:[{mark} - 4]",
            cpu = out(reg) cpu,
            mark = in(reg) mark,
            options(nostack, preserves_flags, readonly),
        );
    }
    cpu >= 0
}
