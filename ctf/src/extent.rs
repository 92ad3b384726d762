//! Plausibility of packet heads: their sizes, times and order.

use std::path::Path;

use crate::damage::Damage;
use crate::packet::PacketHead;
use crate::stream::Packet;

/// Sizes that tracers leave in a packet that they have not closed.
pub(crate) fn is_unset(bits: Option<u64>) -> bool {
    matches!(bits, Some(0 | 0xffff_ffff | u64::MAX))
}

/// The size that a packet's head contains, after validation.
pub(crate) struct Extent {
    /// Size of the packet in bits, if it is plausible for the file.
    pub(crate) total: Option<u64>,
    pub(crate) content: Content,
    pub(crate) complaint: Option<String>,
}

/// The end of a packet's content.
#[derive(Clone, Copy)]
pub(crate) enum Content {
    /// The content has this number of bits.
    Known(u64),
    /// The tracer did not close the packet.
    Open,
    /// The size in the head is not plausible. The bytes after the event records may be left over
    /// from earlier use of the tracer's buffer, so they are not read.
    Unknown,
}

/// Validates the sizes; `rest` bits of the file are left. Without a magic number, the end of an
/// open packet cannot be found.
pub(crate) fn extent(head: &PacketHead, rest: u64, has_magic: bool) -> Extent {
    let (total, content) = (head.total_bits, head.content_bits);
    let sound = |total: Option<u64>| total.filter(|&total| is_sound(total, head, rest));
    if is_unset(content) || (is_unset(total) && content.is_none()) {
        let message = "the tracer did not close this packet: its sizes are not set";
        let total = sound(total.filter(|_| !is_unset(total)));
        let is_bounded = has_magic || content.is_some() || total.is_some();
        let content = if is_bounded {
            Content::Open
        } else {
            Content::Unknown
        };
        return Extent {
            total,
            content,
            complaint: Some(message.to_owned()),
        };
    }
    // A head without sizes: a single packet extends to the end of the file.
    let total = total.or(content).unwrap_or(rest);
    let content = content.unwrap_or(total);
    let needed = head.end_of_head;
    let complaint = if total % 8 != 0 {
        Some(format!(
            "the packet's size, {total} bits, is not a whole number of bytes"
        ))
    } else if total < needed || content < needed {
        Some(format!(
            "the packet's size ({total} bits, content {content}) is smaller than its head ({needed} bits)"
        ))
    } else if content > total {
        Some(format!(
            "the packet's content ({content} bits) is larger than the packet ({total} bits)"
        ))
    } else if total > rest {
        Some(format!(
            "the file ends {} bytes before the packet does",
            (total - rest) / 8
        ))
    } else {
        None
    };
    // An implausible size does not invalidate the size of the content.
    let most = if total % 8 == 0 && total >= needed {
        total
    } else {
        rest
    };
    let is_possible = content >= needed && content <= most;
    let content = if is_possible {
        Content::Known(content)
    } else {
        Content::Unknown
    };
    Extent {
        total: sound(Some(total)),
        content,
        complaint,
    }
}

pub(crate) fn is_sound(total: u64, head: &PacketHead, rest: u64) -> bool {
    total > 0 && total.is_multiple_of(8) && total >= head.end_of_head && total <= rest
}

/// Whether the size in the head of a packet that was found by its magic number is plausible.
pub(crate) fn is_plausible(head: &PacketHead, rest: u64) -> bool {
    let extent = extent(head, rest, true);
    extent.total.is_some()
        || is_unset(head.total_bits)
        || head.total_bits.is_some_and(|total| total > rest)
}

pub(crate) fn is_same_stream(first: &PacketHead, second: &PacketHead) -> bool {
    (first.stream_class, first.stream_id) == (second.stream_class, second.stream_id)
}

/// Difference of the packets' sequence numbers, modulo their width.
pub(crate) fn steps(first: &PacketHead, second: &PacketHead) -> Option<u64> {
    let width = u32::from(first.sequence_width.clamp(1, 64));
    let mask = u64::MAX >> (64 - width);
    Some(second.sequence?.wrapping_sub(first.sequence?) & mask)
}

/// Whether the sequence number of the second packet directly follows that of the first.
pub(crate) fn is_next(first: &PacketHead, second: &PacketHead) -> bool {
    is_same_stream(first, second) && steps(first, second) == Some(1)
}

/// Whether the second packet can follow the first. If not, it is left over from earlier use of the
/// tracer's buffer.
pub(crate) fn follows(first: &PacketHead, second: &PacketHead) -> bool {
    if !is_same_stream(first, second) {
        return true;
    }
    let most = u64::MAX >> (65 - u32::from(first.sequence_width.clamp(2, 64)));
    let is_numbered = steps(first, second).is_none_or(|steps| (1..=most).contains(&steps));
    let is_later = match (first.begin, second.begin) {
        (Some(first), Some(second)) => second >= first,
        _ => true,
    };
    is_numbered && is_later
}

/// True if the tracer wrote the packet's end. The end is 0 or all ones if the tracer was killed.
pub(crate) fn is_written(end: u64, begin: Option<u64>) -> bool {
    end != u64::MAX && (end > 0 || begin == Some(0))
}

/// Reports a packet that ends before it begins.
pub(crate) fn ends_before_begin(path: &Path, packet: &Packet) -> Option<Damage> {
    let (begin, end) = (packet.begin?, packet.end?);
    let message =
        format!("the packet's end ({end} cycles) is before its beginning ({begin} cycles)");
    (end < begin).then(|| Damage::at(path, packet.offset, message))
}
