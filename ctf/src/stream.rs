//! Data streams: their files and their packets.

use std::path::PathBuf;

use crate::packet::PacketHead;

/// A data stream: the packets of one source, in the order of time.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Index of its class in the layout.
    pub class: usize,
    /// Its id within its class.
    pub id: Option<u64>,
    /// Its files (several after rotation).
    pub files: Vec<DataFile>,
    /// Its packets.
    pub packets: Vec<Packet>,
    /// Head of its first packet.
    pub head: PacketHead,
}

/// A file with packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes when the trace was opened.
    pub bytes: u64,
    /// Where its packets are was taken from an index, not from the packets themselves.
    pub indexed: bool,
    /// Byte ranges where no packet was found when the trace was opened, in their order.
    pub skipped: Vec<std::ops::Range<u64>>,
}

/// A packet in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index in [`Stream::files`].
    pub file: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes that it takes in the file.
    pub bytes: u64,
    /// Bits of its content that can be decoded, from its start.
    pub content_bits: u64,
    /// Clock value at its beginning, in cycles.
    pub begin: Option<u64>,
    /// Clock value at its end, in cycles.
    pub end: Option<u64>,
    /// Running count of discarded event records.
    pub discarded: Option<u64>,
    /// Sequence number.
    pub sequence: Option<u64>,
    /// Its times are not those that it tells: they did not fit between those of the packets around it.
    pub is_misplaced: bool,
}
