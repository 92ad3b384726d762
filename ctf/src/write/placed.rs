//! A stream file whose packets are written at given positions, by several threads at once.
//!
//! A caller that encodes parts of a stream beside each other knows the position of a part as soon
//! as it knows the sizes of all earlier parts. Appending would make one thread write all parts.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::error::WriteError;
use super::index::{ENTRY_BYTES, HEADER_BYTES, entry, header};
use crate::index::IndexEntry;

/// The files of a data stream, written at given positions.
#[derive(Debug)]
pub struct PlacedFiles {
    path: PathBuf,
    data: File,
    index: File,
    /// Temporary and final name of the index: an incomplete index is worse than none.
    index_names: (PathBuf, PathBuf),
    _user: Arc<()>,
}

impl PlacedFiles {
    pub(super) fn create(
        directory: &Path,
        name: &str,
        user: Arc<()>,
    ) -> Result<PlacedFiles, WriteError> {
        let create = |path: &Path| {
            let file = OpenOptions::new().write(true).create_new(true).open(path);
            file.map_err(WriteError::io(path))
        };
        let path = directory.join(name);
        let indexes = directory.join("index");
        let part = indexes.join(format!(".{name}.idx.part"));
        let files = PlacedFiles {
            data: create(&path)?,
            path,
            index: create(&part)?,
            index_names: (part, indexes.join(format!("{name}.idx"))),
            _user: user,
        };
        files.write_index(&header(), 0)?;
        Ok(files)
    }

    /// Writes consecutive packets, the first of which begins at this byte and is the packet with
    /// this number. The offsets of `entries` are relative to that byte.
    ///
    /// # Errors
    /// If the system cannot write.
    pub fn write(
        &self,
        packets: &[u8],
        entries: &[IndexEntry],
        offset: u64,
        number: u64,
    ) -> Result<(), WriteError> {
        let written = self.data.write_all_at(packets, offset);
        written.map_err(WriteError::io(&self.path))?;
        let placed = entries.iter().map(|one| IndexEntry {
            offset: offset + one.offset,
            ..*one
        });
        let bytes: Vec<u8> = placed.flat_map(|one| entry(&one)).collect();
        self.write_index(&bytes, HEADER_BYTES as u64 + number * ENTRY_BYTES as u64)
    }

    fn write_index(&self, bytes: &[u8], at: u64) -> Result<(), WriteError> {
        let written = self.index.write_all_at(bytes, at);
        written.map_err(WriteError::io(&self.index_names.0))
    }

    /// Gives the index its name. All parts must have been written.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub fn finish(&self) -> Result<(), WriteError> {
        let (part, name) = &self.index_names;
        fs::rename(part, name).map_err(WriteError::io(name))
    }
}
