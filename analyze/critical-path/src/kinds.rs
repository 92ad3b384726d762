//! What calls are, as far as waiting is concerned.

use tracebraid_kernel_model::{Action, Category, Syscall};

/// What a system call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It waits for others at an address, or wakes them.
    Futex,
    /// It waits for children.
    Child,
    /// It gives its descriptor back: what is left to do then is done on the way back to the program.
    Close,
    /// It submits requests to an io_uring, and waits for them.
    Ring,
    /// It does something to a descriptor.
    Descriptor,
    Other,
}

/// The kinds of all calls, by number.
#[derive(Debug)]
pub(crate) struct Kinds(Vec<Kind>);

impl Kind {
    pub(crate) fn of(call: Syscall) -> Kind {
        match (call.name(), call.action(), call.category()) {
            ("wait4" | "waitid" | "waitpid", ..) => Kind::Child,
            (name, _, Category::Futex) if name.starts_with("futex") => Kind::Futex,
            ("io_uring_enter", ..) => Kind::Ring,
            (_, Action::Close, _) => Kind::Close,
            (
                _,
                Action::Read
                | Action::ReadMessages
                | Action::Write
                | Action::WriteMessages
                | Action::Accept
                | Action::Sync,
                _,
            ) => Kind::Descriptor,
            _ => Kind::Other,
        }
    }
}

impl Kind {
    /// True of calls that wait for any of several events: the thread may work on several tasks at once.
    pub(crate) fn waits_for_any(call: Syscall) -> bool {
        call != Syscall::OTHER && (call.category() == Category::Poll || Kind::of(call) == Kind::Ring)
    }
}

impl Kinds {
    pub(crate) fn new() -> Kinds {
        Kinds((0..Syscall::count()).map(Syscall).map(Kind::of).collect())
    }

    #[inline(always)]
    pub(crate) fn of(&self, call: Syscall) -> Kind {
        self.0.get(usize::from(call.0)).copied().unwrap_or(Kind::Other)
    }
}
