//! Classes of calls with comparable latencies.

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Deed, Open};
use tracebraid_kernel_model::Action;

/// A class of calls with comparable latencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// Creates descriptors.
    Open,
    /// Waits for a connection, and creates a descriptor for it.
    Accept,
    /// Reads bytes or messages.
    Read,
    /// Writes bytes or messages.
    Write,
    /// Moves bytes from one descriptor to another.
    Copy,
    /// Writes data to the disk.
    Sync,
    /// Closes a descriptor.
    Close,
}

impl Class {
    /// All classes, in the order of reports.
    pub const ALL: [Class; 7] = [
        Class::Open,
        Class::Accept,
        Class::Read,
        Class::Write,
        Class::Copy,
        Class::Sync,
        Class::Close,
    ];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Open => "open",
            Class::Accept => "accept",
            Class::Read => "read",
            Class::Write => "write",
            Class::Copy => "copy",
            Class::Sync => "sync",
            Class::Close => "close",
        }
    }

    /// Class with this name.
    pub fn from_name(name: &str) -> Option<Class> {
        Class::ALL.into_iter().find(|class| class.name() == name)
    }

    /// Class of a call at its entry, if it has a class.
    pub(crate) fn of(open: &Open) -> Option<Class> {
        Some(match open.call.action() {
            Action::Read | Action::ReadMessages => Class::Read,
            Action::Write | Action::WriteMessages => Class::Write,
            Action::Copy => Class::Copy,
            Action::Sync => Class::Sync,
            Action::Close => Class::Close,
            Action::Accept => Class::Accept,
            Action::Open(..) | Action::Socket | Action::Pipe | Action::SocketPair => Class::Open,
            Action::Duplicate | Action::DuplicateTo => Class::Open,
            Action::Control if open.deed == Deed::Duplicate => Class::Open,
            _ => return None,
        })
    }
}
