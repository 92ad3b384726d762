//! The hot loops: event records whose id and timestamp lie in the first eight bytes, and whose
//! size is constant or has a [`Shape`].

use super::guess::{add_guessed, fetch_ahead};
use crate::bits::find_null;
use crate::layout::StreamLayout;
use crate::layout::shape::{Shape, Tail};

/// Number of ids that the table has.
pub(super) const IDS: usize = 1 << 16;

/// The class is chosen.
const CHOSEN: u64 = 1 << 63;
/// A string follows the bytes that the entry gives.
pub(super) const STRING: u64 = 1 << 24;
/// A tail follows, which is in the upper half.
pub(super) const TAIL: u64 = 1 << 25;
pub(super) const BYTES: u64 = (1 << 24) - 1;
/// No size, and the tail that no data can have.
const GENERAL: u64 = TAIL;

/// Kinds of encoded tails: a branch if this bit is set, else the index of an end.
pub(super) const TAIL_BRANCH: u32 = 1 << 28;
pub(super) const TAIL_VALUE: u32 = (1 << 28) - 1;
/// A branch has the place of its byte in the upper 14 bits of its value, its table in the lower.
pub(super) const BRANCH_TABLES: u32 = 1 << 14;

/// What the hot loops look things up in.
#[derive(Debug)]
pub(super) struct Fast {
    /// By id: bytes, flags, and a tail; [`GENERAL`] for records that the general way must take.
    entries: Box<[u64; IDS]>,
    /// By table and byte: a tail.
    branches: Vec<u32>,
    ends: Vec<End>,
    /// Encoded tails behind arrays; the first is none.
    behind: Vec<u32>,
    header: Header,
    /// Bits of a header.
    header_bits: u64,
    /// Greater than any id that has a size.
    ids: usize,
    /// Bytes from a record's start that following the tables may load, strings of more than seven
    /// bytes aside.
    reach: usize,
}

/// The end of a record: `fixed` bytes and an array whose count is in the bytes at `at`. Records
/// without an array have a mask of 0, so that there is nothing to decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub(super) at: u32,
    pub(super) mask: u32,
    pub(super) fixed: u32,
    pub(super) element: u32,
    /// Index of the tail behind the array; 0 for none.
    pub(super) behind: u32,
}

/// An end that no data can have: the general way finds out what is wrong.
const NO_END: End = End {
    at: 0,
    mask: 0,
    fixed: u32::MAX,
    element: 0,
    behind: 0,
};

/// Where id and timestamp are in the first eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id_shift: u32,
    pub(super) id_mask: u64,
    pub(super) time_shift: u32,
    pub(super) time_mask: u64,
}

impl Header {
    /// LTTng's compact header: 5 and 27 bits.
    pub(super) const COMPACT: Header = Header {
        id_shift: 0,
        id_mask: 31,
        time_shift: 5,
        time_mask: (1 << 27) - 1,
    };
    /// LTTng's large header: 16 and 32 bits.
    pub(super) const LARGE: Header = Header {
        id_shift: 0,
        id_mask: 0xffff,
        time_shift: 16,
        time_mask: 0xffff_ffff,
    };
}

/// A place in the bytes at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) at: usize,
    pub(super) clock: u64,
}

impl Fast {
    /// The tables, if headers of this stream class allow them.
    pub(super) fn new(layout: &StreamLayout, chosen: &[bool]) -> Option<Fast> {
        let header = layout.fast_header?;
        let form = header.compact;
        let (id, time) = (form.id?, form.timestamp?);
        let (id_shift, time_shift) = (id.byte * 8 + id.shift, time.byte * 8 + time.shift);
        let fits = |shift: u32, mask: u64| shift + (64 - mask.leading_zeros()) <= 64;
        if id.mask >= IDS as u64 || !fits(id_shift, id.mask) || !fits(time_shift, time.mask) {
            return None;
        }
        let mut fast = Fast {
            entries: vec![GENERAL; IDS].into_boxed_slice().try_into().ok()?,
            branches: vec![0; 256],
            ends: vec![NO_END],
            behind: vec![0],
            header: Header {
                id_shift,
                id_mask: id.mask,
                time_shift,
                time_mask: time.mask,
            },
            header_bits: u64::from(form.bytes) * 8,
            ids: 0,
            reach: 8,
        };
        for (event, &chosen) in layout.events.iter().zip(chosen) {
            let is_escape = header.extended.is_some_and(|(escape, _)| escape == event.id);
            if event.id > id.mask || is_escape {
                continue;
            }
            let entry = match (event.body.constant(), event.body.shape()) {
                (Some(bits), _) if bits % 8 == 0 => size(bits / 8 + u64::from(form.bytes)),
                (_, Some(shape)) => fast.shape(shape, u64::from(form.bytes)),
                _ => None,
            };
            let flag = if chosen { CHOSEN } else { 0 };
            if let (Some(entry), Some(place)) = (entry, fast.entries.get_mut(event.id as usize)) {
                *place = entry | flag;
                fast.ids = fast.ids.max(event.id as usize + 1);
            }
        }
        Some(fast)
    }

    fn shape(&mut self, shape: &Shape, header: u64) -> Option<u64> {
        let first = self.branches.len() / 256;
        if (first + shape.branches().len()) as u32 >= BRANCH_TABLES {
            return None;
        }
        self.branches.resize((first + shape.branches().len()) * 256, 0);
        let places = Places {
            branches: first as u32,
            behind: self.behind.len() as u32,
        };
        self.behind.resize(self.behind.len() + shape.behind().len(), 0);
        for (place, tail) in (places.behind as usize..).zip(shape.behind()) {
            let tail = self.tail(*tail, shape, places)?;
            *self.behind.get_mut(place)? = tail;
        }
        for (table, branch) in (first..).zip(shape.branches()) {
            for (value, tail) in branch.tails.iter().enumerate() {
                let tail = self.tail(*tail, shape, places)?;
                *self.branches.get_mut(table * 256 + value)? = tail;
            }
        }
        let tail = self.tail(shape.tail(), shape, places)?;
        let furthest = self.furthest(shape);
        self.reach = self.reach.max(header as usize + shape.before() + 8 + furthest);
        let string = if shape.has_string() { STRING } else { 0 };
        Some(size(header + shape.before() as u64)? | string | TAIL | u64::from(tail) << 32)
    }

    /// The furthest byte that any branch or end of the shape looks at, from the tail's start.
    fn furthest(&self, shape: &Shape) -> usize {
        let of = |tail: &Tail| {
            if let Tail::Array { at, .. } = tail {
                *at as usize + 4
            } else {
                0
            }
        };
        let branches = shape.branches();
        let inner = branches
            .iter()
            .flat_map(|branch| branch.tails.iter().map(of).chain([branch.at as usize + 1]));
        let outer = shape.behind().iter().map(of).chain([of(&shape.tail())]);
        inner.chain(outer).max().unwrap_or(0)
    }

    /// See the field.
    pub(super) fn reach(&self) -> usize {
        self.reach
    }

    /// See the field.
    pub(super) fn ids(&self) -> usize {
        self.ids
    }

    pub(super) fn header(&self) -> Header {
        self.header
    }

    pub(super) fn entries(&self) -> &[u64; IDS] {
        &self.entries
    }

    /// Branches, ends, and tails behind arrays.
    pub(super) fn tails(&self) -> (&[u32], &[End], &[u32]) {
        (&self.branches, &self.ends, &self.behind)
    }

    fn tail(&mut self, tail: Tail, shape: &Shape, places: Places) -> Option<u32> {
        let end = match tail {
            Tail::Branch(index) => {
                let at = shape.branches().get(index as usize)?.at;
                return (at < 1 << 14).then_some(TAIL_BRANCH | at << 14 | (places.branches + index));
            }
            Tail::None => NO_END,
            Tail::Bytes(bytes) => End {
                at: 0,
                mask: 0,
                fixed: bytes,
                element: 0,
                behind: 0,
            },
            Tail::Array {
                at,
                width,
                fixed,
                element,
                behind,
            } => End {
                at,
                mask: u32::MAX >> (32 - 8 * width),
                fixed,
                element,
                behind: behind.map_or(0, |index| places.behind + index),
            },
        };
        let index = self
            .ends
            .iter()
            .position(|known| *known == end)
            .unwrap_or_else(|| {
                self.ends.push(end);
                self.ends.len() - 1
            });
        u32::try_from(index).ok().filter(|&index| index <= TAIL_VALUE)
    }

    /// Behind the string and the tail of a record, given where they begin. `None` if the bytes at
    /// hand do not have them, or they make no sense: the general way finds out what is wrong.
    #[inline(always)]
    fn behind(&self, data: &[u8], mut at: usize, entry: u64) -> Option<usize> {
        if entry & STRING != 0 {
            at += find_null(data.get(at..)?)? + 1;
        }
        let mut tail = (entry >> 32) as u32;
        loop {
            while tail & TAIL_BRANCH != 0 {
                let byte = *data.get(at + ((tail & TAIL_VALUE) >> 14) as usize)?;
                let table = tail & (BRANCH_TABLES - 1);
                tail = *self.branches.get((table << 8 | u32::from(byte)) as usize)?;
            }
            let end = self.ends.get((tail & TAIL_VALUE) as usize)?;
            let start = at;
            at += end.fixed as usize;
            if end.mask == 0 {
                return Some(at);
            }
            let word = data.get(start + end.at as usize..)?.first_chunk::<4>()?;
            at += (u32::from_le_bytes(*word) & end.mask) as usize * end.element as usize;
            if end.behind == 0 {
                return Some(at);
            }
            tail = *self.behind.get(end.behind as usize)?;
        }
    }

    /// Gets over records, telling of each; stops at one that is for the general way, or when told.
    #[inline(always)]
    fn run(
        &self,
        header: Header,
        data: &[u8],
        start: Place,
        mut record: impl FnMut(u16, u64, usize, u64) -> bool,
    ) -> Place {
        let Place { mut at, mut clock } = start;
        while let Some(bytes) = data.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
            fetch_ahead(data, at);
            let word = u64::from_le_bytes(*bytes);
            let id = (word >> header.id_shift & header.id_mask) as u16;
            let entry = self.entries[id as usize];
            let mut next = at + (entry & BYTES) as usize;
            if entry & (STRING | TAIL) != 0 {
                match self.behind(data, next, entry) {
                    Some(behind) => next = add_guessed(at, behind - at),
                    None => break,
                }
            }
            if next > data.len() {
                break;
            }
            let now = clock.wrapping_add((word >> header.time_shift).wrapping_sub(clock) & header.time_mask);
            if !record(id, entry, at, now) {
                break;
            }
            clock = now;
            at = next;
        }
        Place { at, clock }
    }

    /// As [`Fast::run`], with the header's form known to the compiler where it is a usual one.
    #[inline(always)]
    fn run_any(&self, data: &[u8], start: Place, record: impl FnMut(u16, u64, usize, u64) -> bool) -> Place {
        match self.header {
            Header::LARGE => self.run(Header::LARGE, data, start, record),
            Header::COMPACT => self.run(Header::COMPACT, data, start, record),
            header => self.run(header, data, start, record),
        }
    }

    /// Counts records by id up to a limit of the clock: where it stopped, how many, and the clock
    /// at the first.
    pub(super) fn count(
        &self,
        data: &[u8],
        start: Place,
        counts: &mut [u64],
        limit: u64,
    ) -> (Place, u64, u64) {
        let (mut events, mut first) = (0u64, 0);
        let place = self.run_any(data, start, |id, _, _, clock| {
            if clock >= limit {
                return false;
            }
            if let Some(count) = counts.get_mut(id as usize) {
                *count += 1;
            }
            if events == 0 {
                first = clock;
            }
            events += 1;
            true
        });
        (place, events, first)
    }

    /// Collects the chosen records, given their ids, the bits before their bodies and their clock
    /// values: where it stopped, and how many there are.
    pub(super) fn collect<H>(
        &self,
        data: &[u8],
        start: Place,
        room: &mut [H],
        hit: impl Fn(u16, u64, u64) -> H,
    ) -> (Place, usize) {
        let mut count = 0;
        let header = self.header_bits;
        let place = self.run_any(data, start, |id, entry, at, clock| {
            // Always stored, kept if chosen: no branch that could be mispredicted.
            match room.get_mut(count) {
                Some(place) => *place = hit(id, at as u64 * 8 + header, clock),
                None => return false,
            }
            count += (entry >> 63) as usize;
            true
        });
        (place, count)
    }
}

/// Where the tables of a shape begin in those of all.
#[derive(Clone, Copy)]
struct Places {
    branches: u32,
    behind: u32,
}

fn size(bytes: u64) -> Option<u64> {
    (bytes <= BYTES && bytes > 0).then_some(bytes)
}
