//! System calls in which idle threads wait for work.

use std::sync::LazyLock;

use crate::syscall::Syscall;

/// Calls that end when an event occurs, however long that takes: one of several descriptors, a
/// time, a futex, a signal, a child, a message, a connection. Reading counts if the call does not
/// distinguish a file from a socket, a pipe or a terminal; it does not count if it requires a file,
/// as `pread64` does.
const WAITING: &str = "poll ppoll ppoll_time32 ppoll_time64 select old_select pselect6 pselect6_time32 pselect6_time64 epoll_wait
     epoll_wait_old epoll_pwait epoll_pwait2 io_getevents io_getevents_time32 io_pgetevents io_pgetevents_time32
     io_pgetevents_time64 io_uring_enter nanosleep nanosleep_time32 clock_nanosleep clock_nanosleep_time32
     clock_nanosleep_time64 restart_syscall futex futex_time32 futex_time64 futex_wait futex_waitv pause sigsuspend
     rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time32 rt_sigtimedwait_time64 wait4 waitid waitpid accept
     accept4 read readv recv recvfrom recvmsg recvmmsg recvmmsg_time32 recvmmsg_time64 splice tee msgrcv
     semop semtimedop semtimedop_time32 semtimedop_time64 mq_timedreceive mq_timedreceive_time32
     mq_timedreceive_time64 ipc socketcall";

/// Indexed by number.
static BY_NUMBER: LazyLock<Vec<bool>> = LazyLock::new(|| {
    // A call with two numbers counts under the lower one, as everywhere.
    let calls = WAITING.split_whitespace().filter_map(Syscall::of_table);
    let mut waits = Vec::new();
    for call in calls {
        let at = usize::from(call.0);
        waits.resize(waits.len().max(at + 1), false);
        waits[at] = true;
    }
    waits
});

impl Syscall {
    /// True if idle threads wait for work in this call, so that a long duration has no
    /// significance.
    pub fn waits_for_work(self) -> bool {
        BY_NUMBER
            .get(usize::from(self.0))
            .is_some_and(|&waits| waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_wait_are_calls() {
        for name in WAITING.split_whitespace() {
            let call = Syscall::by_name(name);
            assert!(call.is_some_and(Syscall::waits_for_work), "{name}");
        }
        for name in [
            "pread64",
            "openat",
            "fsync",
            "write",
            "execve",
            "futex_wake",
            "epoll_ctl",
            "kill",
        ] {
            let call = Syscall::by_name(name);
            assert!(call.is_some_and(|call| !call.waits_for_work()), "{name}");
        }
        assert!(!Syscall::OTHER.waits_for_work());
    }
}
