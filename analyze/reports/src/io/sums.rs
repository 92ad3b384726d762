//! Sums over calls.

use serde::{Deserialize, Serialize};
use tracebraid_kernel_model::{Action, FdType, Syscall};

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

/// Sums over calls of one system call, which determines the direction of the bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) bytes: u64,
    pub(super) latency: u64,
    pub(super) longest: u64,
}

impl Tally {
    /// The sums of the side that reads (or of the only descriptor), and of the second descriptor,
    /// which is written to.
    pub(super) fn sums(&self, call: Syscall) -> (Sums, Option<Sums>) {
        let none = Sums {
            calls: self.calls,
            errors: self.errors,
            read: 0,
            written: 0,
            latency: self.latency,
            longest: self.longest,
        };
        let read = Sums {
            read: self.bytes,
            ..none
        };
        match call.action() {
            Action::Read => (read, None),
            Action::Write => (
                Sums {
                    written: self.bytes,
                    ..none
                },
                None,
            ),
            Action::Copy => (
                read,
                Some(Sums {
                    written: self.bytes,
                    ..Sums::default()
                }),
            ),
            // Their results are numbers of messages.
            _ => (none, None),
        }
    }
}

/// Types of a call's descriptors: of the one read from and of the one written to.
pub(super) type Types = (FdType, FdType);
