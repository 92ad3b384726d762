//! The packets of a stream in a file.

use std::ops::Range;

use crate::packet::PacketHead;
use crate::stream::Packet;

/// Packets of a stream in a file.
pub(crate) struct FileScan {
    pub(crate) class: usize,
    pub(crate) id: Option<u64>,
    pub(crate) head: PacketHead,
    /// See [`crate::stream::Stream::is_mixed`].
    pub(crate) is_mixed: bool,
    pub(crate) packets: Vec<Packet>,
    /// The packets were found by the file's index.
    pub(crate) indexed: bool,
    /// A packet of the file has a UUID other than that of the metadata.
    pub(crate) is_foreign: bool,
    /// Byte ranges of the file that belong to no packet.
    pub(crate) skipped: Vec<Range<u64>>,
    /// Indices of packets whose head does not contain the end of the content, which is then assumed
    /// to end after the last nonzero byte.
    pub(crate) unclear: Vec<usize>,
    /// Clock values of the packets' first event records, by index of the packet, where they were
    /// read.
    pub(crate) firsts: Vec<Option<u64>>,
}

impl FileScan {
    /// A scan without packets, of the stream of `head`.
    pub(super) fn new(head: PacketHead, indexed: bool) -> FileScan {
        FileScan {
            class: head.stream_class,
            id: head.stream_id,
            head,
            is_mixed: false,
            packets: Vec::new(),
            indexed,
            is_foreign: false,
            skipped: Vec::new(),
            unclear: Vec::new(),
            firsts: Vec::new(),
        }
    }
}

/// Adds a packet to the scan of its stream and returns the index of that scan.
pub(super) fn add_packet(
    scans: &mut Vec<FileScan>,
    head: &PacketHead,
    packet: Packet,
    first: Option<u64>,
    is_clear: bool,
) -> usize {
    let same = |scan: &FileScan| scan.class == head.stream_class && scan.id == head.stream_id;
    let at = scans.iter().position(same).unwrap_or(scans.len());
    if at == scans.len() {
        scans.push(FileScan::new(head.clone(), false));
    }
    if let Some(scan) = scans.get_mut(at) {
        if !is_clear {
            scan.unclear.push(scan.packets.len());
        }
        scan.is_mixed |= scan.head.values != head.values;
        scan.packets.push(packet);
        scan.firsts.push(first);
    }
    at
}
