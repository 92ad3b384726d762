//! Room on the disk for the end of a trace.
//!
//! A trace that cannot go on because the disk is full still has to say what was lost, and to end at
//! one time on all CPUs. The room for that is taken in the beginning: by a file without a name,
//! which is gone with its descriptor, whatever becomes of this process.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use nix::fcntl::{FallocateFlags, fallocate};

use tracebraid_ctf::write::WriteError;

/// The room.
#[derive(Debug)]
pub(crate) struct Reserve {
    room: Option<File>,
    is_given: bool,
}

/// Besides its last full packet each stream writes some small ones and their places in its index;
/// files grow by blocks.
const AROUND_STREAM: u64 = 64 << 10;

impl Reserve {
    /// Takes room for so many streams with packets of so many bytes in that directory. Where there
    /// is none, or the file system knows no such files, there is no reserve.
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

    /// No room: for what is not written to files.
    pub(crate) fn none() -> Reserve {
        Reserve {
            room: None,
            is_given: false,
        }
    }

    /// Gives the room back if that error says that there is none, and it was not given back before.
    /// Whether it did: then what failed can be tried again.
    pub(crate) fn gives(&mut self, error: &WriteError) -> bool {
        let gives = is_full(error) && self.room.take().is_some();
        self.is_given |= gives;
        gives
    }

    /// Whether it has given the room back.
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
