//! Calls: an entry and its exit, and their sums.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType, Syscall};

use crate::io::change::Change;

/// An argument that the tracer did not record.
pub(super) const NONE: i64 = i64::MIN;

/// A call that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Open {
    pub(super) call: Syscall,
    pub(super) time: i64,
    /// As [`Action`] describes them, [`NONE`] where they are missing.
    pub(super) arguments: [i64; 3],
}

/// The end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Exit {
    /// `None`: whatever call is open.
    pub(super) call: Option<Syscall>,
    pub(super) time: i64,
    pub(super) result: i64,
    /// The two descriptors that the call made.
    pub(super) pair: Option<(i32, i32)>,
    /// Address family of the peer.
    pub(super) family: Option<i64>,
    /// True if calls that end here and now are asked for.
    pub(super) counts: bool,
}

/// What a call was, once its end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Done {
    /// It moved bytes.
    Io(Io),
    /// It changed descriptors.
    Change(Change),
    /// Neither, or not asked for.
    Nothing,
    /// The exit is that of another call: this one's exit and that one's entry were lost.
    Mismatch,
}

/// A call that moved bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub(super) call: Syscall,
    /// Descriptors that it reads from (or its only one) and writes to.
    pub(super) fds: (i32, i32),
    pub(super) entry: i64,
    pub(super) latency: u64,
    pub(super) result: i64,
}

/// No descriptor.
pub(super) const NO_FD: i32 = -1;

/// A descriptor; what is none becomes [`NO_FD`].
pub(super) fn descriptor(argument: i64) -> i32 {
    // Tracers give it as `unsigned int`, `int` or `unsigned long`.
    i32::try_from(argument).unwrap_or(NO_FD)
}

impl Open {
    /// Joins an entry with the exit that follows it.
    #[inline]
    pub(super) fn end(&self, exit: &Exit) -> Done {
        if exit.call.is_some_and(|call| call != self.call) {
            return Done::Mismatch;
        }
        let action = self.call.action();
        if action.is_io() {
            if !exit.counts {
                return Done::Nothing;
            }
            let out = if action == Action::Copy {
                descriptor(self.arguments[1])
            } else {
                NO_FD
            };
            return Done::Io(Io {
                call: self.call,
                fds: (descriptor(self.arguments[0]), out),
                entry: self.time,
                latency: u64::try_from(exit.time.saturating_sub(self.time)).unwrap_or(0),
                result: exit.result,
            });
        }
        Change::of(self, exit).map_or(Done::Nothing, Done::Change)
    }

    /// True if its loss is to be told.
    pub(super) fn is_io(&self) -> bool {
        self.call.action().is_io()
    }
}

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) latency: u64,
    pub(super) longest: u64,
}

impl Sums {
    pub(super) fn add(&mut self, other: &Sums) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.read = self.read.saturating_add(other.read);
        self.written = self.written.saturating_add(other.written);
        self.latency = self.latency.saturating_add(other.latency);
        self.longest = self.longest.max(other.longest);
    }
}

/// Sums of calls of one system call: of what reads (or of all, if the call has one descriptor), and
/// of what is written to the second descriptor.
pub(super) fn sums(
    call: Syscall,
    calls: u64,
    errors: u64,
    bytes: u64,
    latency: u64,
    longest: u64,
) -> (Sums, Option<Sums>) {
    let none = Sums {
        calls,
        errors,
        read: 0,
        written: 0,
        latency,
        longest,
    };
    match call.action() {
        Action::Read => (Sums { read: bytes, ..none }, None),
        Action::Write => (
            Sums {
                written: bytes,
                ..none
            },
            None,
        ),
        Action::Copy => (
            Sums { read: bytes, ..none },
            Some(Sums {
                written: bytes,
                ..Sums::default()
            }),
        ),
        // Their results are numbers of messages.
        _ => (none, None),
    }
}

/// Types of the descriptors of a call: read from, written to.
pub(super) type Types = (FdType, FdType);
