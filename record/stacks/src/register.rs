//! Saying to the recorder of the kernel that this process takes its own stacks.
//!
//! The recorder has a uprobe on [`tracebraid_stacks_register`]: whoever calls it is known to it from then on, until it
//! becomes another program. It needs no privilege, takes no system call, and can only be said by a process of itself. The
//! recorder answers at once by a signal if it will tell of long waits; nobody answers where there is none.
//!
//! Safety: the function does nothing; its address and its argument are what matters.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crate::options::{Options, Waits};
use crate::sys;

/// The kernel's number of the thread that asks; 0 if none does.
static ASKING: AtomicI32 = AtomicI32::new(0);
static IS_HEARD: AtomicBool = AtomicBool::new(false);

/// Whether this thread waits for the answer, which is a signal without a value.
pub(crate) fn is_asking() -> bool {
    let asking = ASKING.load(Ordering::Relaxed);
    asking != 0 && asking == sys::thread_id()
}

/// In the handler: there was an answer.
pub(crate) fn heard() {
    IS_HEARD.store(true, Ordering::Relaxed);
}

/// Says it; the handler must be there. Whether the recorder will tell of long waits.
pub(crate) fn register(options: &Options) -> bool {
    // An answer that comes when nobody waits for it any more would end the program.
    let is_wanted = matches!(options.waits, Waits::Auto | Waits::Kernel) && !sys::is_blocked(libc::SIGTRAP);
    IS_HEARD.store(false, Ordering::Relaxed);
    ASKING.store(sys::thread_id(), Ordering::Relaxed);
    if is_wanted {
        // One nanosecond at least: none means never.
        tracebraid_stacks_register(options.threshold_ns.max(1));
    }
    ASKING.store(0, Ordering::Relaxed);
    let is_heard = IS_HEARD.load(Ordering::Relaxed);
    if !is_heard {
        // Nobody is there.
        tracebraid_stacks_register(NEVER);
    }
    is_heard
}

/// This process finds its waits itself.
const NEVER: u64 = u64::MAX;

/// Waits of that many nanoseconds and more are to be told of.
#[unsafe(no_mangle)]
#[inline(never)]
pub(crate) extern "C" fn tracebraid_stacks_register(threshold_ns: u64) {
    // SAFETY: an instruction that does nothing, so that there is a function to be called with an argument.
    unsafe { core::arch::asm!("nop", in("rdi") threshold_ns, options(nostack, preserves_flags)) };
}
