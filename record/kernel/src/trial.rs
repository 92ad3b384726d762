//! Makes the kernel check the instruction of a probe when the probe is attached.
//!
//! The kernel checks an instruction when it inserts the probe into the memory of a process. While
//! no process maps the file, attaching succeeds at any offset; when the first process maps it, an
//! instruction that the kernel cannot probe is skipped without an error. This process therefore
//! maps the instruction while the probe is attached, so that attaching fails.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

/// A private mapping of the instruction at an offset of a file.
pub(crate) struct Trial {
    _mapped: Mmap,
}

impl Trial {
    pub(crate) fn new(path: &Path, offset: u64) -> io::Result<Trial> {
        let file = File::open(path)?;
        // SAFETY: these bytes, which other processes may change, are never read.
        let mapped = unsafe {
            MmapOptions::new()
                .offset(offset)
                .len(1)
                .map_copy_read_only(&file)
        };
        Ok(Trial { _mapped: mapped? })
    }
}
