//! The hot loops: event records whose header has id and timestamp at offsets that are constant or
//! depend only on the record's offset in the packet, and whose body has a [`Shape`].

use super::guess::{add_guessed, prefetch_ahead};
use super::header::{Form, Forms, Header, IDS, specialised};
use super::steps::{Bytes, Content, STOP, Steps};
use crate::layout::StreamLayout;
use crate::layout::header::MOST_OFFSETS;
use crate::layout::shape::Shape;

/// The class is chosen.
const CHOSEN: u64 = 1 << 63;
/// The entry has a first step, in the upper half without the highest bit.
pub(super) const VARIABLE: u64 = 1 << 24;
/// The id is the escape value of the extended form of the header.
pub(super) const ESCAPE: u64 = 1 << 25;
/// Number of bytes from the byte in which the body begins.
pub(super) const BYTES: u64 = (1 << 24) - 1;
/// The record must take the general path.
const GENERAL: u64 = VARIABLE | (STOP as u64) << 32;

/// The first step of an entry of variable size.
#[inline(always)]
pub(super) fn first_step(entry: u64) -> u32 {
    (entry >> 32) as u32 & (u32::MAX >> 1)
}

/// Tables of the hot loops.
#[derive(Debug)]
pub(super) struct Fast {
    header: Header,
    places: RecordPlaces,
    /// Forms of the header, by place.
    forms: [Forms; MOST_PLACES],
    /// By id in the usual form, then by place: bytes, flags, and the first step.
    usual: Box<[u64]>,
    /// The same, by id in the extended form.
    extended: Box<[u64]>,
    steps: Steps,
    /// Greater than any id that has a size.
    ids: usize,
}

/// The possible offsets of event records modulo the largest alignment of their fields, if it
/// exceeds the alignment of the records. This offset is called the place of the record; the size of
/// the record depends on it.
#[derive(Clone, Copy, Debug)]
struct RecordPlaces {
    /// Binary logarithm of the distance between places, in bytes.
    shift: u32,
    /// Number of places minus 1.
    mask: usize,
    /// Binary logarithm of the number of places.
    bits: u32,
}

/// Largest number of places that have their own entries. If there are more, steps compute the
/// padding.
const MOST_PLACES: usize = MOST_OFFSETS;

impl RecordPlaces {
    const ONE: RecordPlaces = RecordPlaces {
        shift: 0,
        mask: 0,
        bits: 0,
    };

    fn of(layout: &StreamLayout) -> RecordPlaces {
        let (align, most) = (layout.event_align, layout.field_align());
        let are_powers = align >= 8 && align.is_power_of_two() && most.is_power_of_two();
        match most.checked_div(align).map(|count| count as usize) {
            Some(count @ 2..=MOST_PLACES) if are_powers => RecordPlaces {
                shift: (align / 8).trailing_zeros(),
                mask: count - 1,
                bits: count.trailing_zeros(),
            },
            _ => RecordPlaces::ONE,
        }
    }

    fn count(self) -> usize {
        self.mask + 1
    }

    /// Place of an event record, given its byte offset in the packet.
    #[inline(always)]
    fn place(self, at: usize) -> usize {
        at >> self.shift & self.mask
    }

    /// Index of an entry, given the byte offset of the event record in the packet.
    #[inline(always)]
    fn index(self, id: u64, at: usize) -> usize {
        (id as usize) << self.bits | self.place(at)
    }
}

/// Forms of the header, by place. `None` if there are fewer places than forms, or if a form is
/// smaller than a byte: scanning records of size 0 would not end.
fn forms_by_place(
    layout: &StreamLayout,
    header: Header,
    places: RecordPlaces,
) -> Option<[Forms; MOST_PLACES]> {
    let headers = layout.fast_headers();
    let mut forms = [header.forms; MOST_PLACES];
    if !header.varies {
        return Some(forms);
    }
    if !places.count().is_multiple_of(headers.len()) {
        return None;
    }
    for (forms, fast) in forms.iter_mut().zip(headers.iter().cycle()) {
        *forms = Forms::of(fast, header.big).filter(|forms| forms.usual.bytes() > 0)?;
    }
    Some(forms)
}

/// A position in the available bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanPosition {
    pub(super) at: usize,
    pub(super) clock: u64,
    /// Start of the last event record, if there was one and it may have ended before `at`.
    pub(super) last: Option<usize>,
}

impl ScanPosition {
    pub(super) fn new(at: usize, clock: u64) -> Self {
        ScanPosition {
            at,
            clock,
            last: None,
        }
    }
}

impl Fast {
    /// The tables, if the headers of this stream class allow them.
    pub(super) fn new(layout: &StreamLayout, chosen: &[bool]) -> Option<Fast> {
        let shapes = || layout.events.iter().filter_map(|event| layout.shape(event));
        let places = RecordPlaces::of(layout);
        let is_padded = layout.event_align > 8
            || places.count() > 1
            || shapes().any(|shape| shape.ends_in_byte || shape.has_alignment());
        let prefers_big = shapes().any(|shape| shape.values().any(|near| near.field.big));
        let header = Header::new(layout, is_padded, prefers_big)?;
        let forms = forms_by_place(layout, header, places)?;
        let ids = layout
            .events
            .iter()
            .map(|event| event.id)
            .filter(|&id| id < IDS as u64);
        let mut fast = Fast {
            places,
            forms,
            usual: Box::default(),
            extended: Box::default(),
            steps: Steps::new(header.big),
            header,
            ids: ids.max().map_or(0, |id| id as usize + 1),
        };
        let all = fast.entries(layout, chosen, |forms| Some(forms.usual));
        fast.usual = fast.usual_of(layout, &all);
        fast.extended = match header.forms.extended {
            None => Box::default(),
            Some(_) if places.count() == 1 => all,
            Some(_) => fast.entries(layout, chosen, |forms| forms.extended),
        };
        Some(fast)
    }

    /// The entries of all ids, for event records with the form of the header that `form` selects.
    fn entries(
        &mut self,
        layout: &StreamLayout,
        chosen: &[bool],
        form: fn(Forms) -> Option<Form>,
    ) -> Box<[u64]> {
        let places = self.places;
        let mut entries = vec![GENERAL; self.ids * places.count()];
        for (event, &chosen) in layout.events.iter().zip(chosen) {
            let chosen = if chosen { CHOSEN } else { 0 };
            for place in 0..places.count() {
                let at = place << places.shift;
                let bits = form(self.forms[place % MOST_PLACES]).map_or(0, |form| form.bits);
                let entry = match places.count() {
                    1 => layout.shape(event).and_then(|shape| self.entry(&shape)),
                    count => {
                        let modulus = (count << places.shift) as u64 * 8;
                        let start = (at as u64 * 8 + u64::from(bits)) % modulus;
                        let shape = layout.shape_from(event, (modulus, start));
                        shape.and_then(|shape| self.entry(&shape))
                    }
                };
                if let (Some(entry), Some(slot)) =
                    (entry, entries.get_mut(places.index(event.id, at)))
                {
                    *slot = entry | chosen;
                }
            }
        }
        entries.into()
    }

    /// The entry of an event class. `None` if the class must take the general path.
    fn entry(&mut self, shape: &Shape) -> Option<u64> {
        let bytes = u64::from(shape.first.bytes);
        // A record that may have size 0 would never end the loop.
        let least = self.header.forms.usual.bytes() as u64 + bytes;
        let (true, true) = (least > 0, bytes <= BYTES) else {
            return None;
        };
        match self.steps.add(shape).ok()? {
            Some(step) => Some(bytes | VARIABLE | u64::from(step) << 32),
            None => Some(bytes),
        }
    }

    /// The table of the usual form, from the table of all ids.
    fn usual_of(&self, layout: &StreamLayout, all: &[u64]) -> Box<[u64]> {
        let mask = self.header.forms.usual.id.mask;
        let extended = layout
            .fast_headers()
            .first()
            .and_then(|header| header.extended);
        let escape = extended
            .and_then(|(id, _)| usize::try_from(id).ok())
            .filter(|&id| id < IDS);
        let ids = match (self.header.is_direct, escape) {
            (true, _) => IDS,
            (false, Some(escape)) => self.ids.max(escape + 1),
            (false, None) => self.ids,
        };
        let count = self.places.count();
        let mut usual = vec![GENERAL; ids * count];
        for (index, (slot, entry)) in usual.iter_mut().zip(all).enumerate() {
            let id = (index / count) as u64;
            if id & !mask & !self.header.only_id == 0 {
                *slot = *entry;
            }
        }
        let escaped = escape.and_then(|escape| usual.get_mut(escape * count..(escape + 1) * count));
        escaped.unwrap_or_default().fill(VARIABLE | ESCAPE);
        usual.into()
    }

    pub(super) fn header(&self) -> Header {
        self.header
    }

    /// Greater than any id that has a size.
    pub(super) fn ids(&self) -> usize {
        self.ids
    }

    pub(super) fn steps(&self) -> &Steps {
        &self.steps
    }

    /// The table of the usual form, for headers whose ids are all in the table.
    #[inline(always)]
    pub(super) fn direct(&self) -> Option<&[u64; IDS]> {
        (&*self.usual)
            .try_into()
            .ok()
            .filter(|_| self.header.is_direct)
    }

    /// The entry of an id in the usual form of `header`, given the byte offset of the event record
    /// in the packet.
    #[inline(always)]
    pub(super) fn usual(&self, header: Header, id: u64, at: usize) -> u64 {
        self.entry_of(header, &self.usual, id, at)
    }

    /// The entry of an id in the extended form.
    #[inline(always)]
    pub(super) fn extended(&self, header: Header, id: u64, at: usize) -> u64 {
        self.entry_of(header, &self.extended, id, at)
    }

    #[inline(always)]
    fn entry_of(&self, header: Header, entries: &[u64], id: u64, at: usize) -> u64 {
        // If no field is aligned to more than a byte, all records have the same place.
        let index = match header.is_padded {
            false => id as usize,
            true if id < IDS as u64 => self.places.index(id, at),
            true => usize::MAX,
        };
        entries.get(index).copied().unwrap_or(GENERAL)
    }

    /// The forms of a header, given the byte offset of the event record in the packet.
    #[inline(always)]
    pub(super) fn forms(&self, header: Header, at: usize) -> Forms {
        match header.varies {
            true => self.forms[self.places.place(at) % MOST_PLACES],
            false => header.forms,
        }
    }

    /// Skips records and calls `record` with the id of each, its entry, the position of its body in
    /// bits, and the clock. Stops at a record that must take the general path, or if `record`
    /// returns false.
    #[inline(always)]
    fn run_of(
        &self,
        header: Header,
        lookup: impl Fn(u64, usize) -> u64,
        content: Content<'_>,
        start: ScanPosition,
        mut record: impl FnMut(u64, u64, u64, u64) -> bool,
    ) -> ScanPosition {
        let ScanPosition {
            mut at,
            mut clock,
            mut last,
        } = start;
        let word = |at: usize| content.eight(at).map(|bytes| header.word(bytes));
        let data = content.data;
        let in_packet = |at: usize| content.origin().wrapping_add(at);
        loop {
            let Forms { usual, extended } = self.forms(header, in_packet(at));
            let (Some(id_word), Some(time_word)) =
                (word(at + usual.id.byte), word(at + usual.time.byte))
            else {
                break;
            };
            prefetch_ahead(data, at);
            let mut id = usual.id.value(id_word) | header.only_id;
            let mut now = usual.time.advance(clock, time_word);
            let mut body = at as u64 * 8 + u64::from(usual.bits);
            let mut entry = lookup(id, in_packet(at));
            let mut next = at + usual.bytes() + (entry & BYTES) as usize;
            if entry & VARIABLE != 0 {
                if let Some(extended) = extended
                    && entry & ESCAPE != 0
                {
                    let words = (word(at + extended.id.byte), word(at + extended.time.byte));
                    let (Some(id_word), Some(time_word)) = words else {
                        break;
                    };
                    id = extended.id.value(id_word);
                    now = extended.time.advance(clock, time_word);
                    if now < clock {
                        break;
                    }
                    body = at as u64 * 8 + u64::from(extended.bits);
                    entry = self.extended(header, id, in_packet(at));
                    next = at + extended.bytes() + (entry & BYTES) as usize;
                }
                if entry & VARIABLE != 0 {
                    let past = self
                        .steps
                        .follow(header.order(), content, next, first_step(entry));
                    match past {
                        Some(past) => next = add_guessed(at, past - at),
                        None => break,
                    }
                }
            }
            next = at + header.padded(next - at);
            // Padding may extend past the end; then the last record takes the general path.
            let is_in = if header.is_padded {
                next < data.len()
            } else {
                next <= data.len()
            };
            let is_back = header.may_go_back && now < clock;
            if !is_in || is_back || !record(id, entry, body, now) {
                break;
            }
            if header.is_padded {
                last = Some(at);
            }
            clock = now;
            at = next;
        }
        ScanPosition { at, clock, last }
    }

    /// Counts at most `most` records by id, up to a clock value of `limit` (exclusive). Returns the
    /// position at which it stopped, the number of records, and the clock value of the first.
    pub(super) fn count(
        &self,
        content: Content<'_>,
        start: ScanPosition,
        counts: &mut [u64],
        (limit, most): (u64, u64),
    ) -> (ScanPosition, u64, u64) {
        let (mut events, mut first) = (0u64, 0);
        let record = |id: u64, _, _, clock| {
            if clock >= limit || events >= most {
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
        };
        let place = specialised!(self, |header, lookup| self
            .run_of(header, lookup, content, start, record));
        (place, events, first)
    }

    /// Collects the chosen records from their ids, the bits before their bodies and their clock
    /// values. Returns the position at which it stopped and the number of records.
    pub(super) fn collect<H>(
        &self,
        content: Content<'_>,
        start: ScanPosition,
        room: &mut [H],
        hit: impl Fn(u64, u64, u64) -> H,
    ) -> (ScanPosition, usize) {
        let mut count = 0;
        let record = |id, entry: u64, body, clock| {
            // Always stored, kept if chosen: avoids a branch that could be mispredicted.
            match room.get_mut(count) {
                Some(place) => *place = hit(id, body, clock),
                None => return false,
            }
            count += (entry >> 63) as usize;
            true
        };
        let place = specialised!(self, |header, lookup| self
            .run_of(header, lookup, content, start, record));
        (place, count)
    }
}
