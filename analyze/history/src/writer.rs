//! Appends the blocks of a history to its file: assigns their offsets in sequence.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempPath;
use tracebraid_storage::aside;

use crate::assembly::Assembled;
use crate::batch::Batch;
use crate::block::{BlockSpan, HEAD as BLOCK_HEAD};
use crate::checkpoint::{self, Checkpoint, CheckpointRef};
use crate::file::{self, BlockRef, HistoryError, Index, Meta};
use crate::flush::Flusher;
use crate::origin;

/// A history that is being written.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    target: Target,
    file: Arc<File>,
    flusher: Flusher,
    /// Appended bytes that are not yet being written.
    next: Batch,
    /// Number of bytes written.
    written: u64,
    pub(crate) index: Index,
    text_numbers: HashMap<Arc<str>, u64>,
}

/// The destination.
#[derive(Debug)]
enum Target {
    /// A new file under a temporary name, which is deleted unless it is completed.
    New(TempPath),
    /// After the existing data of a history, whose length is given.
    Behind(u64),
    /// The file is complete.
    Done,
}

impl Writer {
    /// Creates a file under a temporary name, and writes the origin section.
    pub(crate) fn create(path: &Path, of: &Meta) -> Result<Writer, HistoryError> {
        let error = |error| HistoryError::Io {
            path: path.to_owned(),
            error,
        };
        let path = &aside::place(path).map_err(error)?;
        let (file, hidden) = aside::beside(path).map_err(error)?.into_parts();
        let flusher = Flusher::new(&file, 0).map_err(error)?;
        let file = Arc::new(file);
        let mut next = Batch::new(file.clone(), 0);
        next.add(vec![0; file::HEAD as usize]);
        next.add(origin::bytes(of));
        Ok(Writer {
            path: path.clone(),
            target: Target::New(hidden),
            file,
            flusher,
            next,
            written: 0,
            index: Index::default(),
            text_numbers: HashMap::new(),
        })
    }

    /// Appends after the existing data of a history. That data is not overwritten, so concurrent
    /// readers are not disturbed.
    pub(crate) fn behind(path: &Path, end: u64) -> Result<Writer, HistoryError> {
        let error = |error| HistoryError::Io {
            path: path.to_owned(),
            error,
        };
        let file = Arc::new(File::options().write(true).open(path).map_err(error)?);
        let flusher = Flusher::new(&file, end).map_err(error)?;
        Ok(Writer {
            path: path.to_owned(),
            target: Target::Behind(end),
            next: Batch::new(file.clone(), end),
            written: end,
            file,
            flusher,
            index: Index::default(),
            text_numbers: HashMap::new(),
        })
    }

    /// Takes over the index of a history.
    pub(crate) fn take_over(&mut self, index: Index) {
        let numbers = index.texts.iter().zip(0..);
        self.text_numbers = numbers
            .map(|(text, number)| (text.as_str().into(), number))
            .collect();
        self.index = index;
    }

    /// Copies the bytes of a block or a checkpoint to the end of the file. Returns their offset.
    pub(crate) fn copy(&mut self, bytes: Vec<u8>) -> io::Result<u64> {
        let offset = self.next.add(bytes);
        if let Some(full) = self.next.take_full() {
            self.write(full)?;
        }
        Ok(offset)
    }

    /// Writes a batch on this thread.
    pub(crate) fn write(&mut self, batch: Batch) -> io::Result<()> {
        let bytes = batch.write()?;
        self.wrote(bytes);
        Ok(())
    }

    /// Records that a batch returned by [`Writer::append`] was written, with its number of bytes.
    pub(crate) fn wrote(&mut self, bytes: u64) {
        self.written += bytes;
        self.flusher.wrote(self.written);
    }

    /// Writes checkpoints, and drops those that are not worth their space.
    fn keep(&mut self, new: Vec<Checkpoint>) -> io::Result<()> {
        let old = self.index.checkpoints.iter().map(|kept| kept.length);
        let lengths: Vec<u64> = old
            .chain(new.iter().map(|kept| kept.bytes.len() as u64))
            .collect();
        let blocks = self.index.blocks.iter().map(|block| block.length).sum();
        let left_out = lengths.len() - checkpoint::worth_keeping(&lengths, blocks);
        let known = self.index.checkpoints.len();
        self.index.checkpoints.drain(..left_out.min(known));
        for Checkpoint { time, bytes } in new.into_iter().skip(left_out.saturating_sub(known)) {
            let (length, sum) = (bytes.len() as u64, crc32fast::hash(&bytes));
            let offset = self.copy(bytes)?;
            self.index.checkpoints.push(CheckpointRef {
                time,
                offset,
                length,
                sum,
            });
        }
        Ok(())
    }

    /// Number of texts in the file.
    pub(crate) fn texts(&self) -> usize {
        self.index.texts.len()
    }

    /// The number of a text in the file; adds it if it is new.
    pub(crate) fn text(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.text_numbers.get(text) {
            return number;
        }
        let number = self.index.texts.len() as u64;
        self.index.texts.push(text.to_owned());
        self.text_numbers.insert(text.into(), number);
        number
    }

    /// Records losses of events in the slice that begins at `begin`.
    pub(crate) fn lose(&mut self, begin: i64, losses: u64) {
        self.index.losses.push((begin, losses));
    }

    /// Appends a block. Returns the batch to write now, on any thread, if it is full.
    pub(crate) fn append(&mut self, block: Assembled) -> Option<Batch> {
        let BlockSpan {
            level,
            grid,
            begin,
            end,
        } = block.place;
        debug_assert!(block.bytes.len() >= BLOCK_HEAD);
        let length = block.bytes.len() as u64;
        let offset = self.next.add(block.bytes);
        self.index.blocks.push(BlockRef {
            level,
            grid,
            begin,
            end,
            offset,
            length,
            has_snapshot: block.has_snapshot,
            weight: block.fine.map(|(_, weight)| weight).unwrap_or_default(),
            texts: block.fine.map(|(texts, _)| texts),
        });
        self.next.take_full()
    }

    /// Writes the index and the head and gives the file its name, once all batches returned by
    /// [`Writer::append`] are written. Returns the length of the file.
    pub(crate) fn finish(
        mut self,
        meta: Meta,
        checkpoints: Vec<Checkpoint>,
    ) -> Result<u64, HistoryError> {
        let written = self.try_finish(meta, checkpoints);
        written.map_err(|error| self.failed(error))
    }

    /// The error of a failed write.
    pub(crate) fn failed(&self, error: io::Error) -> HistoryError {
        let path = self.path.clone();
        HistoryError::Io { path, error }
    }

    fn try_finish(&mut self, meta: Meta, checkpoints: Vec<Checkpoint>) -> io::Result<u64> {
        self.keep(checkpoints)?;
        self.index.meta = meta;
        let index = serde_json::to_vec(&self.index)?;
        let rest = self.next.take();
        rest.write()?;
        let offset = self.next.end();
        self.file.write_all_at(&index, offset)?;
        if let Target::Behind(_) = self.target {
            // The data must be on disk before the head refers to it.
            self.file.sync_data()?;
            // From here on the head may point to the new index.
            self.target = Target::Done;
        }
        self.file.write_all_at(&file::head(offset, &index), 0)?;
        self.file.sync_all()?;
        if let Target::New(hidden) = std::mem::replace(&mut self.target, Target::Done) {
            hidden.persist(&self.path).map_err(|error| error.error)?;
        }
        Ok(offset + index.len() as u64)
    }
}

impl Drop for Writer {
    /// Removes incomplete data.
    fn drop(&mut self) {
        let _ = match &self.target {
            Target::Behind(length) => self.file.set_len(*length),
            Target::New(_) | Target::Done => Ok(()),
        };
    }
}
