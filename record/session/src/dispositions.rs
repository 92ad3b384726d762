//! Signals that were ignored when this program was started, which its command must ignore, too.
//!
//! A command must inherit the dispositions with which the recorder was started, but three layers
//! change them: the Rust runtime ignores SIGPIPE before `main` and resets it in children, the
//! recorder handles SIGBUS, and `posix_spawn` of glibc makes children ignore signals 32 and 33,
//! which glibc uses itself. A function in `.init_array`, which runs before `main`, reads the
//! dispositions, and the launcher restores them. Both use the system call, since `sigaction` of
//! glibc rejects 32 and 33. The alternative, `Command::pre_exec`, was rejected: it runs in a fork
//! of the whole recorder, and still needs the function before `main`.
//!
//! # Safety
//!
//! `rt_sigaction` reads and writes [`Action`], which has the kernel's layout, through pointers to
//! local variables. The only handlers that are set are the default and the one that ignores. The
//! function before `main` uses nothing that the runtime initializes.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;

/// Bit N - 1 is signal N.
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

/// Range of signal numbers on Linux.
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

/// Resets SIGCHLD to its default action: if it is ignored, the kernel discards the exit status of
/// children.
pub(crate) fn keep_children() {
    set(libc::SIGCHLD, libc::SIG_DFL);
}

/// Makes a write beyond the file size limit fail, as on a full disk, instead of killing this
/// process.
pub(crate) fn ignore_file_size_limit() {
    set(libc::SIGXFSZ, libc::SIG_IGN);
}

/// Replaces the signals ignored at the start of this process, a background recorder, by those
/// ignored at the start of the process that spawned it.
pub(crate) fn take_over(ignored: u64) {
    IGNORED.store(ignored, Ordering::Relaxed);
}

/// Signals that were ignored when this program was started: bit N - 1 is signal N.
pub(crate) fn ignored_at_start() -> u64 {
    IGNORED.load(Ordering::Relaxed)
}

/// Ignores these signals and no others. Handlers stay, since `execve` resets them to the default
/// action.
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
        // The runtime changes SIGPIPE, another test SIGXFSZ, and the C library 32 and 33 when
        // threads begin.
        let changed = [libc::SIGPIPE, libc::SIGXFSZ, 32, 33]
            .map(bit)
            .iter()
            .sum::<u64>();
        assert_eq!(ignored_at_start() & !changed, now & !changed);
    }
}
