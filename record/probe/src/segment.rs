//! Files of a buffer: made at their full length under a hidden name, named when their first packet
//! is complete.

#![allow(unsafe_code)]

use core::fmt::Write;

use crate::sys::{self, Errno, Path};

/// A mapped file.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) address: *mut u8,
    pub(crate) bytes: usize,
}

/// Names of the files of a buffer.
pub(crate) struct Names {
    /// While it is being made, and as long as it is a ring.
    pub(crate) hidden: Path,
    /// When readers may see it.
    pub(crate) stream: Path,
}

/// Names for the `segment`th file of the buffer `number`. The stream's name sorts by segment; that
/// of a ring tells in the end how long its slots are.
pub(crate) fn names(directory: &Path, number: u64, segment: u32, slot: Option<usize>) -> Names {
    let (mut hidden, mut stream) = (Path::new(), Path::new());
    for (path, prefix) in [(&mut hidden, "/.ring_"), (&mut stream, "/stream_")] {
        path.push(directory.bytes());
        // Text takes what fits, and tells when it is opened.
        let _ = write!(path, "{prefix}{number}_{segment}");
    }
    if let Some(slot) = slot {
        let _ = write!(hidden, "_{slot}");
    }
    Names { hidden, stream }
}

/// Makes the file with all its blocks, and maps it. It has the hidden name.
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
