//! What a forked child must do at once: nothing, unless it was forked in the middle of a probe.
//!
//! Private state is wiped by the kernel (`MADV_WIPEONFORK`, Linux 4.14). The thread that forked may
//! have been interrupted in a probe by the handler that forks: it will come back to that probe in
//! the child and write the rest of its record. [`in_child`] puts private memory at the address of
//! its buffer for that. It is not called for `_Fork` and raw `clone`: then the child writes, in the
//! place of the parent's record, the same bytes that the parent writes there itself.
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

/// When the program, or the library that this is in, is loaded.
extern "C" fn begin() {
    kept::SESSION.keep();
    kept::OPTIONS.keep();
    if kept::SESSION.value().is_some() {
        watch();
    }
}

/// Sees to it that [`in_child`] is called, once per program. Never to be called in a signal
/// handler, nor while another lock is held: the C library holds its own throughout a fork, in which
/// a handler may trace.
pub(crate) fn watch() {
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> libc::c_int;
    }
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the function stays where it is: this library is never unloaded while it has
        // threads' buffers.
        unsafe {
            pthread_atfork(None, None, Some(in_child));
        }
    }
}

/// Puts private memory in the place of the parent's buffer. Whichever comes first in a child does
/// it: [`in_child`], or the first event record, which may be another handler's of the same fork.
pub(crate) fn leave_buffer() {
    let (address, bytes) = tls::mapping();
    if bytes != 0 {
        sys::replace_by_private(address, bytes);
    }
    tls::set_mapping(0, 0);
}

extern "C" fn in_child() {
    let is_unwiped = sys::is_unwiped();
    // SAFETY: the states of threads are never given back.
    let state = unsafe { ThreadState::current().as_ref() };
    // One that is not wiped is of a buffer that this child has made itself.
    if is_unwiped || state.is_none_or(ThreadState::is_wiped) {
        leave_buffer();
    }
    if is_unwiped {
        process::forget();
        ThreadState::set_current(core::ptr::null());
    }
}
