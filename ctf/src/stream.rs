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
    /// Other packets have other integers in their contexts than the first one, roles aside: what
    /// the first one gives (as the number of a CPU) does not hold for all. Known of the heads that
    /// were read: with an index only of the last one's.
    pub is_mixed: bool,
    /// True if the packets are sorted by begin time; false until [`Stream::learn_order`].
    pub(crate) is_in_order_of_time: bool,
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
    /// A packet has a UUID that is not the metadata's, as was found and told when the trace was
    /// opened.
    pub is_foreign: bool,
    /// A packet begins or ends at a time that is out of range, as was found and told when the trace
    /// was opened.
    pub is_out_of_range: bool,
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
    /// Clock value at its beginning as its head gives it, in cycles: the first timestamp is decoded
    /// from there. `None` if the head has none: the clock then starts at 0.
    pub clock: Option<u64>,
    /// No event record of it is earlier, in cycles, as long as the clock does not go back within
    /// the packet: the clock value of the head, or that of the first event record where the head
    /// gives none or a later one. `None` only if the stream has no clock, or no packet of it has a
    /// time.
    pub begin: Option<u64>,
    /// Clock value at its end, in cycles, as its head gives it. `None` if the head has none, or 0,
    /// which a tracer that was killed leaves there.
    pub end: Option<u64>,
    /// Running count of discarded event records.
    pub discarded: Option<u64>,
    /// Sequence number.
    pub sequence: Option<u64>,
    /// Its times are not those that it tells: they did not fit between those of the packets around
    /// it.
    pub is_misplaced: bool,
}
