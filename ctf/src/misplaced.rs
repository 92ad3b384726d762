//! Packets whose beginning does not fit between those of their neighbours: a bit is wrong, or the
//! clock went back.
//!
//! The beginning of a packet contains the upper bits of the times of its event records. An error of
//! seconds or years would shift all these times, and the thread that ran last would seem to have
//! run all that time. So such a packet is assumed to begin at the end of the previous packet.
//!
//! The last packet of a file fits with any beginning that is late enough. Other streams of the
//! trace may contradict it, but do not prove it wrong: its times are kept, and a note reports it
//! ([`stray_ends`]).
//!
//! Packets may also be in a different order than they were written, as in a copy of a ring buffer.
//! Their times are right then.

use std::path::Path;

use crate::damage::Damage;
use crate::packets::MOST_FAULTS;
use crate::stream::{Packet, Stream};
use crate::trace::Trace;

impl Stream {
    /// Corrects the times of misplaced packets and reports each packet. The stream has a single
    /// file.
    pub(crate) fn mend_times(&mut self, path: &Path, damage: &mut Vec<Damage>) {
        let misplaced = misplaced(&self.packets);
        let runs: Vec<&[usize]> = misplaced.chunk_by(|one, next| one + 1 == *next).collect();
        // If half of the packets or more are misplaced, the right packets cannot be determined.
        let is_unclear = misplaced.len() * 2 >= self.packets.len();
        if is_unclear || runs.iter().any(|run| !self.is_where_it_was_written(run)) {
            if let Some(packet) = misplaced.first().and_then(|&index| self.packets.get(index)) {
                let message = "packets are not in the order of time from here on: times go back";
                damage.push(Damage::at(path, packet.offset, message));
            }
            return;
        }
        // All packets of a run have the same predecessor: the packet before the run.
        let before = runs
            .iter()
            .flat_map(|run| run.iter().map(|_| run[0].checked_sub(1)));
        let before: Vec<Option<usize>> = before.collect();
        let mut faults = Vec::new();
        // In reverse order, so that each packet is compared with the corrected time of the next.
        for (&index, before) in misplaced.iter().zip(before).rev() {
            let next = self.packets.get(index + 1).and_then(|packet| packet.begin);
            let before = before.and_then(|index| self.packets.get(index));
            let until = before.and_then(|packet| packet.end.max(packet.begin));
            let Some(packet) = self.packets.get_mut(index) else {
                continue;
            };
            let told = packet.begin.unwrap_or_default();
            let begin = match (until, next) {
                (Some(until), Some(next)) => until.min(next),
                (until, next) => until.or(next).unwrap_or(told),
            };
            faults.push(Damage::at(
                path,
                packet.offset,
                format!(
                    "the packet's beginning ({told} cycles) does not fit between the packets around it; {begin} cycles are used instead"
                ),
            ));
            *packet = Packet {
                clock: Some(begin),
                begin: Some(begin),
                end: next.or(packet.end.filter(|&end| end >= begin)),
                is_misplaced: true,
                ..*packet
            };
        }
        let more = faults.len().saturating_sub(MOST_FAULTS as usize);
        damage.extend(faults.into_iter().rev().take(MOST_FAULTS as usize));
        if more > 0 {
            let packets = match more {
                1 => "1 more packet of this file does".to_owned(),
                more => format!("{more} more packets of this file do"),
            };
            let message = format!("{packets} not fit between those around them");
            damage.push(Damage::of(path, message));
        }
    }
}

impl Stream {
    /// Whether consecutive packets are where they were written, so that their times are wrong and
    /// not their positions. Decided by sequence numbers, or, without these, by whether other
    /// packets precede and follow them.
    fn is_where_it_was_written(&self, run: &[usize]) -> bool {
        let (Some(first), Some(last)) = (run.first(), run.last()) else {
            return true;
        };
        let (from, to) = (first.saturating_sub(1), (last + 2).min(self.packets.len()));
        let around = self.packets.get(from..to).unwrap_or_default();
        let numbers: Option<Vec<u64>> = around.iter().map(|packet| packet.sequence).collect();
        match numbers {
            Some(numbers) => numbers.is_sorted(),
            None => *first > 0 && self.packets.len() > last + 1,
        }
    }
}

/// Notes on streams whose last packet begins so late after the rest of the trace that its time may
/// be wrong: later than the end of all other packets, of this stream and of others, by more than
/// the time that all these packets span.
///
/// A tracer that stops ends the packets of all streams, so the streams of a valid trace end close
/// to each other.
pub(crate) fn stray_ends(trace: &Trace) -> Vec<Damage> {
    let spans: Vec<Option<Span>> = trace
        .streams
        .iter()
        .map(|stream| Span::of(trace, stream))
        .collect();
    // The stream with the latest last packet: only one packet can be later than all others.
    let latest =
        (0..spans.len()).max_by_key(|&index| spans[index].as_ref().map(|span| span.last.0));
    let Some((index, span)) = latest.and_then(|index| Some((index, spans[index].as_ref()?))) else {
        return Vec::new();
    };
    let others = spans
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != index);
    let others: Vec<(i64, i64)> = others
        .filter_map(|(_, span)| span.as_ref().map(Span::whole))
        .collect();
    // With a single stream, the time cannot be contradicted.
    let (Some(rest), false) = (span.rest, others.is_empty()) else {
        return Vec::new();
    };
    let all = others.into_iter().chain([rest]);
    let Some((first, last)) = all.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    else {
        return Vec::new();
    };
    let (gap, length) = (span.last.0.saturating_sub(last), last.saturating_sub(first));
    let packet = trace.streams[index].packets.last();
    let (true, Some(packet)) = (gap > length.max(LEAST_GAP), packet) else {
        return Vec::new();
    };
    let path = trace.streams[index]
        .files
        .get(packet.file as usize)
        .map(|file| file.path.as_path());
    let message = format!(
        "the last packet of this stream begins {:.3} s after the end of the rest of the trace, which is {:.3} s long: its times may be wrong",
        gap as f64 / 1e9,
        length as f64 / 1e9
    );
    vec![Damage::at(
        path.unwrap_or(Path::new("")),
        packet.offset,
        message,
    )]
}

/// Gaps up to this length are not reported, since a trace may be very short. In nanoseconds.
const LEAST_GAP: i64 = 1_000_000_000;

/// The times of a stream's packets, in nanoseconds from the origin.
struct Span {
    /// All packets but the last, if there are others.
    rest: Option<(i64, i64)>,
    /// The last packet.
    last: (i64, i64),
}

impl Span {
    fn of(trace: &Trace, stream: &Stream) -> Option<Span> {
        let clock = trace.clock(stream)?;
        let times = |packet: &Packet| {
            let begin = packet.begin?;
            let end = packet.end.unwrap_or(begin).max(begin);
            Some((clock.timestamp(begin).0, clock.timestamp(end).0))
        };
        let (last, rest) = stream.packets.split_last()?;
        let join = |one: (i64, i64), other: (i64, i64)| (one.0.min(other.0), one.1.max(other.1));
        Some(Span {
            rest: rest.iter().filter_map(times).reduce(join),
            last: times(last)?,
        })
    }

    /// All packets.
    fn whole(&self) -> (i64, i64) {
        let rest = self.rest.unwrap_or(self.last);
        (rest.0.min(self.last.0), rest.1.max(self.last.1))
    }
}

/// Indices of a smallest set of packets without which the begin times of the others are sorted: the
/// packets outside a longest non-decreasing subsequence (patience sorting).
fn misplaced(packets: &[Packet]) -> Vec<usize> {
    let begins = packets.iter().enumerate();
    let begins: Vec<(usize, u64)> = begins
        .filter_map(|(index, packet)| Some((index, packet.begin?)))
        .collect();
    if begins.is_sorted_by_key(|begin| begin.1) {
        return Vec::new();
    }
    // `ends`: by length, the index of the smallest end of a subsequence of this length. `before`:
    // for each beginning, its predecessor in the subsequence.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (at, &(_, begin)) in begins.iter().enumerate() {
        let length = ends.partition_point(|&end| begins[end].1 <= begin);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut in_order = vec![false; begins.len()];
    let mut last = ends.last().copied();
    while let Some(at) = last {
        in_order[at] = true;
        last = before[at];
    }
    prefer_those_that_fit(packets, &begins, &mut in_order);
    let outside = begins
        .iter()
        .zip(in_order)
        .filter(|(_, in_order)| !in_order);
    outside.map(|((index, _), _)| *index).collect()
}

/// If either of two neighbours could be the misplaced packet, selects the one that overlaps more
/// with the other packets.
fn prefer_those_that_fit(packets: &[Packet], begins: &[(usize, u64)], in_order: &mut [bool]) {
    let packet = |at: usize| begins.get(at).and_then(|&(index, _)| packets.get(index));
    for at in 0..in_order.len() {
        for other in [at.wrapping_sub(1), at + 1] {
            if in_order[at] || in_order.get(other) != Some(&true) {
                continue;
            }
            let before = (0..at.min(other)).rev().find(|&at| in_order[at]);
            let behind = (at.max(other) + 1..in_order.len()).find(|&at| in_order[at]);
            let (before, behind) = (before.and_then(packet), behind.and_then(packet));
            let faults = |own: &Packet| {
                let overlaps = |first: Option<&Packet>, second: Option<&Packet>| {
                    let (end, begin) = first
                        .and_then(|first| first.end)
                        .zip(second.and_then(|second| second.begin))?;
                    Some(end > begin)
                };
                let told = [overlaps(before, Some(own)), overlaps(Some(own), behind)];
                let is_backwards = own.end.is_some() && own.end < own.begin;
                told.into_iter().flatten().filter(|&fault| fault).count()
                    + usize::from(is_backwards)
            };
            let fits = |own: &Packet| {
                before.is_none_or(|before| before.begin <= own.begin)
                    && behind.is_none_or(|behind| own.begin <= behind.begin)
            };
            if let (Some(own), Some(theirs)) = (packet(at), packet(other))
                && fits(own)
                && faults(own) < faults(theirs)
            {
                (in_order[at], in_order[other]) = (true, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::PacketHead;

    fn packet(number: usize, (begin, end): (u64, u64)) -> Packet {
        Packet {
            file: 0,
            offset: number as u64 * 4096,
            bytes: 4096,
            content_bits: 4096 * 8,
            clock: Some(begin),
            begin: Some(begin),
            end: Some(end),
            discarded: None,
            sequence: None,
            is_misplaced: false,
        }
    }

    fn mended(times: &[(u64, u64)]) -> (Vec<(u64, u64)>, usize) {
        mended_of(times, &[])
    }

    /// The corrected times of packets with these times and numbers, and the number of reported
    /// faults.
    fn mended_of(times: &[(u64, u64)], numbers: &[u64]) -> (Vec<(u64, u64)>, usize) {
        let packets = times.iter().enumerate().map(|(at, times)| Packet {
            sequence: numbers.get(at).copied(),
            ..packet(at, *times)
        });
        let mut stream = Stream {
            class: 0,
            id: None,
            files: Vec::new(),
            packets: packets.collect(),
            head: PacketHead::default(),
            is_mixed: false,
            is_in_order_of_time: false,
        };
        let mut damage = Vec::new();
        stream.mend_times(Path::new("stream"), &mut damage);
        let times = stream.packets.iter();
        let times = times.map(|packet| (packet.begin.unwrap(), packet.end.unwrap()));
        (times.collect(), damage.len())
    }

    #[test]
    fn packets_in_order_stay_as_they_are() {
        // Packets may begin before the previous packets end.
        for times in [&[][..], &[(5, 9)], &[(1, 5), (4, 8), (4, 9), (10, 9)]] {
            assert_eq!(mended(times), (times.to_vec(), 0));
        }
    }

    #[test]
    fn a_packet_that_does_not_fit_follows_the_one_before() {
        // Too early, too late, and both times too late.
        for wrong in [(1, 30), (35, 30), (1000, 30), (1000, 1010)] {
            let times = [(0, 10), (10, 20), wrong, (30, 40), (40, 50)];
            let expected = vec![(0, 10), (10, 20), (20, 30), (30, 40), (40, 50)];
            assert_eq!(mended(&times), (expected, 1), "{wrong:?}");
        }
        // Two in a row, and the first packet.
        let times = [
            (0, 10),
            (900, 910),
            (800, 810),
            (30, 40),
            (40, 50),
            (50, 60),
        ];
        let expected = [(0, 10), (10, 10), (10, 30), (30, 40), (40, 50), (50, 60)];
        assert_eq!(mended(&times).1, 2);
        assert_eq!(mended(&times).0[2..], expected[2..]);
        // At either end, the sequence numbers show that the packets are where they were written.
        let times = [(900, 910), (10, 20), (20, 30)];
        assert_eq!(
            mended_of(&times, &[0, 1, 2]),
            (vec![(10, 10), (10, 20), (20, 30)], 1)
        );
    }

    #[test]
    fn a_copy_of_a_ring_keeps_its_times() {
        let times = [
            (80, 90),
            (90, 100),
            (30, 40),
            (40, 50),
            (50, 60),
            (60, 70),
            (70, 80),
        ];
        assert_eq!(mended(&times), (times.to_vec(), 1));
        let numbers = [8, 9, 3, 4, 5, 6, 7];
        assert_eq!(mended_of(&times, &numbers), (times.to_vec(), 1));
        // Within the others too, if the sequence numbers show it.
        let times = [(0, 10), (90, 100), (30, 40), (40, 50), (50, 60)];
        assert_eq!(mended_of(&times, &[0, 9, 3, 4, 5]), (times.to_vec(), 1));
    }

    #[test]
    fn streams_in_no_order_are_left_alone() {
        let times: Vec<(u64, u64)> = (0..10).rev().map(|time| (time, time + 1)).collect();
        assert_eq!(mended(&times), (times.clone(), 1));
    }

    #[test]
    fn as_few_as_possible_are_misplaced() {
        let of = |begins: &[u64]| {
            let packets: Vec<Packet> = begins
                .iter()
                .map(|&begin| packet(0, (begin, begin)))
                .collect();
            misplaced(&packets)
        };
        assert_eq!(of(&[1, 2, 3, 2, 4]), [2]);
        assert_eq!(of(&[5, 1, 2, 3]), [0]);
        assert_eq!(of(&[1, 9, 8, 2, 3, 3, 4]), [1, 2]);
        assert!(of(&[1, 1, 2, 2]).is_empty());
    }
}
