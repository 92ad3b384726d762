//! Standard streams that were closed when this program was started, and that must be closed for its
//! command too.
//!
//! The Rust runtime opens `/dev/null` in place of closed streams before `main`: a command that
//! cannot write its output would seem to succeed.
//!
//! # Safety
//!
//! `fcntl(F_GETFD)` only reads flags. The function before `main` uses nothing that the runtime
//! initializes.
#![allow(unsafe_code)]

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;

/// Bit N is descriptor N, from standard input (0) on.
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

/// Streams that were closed when this program was started: bit N is descriptor N.
pub(crate) fn closed_at_start() -> u64 {
    CLOSED.load(Ordering::Relaxed)
}

/// Closes the streams of a mask.
pub(crate) fn close(closed: u64) {
    for stream in STREAMS.filter(|stream| closed >> stream & 1 == 1) {
        let _ = nix::unistd::close(stream);
    }
}
