//! Finds packets by the index of a file.

use crate::damage::Damage;
use crate::extent::{ends_before_begin, is_written};
use crate::index::{IndexCheck, IndexEntry};
use crate::packet::PacketHead;
use crate::packets::contradiction::has_other_values;
use crate::packets::file_scan::FileScan;
use crate::packets::packet_finder::PacketFinder;
use crate::stream::Packet;

impl PacketFinder<'_> {
    /// Packets according to the index; `None` if a compared entry contradicts its packet head.
    ///
    /// Every entry of an implausible index is compared: such indexes are rare, and `misplaced` must
    /// know the right times before packets are read.
    pub(super) fn by_index(
        &mut self,
        entries: &[IndexEntry],
        check: IndexCheck,
    ) -> Option<FileScan> {
        let mut scan = self.agreeing_scan(entries)?;
        let has_begin = scan.head.begin.is_some();
        let head = &scan.head;
        scan.packets = entries.iter().map(|entry| packet_of(entry, head)).collect();
        if check == IndexCheck::Every || !is_plausible(&scan.packets, &scan.head) {
            self.agrees_with_all(&scan)?;
        }
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

    /// A scan without packets, if the first and the last entry agree with the heads of their
    /// packets.
    fn agreeing_scan(&mut self, entries: &[IndexEntry]) -> Option<FileScan> {
        let (first, last) = (entries.first()?, entries.last()?);
        let mut scan: Option<FileScan> = None;
        for entry in [first, last] {
            let head = self.head(entry.offset, 0).ok()?.ok()?;
            let is_same_stream = scan.as_ref().is_none_or(|scan| scan.id == head.stream_id);
            if !self.agrees(&head, entry, entries)? || !is_same_stream {
                self.report_other_packet(entry.offset);
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

    /// `None` if an entry contradicts its packet head. A head that cannot be decoded is not a
    /// contradiction: if its offset were wrong, the size of the previous packet would be wrong too.
    fn agrees_with_all(&mut self, scan: &FileScan) -> Option<()> {
        for packet in &scan.packets {
            let Ok(Ok(head)) = self.head(packet.offset, 0) else {
                continue;
            };
            if has_other_values(&head, packet, (scan.class, scan.id))
                || self.has_other_size(&head, packet)
            {
                self.report_other_packet(packet.offset);
                return None;
            }
        }
        Some(())
    }

    fn report_other_packet(&mut self, offset: u64) {
        let message = "its index is not used: the entry contradicts the packet's head";
        self.damage.push(Damage::at(self.path, offset, message));
    }

    /// True if an entry agrees with the head of its packet; `None` if the data stream class is
    /// unknown.
    fn agrees(
        &mut self,
        head: &PacketHead,
        entry: &IndexEntry,
        entries: &[IndexEntry],
    ) -> Option<bool> {
        let claims_more = head
            .total_bits
            .is_some_and(|total| total > entry.packet_bits);
        let is_index_right = claims_more && self.leads_to_heads(entries);
        let is_equal = |in_head: Option<u64>, indexed| in_head.is_none_or(|value| value == indexed);
        let class_id = self.layout.streams.get(head.stream_class)?.id;
        let size = head
            .total_bits
            .or(head.content_bits)
            .filter(|_| !is_index_right);
        let has_size = head.total_bits.is_some() || head.content_bits.is_some();
        Some(
            is_equal(size, entry.packet_bits)
                && is_equal(head.content_bits.or(head.total_bits), entry.content_bits)
                && (has_size || entries.len() <= 1)
                && is_equal(head.begin, entry.begin)
                && is_equal(head.end, entry.end)
                && is_equal(head.discarded, entry.discarded)
                && entry
                    .sequence
                    .is_none_or(|sequence| is_equal(head.sequence, sequence))
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

/// True if packets are sorted by begin time, none ends before it begins, and each is large enough
/// for its head.
fn is_plausible(packets: &[Packet], head: &PacketHead) -> bool {
    let can_be = |packet: &Packet| {
        packet.end.is_none_or(|end| Some(end) >= packet.begin)
            && packet.content_bits >= head.end_of_head
    };
    packets.is_sorted_by_key(|packet| packet.begin) && packets.iter().all(can_be)
}

/// The packet of an entry, without fields that the heads of the stream lack.
fn packet_of(entry: &IndexEntry, head: &PacketHead) -> Packet {
    let begin = head.begin.map(|_| entry.begin);
    let is_end = |end: &u64| is_written(*end, begin);
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
