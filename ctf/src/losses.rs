//! Losses that a tracer records: event records for which there was no room, and packets that were
//! overwritten before they were read.
//!
//! Both are known only between packets: from a running count of discarded event records in each
//! packet's context, and from gaps in the packets' sequence numbers.
//!
//! Counters of tracers have faults: a counter of LTTng has been observed to read 3080, then 0 in a
//! single packet, then 3080 again. So a counter that goes backwards is either wrong for a while or
//! starts again; its next value shows which.

use crate::stream::{Packet, Stream};

/// The unit of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LossKind {
    /// Event records.
    Events,
    /// Whole packets, with an unknown number of event records.
    Packets,
}

/// The reason why the size of a loss is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownCount {
    /// The running count is lower than in the previous packet: there was a loss, or the counter is
    /// wrong.
    CounterBackwards,
    /// The stream's first packet in this trace is not the first that the tracer wrote. Its running
    /// count includes earlier losses.
    BeforeFirstPacket,
}

impl std::fmt::Display for UnknownCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            UnknownCount::CounterBackwards => "the tracer's counter went backwards",
            UnknownCount::BeforeFirstPacket => {
                "the tracer's count includes losses before the first packet of the trace"
            }
        })
    }
}

/// A loss between two packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The unit of the loss.
    pub kind: LossKind,
    /// Number of lost event records or packets, at least 1. `None` if it is unknown: see
    /// [`Loss::unknown`].
    pub count: Option<u64>,
    /// The reason why the count is unknown.
    pub unknown: Option<UnknownCount>,
    /// Index in [`Stream::packets`] of the packet after the loss.
    pub packet: usize,
    /// Clock value before which none of this loss occurred, in cycles.
    pub from: Option<u64>,
    /// Clock value after which none of this loss occurred, in cycles.
    pub to: Option<u64>,
}

/// Difference of two values of a running counter of `width` bits.
fn difference(before: u64, now: u64, width: u8) -> Result<u64, UnknownCount> {
    let width = if width == 0 {
        64
    } else {
        u32::from(width.min(64))
    };
    let mask = u64::MAX >> (64 - width);
    let difference = now.wrapping_sub(before) & mask;
    // An advance by more than half of the range is far more likely a step backwards.
    if difference > mask / 2 {
        Err(UnknownCount::CounterBackwards)
    } else {
        Ok(difference)
    }
}

impl Stream {
    /// All losses of this stream, in the order of the packets.
    ///
    /// Event records were lost between the end of the previous packet and the end of the packet
    /// whose counter increased. Packets were lost between the end of a packet and the beginning of
    /// the next.
    pub fn losses(&self) -> Vec<Loss> {
        let mut losses = Vec::new();
        let mut before: Option<&Packet> = None;
        let mut counter = Counter::new(self.head.discarded_width);
        for (index, packet) in self.packets.iter().enumerate() {
            let lost = before.and_then(|before| self.packets_between(before, packet, index));
            losses.extend(lost);
            let difference = counter.next(packet.discarded);
            losses.extend(match before {
                Some(before) => events_between(before, packet, index, difference),
                None => events_before_first(packet, index),
            });
            before = Some(packet);
        }
        losses
    }

    /// Whether bytes of the file were skipped between two packets. Packets missing there are part
    /// of the reported damage and were not lost by the tracer.
    fn is_damaged_between(&self, before: &Packet, packet: &Packet) -> bool {
        let file = self.files.get(before.file as usize);
        let Some(file) = file.filter(|_| before.file == packet.file) else {
            return false;
        };
        let behind = |range: &std::ops::Range<u64>| range.start < before.offset;
        let next = file.skipped.get(file.skipped.partition_point(behind));
        next.is_some_and(|range| range.start < packet.offset)
    }

    fn packets_between(&self, before: &Packet, packet: &Packet, index: usize) -> Option<Loss> {
        let (first, second) = (before.sequence?, packet.sequence?);
        // Equal or lower numbers: the tracer does not count packets, or has started again.
        let lost = difference(first, second, self.head.sequence_width)
            .ok()?
            .checked_sub(1)?;
        if self.is_damaged_between(before, packet) {
            return None;
        }
        let (from, to) = (before.end, packet.begin);
        (lost > 0).then_some(Loss {
            kind: LossKind::Packets,
            count: Some(lost),
            unknown: None,
            packet: index,
            from,
            to,
        })
    }
}

/// A running count of discarded event records.
struct Counter {
    width: u8,
    /// Value in the previous packet.
    last: Option<u64>,
    /// The highest count before a step backwards, until it is known whether the counter has started
    /// again.
    peak: Option<u64>,
}

impl Counter {
    fn new(width: u8) -> Self {
        Counter {
            width,
            last: None,
            peak: None,
        }
    }

    /// The increase from the previous packet to the next; 0 if either packet has no count.
    fn next(&mut self, now: Option<u64>) -> Result<u64, UnknownCount> {
        let (Some(last), Some(now)) = (std::mem::replace(&mut self.last, now), now) else {
            return Ok(0);
        };
        let from_last = difference(last, now, self.width);
        if from_last == Ok(0) {
            return from_last;
        }
        // The counter is back at its old value or higher: it was wrong for a while, and only the
        // increase over the old value counts.
        let from_peak = self.peak.map(|peak| difference(peak, now, self.width));
        if let Some(Ok(more)) = from_peak {
            self.peak = None;
            return Ok(more);
        }
        self.peak = match from_last {
            // The counter continues from the lower value: it has started again.
            Ok(_) => None,
            Err(_) => self.peak.or(Some(last)),
        };
        from_last
    }
}

fn events_between(
    before: &Packet,
    packet: &Packet,
    index: usize,
    difference: Result<u64, UnknownCount>,
) -> Option<Loss> {
    (difference != Ok(0)).then_some(Loss {
        kind: LossKind::Events,
        count: difference.ok(),
        unknown: difference.err(),
        packet: index,
        from: before.end.or(before.begin),
        to: packet.end.or(packet.begin),
    })
}

fn events_before_first(packet: &Packet, index: usize) -> Option<Loss> {
    let discarded = packet.discarded.filter(|&discarded| discarded > 0)?;
    // Only a packet with the sequence number 0 is certainly the first that was ever written.
    let is_first = packet.sequence == Some(0);
    Some(Loss {
        kind: LossKind::Events,
        count: is_first.then_some(discarded),
        unknown: (!is_first).then_some(UnknownCount::BeforeFirstPacket),
        packet: index,
        from: packet.begin,
        to: packet.end.or(packet.begin),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketHead;

    fn stream(width: u8, packets: &[(u64, u64)]) -> Stream {
        let packet = |(index, &(discarded, sequence)): (usize, &(u64, u64))| Packet {
            file: 0,
            offset: 0,
            bytes: 8,
            content_bits: 64,
            clock: Some(index as u64 * 100),
            begin: Some(index as u64 * 100),
            end: Some(index as u64 * 100 + 50),
            discarded: Some(discarded),
            sequence: Some(sequence),
            is_misplaced: false,
        };
        let head = PacketHead {
            discarded_width: width,
            sequence_width: 64,
            ..PacketHead::default()
        };
        let packets = packets.iter().enumerate().map(packet).collect();
        Stream {
            class: 0,
            id: None,
            files: Vec::new(),
            packets,
            head,
            is_mixed: false,
            is_in_order_of_time: false,
        }
    }

    #[test]
    fn deltas_of_the_running_count_are_what_was_lost() {
        let losses = stream(64, &[(0, 0), (5, 1), (5, 2), (12, 3)]).losses();
        assert_eq!(
            losses.iter().map(|loss| loss.count).collect::<Vec<_>>(),
            [Some(5), Some(7)]
        );
        assert_eq!(
            (losses[0].from, losses[0].to, losses[0].packet),
            (Some(50), Some(150), 1)
        );
        assert_eq!(losses[1].kind, LossKind::Events);
    }

    #[test]
    fn counters_of_32_bits_wrap() {
        let top = u64::from(u32::MAX);
        let losses = stream(32, &[(top - 1, 1), (3, 2)]).losses();
        assert_eq!(losses[0].unknown, Some(UnknownCount::BeforeFirstPacket));
        assert_eq!(losses[1].count, Some(5));
        assert_eq!(
            stream(64, &[(0, 0), (top - 1, 1), (3, 2)]).losses()[1].count,
            None
        );
    }

    #[test]
    fn a_counter_that_goes_backwards_gives_no_number() {
        let losses = stream(64, &[(0, 0), (100, 1), (90, 2), (95, 3)]).losses();
        assert_eq!(
            losses.iter().map(|loss| loss.count).collect::<Vec<_>>(),
            [Some(100), None, Some(5)]
        );
        assert_eq!(losses[1].unknown, Some(UnknownCount::CounterBackwards));
    }

    fn counts(width: u8, counters: &[u64]) -> Vec<Option<u64>> {
        let packets: Vec<_> = counters.iter().copied().zip(0..).collect();
        let losses = stream(width, &packets).losses();
        losses.iter().map(|loss| loss.count).collect()
    }

    #[test]
    fn a_counter_that_comes_back_counts_nothing_twice() {
        assert_eq!(
            counts(64, &[0, 3080, 0, 3080, 3080, 3395]),
            [Some(3080), None, Some(315)]
        );
        // The counter continues at once, or is wrong for several packets, or more than once.
        assert_eq!(
            counts(64, &[0, 3080, 0, 3395]),
            [Some(3080), None, Some(315)]
        );
        assert_eq!(counts(64, &[0, 90, 0, 0, 0, 95]), [Some(90), None, Some(5)]);
        assert_eq!(
            counts(64, &[0, 90, 7, 3, 95, 0, 96]),
            [Some(90), None, None, Some(5), None, Some(1)]
        );
        // After a step backwards has been resolved, the next step is independent.
        assert_eq!(
            counts(64, &[0, 90, 0, 90, 80, 85]),
            [Some(90), None, None, Some(5)]
        );
        // The value to which the counter returns may have wrapped.
        let top = u64::from(u32::MAX);
        assert_eq!(
            counts(32, &[0, 1 << 30, 1 << 31, top, 1 << 31, 4])[3..],
            [None, Some(5)]
        );
    }

    #[test]
    fn a_counter_that_begins_anew_counts_from_there() {
        assert_eq!(
            counts(64, &[0, 3080, 0, 5, 3080, 3081]),
            [Some(3080), None, Some(5), Some(3075), Some(1)]
        );
    }

    #[test]
    fn gaps_in_sequence_numbers_are_lost_packets() {
        let losses = stream(64, &[(0, 3), (0, 4), (0, 9), (0, 9), (0, 2)]).losses();
        assert_eq!(losses.len(), 1);
        assert_eq!(
            (losses[0].kind, losses[0].count),
            (LossKind::Packets, Some(4))
        );
        assert_eq!((losses[0].from, losses[0].to), (Some(150), Some(200)));
    }

    #[test]
    fn what_the_first_packet_counts_is_known_if_it_is_the_first_ever() {
        assert_eq!(stream(64, &[(8, 0)]).losses()[0].count, Some(8));
        assert_eq!(stream(64, &[(8, 4)]).losses()[0].count, None);
        assert!(stream(64, &[(0, 4)]).losses().is_empty());
    }
}
