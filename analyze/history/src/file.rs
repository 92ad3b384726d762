//! The file of a history: a head, blocks one behind the other, and an index that the head points
//! to.
//!
//! ```text
//! head    64 bytes: "TBHISTRY", version (u32), 4 zeros, where the index begins and its length (u64 each), CRC-32 of the index,
//!         CRC-32 of the 36 bytes before; zeros; little-endian
//! origin  what it was built from (see [`crate::origin`])
//! blocks  see [`crate::block`]
//! checkpoints  JSON: what an analysis that a user defined knew at some times, for appending (see [`crate::checkpoint`])
//! index   JSON: what the history is of, its texts, and its blocks
//! ```
//! To append, blocks and a new index are written behind the old index, and then the head: whoever
//! reads meanwhile sees the old state or the new one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::special::special;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::NotRecorded;

use crate::block::{Block, BlockSpan};
use crate::checkpoint::CheckpointRef;
use crate::marks::{self, StreamMark};
use crate::origin;
use crate::snapshots::Weight;

pub(crate) const HEAD: u64 = 64;
const MAGIC: [u8; 8] = *b"TBHISTRY";
/// Files of other versions are refused: they are quickly built again.
pub const VERSION: u32 = 4;

/// What a history is of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// The program that wrote it.
    pub program: String,
    /// Paths of the traces, as they were given.
    pub paths: Vec<PathBuf>,
    /// By trace: the machine's name, if the trace is one of a kernel.
    pub hosts: Vec<Option<String>>,
    /// CPUs: index of the trace, and number.
    pub cpus: Vec<(u32, u32)>,
    /// Time of the first event, in nanoseconds from the origin.
    pub begin: i64,
    /// Time of the last one.
    pub end: i64,
    /// By trace: time of its last event, behind which nothing is known of its machine, however long
    /// others go on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<Option<i64>>,
    /// Traces of kernels in which no system calls were recorded, by index: whether a program's
    /// thread is in one is unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_calls: Vec<u32>,
    /// CPUs that were not recorded, or not from the beginning. Values that are unknown for that
    /// reason are unknown at all times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<NotRecorded>,
    /// Bytes of the packets that were read.
    pub bytes: u64,
    /// How often events were lost, which makes unknown what they would have told.
    pub losses: u64,
    /// The analysis that a user defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// Whether it tells what descriptors are.
    #[serde(default, skip_serializing_if = "is_not")]
    pub files: bool,
    /// Paths of its attributes, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<String>,
    /// The streams that were read, and how far: what is behind that can be appended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamMark>,
}

impl Meta {
    /// Whether a trace set is what the history was built from: the same packets, at the same times.
    ///
    /// # Errors
    /// Why it is not.
    pub fn check(&self, set: &TraceSet) -> Result<(), String> {
        match marks::growth(&self.streams, set)? {
            None => Ok(()),
            Some(_) => Err("it has other packets now".to_owned()),
        }
    }
}

fn is_not(what: &bool) -> bool {
    !what
}

/// An analysis that a user defined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// Its name.
    pub name: String,
    /// Its definition.
    pub text: String,
}

/// A block's place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockRef {
    pub(crate) level: u8,
    pub(crate) grid: i64,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) has_snapshot: bool,
    /// Of a block of all changes: what it counts for where snapshots are placed.
    #[serde(default, skip_serializing_if = "Weight::is_nothing")]
    pub(crate) weight: Weight,
    /// Of all changes: how many texts there are behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) texts: Option<usize>,
}

/// Where everything is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) meta: Meta,
    pub(crate) texts: Vec<String>,
    /// In the order in which they were written: by level those of each in the order of time.
    pub(crate) blocks: Vec<BlockRef>,
    /// Slices in which events were lost: when each begins, and how often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) losses: Vec<(i64, u64)>,
    /// What an analysis that a user defined knew at some times, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checkpoints: Vec<CheckpointRef>,
}

/// Why a history cannot be read, or not be written.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is neither a file nor a directory.
    #[error("{}: this is {what}: histories are read from files", path.display())]
    Special {
        /// Where it is.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// It is something else.
    #[error("{}: is no history; tracebraid history build makes one of a trace", path.display())]
    NoHistory {
        /// Which file.
        path: PathBuf,
    },
    /// It is of another version of the program.
    #[error("{}: is a history of version {version}, this program reads version {VERSION}: build it again", path.display())]
    Version {
        /// Which file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// It is damaged.
    #[error("{}: is damaged at byte {offset}: {what}; build it again", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where what is damaged begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}

/// Makes the bytes of a head.
pub(crate) fn head(index_offset: u64, index: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEAD as usize];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[16..24].copy_from_slice(&index_offset.to_le_bytes());
    bytes[24..32].copy_from_slice(&(index.len() as u64).to_le_bytes());
    bytes[32..36].copy_from_slice(&crc32fast::hash(index).to_le_bytes());
    let sum = crc32fast::hash(&bytes[..36]);
    bytes[36..40].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn half(head: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|byte| head[at + byte]))
}

/// Whether a head's check sum is right.
fn is_whole(head: &[u8]) -> bool {
    half(head, 36) == crc32fast::hash(&head[..36])
}

/// A file that is read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    file: File,
    /// Where its index ends: what is behind that belongs to nothing.
    pub(crate) end: u64,
}

/// A head that is being written may be read in parts: it is read so often, with some time between.
const HEAD_READS: u32 = 3;
const BETWEEN_READS: Duration = Duration::from_millis(2);

impl Source {
    /// Opens a file and reads its index.
    pub(crate) fn open(path: &Path) -> Result<(Source, Index), HistoryError> {
        if let Some(what) = special(path) {
            let path = path.to_owned();
            return Err(HistoryError::Special { path, what });
        }
        let file = File::open(path).map_err(|error| HistoryError::Io {
            path: path.to_owned(),
            error,
        })?;
        Source::of(path, file)
    }

    /// Reads the index of a file that is open.
    pub(crate) fn of(path: &Path, file: File) -> Result<(Source, Index), HistoryError> {
        let path = path.to_owned();
        let mut source = Source {
            path: path.clone(),
            file,
            end: 0,
        };
        if source.length()? < HEAD {
            return Err(HistoryError::NoHistory { path });
        }
        let mut head = vec![0; HEAD as usize];
        for read in 1..=HEAD_READS {
            source.read_at(0, &mut head)?;
            if is_whole(&head) || !head.starts_with(&MAGIC) || read == HEAD_READS {
                break;
            }
            std::thread::sleep(BETWEEN_READS);
        }
        let length = source.length()?;
        let index = source.read_index(&head, length)?;
        Ok((source, index))
    }

    fn length(&self) -> Result<u64, HistoryError> {
        let meta = self.file.metadata().map_err(|error| HistoryError::Io {
            path: self.path.clone(),
            error,
        });
        meta.map(|meta| meta.len())
    }

    fn read_index(&mut self, head: &[u8], length: u64) -> Result<Index, HistoryError> {
        if !head.starts_with(&MAGIC) {
            return Err(HistoryError::NoHistory {
                path: self.path.clone(),
            });
        }
        let half = |at: usize| half(head, at);
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
        let version = half(8);
        if version != VERSION {
            return Err(HistoryError::Version {
                path: self.path.clone(),
                version,
            });
        }
        let (offset, size) = (word(16), word(24));
        let is_within = offset
            .checked_add(size)
            .is_some_and(|end| offset >= HEAD && end <= length);
        if !is_whole(head) {
            return Err(self.damaged(0, "the head's check sum is wrong"));
        }
        if !is_within {
            let what = format!("the file has been cut: it is to have its index at byte {offset}");
            return Err(self.damaged(length, &what));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        self.read_at(offset, &mut bytes)?;
        if half(32) != crc32fast::hash(&bytes) {
            return Err(self.damaged(offset, "the index's check sum is wrong"));
        }
        let index: Index = serde_json::from_slice(&bytes)
            .map_err(|error| self.damaged(offset, &error.to_string()))?;
        let is_sound = |block: &&BlockRef| {
            let end = block.offset.checked_add(block.length);
            !end.is_some_and(|end| end <= offset && block.offset >= HEAD)
                || block.begin > block.end
                || block.grid < 1
        };
        let is_behind = |kept: &&CheckpointRef| {
            let end = kept.offset.checked_add(kept.length);
            kept.offset < HEAD || end.is_none_or(|end| end > offset)
        };
        if let Some(kept) = index.checkpoints.iter().find(is_behind) {
            return Err(self.damaged(
                kept.offset,
                "the index tells of a checkpoint that cannot be there",
            ));
        }
        match index.blocks.iter().find(is_sound) {
            Some(block) => Err(self.damaged(
                block.offset,
                "the index tells of a block that cannot be there",
            )),
            None => {
                self.end = offset.saturating_add(size);
                Ok(index)
            }
        }
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), HistoryError> {
        self.file
            .read_exact_at(bytes, offset)
            .map_err(|error| HistoryError::Io {
                path: self.path.clone(),
                error,
            })
    }

    pub(crate) fn damaged(&self, offset: u64, what: &str) -> HistoryError {
        HistoryError::Damaged {
            path: self.path.clone(),
            offset,
            what: what.to_owned(),
        }
    }

    /// Writes another index behind all that is there: who reads meanwhile sees the old one or this
    /// one.
    pub(crate) fn put_index(&mut self, index: &Index) -> Result<(), HistoryError> {
        let put = || {
            let file = File::options().write(true).open(&self.path)?;
            let bytes = serde_json::to_vec(index)?;
            file.write_all_at(&bytes, self.end)?;
            file.sync_data()?;
            file.write_all_at(&head(self.end, &bytes), 0)?;
            file.sync_all()?;
            Ok(self.end + bytes.len() as u64)
        };
        let path = &self.path;
        self.end = put().map_err(|error| HistoryError::Io {
            path: path.clone(),
            error,
        })?;
        Ok(())
    }

    /// Whether what it was built from can be read.
    pub(crate) fn check_origin(&self) -> Result<(), HistoryError> {
        let wrong = || self.damaged(HEAD, "what it was built from cannot be read");
        origin::text(&self.file).map(drop).ok_or_else(wrong)
    }

    /// The bytes of a block.
    pub(crate) fn bytes(&self, place: &BlockRef) -> Result<Vec<u8>, HistoryError> {
        self.bytes_at(place.offset, place.length)
    }

    fn bytes_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, HistoryError> {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a checkpoint.
    pub(crate) fn checkpoint(&self, place: &CheckpointRef) -> Result<Vec<u8>, HistoryError> {
        let bytes = self.bytes_at(place.offset, place.length)?;
        match crc32fast::hash(&bytes) == place.sum {
            true => Ok(bytes),
            false => Err(self.damaged(place.offset, "a checkpoint's check sum is wrong")),
        }
    }

    /// Reads a block.
    pub(crate) fn block(&self, place: &BlockRef) -> Result<Block, HistoryError> {
        let block = Block::parse(self.bytes(place)?)
            .map_err(|error| self.damaged(place.offset, &error.to_string()))?;
        let expected = BlockSpan {
            level: place.level,
            grid: place.grid,
            begin: place.begin,
            end: place.end,
        };
        match block.place == expected && block.snapshot.is_some() == place.has_snapshot {
            true => Ok(block),
            false => Err(self.damaged(
                place.offset,
                "the block is not the one that the index tells of",
            )),
        }
    }
}
