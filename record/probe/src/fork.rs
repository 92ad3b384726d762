//! Handling of forked children: needed only if the fork happened in the middle of a probe.
//!
//! The kernel wipes private state in the child (`MADV_WIPEONFORK`, Linux 4.14). The thread that
//! forked may have been interrupted in a probe by the handler that forks: the child returns to that
//! probe and writes the rest of its record. For that case [`in_child`] maps private memory at the
//! address of the buffer. It does not run for `_Fork` and raw `clone`: then the child writes, to
//! the parent's record, the same bytes that the parent writes there itself.
//!
//! Safety: the handler touches only mappings of this crate, in a process with one thread.

#![allow(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering};

use crate::thread_state::ThreadState;
use crate::{kept, process, sys, tls};

static WATCHED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Runs when the program, or the library that contains this code, is loaded.
extern "C" fn begin() {
    kept::SESSION.keep();
    kept::OPTIONS.keep();
    if kept::SESSION.value().is_some() {
        watch();
    }
}

/// Registers [`in_child`], once per program. Must not be called in a signal handler, nor while
/// another lock is held: the C library holds its own lock throughout a fork, in which a handler may
/// trace.
pub(crate) fn watch() {
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> libc::c_int;
    }
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the function stays mapped: this library is never unloaded while threads have
        // buffers.
        unsafe {
            pthread_atfork(None, None, Some(in_child));
        }
    }
}

/// Maps private memory in place of the parent's buffer. Called in a child by [`in_child`] or by the
/// first event record, which may come from another handler of the same fork, whichever is first.
pub(crate) fn leave_buffer() {
    let (address, bytes) = tls::mapping();
    if bytes != 0 {
        sys::replace_by_private(address, bytes);
    }
    tls::set_mapping(0, 0);
}

extern "C" fn in_child() {
    let is_unwiped = sys::is_unwiped();
    // SAFETY: thread states are never unmapped.
    let state = unsafe { ThreadState::current().as_ref() };
    // A state that is not wiped belongs to a buffer that this child has made itself.
    if is_unwiped || state.is_none_or(ThreadState::is_wiped) {
        leave_buffer();
    }
    if is_unwiped {
        process::forget();
        ThreadState::set_current(core::ptr::null());
    }
}
