//! For measurements and tests: the stack of the caller, without a signal.

#![allow(unsafe_code)]

use crate::modules::{self, Reader};
use crate::rule::{PC, RBP, RSP, Registers};
use crate::unwind::{self, End};

/// Makes the list of modules.
pub fn begin() {
    modules::begin();
}

/// Forgets all rules.
pub fn forget() {
    unwind::forget();
}

/// Writes the return addresses of the caller, itself first; how many there are, and how they end.
#[inline(never)]
pub fn stack_here(frames: &mut [u64], known: &mut [u64; 2]) -> (usize, End) {
    let mut registers = Registers([0; 17]);
    let place = registers.0.as_mut_ptr();
    // SAFETY: only registers are read, and words of the array written.
    unsafe {
        core::arch::asm!(
            "mov [{place} + 8*3], rbx",
            "mov [{place} + 8*6], rbp",
            "mov [{place} + 8*7], rsp",
            "mov [{place} + 8*12], r12",
            "mov [{place} + 8*13], r13",
            "mov [{place} + 8*14], r14",
            "mov [{place} + 8*15], r15",
            "lea {pc}, [rip]",
            "mov [{place} + 8*16], {pc}",
            place = in(reg) place,
            pc = out(reg) _,
            options(nostack),
        );
    }
    debug_assert!(registers.0[PC] != 0 && registers.0[RSP] != 0 && registers.0[RBP] != 1);
    let mut reader = Reader::enter();
    unwind::walk(&mut reader, registers, known, frames)
}
