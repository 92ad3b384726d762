//! Restartable sequences (rseq, Linux 4.18; the C library registers threads since glibc 2.35):
//! whether the kernel watches this thread, and where the mark lies by which it knows that the
//! thread is in one. [`crate::fast`] is the sequence.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicIsize, Ordering};

/// From the thread pointer to the place of the mark; 0 where there are no restartable sequences.
pub(crate) static MARK: AtomicIsize = AtomicIsize::new(0);

/// Where the mark lies in the kernel's area (`rseq_cs` of `struct rseq`).
const MARK_IN_AREA: isize = 8;

/// Finds the kernel's area. To be called before a thread gets a buffer.
pub(crate) fn begin() {
    let (size, offset): (*const u32, *const isize);
    // SAFETY: both are looked up by the loader, or null where the C library has none.
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

/// Whether the kernel watches this thread.
pub(crate) fn is_watched() -> bool {
    let mark = MARK.load(Ordering::Acquire);
    if mark == 0 {
        return false;
    }
    let cpu: i32;
    // SAFETY: the area's second word is the number of the CPU, and negative where the thread is not
    // registered.
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
