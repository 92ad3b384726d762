//! Data streams: their files and their packets.

use std::path::PathBuf;

use crate::packet::PacketHead;

/// A data stream: the packets of a single source, in the order of time.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Index of the data stream class in the layout.
    pub class: usize,
    /// Id of the stream within its class.
    pub id: Option<u64>,
    /// Files of the stream; several after rotation.
    pub files: Vec<DataFile>,
    /// Packets of the stream.
    pub packets: Vec<Packet>,
    /// Head of the first packet.
    pub head: PacketHead,
    /// Packets differ in the integers of their contexts, apart from roles, so that values of the
    /// first packet (such as the number of a CPU) do not hold for all packets. Only known for the
    /// heads that were read: with an index, those of the first and the last packet.
    pub is_mixed: bool,
    /// True if the packets are sorted by begin time; false until [`Stream::learn_order`].
    pub(crate) is_in_order_of_time: bool,
}

/// A file with packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Size in bytes when the trace was opened.
    pub bytes: u64,
    /// The positions of packets were taken from an index, not from the packets themselves.
    pub indexed: bool,
    /// A packet has a UUID other than that of the metadata. Reported when the trace was opened.
    pub is_foreign: bool,
    /// A packet begins or ends at a time that is out of range. Reported when the trace was opened.
    pub is_out_of_range: bool,
    /// Byte ranges in which no packet was found when the trace was opened, in order.
    pub skipped: Vec<std::ops::Range<u64>>,
}

/// A packet in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index in [`Stream::files`].
    pub file: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Size of the packet in the file, in bytes.
    pub bytes: u64,
    /// Size of the decodable content in bits, from the start of the packet.
    pub content_bits: u64,
    /// Clock value at the beginning, as contained in the head, in cycles. The first timestamp is
    /// decoded relative to this value. `None` if the head has none: the clock then starts at 0.
    pub clock: Option<u64>,
    /// Lower bound for the clock values of the packet's event records, in cycles, as long as the
    /// clock does not go back within the packet: the clock value of the head, or that of the first
    /// event record if the head has none or a later one. `None` only if the stream has no clock, or
    /// no packet of it has a time.
    pub begin: Option<u64>,
    /// Clock value at the end, as contained in the head, in cycles. `None` if the head has none, or
    /// 0, which a tracer that was killed leaves there.
    pub end: Option<u64>,
    /// Running count of discarded event records.
    pub discarded: Option<u64>,
    /// Sequence number of the packet.
    pub sequence: Option<u64>,
    /// The times are not those of the head, which did not fit between the times of the neighbouring
    /// packets.
    pub is_misplaced: bool,
}
