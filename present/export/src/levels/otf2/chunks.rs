//! Files of chunks: event records and definitions.
//!
//! A chunk begins with its byte order and the numbers of its first and last event, and is filled with
//! zeros up to its size; the last one ends with marks. Records do not extend over chunks.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Begin of a chunk: mark and byte order (little endian).
pub(super) const HEAD: [u8; 2] = [3, 0x42];
/// Marks at the end of a file.
pub(super) const END_OF_FILE: u8 = 2;
pub(super) const END_OF_BUFFER: u8 = 1;
const TIMESTAMP: u8 = 5;

/// Offset of the number of the last event in a chunk.
const LAST_EVENT: u64 = 10;

/// Bytes under construction.
#[derive(Debug, Default)]
pub(super) struct Bytes(Vec<u8>);

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Vec<u8> {
        bytes.0
    }
}

impl Bytes {
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.raw(&value.to_le_bytes());
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.raw(&value.to_le_bytes());
    }

    /// A text and a null character.
    pub(super) fn string(&mut self, text: &str) {
        let text = text.as_bytes().iter().filter(|byte| **byte != 0);
        self.0.extend(text);
        self.0.push(0);
    }

    /// An integer without its leading zeros, after its size; 0 and the undefined value are a byte.
    pub(super) fn compressed(&mut self, value: u64, undefined: u64) {
        if value == 0 || value == undefined {
            return self.raw(&[value as u8]);
        }
        let size = 8 - value.leading_zeros() as usize / 8;
        self.raw(&[size as u8]);
        self.raw(value.to_le_bytes().get(..size).unwrap_or_default());
    }
}

/// A file of chunks under construction.
#[derive(Debug)]
pub(super) struct ChunkFile {
    path: PathBuf,
    size: u64,
    /// Offset of the current chunk in the file.
    chunk: u64,
    /// The bytes after those that were written.
    waiting: Vec<u8>,
    written: u64,
    events: u64,
    time: Option<u64>,
}

impl ChunkFile {
    pub(super) fn new(path: PathBuf, size: u64) -> ChunkFile {
        let mut file = ChunkFile {
            path,
            size,
            chunk: 0,
            waiting: Vec::new(),
            written: 0,
            events: 0,
            time: None,
        };
        file.head();
        file
    }

    fn head(&mut self) {
        self.waiting.extend(HEAD);
        self.waiting.extend((self.events + 1).to_le_bytes());
        self.waiting.extend(0u64.to_le_bytes());
    }

    fn length(&self) -> u64 {
        self.written + self.waiting.len() as u64
    }

    pub(super) fn pending(&self) -> usize {
        self.waiting.len()
    }

    /// Adds an event record. Times must not decrease.
    pub(super) fn event(&mut self, time: u64, record: &[u8]) -> io::Result<()> {
        let time = self.time.map_or(time, |last| last.max(time));
        self.reserve(9 + record.len() as u64)?;
        if self.time != Some(time) {
            self.waiting.push(TIMESTAMP);
            self.waiting.extend(time.to_le_bytes());
            self.time = Some(time);
        }
        self.waiting.extend(record);
        self.events += 1;
        Ok(())
    }

    /// Adds a definition.
    pub(super) fn definition(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        self.reserve(10 + content.len() as u64)?;
        self.waiting.push(kind);
        match u8::try_from(content.len()) {
            Ok(size @ 0..=254) => self.waiting.push(size),
            _ => {
                self.waiting.push(0xff);
                self.waiting.extend((content.len() as u64).to_le_bytes());
            }
        }
        self.waiting.extend(content);
        Ok(())
    }

    /// Begins another chunk if these bytes do not fit.
    fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        let used = self.length() - self.chunk;
        if used + bytes < self.size {
            return Ok(());
        }
        let filling = self.size.saturating_sub(used) as usize;
        self.waiting.resize(self.waiting.len() + filling, 0);
        self.end_chunk()?;
        self.chunk = self.length();
        self.head();
        self.time = None;
        Ok(())
    }

    /// Notes the number of the last event in the chunk's head.
    fn end_chunk(&mut self) -> io::Result<()> {
        if self.events == 0 {
            return Ok(());
        }
        self.flush()?;
        let file = self.open()?;
        file.write_all_at(&self.events.to_le_bytes(), self.chunk + LAST_EVENT)
    }

    fn open(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
    }

    /// Writes the waiting bytes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.open()?.write_all_at(&self.waiting, self.written)?;
        self.written += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Ends the file. Returns the number of events.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.waiting.extend([END_OF_FILE, END_OF_BUFFER]);
        self.flush()?;
        self.end_chunk()?;
        Ok(self.events)
    }
}
