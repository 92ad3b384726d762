//! Packets within another packet whose size in the head is too large.

use std::io;

use crate::damage::Damage;
use crate::extent::{follows, is_next, is_same_stream};
use crate::packet::PacketHead;
use crate::packets::file_scan::FileScan;
use crate::packets::packet_finder::PacketFinder;
use crate::stream::Packet;

/// Maximum number of candidates for hidden packets that are examined in a file.
const MOST_HIDDEN: u64 = 1024;

/// The packet found last; its size is compared with those of its neighbours.
#[derive(Default)]
pub(super) struct LastPacket {
    packet: Option<Packet>,
    head: Option<PacketHead>,
    /// Index of its scan.
    scan: usize,
    /// Size in bits of the packet before it.
    before: Option<u64>,
    /// The packet was searched for hidden packets.
    pub(super) is_searched: bool,
}

impl LastPacket {
    /// Moves on to the next packet, which is in the scan with this index.
    pub(super) fn followed_by(self, head: PacketHead, packet: Packet, scan: usize) -> LastPacket {
        LastPacket {
            packet: Some(packet),
            head: Some(head),
            scan,
            before: self.packet.map(|packet| packet.bytes.saturating_mul(8)),
            is_searched: false,
        }
    }

    /// True if the packet may contain others. Most packets of a stream have the same size and
    /// consecutive sequence numbers, so a packet is suspect if it is larger than a neighbour, has
    /// no neighbour, or if sequence numbers are missing after it.
    fn is_suspect(&self, head: &PacketHead, next: Option<&PacketHead>) -> bool {
        let bits = self
            .packet
            .map_or(0, |packet| packet.bytes.saturating_mul(8));
        let after = next.and_then(|next| next.total_bits);
        let least = [self.before, after].into_iter().flatten().min();
        let is_gap = next.is_some_and(|next| {
            is_same_stream(head, next) && next.sequence != head.sequence && !is_next(head, next)
        });
        is_gap || least.is_none_or(|least| bits > least)
    }
}

/// True if `hidden`, which begins `rest` bytes before the end of the packet of `head`, is an empty
/// packet that its tracer had not published yet. The tracer of probes writes the head of the next
/// packet into the padding of the open packet, which extends to the end of the file, then shortens
/// the open packet. If the program is killed between these two steps, both packets are sound.
fn is_unpublished(head: &PacketHead, hidden: &PacketHead, rest: u64) -> bool {
    hidden.content_bits == Some(hidden.end_of_head)
        && hidden.total_bits == Some(rest.saturating_mul(8))
        && hidden.discarded == head.discarded
}

impl PacketFinder<'_> {
    /// Offset of a packet within the last packet, whose size in the head is too large.
    ///
    /// `next` is the head at `offset`, the end of the last packet: `None` at the end of the file,
    /// `Some(None)` if the bytes are not a head. Padding is searched only if the size is suspect,
    /// since searching all padding would read the whole file.
    pub(super) fn hidden_packet(
        &mut self,
        last: &LastPacket,
        offset: u64,
        next: Option<Option<&PacketHead>>,
        clock: u64,
    ) -> io::Result<Option<u64>> {
        let (Some(packet), Some(head)) = (last.packet, &last.head) else {
            return Ok(None);
        };
        let padding = (packet.bytes.saturating_mul(8)).saturating_sub(packet.content_bits);
        let is_suspect = match next {
            Some(None) => padding > 0,
            Some(Some(next)) => padding >= head.end_of_head && last.is_suspect(head, Some(next)),
            None => padding >= head.end_of_head && last.is_suspect(head, None),
        };
        if last.is_searched || !is_suspect {
            return Ok(None);
        }
        let mut at = packet
            .offset
            .saturating_add(packet.content_bits.div_ceil(8));
        loop {
            let found = self.next_packet_before(at, offset)?;
            let (Some(found), true) = (found, self.hidden < MOST_HIDDEN) else {
                return Ok(None);
            };
            self.hidden += 1;
            if let Ok(hidden) = self.head(found, clock)?
                && follows(head, &hidden)
                && (matches!(next, Some(None))
                    || is_next(head, &hidden)
                    || self.following_packet(found, &hidden)?.is_some())
            {
                let rest = packet
                    .offset
                    .saturating_add(packet.bytes)
                    .saturating_sub(found);
                let is_unpublished = next.is_none() && is_unpublished(head, &hidden, rest);
                return Ok((!is_unpublished).then_some(found));
            }
            at = found.saturating_add(1);
        }
    }

    /// Ends the last packet at the beginning of the hidden packet.
    pub(super) fn cut_last(&mut self, scans: &mut [FileScan], last: &LastPacket, hidden: u64) {
        let packets = scans.get_mut(last.scan).map(|scan| &mut scan.packets);
        let Some(packet) = packets.and_then(|packets| packets.last_mut()) else {
            return;
        };
        let claimed = packet.bytes;
        packet.bytes = hidden.saturating_sub(packet.offset);
        let message = format!(
            "the packet's size ({claimed} bytes) is wrong: the next packet begins after {} bytes, at byte {hidden}",
            packet.bytes
        );
        let damage = Damage::at(self.path, packet.offset, message);
        self.report_fault(damage);
    }
}
