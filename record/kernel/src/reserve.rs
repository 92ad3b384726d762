//! Disk space reserved for the end of a trace.
//!
//! A trace that ends because the disk is full must still record its losses, and end at the same
//! time on all CPUs. The space for that is allocated at the beginning, by a file without a name,
//! which is released with its descriptor, however this process ends.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use nix::fcntl::{FallocateFlags, fallocate};

use tracebraid_ctf::write::WriteError;

/// The reserved space.
#[derive(Debug)]
pub(crate) struct Reserve {
    room: Option<File>,
    is_given: bool,
}

/// In addition to its last full packet, each stream writes some small packets and their index
/// entries; files grow by blocks.
const AROUND_STREAM: u64 = 64 << 10;

impl Reserve {
    /// Reserves space in a directory for `streams` streams with packets of `packet_bytes` bytes. If
    /// the disk is full, or the file system does not support such files, nothing is reserved.
    pub(crate) fn new(directory: &Path, streams: usize, packet_bytes: u32) -> Reserve {
        let bytes = streams as u64 * (u64::from(packet_bytes) + AROUND_STREAM);
        let taken = || {
            let file = tempfile::tempfile_in(directory).ok()?;
            fallocate(
                &file,
                FallocateFlags::empty(),
                0,
                i64::try_from(bytes).ok()?,
            )
            .ok()?;
            Some(file)
        };
        Reserve {
            room: taken(),
            is_given: false,
        }
    }

    /// No reserved space, for traces that are not written to files.
    pub(crate) fn none() -> Reserve {
        Reserve {
            room: None,
            is_given: false,
        }
    }

    /// Releases the space if the error indicates a full disk and the space has not been released
    /// yet. Returns whether it did; the failed operation can then be retried.
    pub(crate) fn gives(&mut self, error: &WriteError) -> bool {
        let gives = is_full(error) && self.room.take().is_some();
        self.is_given |= gives;
        gives
    }

    /// True if the space has been released.
    pub(crate) fn is_given(&self) -> bool {
        self.is_given
    }
}

fn is_full(error: &WriteError) -> bool {
    let WriteError::Io { error, .. } = error else {
        return false;
    };
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}
