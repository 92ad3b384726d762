//! Counts in several packets at once, so that the loads of different packets overlap.
//!
//! The position of the next record is the result of a chain of dependent loads (id, size, next id).
//! The chain takes longer than all other work on a record, and a processor cannot shorten it. Three
//! chains overlap in a thread; four need more registers than exist. A lane that reaches the end of
//! its packet takes the next packet of the chunk, so that all lanes are busy until the last
//! packets.
//!
//! `unsafe` is used because bounds checks at each load made this loop a third slower. Instead, a
//! single comparison for each record covers all loads of its header.
//!
//! # Safety argument
//! A header loads at most [`Header::reach`] bytes from its start, whatever the place of the record.
//! A lane stops if fewer than `reach` bytes of its slice are left, and `reach` is at least that, so
//! each load of a header is inside the lane's slice. The loads of a body of variable size are
//! compared with the end of the slice one at a time ([`Raw`]). A count is incremented only for an
//! id whose entry in the table has a size; the table has as many ids as there are counts. The tests
//! below compare the loop with the checked loop and open no file, so that Miri can run them.
#![allow(unsafe_code)]

use super::fast::{BYTES, ESCAPE, Fast, ScanPosition, VARIABLE, first_step};
use super::guess::{add_guessed, prefetch_from};
use super::header::{Field, Forms, Header, specialised};
use super::steps::Bytes;

/// Number of packets that are counted at once. More would need more registers than exist.
pub const LANES: usize = 3;

/// The bytes of a lane, and the clock value at which it stops.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanLane<'a> {
    pub(super) data: &'a [u8],
    /// Packet-relative byte offset of the first byte.
    pub(super) base: u64,
    pub(super) limit: u64,
}

impl ScanLane<'_> {
    /// Fewer than `reach` bytes are left, or the lane has more than `u32::MAX` bytes.
    fn is_short(&self, place: &ScanPosition, reach: usize) -> bool {
        self.data.len() < place.at.saturating_add(reach) || self.data.len() > u32::MAX as usize
    }
}

impl Fast {
    /// Minimum number of bytes that a lane must have from the start of a record.
    pub(super) fn reach(&self) -> usize {
        self.header().reach().max(LOAD)
    }

    /// Counts records of all lanes in turn until a lane must stop. Returns the number of records in
    /// each lane, and the lane that stopped. `counts` has an element for each id of the table.
    pub(super) fn count_lanes(
        &self,
        lanes: [ScanLane<'_>; LANES],
        places: &mut [ScanPosition; LANES],
        counts: &mut [u64],
    ) -> ([u64; LANES], usize) {
        specialised!(self, |header, lookup| self
            .count_lanes_of(header, lookup, lanes, places, counts))
    }

    /// Counts records of a single lane until it must stop. Returns their number.
    pub(super) fn count_lane(
        &self,
        lane: ScanLane<'_>,
        place: &mut ScanPosition,
        counts: &mut [u64],
    ) -> u64 {
        specialised!(self, |header, lookup| self
            .count_lane_of(header, lookup, lane, place, counts))
    }

    #[inline(always)]
    fn count_lane_of(
        &self,
        header: Header,
        lookup: impl Fn(u64, usize) -> u64,
        lane: ScanLane<'_>,
        place: &mut ScanPosition,
        counts: &mut [u64],
    ) -> u64 {
        let reach = header.reach().max(LOAD);
        let Some(counts) = counts.get_mut(..self.ids()) else {
            return 0;
        };
        if lane.is_short(place, reach) {
            return 0;
        }
        let mut walk = Walk::new(lane, *place, reach);
        let mut counted = 0;
        // SAFETY: the lane has `reach` bytes from its record on. This was checked above, and `step`
        // checks it for each further record. `counts` has an element for each id of the table.
        while unsafe { self.step(header, &lookup, &mut walk, header.is_direct, counts) } {
            counted += 1;
        }
        if counted > 0 {
            *place = walk.place(header.is_padded);
        }
        counted
    }

    #[inline(always)]
    fn count_lanes_of(
        &self,
        header: Header,
        lookup: impl Fn(u64, usize) -> u64,
        lanes: [ScanLane<'_>; LANES],
        places: &mut [ScanPosition; LANES],
        counts: &mut [u64],
    ) -> ([u64; LANES], usize) {
        let reach = header.reach().max(LOAD);
        let is_short = |(lane, place): (&ScanLane<'_>, &ScanPosition)| lane.is_short(place, reach);
        let Some(counts) = counts.get_mut(..self.ids()) else {
            return ([0; LANES], 0);
        };
        if let Some(short) = lanes.iter().zip(&*places).position(is_short) {
            return ([0; LANES], short);
        }
        let [a, b, c] = lanes;
        let [at_a, at_b, at_c] = *places;
        let (mut a, mut b, mut c) = (
            Walk::new(a, at_a, reach),
            Walk::new(b, at_b, reach),
            Walk::new(c, at_c, reach),
        );
        let mut rounds = 0;
        // Unrolled by hand: a loop over the lanes would keep their state in memory.
        let stopped = loop {
            // SAFETY: each lane has `reach` bytes from its record on. This was checked above, and
            // `step` checks it for each further record. `counts` is as long as the table's ids.
            unsafe {
                if !self.step(header, &lookup, &mut a, false, counts) {
                    break 0;
                }
                if !self.step(header, &lookup, &mut b, false, counts) {
                    break 1;
                }
                if !self.step(header, &lookup, &mut c, false, counts) {
                    break 2;
                }
            }
            rounds += 1;
        };
        let counted: [u64; LANES] = std::array::from_fn(|lane| rounds + u64::from(lane < stopped));
        for ((place, walk), counted) in places.iter_mut().zip([a, b, c]).zip(counted) {
            *place = walk.place(header.is_padded && counted > 0);
        }
        (counted, stopped)
    }

    /// Counts a record and advances to the next; false if the lane must stop at the record. With
    /// `is_guessed`, variable sizes are guessed ([`add_guessed`]): a gain in a single lane if
    /// records repeat, as those of LTTng do.
    ///
    /// # Safety
    /// From the lane's record on, the lane must have as many bytes as were passed to [`Walk::new`],
    /// and the header's forms must not reach further. `counts` must have an element for each id of
    /// the table.
    #[inline(always)]
    unsafe fn step(
        &self,
        header: Header,
        lookup: &impl Fn(u64, usize) -> u64,
        walk: &mut Walk<'_>,
        is_guessed: bool,
        counts: &mut [u64],
    ) -> bool {
        let record = walk.record;
        // SAFETY: guaranteed by the caller for the bytes from the record on.
        let word = |field: Field| unsafe {
            header.word(record.add(field.byte).cast::<[u8; 8]>().read_unaligned())
        };
        prefetch_from(record);
        let Forms { usual, extended } = self.forms(header, walk.in_packet());
        let mut id = usual.id.value(word(usual.id)) | header.only_id;
        let mut now = usual.time.advance(walk.clock, word(usual.time));
        let mut entry = lookup(id, walk.in_packet());
        let mut size = usual.bytes() + (entry & BYTES) as usize;
        if entry & VARIABLE != 0 {
            if let Some(extended) = extended
                && entry & ESCAPE != 0
            {
                id = extended.id.value(word(extended.id));
                now = extended.time.advance(walk.clock, word(extended.time));
                if now < walk.clock {
                    return false;
                }
                entry = self.extended(header, id, walk.in_packet());
                size = extended.bytes() + (entry & BYTES) as usize;
            }
            if entry & VARIABLE != 0 {
                match self
                    .steps()
                    .follow(header.order(), walk.raw(), size, first_step(entry))
                {
                    Some(measured) if is_guessed => size = add_guessed(0, measured),
                    Some(measured) => size = measured,
                    None => return false,
                }
            }
        }
        let size = header.padded(size);
        let is_back = header.may_go_back && now < walk.clock;
        if size > walk.last as usize - record as usize || now >= walk.lane.limit || is_back {
            return false;
        }
        // SAFETY: an entry with a size belongs to an id of the table, and the caller guarantees an
        // element for each id.
        unsafe { *counts.get_unchecked_mut(id as usize) += 1 };
        walk.clock = now;
        if header.is_padded {
            walk.before = record;
        }
        walk.record = record.wrapping_add(size);
        true
    }
}

/// State of counting in a lane.
struct Walk<'a> {
    record: *const u8,
    /// Address that the packet's start would have if the bytes before the lane were in memory.
    origin: usize,
    /// The last byte at which a record may begin.
    last: *const u8,
    /// Number of bytes from `last` to the end.
    reach: usize,
    clock: u64,
    /// The previous record.
    before: *const u8,
    lane: ScanLane<'a>,
}

impl<'a> Walk<'a> {
    /// `place` must be a position from which the lane has at least `reach` bytes.
    #[inline(always)]
    fn new(lane: ScanLane<'a>, place: ScanPosition, reach: usize) -> Self {
        let start = lane.data.as_ptr();
        let record = start.wrapping_add(place.at);
        Walk {
            record,
            origin: (start as usize).wrapping_sub(lane.base as usize),
            last: start.wrapping_add(lane.data.len() - reach),
            reach,
            clock: place.clock,
            before: record,
            lane,
        }
    }

    /// Offset of the record in the packet, in bytes.
    #[inline(always)]
    fn in_packet(&self) -> usize {
        (self.record as usize).wrapping_sub(self.origin)
    }

    #[inline(always)]
    fn raw(&self) -> Raw<'a> {
        Raw {
            record: self.record,
            left: self.last as usize + self.reach - self.record as usize,
            lane: self.lane,
        }
    }

    fn place(&self, has_last: bool) -> ScanPosition {
        let offset = |record: *const u8| record as usize - self.lane.data.as_ptr() as usize;
        ScanPosition {
            at: offset(self.record),
            clock: self.clock,
            last: has_last.then(|| offset(self.before)),
        }
    }
}

/// Largest number of bytes that a step loads at once.
const LOAD: usize = 16;

/// The bytes from a record on.
#[derive(Clone, Copy)]
struct Raw<'a> {
    record: *const u8,
    /// Number of bytes from `record` on that may be read.
    left: usize,
    lane: ScanLane<'a>,
}

impl Bytes for Raw<'_> {
    #[inline(always)]
    fn eight(self, at: usize) -> Option<[u8; 8]> {
        if at >= self.left - (LOAD - 1) {
            return None;
        }
        // SAFETY: `left` bytes are readable, at least `LOAD`, and `at + LOAD <= left` was checked.
        Some(unsafe { self.record.add(at).cast::<[u8; 8]>().read_unaligned() })
    }

    #[inline(always)]
    fn past_null(self, mut at: usize) -> Option<usize> {
        loop {
            if at >= self.left - (LOAD - 1) {
                return None;
            }
            // SAFETY: as above.
            let bytes = unsafe { self.record.add(at).cast::<[u8; LOAD]>().read_unaligned() };
            if let Some(index) = null_of(bytes) {
                return Some(at + index + 1);
            }
            at += LOAD;
        }
    }

    #[inline(always)]
    fn origin(self) -> usize {
        self.record as usize - self.lane.data.as_ptr() as usize + self.lane.base as usize
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn null_of(bytes: [u8; LOAD]) -> Option<usize> {
    use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_movemask_epi8, _mm_setzero_si128};
    // SAFETY: SSE2 is part of x86-64, and both types have 16 bytes without invalid values.
    let nulls = unsafe {
        let bytes: __m128i = std::mem::transmute(bytes);
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()))
    };
    (nulls != 0).then(|| nulls.trailing_zeros() as usize)
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn null_of(bytes: [u8; LOAD]) -> Option<usize> {
    let word = u128::from_le_bytes(bytes);
    let ones = u128::from_le_bytes([1; LOAD]);
    let nulls = word.wrapping_sub(ones) & !word & (ones << 7);
    (nulls != 0).then(|| (nulls.trailing_zeros() >> 3) as usize)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::steps::Content;
    use super::*;
    use crate::layout::TraceLayout;

    const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; };
stream {
    event.header := struct { uint16_t id; integer { size = 32; align = 8; map = clock.c.value; } timestamp; };
};
event { name = constant; id = 0; fields := struct { uint32_t a; }; };
event { name = text; id = 1; fields := struct { uint16_t a; string b; uint8_t c; }; };
event { name = list; id = 2; fields := struct { uint8_t n; uint16_t b[n]; uint8_t c; }; };
event { name = choice; id = 3; fields := struct {
    string a;
    enum : uint8_t { X = 0, Y = 1 } tag;
    variant <tag> { uint32_t X; struct { } Y; } v;
}; };
event { name = lists; id = 4; fields := struct {
    uint8_t n; uint8_t a[n]; uint8_t m; uint16_t b[m]; uint16_t c;
}; };"#;

    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % limit
        }
        fn bytes(&mut self, count: u64) -> Vec<u8> {
            (0..count).map(|_| 1 + self.below(255) as u8).collect()
        }
    }

    fn records(random: &mut Random, count: u64) -> Vec<u8> {
        let mut data = Vec::new();
        for time in 0..count as u32 {
            let id = random.below(5) as u16;
            data.extend(id.to_le_bytes());
            data.extend((time * 3).to_le_bytes());
            let text_bytes = random.below(30);
            let text = [random.bytes(text_bytes), vec![0]].concat();
            let list = random.below(5);
            data.extend(match id {
                0 => random.bytes(4),
                1 => [random.bytes(2), text, random.bytes(1)].concat(),
                2 => [vec![list as u8], random.bytes(list * 2), random.bytes(1)].concat(),
                4 => {
                    let more = random.below(40);
                    let parts = [vec![list as u8], random.bytes(list), vec![more as u8]];
                    [parts.concat(), random.bytes(more * 2 + 2)].concat()
                }
                _ if list == 0 => [text, vec![1]].concat(),
                _ => [text, vec![0], random.bytes(4)].concat(),
            });
        }
        data
    }

    #[test]
    fn lanes_count_what_the_checked_loop_counts() {
        let class = crate::tsdl::parse(METADATA.as_bytes()).unwrap();
        let layout = TraceLayout::new(Arc::new(class));
        let fast = Fast::new(&layout.streams[0], &[false; 5]).unwrap();
        for seed in 0..40 {
            let mut random = Random(seed);
            let content: [Vec<u8>; LANES] = std::array::from_fn(|_| {
                let count = random.below(60);
                records(&mut random, count)
            });
            let limit = [u64::MAX, 90][seed as usize % 2];
            let mut places = [ScanPosition::new(0, 0); LANES];
            let mut counts = vec![0u64; 5];
            let lanes = content.each_ref().map(|data| ScanLane {
                data,
                base: 0,
                limit,
            });
            let (counted, stopped) = fast.count_lanes(lanes, &mut places, &mut counts);
            assert!(stopped < LANES);
            let mut checked = vec![0u64; 5];
            for lane in 0..LANES {
                // The checked loop continues when fewer than `reach` bytes are left, so the times
                // differ.
                let up_to = if counted[lane] == 0 {
                    0
                } else {
                    places[lane].clock + 1
                };
                let (data, base) = (content[lane].as_slice(), 0);
                let content = Content { data, base };
                let start = ScanPosition::new(0, 0);
                let (place, events, _) =
                    fast.count(content, start, &mut checked, (up_to, u64::MAX));
                assert_eq!(
                    (events, place.at),
                    (counted[lane], places[lane].at),
                    "seed {seed}"
                );
                assert!(place.clock == places[lane].clock && place.clock < limit);
            }
            assert_eq!(counts, checked);
        }
    }
}
