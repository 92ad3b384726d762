//! Finding packets by the index of a file.

use crate::damage::Damage;
use crate::extent::{ends_before_begin, is_written};
use crate::index::IndexEntry;
use crate::packet::PacketHead;
use crate::packets::file_scan::FileScan;
use crate::packets::packet_finder::PacketFinder;
use crate::stream::Packet;

impl PacketFinder<'_> {
    /// Packets by the index, which is trusted if its first and last entries agree with the heads of
    /// their packets.
    pub(super) fn by_index(&mut self, entries: &[IndexEntry]) -> Option<FileScan> {
        let mut scan = self.agreeing_scan(entries)?;
        let has_begin = scan.head.begin.is_some();
        let head = &scan.head;
        scan.packets = entries.iter().map(|entry| packet_of(entry, head)).collect();
        for packet in &scan.packets {
            if let Some(damage) = ends_before_begin(self.path, packet) {
                self.report_fault(damage);
            }
        }
        if !has_begin {
            let firsts = scan.packets.iter().map(|packet| self.first_of(packet));
            scan.firsts = firsts.collect();
        }
        self.report_more_faults();
        Some(scan)
    }

    /// A scan without packets, if the first and the last entry agree with the heads of their packets.
    fn agreeing_scan(&mut self, entries: &[IndexEntry]) -> Option<FileScan> {
        let (first, last) = (entries.first()?, entries.last()?);
        let mut scan: Option<FileScan> = None;
        for entry in [first, last] {
            let head = self.head(entry.offset, 0).ok()?.ok()?;
            if !self.agrees(&head, entry, entries)? {
                let message = "its index is not used: it tells of another packet here than the file has";
                self.damage.push(Damage::at(self.path, entry.offset, message));
                return None;
            }
            if let Some(scan) = &mut scan {
                scan.is_mixed = scan.head.values != head.values;
            }
            if head.is_foreign {
                self.foreign.add(entry.offset, &head);
            }
            scan.get_or_insert_with(|| FileScan::new(head, true));
        }
        scan
    }

    /// True if an entry agrees with the head of its packet; `None` if the stream's class is unknown.
    fn agrees(&mut self, head: &PacketHead, entry: &IndexEntry, entries: &[IndexEntry]) -> Option<bool> {
        let claims_more = head.total_bits.is_some_and(|total| total > entry.packet_bits);
        let is_index_right = claims_more && self.leads_to_heads(entries);
        let is_equal = |in_head: Option<u64>, indexed| in_head.is_none_or(|value| value == indexed);
        let class_id = self.layout.streams.get(head.stream_class)?.id;
        let size = head.total_bits.or(head.content_bits).filter(|_| !is_index_right);
        let has_size = head.total_bits.is_some() || head.content_bits.is_some();
        Some(
            is_equal(size, entry.packet_bits)
                && is_equal(head.content_bits.or(head.total_bits), entry.content_bits)
                && (has_size || entries.len() <= 1)
                && is_equal(head.begin, entry.begin)
                && is_equal(head.end, entry.end)
                && class_id == entry.stream_class
                && entry.content_bits >= head.end_of_head,
        )
    }

    /// True if a packet begins at each offset that the index contains.
    fn leads_to_heads(&mut self, entries: &[IndexEntry]) -> bool {
        entries
            .iter()
            .all(|entry| matches!(self.head(entry.offset, 0), Ok(Ok(_))))
    }
}

/// The packet of an entry. Fields that the heads of the stream do not have are left out.
fn packet_of(entry: &IndexEntry, head: &PacketHead) -> Packet {
    let begin = head.begin.map(|_| entry.begin);
    let is_end = |end: &u64| is_written(*end, Some(entry.begin));
    Packet {
        file: 0,
        offset: entry.offset,
        bytes: entry.packet_bits / 8,
        content_bits: entry.content_bits,
        clock: begin,
        begin,
        end: head.end.map(|_| entry.end).filter(is_end),
        discarded: head.discarded.map(|_| entry.discarded),
        sequence: entry.sequence.filter(|_| head.sequence.is_some()),
        is_misplaced: false,
    }
}
