//! Contradictions between the index of a file and the heads of its packets.
//!
//! If the two differ, the head is right, except for its size: packets follow each other without
//! gaps, so the right size is the one that leads to the next packet.

use crate::extent::is_written;
use crate::packet::PacketHead;
use crate::packets::packet_finder::PacketFinder;
use crate::stream::Packet;

/// True if the stream, times, counts or content size of an index entry differ from those of the
/// head. `packet` and `stream` (class and instance id) are those of the entry.
pub(super) fn has_other_values(
    head: &PacketHead,
    packet: &Packet,
    stream: (usize, Option<u64>),
) -> bool {
    // An index may lack fields that heads contain.
    let differs = |of_head: Option<u64>, of_index: Option<u64>| {
        of_head
            .zip(of_index)
            .is_some_and(|(of_head, of_index)| of_head != of_index)
    };
    stream != (head.stream_class, head.stream_id)
        || has_other_times(head, packet)
        || differs(head.discarded, packet.discarded)
        || differs(head.sequence, packet.sequence)
        || has_other_content(head, packet)
}

/// True if the times differ. False for misplaced packets: their times were corrected, and every
/// entry of their index was compared when the trace was opened, since its times are not in order.
pub(super) fn has_other_times(head: &PacketHead, packet: &Packet) -> bool {
    let end = head.end.filter(|&end| is_written(end, head.begin));
    !packet.is_misplaced && (head.begin, end) != (packet.clock, packet.end)
}

/// True if the head contains another plausible content size, which covers the head and fits into
/// the packet.
fn has_other_content(head: &PacketHead, packet: &Packet) -> bool {
    let whole = packet.bytes.saturating_mul(8);
    let content = head.content_bits.or(head.total_bits);
    head.total_bits.is_none_or(|total| total == whole)
        && content.is_some_and(|content| {
            content != packet.content_bits && content >= head.end_of_head && content <= whole
        })
}

impl PacketFinder<'_> {
    /// True if the index has a wrong packet size: either the head has a smaller size, at whose end
    /// a packet begins, or the head has a larger size and no packet begins at the end according to
    /// the index. Without a magic number, any bytes can look like a head, so the index is
    /// considered right.
    pub(super) fn has_other_size(&mut self, head: &PacketHead, packet: &Packet) -> bool {
        let Some(total) = head.total_bits.filter(|_| self.magic().is_some()) else {
            return false;
        };
        let whole = packet.bytes.saturating_mul(8);
        let end = packet.offset.saturating_add(packet.bytes);
        if total < whole {
            total > 0
                && total.is_multiple_of(8)
                && self.has_packet(packet.offset.saturating_add(total / 8))
        } else {
            total > whole && end < self.bytes && !self.has_packet(end)
        }
    }

    fn has_packet(&mut self, offset: u64) -> bool {
        offset < self.bytes && matches!(self.head(offset, 0), Ok(Ok(_)))
    }
}
