//! Resolves contradictions between the index and the head of a packet.

use crate::damage::Damage;
use crate::extent::is_written;
use crate::packet::PacketHead;
use crate::packets::contradiction::{has_other_times, has_other_values};
use crate::packets::foreign::foreign_uuid;
use crate::packets::packet_finder::PacketFinder;
use crate::stream::{DataFile, Packet, Stream};
use crate::trace::Trace;

const OTHER_PACKET: &str = "the index entry contradicts the packet's head";

/// Returns the packet with the times and content size of its head, since the index entry may be
/// wrong, and damage if the two differ. The clock starts from `begin` of the returned packet.
pub(crate) fn reconcile_with_head(
    trace: &Trace,
    stream: &Stream,
    packet: Packet,
    head: &PacketHead,
) -> (Packet, Option<Damage>) {
    let Some(file) = stream.files.get(packet.file as usize) else {
        return (packet, None);
    };
    let damage = |message: String| Damage::at(&file.path, packet.offset, message);
    // With an index, the packets between the first and the last were not checked before.
    let foreign = (head.is_foreign && !file.is_foreign)
        .then(|| foreign_uuid(Some(1), head.uuid.unwrap_or_default(), trace.uuid()));
    if !file.indexed {
        return (packet, foreign.map(damage));
    }
    let whole = packet.bytes.saturating_mul(8);
    let content = head
        .content_bits
        .or(head.total_bits)
        .unwrap_or(packet.content_bits);
    let total = head.total_bits.unwrap_or(whole);
    let contradicts = has_other_values(head, &packet, (stream.class, stream.id))
        || total != whole && has_other_size(trace, file, head, &packet);
    let found = if contradicts {
        Some(damage(OTHER_PACKET.to_owned()).contradicting_index())
    } else if content == packet.content_bits && total > whole {
        // According to the index, the next packet begins where this packet ends.
        Some(damage(format!(
            "the packet's size ({} bytes) is wrong: according to the index it is {} bytes",
            total / 8,
            packet.bytes
        )))
    } else if content != packet.content_bits || total != whole {
        Some(damage(OTHER_PACKET.to_owned()))
    } else {
        foreign.map(damage)
    };
    let is_possible = content >= head.end_of_head && content <= whole;
    let packet = Packet {
        content_bits: if is_possible {
            content
        } else {
            packet.content_bits
        },
        ..packet
    };
    (with_times_of(head, packet), found)
}

/// Opens the file again for [`PacketFinder::has_other_size`].
fn has_other_size(trace: &Trace, file: &DataFile, head: &PacketHead, packet: &Packet) -> bool {
    let mut damage = Vec::new();
    PacketFinder::new(&trace.layout, &file.path, file.bytes, &mut damage)
        .is_ok_and(|mut finder| finder.has_other_size(head, packet))
}

/// The packet with the times of its head, if those of the index differ.
fn with_times_of(head: &PacketHead, packet: Packet) -> Packet {
    if !has_other_times(head, &packet) {
        return packet;
    }
    let begin = if head.begin == packet.clock {
        packet.begin
    } else {
        head.begin
    };
    Packet {
        clock: head.begin,
        begin,
        end: head.end.filter(|&end| is_written(end, head.begin)),
        ..packet
    }
}
