//! Files of a buffer: created at full length under a hidden name, renamed when their first packet
//! is complete.

#![allow(unsafe_code)]

use core::fmt::Write;

use crate::sys::{self, Errno, Path};

#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) address: *mut u8,
    pub(crate) bytes: usize,
}

pub(crate) struct Names {
    /// Name while the file is created, and as long as it is a ring.
    pub(crate) hidden: Path,
    /// Name once readers may see the file.
    pub(crate) stream: Path,
}

/// Names of the `segment`th file of the buffer `number`. The stream's name sorts by segment; a
/// ring's name ends with the length of its slots.
pub(crate) fn names(directory: &Path, number: u64, segment: u32, slot: Option<usize>) -> Names {
    let (mut hidden, mut stream) = (Path::new(), Path::new());
    for (path, prefix) in [(&mut hidden, "/.ring_"), (&mut stream, "/stream_")] {
        path.push(directory.bytes());
        // Text truncates; opening the file then fails.
        let _ = write!(path, "{prefix}{number}_{segment}");
    }
    if let Some(slot) = slot {
        let _ = write!(hidden, "_{slot}");
    }
    Names { hidden, stream }
}

/// Creates the file with all its blocks under the hidden name, and maps it.
pub(crate) fn make(names: &Names, bytes: usize) -> Result<Segment, Errno> {
    let file = sys::open(&names.hidden, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL)?;
    let mapped = sys::allocate(&file, bytes).and_then(|()| sys::map(&file, bytes));
    match mapped {
        Ok(address) => Ok(Segment { address, bytes }),
        Err(error) => {
            sys::unlink(&names.hidden);
            Err(error)
        }
    }
}
