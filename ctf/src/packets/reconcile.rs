//! Resolves contradictions between the index and the head of a packet.

use crate::extent::is_written;
use crate::packet::PacketHead;
use crate::packets::foreign::foreign_uuid;
use crate::stream::{Packet, Stream};
use crate::trace::Trace;

const OTHER_PACKET: &str = "the index tells of another packet here than the file has";

/// The packet with the values of its own head, since the entry of an index may be of another
/// packet, and a message if the two disagree. The clock starts from the `begin` of the result.
pub(crate) fn reconcile_with_head(
    trace: &Trace,
    stream: &Stream,
    packet: Packet,
    head: &PacketHead,
) -> (Packet, Option<String>) {
    let file = stream.files.get(packet.file as usize);
    // With an index, the packets between the first and the last were not checked before.
    let foreign = (head.is_foreign && file.is_some_and(|file| !file.is_foreign))
        .then(|| foreign_uuid(Some(1), head.uuid.unwrap_or_default(), trace.uuid()));
    if !file.is_some_and(|file| file.indexed) {
        return (packet, foreign);
    }
    let whole = packet.bytes.saturating_mul(8);
    let content = head
        .content_bits
        .or(head.total_bits)
        .unwrap_or(packet.content_bits);
    let total = head.total_bits.unwrap_or(whole);
    // The head of a misplaced packet has other times than those that it counts with.
    let clock = if packet.is_misplaced {
        packet.clock
    } else {
        head.begin
    };
    let has_other_times = clock != packet.clock;
    let is_other = content != packet.content_bits || has_other_times;
    // By the index, the next packet begins where this one ends.
    let complaint = if !is_other && total > whole {
        Some(format!(
            "the packet's size ({} bytes) is not true: by the index it has {} bytes",
            total / 8,
            packet.bytes
        ))
    } else if is_other || total != whole {
        Some(OTHER_PACKET.to_owned())
    } else {
        foreign
    };
    let is_possible = content >= head.end_of_head && content <= whole;
    let content_bits = if is_possible { content } else { packet.content_bits };
    let (begin, end) = if has_other_times {
        (clock, head.end.filter(|&end| is_written(end, clock)))
    } else {
        (packet.begin, packet.end)
    };
    (
        Packet {
            content_bits,
            clock,
            begin,
            end,
            ..packet
        },
        complaint,
    )
}
