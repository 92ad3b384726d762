//! Contradictions between the index of a file and the heads of its packets.
//!
//! The head counts, except for a size that cannot be right: an index has each packet begin where the one
//! before it ends, so a wrong size in a head shows by the packets around it.

use crate::extent::is_written;
use crate::packet::PacketHead;
use crate::packets::packet_finder::PacketFinder;
use crate::stream::Packet;

/// Whether a packet, as the index describes it, is of another stream than its head, has other times or
/// counts, or other content.
pub(super) fn has_other_values(head: &PacketHead, packet: &Packet, stream: (usize, Option<u64>)) -> bool {
    // An index need not have all that heads have.
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

/// Whether the times differ. A misplaced packet has other times than its head on purpose: an index out of
/// the order of time is used only after each of its entries was found to agree.
pub(super) fn has_other_times(head: &PacketHead, packet: &Packet) -> bool {
    let end = head.end.filter(|&end| is_written(end, head.begin));
    !packet.is_misplaced && (head.begin, end) != (packet.clock, packet.end)
}

/// Whether the head gives another size of the content, which can be true.
fn has_other_content(head: &PacketHead, packet: &Packet) -> bool {
    let whole = packet.bytes.saturating_mul(8);
    let content = head.content_bits.or(head.total_bits);
    head.total_bits.is_none_or(|total| total == whole)
        && content.is_some_and(|content| {
            content != packet.content_bits && content >= head.end_of_head && content <= whole
        })
}

impl PacketFinder<'_> {
    /// Whether the index cuts the file otherwise than a packet's head: a packet begins where the head has
    /// this one end, or none begins where the index has it end. Without a magic number any bytes can be
    /// taken for a head: the index counts.
    pub(super) fn has_other_size(&mut self, head: &PacketHead, packet: &Packet) -> bool {
        let Some(total) = head.total_bits.filter(|_| self.magic().is_some()) else {
            return false;
        };
        let whole = packet.bytes.saturating_mul(8);
        let end = packet.offset.saturating_add(packet.bytes);
        if total < whole {
            total > 0 && total.is_multiple_of(8) && self.has_packet(packet.offset.saturating_add(total / 8))
        } else {
            total > whole && end < self.bytes && !self.has_packet(end)
        }
    }

    fn has_packet(&mut self, offset: u64) -> bool {
        offset < self.bytes && matches!(self.head(offset, 0), Ok(Ok(_)))
    }
}
