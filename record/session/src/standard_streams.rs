//! Standard input, output and error that were closed when this program was started, and are for its command too.
//!
//! The runtime of Rust opens `/dev/null` in the place of those that are closed, before `main`: a command whose output cannot be
//! written would seem to succeed.
//!
//! # Safety
//!
//! `fcntl(F_GETFD)` only reads flags. The function before `main` uses nothing that the runtime initializes.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;

/// By bit, from standard input on.
static CLOSED: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = read_all;

const STREAMS: std::ops::Range<RawFd> = 0..3;

extern "C" fn read_all() {
    // SAFETY: see the head of the module.
    let is_closed = |stream: &RawFd| unsafe { libc::fcntl(*stream, libc::F_GETFD) } < 0;
    let closed = STREAMS.filter(is_closed).map(|stream| 1 << stream).sum();
    CLOSED.store(closed, Ordering::Relaxed);
}

/// By bit, from standard input on, the streams that were closed when this program was started.
pub(crate) fn closed_at_start() -> u64 {
    CLOSED.load(Ordering::Relaxed)
}

/// Closes these streams.
pub(crate) fn close(closed: u64) {
    for stream in STREAMS.filter(|stream| closed >> stream & 1 == 1) {
        let _ = nix::unistd::close(stream);
    }
}
