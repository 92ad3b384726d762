//! The file of a history: a head, consecutive blocks, and an index to which the head points.
//!
//! ```text
//! head         64 bytes, little-endian: "TBHISTRY", version (u32), 4 zeros, offset and length of
//!              the index (u64 each), CRC-32 of the index, CRC-32 of the preceding 36 bytes, zeros
//! origin       source of the history (see [`crate::origin`])
//! blocks       see [`crate::block`]
//! checkpoints  JSON: state of a user analysis at some times, for appending (see
//!              [`crate::checkpoint`])
//! index        JSON: metadata, texts and blocks
//! ```
//! An append writes blocks and a new index after the old index, and then the head: concurrent
//! readers see the old or the new state.

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

/// True if a file that begins with these bytes is a history, of any version, whole or damaged.
pub fn is_history(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}
/// Files of other versions are refused, since they can quickly be rebuilt.
pub const VERSION: u32 = 4;

/// Traces, range and contents of a history.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Name and version of the program that wrote the file.
    pub program: String,
    /// Paths of the traces, as given.
    pub paths: Vec<PathBuf>,
    /// By trace: name of the machine, for kernel traces.
    pub hosts: Vec<Option<String>>,
    /// CPUs: index of the trace, and number.
    pub cpus: Vec<(u32, u32)>,
    /// Time of the first event, in nanoseconds from the origin.
    pub begin: i64,
    /// Time of the last event, in nanoseconds from the origin.
    pub end: i64,
    /// By trace: time of its last event, after which the machine's values are unknown, even if
    /// other traces continue.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<Option<i64>>,
    /// Indexes of kernel traces without system calls: whether a thread of a program is in a call is
    /// unknown there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_calls: Vec<u32>,
    /// CPUs that were not recorded, or only for a part of the time. Values that depend on them are
    /// unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<NotRecorded>,
    /// Bytes of the packets that were read.
    pub bytes: u64,
    /// Number of losses of events. Values that lost events may have changed are unknown.
    pub losses: u64,
    /// The user analysis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// Whether the history contains descriptors.
    #[serde(default, skip_serializing_if = "is_not")]
    pub files: bool,
    /// Paths of the analysis' attributes, by number.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<String>,
    /// The streams, and how far they were read: later packets can be appended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamMark>,
}

impl Meta {
    /// Whether a trace set is the source of the history: the same packets at the same times.
    ///
    /// # Errors
    /// The difference, as a message.
    pub fn check(&self, set: &TraceSet) -> Result<(), String> {
        match marks::growth(&self.streams, set)? {
            None => Ok(()),
            Some(_) => Err("the trace has new packets".to_owned()),
        }
    }
}

fn is_not(what: &bool) -> bool {
    !what
}

/// A user analysis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Analysis {
    /// Name of the analysis.
    pub name: String,
    /// Source text of the definition.
    pub text: String,
}

/// The position of a block in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BlockRef {
    pub(crate) level: u8,
    pub(crate) grid: i64,
    pub(crate) begin: i64,
    pub(crate) end: i64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) has_snapshot: bool,
    /// Of a block of all changes: its weight for the placement of snapshots.
    #[serde(default, skip_serializing_if = "Weight::is_nothing")]
    pub(crate) weight: Weight,
    /// Of a block of all changes: number of texts in the file after the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) texts: Option<usize>,
}

/// The index of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Index {
    pub(crate) meta: Meta,
    pub(crate) texts: Vec<String>,
    /// In the order of writing, which is the order of time within each level.
    pub(crate) blocks: Vec<BlockRef>,
    /// Slices in which events were lost: start and number of losses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) losses: Vec<(i64, u64)>,
    /// Checkpoints in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) checkpoints: Vec<CheckpointRef>,
}

/// Errors of reading or writing a history.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The path is neither a file nor a directory.
    #[error("{}: is {what}; name a history file", path.display())]
    Special {
        /// The path.
        path: PathBuf,
        /// Type of the file, such as "a pipe".
        what: &'static str,
    },
    /// The file is not a history.
    #[error("{}: is not a history; build one from a trace with `tracebraid history build`", path.display())]
    NoHistory {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file has another format version.
    #[error("{}: is a history of version {version}, but this program reads version {VERSION}; rebuild it with `tracebraid history build`", path.display())]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// Version of the file.
        version: u32,
    },
    /// The file is damaged.
    #[error("{}: is damaged at byte {offset}: {what}; rebuild it with `tracebraid history build`", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Offset of the damage in bytes.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
}

/// The bytes of a head.
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

/// Whether the checksum of a head is correct.
fn is_whole(head: &[u8]) -> bool {
    half(head, 36) == crc32fast::hash(&head[..36])
}

/// A file that is being read.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    file: File,
    /// End of the index; later bytes are unused.
    pub(crate) end: u64,
}

/// Number of attempts to read a head, which may be partly written, and the time between them.
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

    /// Reads the index of an open file.
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
            return Err(self.damaged(0, "the head's checksum is wrong"));
        }
        if !is_within {
            let what = format!("the file is truncated: its index should begin at byte {offset}");
            return Err(self.damaged(length, &what));
        }
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        self.read_at(offset, &mut bytes)?;
        if half(32) != crc32fast::hash(&bytes) {
            return Err(self.damaged(offset, "the index's checksum is wrong"));
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
                "the index refers to a checkpoint outside the data",
            ));
        }
        match index.blocks.iter().find(is_sound) {
            Some(block) => Err(self.damaged(block.offset, "the index contains an invalid block")),
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

    /// Writes a new index after all existing data: concurrent readers see the old or the new one.
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

    /// Checks that the origin section can be read.
    pub(crate) fn check_origin(&self) -> Result<(), HistoryError> {
        let wrong = || self.damaged(HEAD, "the origin section cannot be read");
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

    /// Reads a checkpoint and verifies its checksum.
    pub(crate) fn checkpoint(&self, place: &CheckpointRef) -> Result<Vec<u8>, HistoryError> {
        let bytes = self.bytes_at(place.offset, place.length)?;
        match crc32fast::hash(&bytes) == place.sum {
            true => Ok(bytes),
            false => Err(self.damaged(place.offset, "a checkpoint's checksum is wrong")),
        }
    }

    /// Reads a block and verifies that it is the one in the index.
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
                "the block differs from its entry in the index",
            )),
        }
    }
}
