//! The time range of the event records of a packet whose head does not contain it.
//!
//! A head may contain no times at all (DPDK), an end of 0 (a tracer that was killed:
//! `lttng-crash`), an end that is earlier than the last event record (LTTng up to 2.11), or a
//! beginning that is later than the first event record (barectf up to 2.3). These times affect
//! which packets are read, and in which order, only through [`Packet::begin`] and
//! [`Stream::reach`].

use crate::stream::{Packet, Stream};

impl Stream {
    /// Sets the beginnings of packets to the times of their first event records, where `firsts`
    /// contains their clock values (by packet).
    ///
    /// A first event record that is earlier than the beginning of the previous packet is considered
    /// damaged and ignored. A packet without event records begins with the previous packet.
    pub(crate) fn learn_begins(&mut self, firsts: &[Option<u64>]) {
        let mut before = None;
        for (packet, &first) in self.packets.iter_mut().zip(firsts) {
            let first = first.filter(|first| packet.clock.is_none() || before <= Some(*first));
            if !packet.is_misplaced {
                packet.begin = match (packet.begin, first) {
                    (Some(begin), Some(first)) => Some(begin.min(first)),
                    (begin, first) => begin.or(first),
                };
            }
            before = packet.begin;
        }
        let mut known = self.packets.iter().find_map(|packet| packet.begin);
        for packet in &mut self.packets {
            packet.begin = packet.begin.or(known);
            known = packet.begin;
        }
    }

    /// Latest clock value at which the packet may contain event records, in cycles; `None` if it
    /// cannot be known without reading the packet.
    ///
    /// The value is the end in the packet's head, or the beginning of the next packet if that is
    /// later: some tracers write event records after the end that they declare. If the head
    /// contains no end, the value is the beginning of the next packet, provided that the heads
    /// contain the beginnings of both packets. The beginning of a misplaced packet was copied from
    /// the end of the previous packet, so it gives no bound.
    pub fn reach(&self, packet: usize) -> Option<u64> {
        let next = self.packets.get(packet.checked_add(1)?)?;
        let packet = self.packets.get(packet)?;
        if next.is_misplaced {
            return None;
        }
        match packet.end {
            Some(end) => Some(end.max(next.begin?)),
            None => follows(packet, next).then_some(next.begin?),
        }
    }

    /// True if the packets are sorted by begin time. Packets in a copy of a ring buffer may not be.
    ///
    /// Computed when the trace is opened, since each chunk plan and each report needs it. A clock
    /// correction does not change the order: packet times stay in cycles.
    pub fn is_in_order_of_time(&self) -> bool {
        debug_assert_eq!(self.is_in_order_of_time, self.begins_are_sorted());
        self.is_in_order_of_time
    }

    /// Computes `is_in_order_of_time`. The begin times of packets must not change afterwards.
    pub(crate) fn learn_order(&mut self) {
        self.is_in_order_of_time = self.begins_are_sorted();
    }

    fn begins_are_sorted(&self) -> bool {
        self.packets
            .iter()
            .filter_map(|packet| packet.begin)
            .is_sorted()
    }

    /// Whether a packet may contain event records at or after `from` and before `until`, in cycles.
    #[inline]
    pub fn may_hold(&self, packet: usize, from: u64, until: u64) -> bool {
        let begin = self.packets.get(packet).and_then(|packet| packet.begin);
        begin.is_none_or(|begin| begin < until || until == u64::MAX)
            && (from == 0 || self.reach(packet).is_none_or(|reach| reach >= from))
    }
}

/// Whether the heads contain the beginnings of both packets, the second not before the first. A
/// beginning that was learned from an event record gives no bound for the previous packet: a clock
/// with few bits starts anew in each such packet.
fn follows(packet: &Packet, next: &Packet) -> bool {
    packet.clock.is_some() && next.clock.is_some() && packet.begin <= next.begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketHead;

    /// A stream of packets with these clock values at their beginnings, and these ends.
    fn stream(times: &[(Option<u64>, Option<u64>)]) -> Stream {
        let packet = |&(clock, end): &(Option<u64>, Option<u64>)| Packet {
            file: 0,
            offset: 0,
            bytes: 8,
            content_bits: 64,
            clock,
            begin: clock,
            end,
            discarded: None,
            sequence: None,
            is_misplaced: false,
        };
        Stream {
            class: 0,
            id: None,
            files: Vec::new(),
            packets: times.iter().map(packet).collect(),
            head: PacketHead::default(),
            is_mixed: false,
            is_in_order_of_time: false,
        }
    }

    fn begins(stream: &Stream) -> Vec<Option<u64>> {
        stream.packets.iter().map(|packet| packet.begin).collect()
    }

    #[test]
    fn first_records_give_beginnings_that_heads_do_not() {
        let mut unanchored = stream(&[(None, None); 5]);
        unanchored.learn_begins(&[None, Some(7), None, Some(3), Some(9)]);
        assert_eq!(begins(&unanchored), [7, 7, 7, 3, 9].map(Some));
        let mut nothing = stream(&[(None, None); 2]);
        nothing.learn_begins(&[None, None]);
        assert_eq!(begins(&nothing), [None, None]);
    }

    #[test]
    fn a_first_record_before_the_beginning_counts_unless_it_is_before_the_packet_before() {
        let mut late = stream(&[(Some(10), None), (Some(20), None), (Some(30), None)]);
        late.learn_begins(&[Some(8), Some(25), Some(28)]);
        assert_eq!(begins(&late), [8, 20, 28].map(Some));
        let mut damaged = stream(&[(Some(10), None), (Some(20), None), (Some(30), None)]);
        damaged.learn_begins(&[Some(10), Some(9), Some(29)]);
        assert_eq!(begins(&damaged), [10, 20, 29].map(Some));
        assert_eq!(
            late.packets[0].clock,
            Some(10),
            "decoding begins there all the same"
        );
    }

    #[test]
    fn packets_reach_to_their_end_or_the_next_one() {
        let told = stream(&[
            (Some(0), Some(5)),
            (Some(9), Some(20)),
            (Some(15), Some(30)),
        ]);
        let reach = |stream: &Stream| [0, 1, 2].map(|packet| stream.reach(packet));
        assert_eq!(reach(&told), [Some(9), Some(20), None]);
        let killed = stream(&[(Some(0), None), (Some(9), None), (Some(5), None)]);
        assert_eq!(reach(&killed), [Some(9), None, None]);
        let mut unanchored = stream(&[(None, None), (None, Some(8)), (None, None)]);
        unanchored.learn_begins(&[Some(3), Some(4), Some(6)]);
        assert_eq!(reach(&unanchored), [None, Some(8), None]);
        let mut misplaced = stream(&[
            (Some(0), Some(5)),
            (Some(5), Some(20)),
            (Some(30), Some(40)),
        ]);
        misplaced.packets[1].is_misplaced = true;
        assert_eq!(reach(&misplaced), [None, Some(30), None]);
    }

    #[test]
    fn packets_outside_of_a_range_hold_nothing_of_it() {
        let told = stream(&[
            (Some(0), Some(5)),
            (Some(9), Some(20)),
            (Some(25), Some(30)),
        ]);
        let held = |from, until| [0, 1, 2].map(|packet| told.may_hold(packet, from, until));
        assert_eq!(held(0, u64::MAX), [true; 3]);
        assert_eq!(held(9, 10), [true, true, false]);
        assert_eq!(held(26, u64::MAX), [false, false, true]);
        assert_eq!(held(25, 25), [false, true, false]);
        // Records of the last packet may be later than its end.
        assert_eq!(held(1000, u64::MAX), [false, false, true]);
    }
}
