//! Stacks for the handler to work on.
//!
//! The stack that a signal comes on may be small: an alternate one has some kilobytes. All that the handler does, the
//! slow path of a probe included, is done on one of a few stacks that are made at the beginning.
//!
//! Safety: a stack is used by whoever has taken its flag, from its top, until it gives it back; nobody jumps out of the
//! handler, since all signals are blocked in it. Below each stack lies a page that cannot be touched.

#![allow(unsafe_code)]

use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::sys;

const COUNT: usize = 32;
const BYTES: usize = 128 << 10;
const PAGE: usize = 4096;

static BASE: AtomicU64 = AtomicU64::new(0);
static TAKEN: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];

core::arch::global_asm!(
    ".pushsection .text.tracebraid_stacks_call_on,\"ax\",@progbits",
    ".globl tracebraid_stacks_call_on",
    ".hidden tracebraid_stacks_call_on",
    ".type tracebraid_stacks_call_on, @function",
    "tracebraid_stacks_call_on:",
    ".cfi_startproc",
    "push rbp",
    ".cfi_def_cfa_offset 16",
    ".cfi_offset rbp, -16",
    "mov rbp, rsp",
    ".cfi_def_cfa_register rbp",
    "mov rsp, rdx",
    "call rdi",
    "mov rsp, rbp",
    "pop rbp",
    ".cfi_def_cfa rsp, 8",
    "ret",
    ".cfi_endproc",
    ".size tracebraid_stacks_call_on, . - tracebraid_stacks_call_on",
    ".popsection",
);

unsafe extern "C" {
    /// Calls the function, which finds its own address and the argument where they are, on the stack that ends at
    /// `top`.
    fn tracebraid_stacks_call_on(function: extern "C" fn(u64, *mut c_void), argument: *mut c_void, top: u64);
}

/// Makes the stacks. Whether it could.
pub(crate) fn begin() -> bool {
    let Some(base) = sys::map(COUNT * BYTES) else {
        return false;
    };
    for index in 0..COUNT {
        // SAFETY: the pages are new.
        unsafe { sys::forbid(base.add(index * BYTES), PAGE) };
    }
    BASE.store(base as u64, Ordering::Release);
    true
}

/// In a forked child, which has one thread.
pub(crate) fn forked() {
    for taken in &TAKEN {
        taken.store(false, Ordering::Relaxed);
    }
}

struct Call<'a, T> {
    function: fn(&mut T),
    argument: &'a mut T,
}

extern "C" fn enter<T>(_: u64, call: *mut c_void) {
    // SAFETY: `run` gives a call of that type, and waits.
    let call = unsafe { &mut *call.cast::<Call<'_, T>>() };
    (call.function)(call.argument);
}

/// Calls the function on one of the stacks; not at all if all are taken, which takes more threads than that in
/// handlers at once.
pub(crate) fn run<T>(function: fn(&mut T), argument: &mut T) {
    let base = BASE.load(Ordering::Acquire);
    let free = TAKEN
        .iter()
        .position(|taken| !taken.load(Ordering::Relaxed) && !taken.swap(true, Ordering::Acquire));
    let (Some(index), true) = (free, base != 0) else {
        return;
    };
    let mut call = Call { function, argument };
    let top = base + ((index + 1) * BYTES) as u64;
    // SAFETY: the stack is ours until the flag is given back; its top is a multiple of 16.
    unsafe { tracebraid_stacks_call_on(enter::<T>, (&raw mut call).cast(), top) };
    if let Some(taken) = TAKEN.get(index) {
        taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deep(found: &mut (u64, u64)) {
        let array = core::hint::black_box([1_u8; 40 << 10]);
        found.0 = array.as_ptr() as u64;
        found.1 = array.iter().map(|&byte| u64::from(byte)).sum();
    }

    #[test]
    fn work_is_done_on_a_stack_of_ours_that_is_given_back() {
        assert!(begin());
        let base = BASE.load(Ordering::Relaxed);
        for _ in 0..2 * COUNT {
            let mut found = (0, 0);
            run(deep, &mut found);
            assert!((base..base + (COUNT * BYTES) as u64).contains(&found.0));
            assert_eq!(found.1, 40 << 10);
        }
    }
}
