//! Lets the kernel check the instruction of a probe before it is relied on.
//!
//! The kernel looks at an instruction when it puts the probe into the memory of a process. While no
//! process has the file in memory, any offset can be attached to; later, at the first process, an
//! instruction that the kernel cannot probe is left alone without a word. So this process has the
//! instruction in its memory while the probe is attached: then attaching fails.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::{Mmap, MmapOptions};

/// The instruction at an offset of a file, in the memory of this process.
pub(crate) struct Trial {
    _mapped: Mmap,
}

impl Trial {
    pub(crate) fn new(path: &Path, offset: u64) -> io::Result<Trial> {
        let file = File::open(path)?;
        // SAFETY: these bytes, which other processes may change, are never read.
        let mapped = unsafe { MmapOptions::new().offset(offset).len(1).map_copy_read_only(&file) };
        Ok(Trial { _mapped: mapped? })
    }
}
