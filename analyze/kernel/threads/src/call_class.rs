//! Classes of system calls with regard to waiting.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, CallRole, Category, Syscall};

/// Class of a system call with regard to waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallClass {
    /// Waits at a futex, or wakes the threads that do.
    Futex,
    /// Ends its thread.
    Exit,
    /// Waits for a child.
    AwaitChild,
    /// Waits for a signal, which may be that of a child's end.
    AwaitSignal,
    /// Sends a signal.
    SendSignal,
    /// Creates a socket.
    Socket,
    /// Connects a socket.
    Connect,
    /// Accepts a connection.
    Accept,
    /// Sends, on a socket only.
    Send,
    /// Receives, on a socket only.
    Receive,
    /// Writes to a descriptor, which may be a socket.
    Write,
    /// Reads from a descriptor, which may be a socket.
    Read,
    /// Moves bytes between two descriptors.
    Copy,
    /// Waits until data is on its medium.
    Sync,
    /// Closes a descriptor: the kernel does most of the work on return to user space.
    Close,
    /// Submits requests to an io_uring, and waits for them.
    Ring,
    /// Waits for any of several descriptors.
    Poll,
    /// All others.
    Other,
}

impl CallClass {
    /// Class of a call. A table lookup is faster: see [`CallClasses`].
    pub fn of(call: Syscall) -> CallClass {
        match (call.role(), call.action(), call.category()) {
            (CallRole::Exit, ..) => CallClass::Exit,
            (CallRole::Futex(_), ..) => CallClass::Futex,
            (CallRole::SendSignal, ..) => CallClass::SendSignal,
            (CallRole::AwaitChild, ..) => CallClass::AwaitChild,
            (CallRole::AwaitSignal, ..) => CallClass::AwaitSignal,
            (CallRole::EnterRing, ..) => CallClass::Ring,
            (CallRole::Connect, ..) => CallClass::Connect,
            (CallRole::Send, ..) => CallClass::Send,
            (CallRole::Receive, Action::Read | Action::ReadMessages, _) => CallClass::Receive,
            (_, Action::Socket, _) => CallClass::Socket,
            (_, Action::Accept, _) => CallClass::Accept,
            (_, Action::Write, _) => CallClass::Write,
            (_, Action::Read, _) => CallClass::Read,
            (_, Action::Copy, _) => CallClass::Copy,
            (_, Action::Sync, _) => CallClass::Sync,
            (_, Action::Close, _) => CallClass::Close,
            (_, _, Category::Poll) => CallClass::Poll,
            _ => CallClass::Other,
        }
    }

    /// Index of the descriptor in the arguments of the call's [`Action`]; for a copy, of the
    /// descriptor that is written. `None` for calls whose argument is not a descriptor.
    #[inline(always)]
    pub fn descriptor(self) -> Option<usize> {
        use CallClass::*;
        match self {
            Copy => Some(1),
            Connect | Accept | Send | Receive | Write | Read | Sync | Close => Some(0),
            _ => None,
        }
    }

    /// True if a thread in this call wakes other threads over the network.
    pub fn is_network(self) -> bool {
        use CallClass::*;
        matches!(self, Connect | Accept | Send | Receive)
    }

    /// True if the call may wait for the end of a child.
    pub fn awaits_child(self) -> bool {
        matches!(self, CallClass::AwaitChild | CallClass::AwaitSignal)
    }

    /// True if the call waits for any of several events, so its thread may work on several tasks at
    /// once.
    pub fn awaits_any(self) -> bool {
        matches!(self, CallClass::Poll | CallClass::Ring)
    }
}

/// Class of each system call, as a table.
#[derive(Debug)]
pub struct CallClasses(Vec<CallClass>);

impl Default for CallClasses {
    fn default() -> Self {
        CallClasses(
            (0..Syscall::count())
                .map(Syscall)
                .map(CallClass::of)
                .collect(),
        )
    }
}

impl CallClasses {
    /// Class of a call.
    #[inline(always)]
    pub fn of(&self, call: Syscall) -> CallClass {
        self.0
            .get(usize::from(call.0))
            .copied()
            .unwrap_or(CallClass::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_names() {
        let classes = CallClasses::default();
        for (name, expected) in [
            ("futex", CallClass::Futex),
            ("futex_waitv", CallClass::Futex),
            ("set_robust_list", CallClass::Other),
            ("exit_group", CallClass::Exit),
            ("tgkill", CallClass::SendSignal),
            ("waitid", CallClass::AwaitChild),
            ("rt_sigsuspend", CallClass::AwaitSignal),
            ("connect", CallClass::Connect),
            ("accept4", CallClass::Accept),
            ("sendmmsg", CallClass::Send),
            ("recvmmsg", CallClass::Receive),
            ("writev", CallClass::Write),
            ("pread64", CallClass::Read),
            ("sendfile64", CallClass::Copy),
            ("fdatasync", CallClass::Sync),
            ("close", CallClass::Close),
            ("socket", CallClass::Socket),
            ("io_uring_enter", CallClass::Ring),
            ("epoll_wait", CallClass::Poll),
            ("nanosleep", CallClass::Other),
        ] {
            let call = Syscall::by_name(name).unwrap();
            assert_eq!(
                (classes.of(call), CallClass::of(call)),
                (expected, expected),
                "{name}"
            );
        }
        assert_eq!(classes.of(Syscall::OTHER), CallClass::Other);
    }

    /// The class of a call must not hide the other properties of the call.
    #[test]
    fn classes_keep_what_actions_and_categories_say() {
        use Action::*;
        for call in (0..Syscall::count()).map(Syscall) {
            let class = CallClass::of(call);
            let moves = matches!(
                call.action(),
                Read | ReadMessages | Write | WriteMessages | Accept | Sync | Close
            );
            let has_first = class.descriptor() == Some(0) && class != CallClass::Connect;
            // Some sending calls have no action of their own.
            assert!(has_first || !moves, "{}", call.name());
            assert!(
                moves || !has_first || class == CallClass::Send,
                "{}",
                call.name()
            );
            let polls = call.category() == Category::Poll || call.name() == "io_uring_enter";
            assert_eq!(class.awaits_any(), polls, "{}", call.name());
        }
    }
}
