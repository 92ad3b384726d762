//! Writes the slices of a history one after the other.
//!
//! What a slice could not know when it was encoded, the values before it, is known here: changes that change nothing are left out,
//! wake-ups that came first are settled, and sums get their beginning. From time to time a block gets a snapshot of all
//! values, so that nobody has to read further back.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempPath;
use tracebraid_storage::aside;

use crate::attribute::{Attribute, Form};
use crate::block::{self, Content, HEAD as BLOCK_HEAD, Place};
use crate::checkpoint::{self, Checkpoint, CheckpointRef};
use crate::encode::{Encoded, woken};
use crate::file::{self, BlockRef, HistoryError, Index, Meta};
use crate::flush::Flusher;
use crate::levels::Levels;
use crate::origin;
use crate::piece::WAKE;
use crate::run::Run;
use crate::varint::NULL;

/// A snapshot may take that part of what was written since the last one.
const SNAPSHOT_SHARE: u64 = 8;
/// Bytes of an attribute in a snapshot, about.
const SNAPSHOT_BYTES: u64 = 4;
/// No snapshot is further back than so many blocks.
const MOST_BLOCKS: u32 = 64;

/// A history that is being written.
#[derive(Debug)]
pub(crate) struct Writer {
    path: PathBuf,
    target: Target,
    file: BufWriter<File>,
    flusher: Flusher,
    offset: u64,
    index: Index,
    text_numbers: HashMap<Arc<str>, u64>,
    /// What attributes are after all slices so far, but null.
    values: BTreeMap<Attribute, u64>,
    levels: Levels,
    /// By level: since its last snapshot.
    since: Vec<Since>,
}

/// Where it is written.
#[derive(Debug)]
enum Target {
    /// To a new file, which has this name until it is complete, and is deleted if it does not get there.
    New(TempPath),
    /// Behind what a history holds, which is so long.
    Behind(u64),
    /// It is complete.
    Done,
}

/// What was written since the last snapshot.
#[derive(Clone, Copy, Debug)]
struct Since {
    bytes: u64,
    blocks: u32,
}

/// Before the first block there is none.
const NEVER: Since = Since {
    bytes: u64::MAX,
    blocks: MOST_BLOCKS,
};

impl Writer {
    /// Begins a file, with what it is built from: under another name until it is complete.
    pub(crate) fn create(path: &Path, levels: Levels, of: &Meta) -> Result<Writer, HistoryError> {
        let error = |error| HistoryError::Io {
            path: path.to_owned(),
            error,
        };
        let path = &aside::place(path).map_err(error)?;
        let (file, hidden) = aside::beside(path).map_err(error)?.into_parts();
        let flusher = Flusher::new(&file, 0).map_err(error)?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let origin = origin::bytes(of);
        file.write_all(&[0; file::HEAD as usize]).map_err(error)?;
        file.write_all(&origin).map_err(error)?;
        Ok(Writer {
            path: path.clone(),
            target: Target::New(hidden),
            file,
            flusher,
            offset: file::HEAD + origin.len() as u64,
            index: Index::default(),
            text_numbers: HashMap::new(),
            values: BTreeMap::new(),
            levels,
            since: Vec::new(),
        })
    }

    /// Goes on behind what a history holds. Nothing of that is written over, so whoever reads it is not disturbed.
    pub(crate) fn behind(path: &Path, end: u64, levels: Levels) -> Result<Writer, HistoryError> {
        let error = |error| HistoryError::Io {
            path: path.to_owned(),
            error,
        };
        let mut file = File::options().write(true).open(path).map_err(error)?;
        file.seek(SeekFrom::Start(end)).map_err(error)?;
        let flusher = Flusher::new(&file, end).map_err(error)?;
        Ok(Writer {
            path: path.to_owned(),
            target: Target::Behind(end),
            file: BufWriter::with_capacity(1 << 20, file),
            flusher,
            offset: end,
            index: Index::default(),
            text_numbers: HashMap::new(),
            values: BTreeMap::new(),
            levels,
            since: Vec::new(),
        })
    }

    /// Takes over what a history holds: `values` are those behind it.
    pub(crate) fn take_over(&mut self, index: Index, values: BTreeMap<Attribute, u64>) {
        let numbers = index.texts.iter().zip(0..);
        self.text_numbers = numbers
            .map(|(text, number)| (text.as_str().into(), number))
            .collect();
        for block in &index.blocks {
            self.count(block.level, block.length, block.has_snapshot);
        }
        self.index = index;
        self.values = values;
    }

    /// Copies the bytes of a block or a checkpoint to the end of the file, and says where they are.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> io::Result<u64> {
        let offset = self.offset;
        self.file.write_all(bytes)?;
        self.offset += bytes.len() as u64;
        Ok(offset)
    }

    /// The coarse levels.
    pub(crate) fn levels(&mut self) -> &mut Levels {
        &mut self.levels
    }

    /// Adds the next slice, from `begin` (that of the first one: its first change) until `end`.
    pub(crate) fn add(&mut self, encoded: Encoded, begin: i64, end: i64) -> io::Result<()> {
        if encoded.losses > 0 {
            self.index.losses.push((begin, encoded.losses));
        }
        let first = encoded.runs.iter().map(|(_, run, _)| run.first.0).min();
        if let Some(first) = first {
            let begin = if begin == i64::MIN { first } else { begin };
            let place = Place {
                level: 0,
                grid: 1,
                begin: begin.min(first),
                end: end.min(encoded.latest.saturating_add(1)).max(begin),
            };
            self.add_block(place, encoded)?;
        }
        self.complete(end)
    }

    fn add_block(&mut self, place: Place, encoded: Encoded) -> io::Result<()> {
        let texts: Vec<u64> = encoded.texts.iter().map(|text| self.text(text)).collect();
        let snapshot = self.wants_snapshot(0, self.values.len());
        let snapshot = snapshot.then(|| {
            self.values
                .iter()
                .map(|(attribute, code)| (*attribute, *code))
                .collect()
        });
        let mut runs = Vec::with_capacity(encoded.runs.len());
        let mut begin = 0;
        for (attribute, run, end) in encoded.runs {
            let coarse = encoded.coarse.get(begin..end).unwrap_or_default();
            begin = end;
            let before = self.values.get(&attribute).copied().unwrap_or(NULL);
            let terms = Terms::new(attribute, before, &texts);
            let coarse = coarse.iter().map(|&(time, code)| (time, terms.global(code)));
            self.levels.add(attribute, coarse);
            let Some(run) = terms.settle(run) else { continue };
            match terms.global(run.last) {
                NULL => self.values.remove(&attribute),
                last => self.values.insert(attribute, last),
            };
            runs.push((attribute, run, before));
        }
        let content = Content {
            texts,
            snapshot,
            runs,
        };
        self.write_block(place, &content)
    }

    /// Writes the coarse blocks to which nothing is added any longer.
    pub(crate) fn complete(&mut self, until: i64) -> io::Result<()> {
        let mut ready = Vec::new();
        self.levels.complete(until, |coarse| ready.push(coarse));
        for mut coarse in ready {
            if self.wants_snapshot(coarse.place.level, coarse.before.len()) {
                coarse.content.snapshot = Some(coarse.before);
            }
            self.write_block(coarse.place, &coarse.content)?;
        }
        Ok(())
    }

    /// Writes what is known at some times, as far as that is worth its room.
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
            let offset = self.copy(&bytes)?;
            self.index.checkpoints.push(CheckpointRef {
                time,
                offset,
                length: bytes.len() as u64,
                sum: crc32fast::hash(&bytes),
            });
        }
        Ok(())
    }

    /// The number of a text in the file.
    fn text(&mut self, text: &str) -> u64 {
        if let Some(&number) = self.text_numbers.get(text) {
            return number;
        }
        let number = self.index.texts.len() as u64;
        self.index.texts.push(text.to_owned());
        self.text_numbers.insert(text.into(), number);
        number
    }

    fn since(&mut self, level: u8) -> &mut Since {
        let level = usize::from(level);
        if self.since.len() <= level {
            self.since.resize(level + 1, NEVER);
        }
        &mut self.since[level]
    }

    fn wants_snapshot(&mut self, level: u8, attributes: usize) -> bool {
        let since = self.since(level);
        let bytes = attributes as u64 * SNAPSHOT_BYTES;
        since.bytes / SNAPSHOT_SHARE >= bytes || since.blocks >= MOST_BLOCKS
    }

    fn write_block(&mut self, place: Place, content: &Content) -> io::Result<()> {
        if content.runs.is_empty() && content.snapshot.as_ref().is_none_or(Vec::is_empty) {
            return Ok(());
        }
        let bytes = block::write(place, content);
        debug_assert!(bytes.len() >= BLOCK_HEAD);
        self.file.write_all(&bytes)?;
        let length = bytes.len() as u64;
        let has_snapshot = content.snapshot.is_some();
        let Place {
            level,
            grid,
            begin,
            end,
        } = place;
        self.index.blocks.push(BlockRef {
            level,
            grid,
            begin,
            end,
            offset: self.offset,
            length,
            has_snapshot,
            texts: (level == 0).then_some(self.index.texts.len()),
        });
        self.offset += length;
        self.flusher.wrote(self.offset);
        self.count(level, length, has_snapshot);
        Ok(())
    }

    /// A block stands behind the others of its level.
    fn count(&mut self, level: u8, length: u64, has_snapshot: bool) {
        let since = self.since(level);
        *since = match has_snapshot {
            true => Since {
                bytes: length,
                blocks: 1,
            },
            false => Since {
                bytes: since.bytes.saturating_add(length),
                blocks: since.blocks + 1,
            },
        };
    }

    /// Writes the index and the head, and gives the file its name. Gives its length.
    pub(crate) fn finish(mut self, meta: Meta, checkpoints: Vec<Checkpoint>) -> Result<u64, HistoryError> {
        let written = self.try_finish(meta, checkpoints);
        written.map_err(|error| self.failed(error))
    }

    /// It cannot be written.
    pub(crate) fn failed(&self, error: io::Error) -> HistoryError {
        let path = self.path.clone();
        HistoryError::Io { path, error }
    }

    fn try_finish(&mut self, meta: Meta, checkpoints: Vec<Checkpoint>) -> io::Result<u64> {
        self.complete(i64::MAX)?;
        self.keep(checkpoints)?;
        self.index.meta = meta;
        let index = serde_json::to_vec(&self.index)?;
        self.file.write_all(&index)?;
        if let Target::Behind(_) = self.target {
            // The head tells of what is there, whatever happens meanwhile.
            self.file.flush()?;
            self.file.get_ref().sync_data()?;
            // From here on the head may point to it.
            self.target = Target::Done;
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&file::head(self.offset, &index))?;
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        if let Target::New(hidden) = std::mem::replace(&mut self.target, Target::Done) {
            hidden.persist(&self.path).map_err(|error| error.error)?;
        }
        Ok(self.offset + index.len() as u64)
    }
}

impl Drop for Writer {
    /// What is not complete does not stay.
    fn drop(&mut self) {
        let _ = match &self.target {
            // What is buffered is not to be written later.
            Target::Behind(length) => self
                .file
                .flush()
                .and_then(|()| self.file.get_ref().set_len(*length)),
            Target::New(_) | Target::Done => Ok(()),
        };
    }
}

/// What codes of a run mean behind what came before its slice.
struct Terms<'t> {
    form: Form,
    before: u64,
    texts: &'t [u64],
}

impl<'t> Terms<'t> {
    fn new(attribute: Attribute, before: u64, texts: &'t [u64]) -> Self {
        let form = attribute.kind().form();
        Terms { form, before, texts }
    }

    /// The code in the file's terms.
    fn global(&self, code: u64) -> u64 {
        if let Some(text) = self.form.text_of(code) {
            let text = self.texts.get(text as usize - 1).map_or(NULL, |text| text + 1);
            return self.form.code_of_text(text);
        }
        match self.form {
            Form::Counter => block::sum_of(self.before, code),
            _ if code == WAKE => woken(self.before).unwrap_or(self.before),
            _ => code,
        }
    }

    /// The run with its first change settled: left out if it changes nothing.
    fn settle(&self, mut run: Run) -> Option<Run> {
        while self.global(run.first.1) == self.before {
            run = run.without_first()?;
        }
        if run.first.1 == WAKE {
            run = run.with_first_code(self.global(WAKE));
        }
        Some(run)
    }
}
