//! Finds packets by their heads: each packet begins where the previous packet ends.

use std::io;

use crate::damage::Damage;
use crate::extent::{Content, Extent, ends_before_begin, extent, is_unset, is_written};
use crate::packet::{HeadError, PacketHead};
use crate::packets::file_scan::{FileScan, add_packet};
use crate::packets::hidden::LastPacket;
use crate::packets::packet_finder::PacketFinder;
use crate::schema::CtfVersion;
use crate::stream::Packet;

impl PacketFinder<'_> {
    /// Finds the packets of the file; returns a scan for each stream.
    pub(super) fn by_heads(&mut self) -> io::Result<Vec<FileScan>> {
        let mut scans: Vec<FileScan> = Vec::new();
        let (mut offset, mut clock) = (0, 0);
        let mut last = LastPacket::default();
        let mut skipped_ranges = Vec::new();
        loop {
            let found = if offset < self.bytes {
                Some(self.identified(offset, clock)?)
            } else {
                None
            };
            let next = found.as_ref().map(|head| head.as_ref().ok());
            if let Some(hidden) = self.hidden_packet(&last, offset, next, clock)? {
                self.cut_last(&mut scans, &last, hidden);
                last.is_searched = true;
                offset = hidden;
                continue;
            }
            last.is_searched = true;
            match found {
                None => break,
                Some(Ok(head)) => {
                    if head.is_foreign {
                        self.foreign.add(offset, &head);
                    }
                    // In CTF 2, the clock starts at 0 in each packet. Tracers that write CTF 1.8
                    // with short timestamps let it continue.
                    if self.layout.class.version == CtfVersion::V1_8 {
                        clock = head.begin.unwrap_or(clock);
                    }
                    let (packet, is_clear) = self.packet(offset, &head)?;
                    offset = offset.saturating_add(packet.bytes.max(1));
                    let first = self.first(&packet, &head);
                    let scan = add_packet(&mut scans, &head, packet, first, is_clear);
                    last = last.followed_by(head, packet, scan);
                }
                Some(Err(error)) => {
                    let next = match self.past_other_magic(offset, &error)? {
                        Some(next) => next,
                        None => self.next_packet(offset.saturating_add(1))?,
                    };
                    let skipped = next.saturating_sub(offset);
                    self.report_fault(
                        Damage::at(self.path, offset, error.to_string()).skipping(skipped),
                    );
                    skipped_ranges.push(offset..next);
                    offset = next;
                }
            }
        }
        for scan in &mut scans {
            scan.skipped.clone_from(&skipped_ranges);
        }
        Ok(scans)
    }

    /// Like [`PacketFinder::head`], at an offset at which a packet should begin. A packet with a
    /// UUID other than that of the metadata is accepted if it has no other fault: some tracers and
    /// tools write such traces, and babeltrace2 reads them. Remains of an older trace in a reused
    /// buffer are recognized by their size.
    fn identified(&mut self, offset: u64, clock: u64) -> io::Result<Result<PacketHead, HeadError>> {
        let found = self.head(offset, clock)?;
        let Ok(head) = &found else { return Ok(found) };
        if !head.is_foreign || self.foreign.has(head) {
            return Ok(found);
        }
        let declared = head.total_bits.or(head.content_bits);
        let is_possible = declared.is_none()
            || is_unset(declared)
            || self.following_packet(offset, head)?.is_some()
            || self.next_packet(offset.saturating_add(1))? >= self.bytes;
        if !is_possible {
            return Ok(Err(HeadError::Uuid));
        }
        Ok(found)
    }

    /// The packet at an offset. False if its head does not contain the end of the content; the
    /// content is then assumed to end after the last nonzero byte.
    fn packet(&mut self, offset: u64, head: &PacketHead) -> io::Result<(Packet, bool)> {
        let rest = (self.bytes.saturating_sub(offset)).saturating_mul(8);
        let Extent {
            total,
            content,
            complaint,
        } = extent(head, rest, self.magic().is_some());
        let total = match total {
            Some(total) => total,
            None => {
                let known = match content {
                    Content::Known(content) if content <= rest => content,
                    _ => head.end_of_head,
                };
                let behind = offset.saturating_add(known.div_ceil(8).max(1));
                self.next_packet(behind)?
                    .saturating_sub(offset)
                    .saturating_mul(8)
            }
        };
        let is_clear = !matches!(content, Content::Open);
        let (content, skipped) = match content {
            Content::Known(content) => (content.min(total), 0),
            Content::Open => (
                self.written_bits(offset, total)?
                    .max(head.end_of_head)
                    .min(total),
                0,
            ),
            Content::Unknown => (
                head.end_of_head.min(total),
                total.saturating_sub(head.end_of_head) / 8,
            ),
        };
        if let Some(complaint) = complaint {
            self.report_fault(Damage::at(self.path, offset, complaint).skipping(skipped));
        }
        let packet = Packet {
            file: 0,
            offset,
            bytes: total / 8,
            content_bits: content,
            clock: head.begin,
            begin: head.begin,
            end: head
                .end
                .filter(|&end| is_clear && is_written(end, head.begin)),
            discarded: head.discarded,
            sequence: head.sequence,
            is_misplaced: false,
        };
        if let Some(damage) = ends_before_begin(self.path, &packet) {
            self.report_fault(damage);
        }
        Ok((packet, is_clear))
    }
}
