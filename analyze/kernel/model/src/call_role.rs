//! Properties of system calls that follow only from their names.

use crate::category::Category;
use crate::fd::FdType;
use crate::syscall::Syscall;

/// Effect of a call on threads, as far as its name shows it; see [`crate::Action`] for the effect
/// on descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallRole {
    /// Ends its thread, so it has no exit.
    Exit,
    /// Waits at a futex, or wakes the threads that do.
    Futex(FutexCall),
    /// Sends a signal.
    SendSignal,
    /// Waits for a child.
    AwaitChild,
    /// Waits for a signal.
    AwaitSignal,
    /// Submits requests to an io_uring, and waits for them.
    EnterRing,
    /// Connects a socket.
    Connect,
    /// Sends, on a socket only.
    Send,
    /// Receives, on a socket only.
    Receive,
    /// No such effect.
    Other,
}

/// A system call on futexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FutexCall {
    /// The operation is in the argument `op`.
    ByArgument,
    /// `futex_wait`.
    Wait,
    /// `futex_waitv`.
    WaitForAny,
    /// `futex_wake`.
    Wake,
    /// `futex_requeue`.
    Requeue,
}

/// Directory that the path of a call is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameBase {
    /// The working directory of the process.
    WorkingDirectory,
    /// The descriptor in the first argument.
    Descriptor,
    /// The call has no path.
    None,
}

impl FutexCall {
    /// Name of the system call.
    pub fn name(self) -> &'static str {
        match self {
            FutexCall::ByArgument => "futex",
            FutexCall::Wait => "futex_wait",
            FutexCall::WaitForAny => "futex_waitv",
            FutexCall::Wake => "futex_wake",
            FutexCall::Requeue => "futex_requeue",
        }
    }
}

impl Syscall {
    /// Effect on threads. Slow, since names are compared.
    pub fn role(self) -> CallRole {
        match self.name() {
            _ if self.ends_thread() => CallRole::Exit,
            "futex_wait" => CallRole::Futex(FutexCall::Wait),
            "futex_waitv" => CallRole::Futex(FutexCall::WaitForAny),
            "futex_wake" => CallRole::Futex(FutexCall::Wake),
            "futex_requeue" => CallRole::Futex(FutexCall::Requeue),
            name if name.starts_with("futex") && self.category() == Category::Futex => {
                CallRole::Futex(FutexCall::ByArgument)
            }
            "kill" | "tkill" | "tgkill" | "pidfd_send_signal" | "rt_sigqueueinfo"
            | "rt_tgsigqueueinfo" => CallRole::SendSignal,
            "wait4" | "waitid" | "waitpid" => CallRole::AwaitChild,
            "pause" => CallRole::AwaitSignal,
            name if name.starts_with("rt_sigtimedwait") || name.ends_with("sigsuspend") => {
                CallRole::AwaitSignal
            }
            "io_uring_enter" => CallRole::EnterRing,
            "connect" => CallRole::Connect,
            "send" | "sendto" | "sendmsg" | "sendmmsg" => CallRole::Send,
            name if name.starts_with("recv") => CallRole::Receive,
            _ => CallRole::Other,
        }
    }

    /// True if the call ends its thread, so it has no exit.
    pub fn ends_thread(self) -> bool {
        matches!(self.name(), "exit" | "exit_group")
    }

    /// True if the call returns from a signal handler: its result is the value that the program had
    /// in the register when the signal came.
    pub fn returns_from_signal(self) -> bool {
        matches!(self.name(), "rt_sigreturn" | "sigreturn")
    }

    /// Directory that the path of the call is relative to.
    pub fn name_base(self) -> NameBase {
        match self.name() {
            "openat" | "openat2" => NameBase::Descriptor,
            "open" | "creat" => NameBase::WorkingDirectory,
            _ => NameBase::None,
        }
    }

    /// Prefix that `/proc` shows in front of the name of an object that the call creates.
    pub fn name_prefix(self) -> &'static str {
        match self.name() {
            "memfd_create" => "/memfd:",
            "mq_open" => "mqueue:",
            _ => "",
        }
    }

    /// Name of an object of type `kind` that the call creates without a name of its own, as `/proc`
    /// and state dumps show it. `None` if the type is unknown.
    pub fn unnamed_object(self, kind: FdType) -> Option<&'static str> {
        Some(match (kind, self.name()) {
            (FdType::File | FdType::Terminal | FdType::Virtual, _) => "unnamed file",
            (FdType::Network, _) => "network socket",
            (FdType::Unix, _) => "unix socket",
            (FdType::Socket, _) => "socket",
            (FdType::Pipe, _) => "pipe",
            (_, "epoll_create" | "epoll_create1") => "anon_inode:[eventpoll]",
            (_, "eventfd" | "eventfd2") => "anon_inode:[eventfd]",
            (_, "timerfd_create") => "anon_inode:[timerfd]",
            (_, "signalfd" | "signalfd4") => "anon_inode:[signalfd]",
            (_, "inotify_init" | "inotify_init1") => "anon_inode:inotify",
            (_, "fanotify_init") => "anon_inode:[fanotify]",
            (_, "userfaultfd") => "anon_inode:[userfaultfd]",
            (_, "perf_event_open") => "anon_inode:[perf_event]",
            (_, "pidfd_open") => "anon_inode:[pidfd]",
            (_, "io_uring_setup") => "anon_inode:[io_uring]",
            (FdType::Anonymous, _) => "anon_inode",
            (FdType::Unknown, _) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Syscall {
        Syscall::of_table(name).unwrap_or_else(|| panic!("{name} is a call"))
    }

    #[test]
    fn calls_on_futexes_have_a_role() {
        let names = Syscall::table().filter(|call| call.category() == Category::Futex);
        for call in names.filter(|call| call.name().starts_with("futex")) {
            assert!(matches!(call.role(), CallRole::Futex(_)), "{}", call.name());
        }
        assert!(call("exit_group").ends_thread() && !call("kill").ends_thread());
    }

    #[test]
    fn objects_are_called_as_in_proc() {
        let of = |name, kind| call(name).unnamed_object(kind);
        assert_eq!(
            of("eventfd2", FdType::Anonymous),
            Some("anon_inode:[eventfd]")
        );
        assert_eq!(of("socket", FdType::Unix), Some("unix socket"));
        assert_eq!(of("read", FdType::Unknown), None);
        assert_eq!(call("memfd_create").name_prefix(), "/memfd:");
        assert_eq!(call("openat").name_base(), NameBase::Descriptor);
    }
}
