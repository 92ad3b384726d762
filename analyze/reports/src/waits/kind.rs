//! What calls are, as far as waiting is concerned.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, Category, Syscall};

/// What a system call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// It waits for others at an address, or wakes them.
    Futex,
    /// It ends its thread.
    Exit,
    /// It waits for children or signals.
    Wait,
    /// It sends a signal.
    Kill,
    /// It makes a socket.
    Socket,
    Connect,
    Accept,
    /// It sends by a socket.
    Send,
    /// It receives from a socket.
    Receive,
    /// It writes to a descriptor that may be a socket.
    Write,
    /// It reads from one.
    Read,
    /// It moves bytes from one descriptor to another.
    Copy,
    Close,
    Other,
}

impl Kind {
    fn of(call: Syscall) -> Kind {
        match (call.name(), call.action(), call.category()) {
            ("exit" | "exit_group", ..) => Kind::Exit,
            (name, _, Category::Futex) if name.starts_with("futex") => Kind::Futex,
            (
                "kill" | "tkill" | "tgkill" | "pidfd_send_signal" | "rt_sigqueueinfo" | "rt_tgsigqueueinfo",
                ..,
            ) => Kind::Kill,
            ("wait4" | "waitid" | "waitpid" | "pause", ..) => Kind::Wait,
            (name, ..) if name.starts_with("rt_sigtimedwait") || name.ends_with("sigsuspend") => Kind::Wait,
            ("connect", ..) => Kind::Connect,
            ("send" | "sendto" | "sendmsg" | "sendmmsg", ..) => Kind::Send,
            (name, Action::Read | Action::ReadMessages, _) if name.starts_with("recv") => Kind::Receive,
            (_, Action::Socket, _) => Kind::Socket,
            (_, Action::Accept, _) => Kind::Accept,
            (_, Action::Write, _) => Kind::Write,
            (_, Action::Read, _) => Kind::Read,
            (_, Action::Copy, _) => Kind::Copy,
            (_, Action::Close, _) => Kind::Close,
            _ => Kind::Other,
        }
    }

    /// The place of its descriptor among the arguments of its action; the one that it writes to.
    pub(super) fn descriptor(self) -> Option<usize> {
        match self {
            Kind::Copy => Some(1),
            Kind::Connect
            | Kind::Accept
            | Kind::Send
            | Kind::Receive
            | Kind::Write
            | Kind::Read
            | Kind::Close => Some(0),
            _ => None,
        }
    }

    /// True if it matters to others that a call of it ended with that result: it did something to a futex or
    /// a socket.
    #[inline(always)]
    pub(super) fn concerns_others(self, result: i64) -> bool {
        match self {
            Kind::Futex | Kind::Connect | Kind::Close => true,
            Kind::Socket | Kind::Accept => result >= 0,
            Kind::Send | Kind::Receive | Kind::Write | Kind::Read | Kind::Copy => result > 0,
            Kind::Exit | Kind::Wait | Kind::Kill | Kind::Other => false,
        }
    }

    /// True if whoever it wakes waited for the network.
    pub(super) fn is_network(self) -> bool {
        matches!(self, Kind::Connect | Kind::Accept | Kind::Send | Kind::Receive)
    }
}

/// The kinds of all calls, by number.
#[derive(Debug)]
pub(super) struct Kinds(Vec<Kind>);

impl Kinds {
    pub(super) fn new() -> Kinds {
        Kinds((0..Syscall::count()).map(Syscall).map(Kind::of).collect())
    }

    #[inline(always)]
    pub(super) fn of(&self, call: Syscall) -> Kind {
        self.0.get(usize::from(call.0)).copied().unwrap_or(Kind::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_what_their_names_say() {
        let kinds = Kinds::new();
        let kind = |name: &str| kinds.of(Syscall::by_name(name).unwrap());
        for (name, expected) in [
            ("futex", Kind::Futex),
            ("futex_waitv", Kind::Futex),
            ("set_robust_list", Kind::Other),
            ("exit_group", Kind::Exit),
            ("tgkill", Kind::Kill),
            ("waitid", Kind::Wait),
            ("rt_sigsuspend", Kind::Wait),
            ("connect", Kind::Connect),
            ("accept4", Kind::Accept),
            ("sendmmsg", Kind::Send),
            ("recvmmsg", Kind::Receive),
            ("writev", Kind::Write),
            ("pread64", Kind::Read),
            ("sendfile64", Kind::Copy),
            ("close", Kind::Close),
            ("socket", Kind::Socket),
            ("nanosleep", Kind::Other),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
        assert_eq!(kinds.of(Syscall::OTHER), Kind::Other);
    }
}
