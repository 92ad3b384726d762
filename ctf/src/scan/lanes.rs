//! Counting in several packets at once, so that the loads of one wait beside those of the others:
//! the way from one record to the next is a chain of dependent loads, which a processor cannot
//! shorten but can overlap.
//!
//! One of two places of this crate with `unsafe` (the other maps files): checks of bounds at each load made this loop
//! a third slower. Instead one comparison for each record holds for all of its loads.
//!
//! # Safety argument
//! [`Fast::reach`] is computed with the tables: from a record's first byte, no load that the tables
//! lead to reaches further than `reach` bytes, given that a string ends within eight bytes and no
//! array is passed; longer strings are gone over by eight, and arrays passed, as long as `reach`
//! bytes are left behind. A lane stops where less than `reach` bytes are left of its slice. So each
//! load is inside of the lane's slice. Indices into the tables come from the tables themselves or
//! are 8 or 16 bits wide for tables of that size; they are checked when the tables are made.
//! The tests below compare it with the checked loop and open no file, so that Miri can run them.
#![allow(unsafe_code)]

use super::fast::{BRANCH_TABLES, BYTES, Fast, Header, IDS, Place, STRING, TAIL, TAIL_BRANCH, TAIL_VALUE};
use super::guess::fetch_behind;

/// Packets that are counted at once: more need more registers than there are.
pub const LANES: usize = 3;

/// One lane's bytes, and the clock value at which it stops.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lane<'a> {
    pub(super) data: &'a [u8],
    pub(super) limit: u64,
}

impl Fast {
    /// Counts records of all lanes in turn until one of them has to stop; how many in each, and
    /// which one stopped. `counts` has a place for each id of the table.
    pub(super) fn count_lanes(
        &self,
        lanes: [Lane<'_>; LANES],
        places: &mut [Place; LANES],
        counts: &mut [u64],
    ) -> ([u64; LANES], usize) {
        match self.header() {
            Header::LARGE => self.count_lanes_of(Header::LARGE, lanes, places, counts),
            Header::COMPACT => self.count_lanes_of(Header::COMPACT, lanes, places, counts),
            header => self.count_lanes_of(header, lanes, places, counts),
        }
    }

    #[inline(always)]
    fn count_lanes_of(
        &self,
        header: Header,
        lanes: [Lane<'_>; LANES],
        places: &mut [Place; LANES],
        counts: &mut [u64],
    ) -> ([u64; LANES], usize) {
        let reach = self.reach();
        let is_short = |(lane, place): (&Lane<'_>, &Place)| {
            lane.data.len() < place.at.saturating_add(reach) || lane.data.len() > u32::MAX as usize
        };
        let Some(counts) = counts.get_mut(..self.ids()) else {
            return ([0; LANES], 0);
        };
        if let Some(short) = lanes.iter().zip(&*places).position(is_short) {
            return ([0; LANES], short);
        }
        let entries: &[u64; IDS] = self.entries();
        let mut rounds = 0;
        let mut stopped;
        // The last byte at which a record may begin.
        let lasts = lanes.map(|lane| lane.data.as_ptr().wrapping_add(lane.data.len() - reach));
        let limits = lanes.map(|lane| lane.limit);
        let mut records: [*const u8; LANES] =
            std::array::from_fn(|lane| lanes[lane].data.as_ptr().wrapping_add(places[lane].at));
        let mut clock = places.map(|place| place.clock);
        'all: loop {
            for lane in 0..LANES {
                stopped = lane;
                let record = records[lane];
                // SAFETY: `record <= lasts` holds: it was checked above, and below for each new
                // value; so the slice has `reach` bytes from here on, and `reach >= 8`.
                let word = unsafe { u64::from_le(record.cast::<u64>().read_unaligned()) };
                fetch_behind(record);
                let id = (word >> header.id_shift & header.id_mask) as u16;
                let entry = entries[id as usize];
                let mut size = (entry & BYTES) as usize;
                if entry & (STRING | TAIL) != 0 {
                    let left = lasts[lane] as usize + reach - record as usize;
                    // SAFETY: as above: `left` bytes are there, at least `reach`.
                    match unsafe { self.measure(record, left, size, entry) } {
                        Some(measured) => size = measured,
                        None => break 'all,
                    }
                }
                let next = record.wrapping_add(size);
                let now = clock[lane]
                    .wrapping_add((word >> header.time_shift).wrapping_sub(clock[lane]) & header.time_mask);
                if size > lasts[lane] as usize - record as usize || now >= limits[lane] {
                    break 'all;
                }
                // SAFETY: an id that is not one of the table's has an entry whose size is at least
                // `u32::MAX`, more than is left of any slice, which ended the loop above.
                unsafe { *counts.get_unchecked_mut(id as usize) += 1 };
                clock[lane] = now;
                records[lane] = next;
            }
            rounds += 1;
        }
        for lane in 0..LANES {
            places[lane] = Place {
                at: records[lane] as usize - lanes[lane].data.as_ptr() as usize,
                clock: clock[lane],
            };
        }
        (
            std::array::from_fn(|lane| rounds + u64::from(lane < stopped)),
            stopped,
        )
    }

    /// Size of a record of variable size, whose string or tail begins at `before`.
    ///
    /// # Safety
    /// `record` must have `left` readable bytes, at least [`Fast::reach`], and `entry` be of this
    /// table.
    #[inline(always)]
    unsafe fn measure(&self, record: *const u8, left: usize, before: usize, entry: u64) -> Option<usize> {
        let (branches, tails, behind) = self.tails();
        let mut at = before;
        // SAFETY: the caller's promise, for each of the loads; `reach` counts the bytes before the
        // string, eight bytes for it, and the byte or word of each branch and end. A longer string
        // is gone over only as long as `reach` bytes are left behind each eight of it.
        unsafe {
            if entry & STRING != 0 {
                loop {
                    let word = u64::from_le(record.add(at).cast::<u64>().read_unaligned());
                    let hit = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
                    if hit != 0 {
                        at += (hit.trailing_zeros() >> 3) as usize + 1;
                        break;
                    }
                    at += 8;
                    if at + self.reach() > left {
                        return None;
                    }
                }
            }
            let mut tail = (entry >> 32) as u32;
            loop {
                while tail & TAIL_BRANCH != 0 {
                    let byte = *record.add(at + ((tail & TAIL_VALUE) >> 14) as usize);
                    tail = *branches
                        .get_unchecked(((tail & (BRANCH_TABLES - 1)) << 8 | u32::from(byte)) as usize);
                }
                let end = tails.get_unchecked((tail & TAIL_VALUE) as usize);
                let start = at;
                at += end.fixed as usize;
                if end.mask == 0 {
                    return Some(at);
                }
                let word = u32::from_le(record.add(start + end.at as usize).cast::<u32>().read_unaligned());
                at += (word & end.mask) as usize * end.element as usize;
                if end.behind == 0 {
                    return Some(at);
                }
                if at + self.reach() > left {
                    return None;
                }
                tail = *behind.get_unchecked(end.behind as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

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
            let mut places = [Place { at: 0, clock: 0 }; LANES];
            let mut counts = vec![0u64; 5];
            let lanes = content.each_ref().map(|data| Lane { data, limit });
            let (counted, stopped) = fast.count_lanes(lanes, &mut places, &mut counts);
            assert!(stopped < LANES);
            let mut checked = vec![0u64; 5];
            for lane in 0..LANES {
                // The checked loop looks at four bytes for a length of one; no record is so short.
                let end = content[lane].len().min(places[lane].at + 4);
                let data = &content[lane][..end];
                let (place, events, _) = fast.count(data, Place { at: 0, clock: 0 }, &mut checked, limit);
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
