//! Signals that this program was started to ignore, and a command that ignores the same ones.
//!
//! A command must begin with the dispositions that the recorder was started with, but three layers change them on the
//! way: the runtime of Rust ignores SIGPIPE before `main` and gives children its default, the recorder handles SIGBUS,
//! and `posix_spawn` of glibc makes children ignore signals 32 and 33, which glibc uses itself. A function in
//! `.init_array`, which runs before `main`, reads the dispositions, and the launcher restores them. Both use the system call, since
//! `sigaction` of glibc refuses 32 and 33. `Command::pre_exec` was the alternative: it runs in a fork of the whole
//! recorder, and still needs the function before `main`.
//!
//! # Safety
//!
//! `rt_sigaction` reads and writes [`Action`], which has the kernel's layout, through pointers to local variables. The
//! only handlers that are set are the default and the one that ignores. The function before `main` uses nothing that
//! the runtime initializes.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;

/// By bit, from signal 1 on.
static IGNORED: AtomicU64 = AtomicU64::new(0);

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = read_all;

extern "C" fn read_all() {
    let mut ignored = 0;
    for signal in SIGNALS {
        if is_ignored(signal) {
            ignored |= bit(signal);
        }
    }
    IGNORED.store(ignored, Ordering::Relaxed);
}

/// All signals of Linux.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=64;

/// The kernel's `struct sigaction` (x86-64, arm64).
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

impl Action {
    fn of(handler: usize) -> Action {
        Action {
            handler,
            flags: 0,
            restorer: 0,
            mask: 0,
        }
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

fn is_ignored(signal: i32) -> bool {
    let mut action = Action::of(libc::SIG_DFL);
    let no_action = ptr::null::<Action>();
    // SAFETY: see the head of the module.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            no_action,
            &raw mut action,
            size_of::<u64>(),
        )
    };
    result == 0 && action.handler == libc::SIG_IGN
}

fn set(signal: i32, handler: usize) {
    let action = Action::of(handler);
    let no_action = ptr::null_mut::<Action>();
    // SAFETY: see the head of the module. SIGKILL and SIGSTOP are refused.
    let _ = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            &raw const action,
            no_action,
            size_of::<u64>(),
        )
    };
}

/// Lets this process wait for its children. Where SIGCHLD is ignored the kernel does not keep how they ended.
pub(crate) fn keep_children() {
    set(libc::SIGCHLD, libc::SIG_DFL);
}

/// Makes a limit of the size of files an error of writing, as a full disk is one, instead of the end of this process.
pub(crate) fn ignore_file_size_limit() {
    set(libc::SIGXFSZ, libc::SIG_IGN);
}

/// Makes this process, a recorder in the background, count as started with the signals ignored that the process which
/// spawned it was started with.
pub(crate) fn take_over(ignored: u64) {
    IGNORED.store(ignored, Ordering::Relaxed);
}

/// By bit, from signal 1 on, the signals that this program was started to ignore.
pub(crate) fn ignored_at_start() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

/// Ignores these signals and no others. Handlers stay: a program that takes the place of this one has the default.
pub(crate) fn ignore_only(ignored: u64) {
    for signal in SIGNALS {
        match (is_ignored(signal), ignored & bit(signal) != 0) {
            (false, true) => set(signal, libc::SIG_IGN),
            (true, false) => set(signal, libc::SIG_DFL),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigpipe_is_read_before_the_runtime_ignores_it() {
        assert!(is_ignored(libc::SIGPIPE));
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let now = status
            .lines()
            .find_map(|line| line.strip_prefix("SigIgn:"))
            .unwrap();
        let now = u64::from_str_radix(now.trim(), 16).unwrap();
        let runtime = bit(libc::SIGPIPE);
        assert_eq!(ignored_at_start() | runtime, now | runtime);
    }
}
