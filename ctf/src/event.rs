//! Event records: position, class and time.

use crate::bits::{Cursor, DecodeError};
use crate::layout::header::{BitField, FastHeader, HeaderForm};
use crate::layout::node::Node;
use crate::layout::{EventLayout, StreamLayout};
use crate::packet::{advance, variable_width};
use crate::schema::{IntClass, Roles};
use crate::walk::{Visitor, walk};

/// The decoded header of an event record. The cursor is then at its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventHead {
    /// Index of the event class in [`StreamLayout::events`].
    pub class: usize,
    /// The stream's clock at the event record, in cycles.
    pub clock: u64,
}

/// Decodes the header at the cursor and advances the cursor to the body; `clock` is the value of
/// the clock before this event record.
///
/// # Errors
/// If the header is damaged or its id is unknown. The cursor's position is then meaningless.
#[inline(always)]
pub fn decode_head(
    layout: &StreamLayout,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    clock: u64,
) -> Result<EventHead, DecodeError> {
    cursor.align(layout.event_align);
    let at = cursor.pos;
    let (id, clock) = match &layout.fast_header {
        Some(fast) if at.is_multiple_of(8) => match read_fast(fast, cursor, clock) {
            Err(_) if fast.walks_if_cut => walk_header(layout, cursor, slots, clock)?,
            read => read?,
        },
        _ => walk_header(layout, cursor, slots, clock)?,
    };
    let class = match id {
        Some(id) => layout.event_by_id(id),
        None if layout.events.len() == 1 => Some(0),
        None => layout.event_by_id(0),
    };
    let class = class.ok_or(DecodeError::UnknownEventClass {
        at,
        id: id.unwrap_or(0),
    })?;
    Ok(EventHead { class, clock })
}

type IdAndClock = (Option<u64>, u64);

/// Reads a header that begins at a byte boundary and advances the cursor past it.
#[inline(always)]
fn read_fast(
    fast: &FastHeader,
    cursor: &mut Cursor<'_>,
    clock: u64,
) -> Result<IdAndClock, DecodeError> {
    let usual = read_form(&fast.compact, cursor, clock)?;
    let (form, read) = match &fast.extended {
        Some((escape, form)) if usual.0 == Some(*escape) => (form, read_form(form, cursor, clock)?),
        _ => (&fast.compact, usual),
    };
    cursor.pos += u64::from(form.bits);
    Ok(read)
}

#[inline(never)]
fn walk_header(
    layout: &StreamLayout,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    clock: u64,
) -> Result<IdAndClock, DecodeError> {
    let mut visitor = HeaderVisitor { id: None, clock };
    if let Some(header) = layout.event_header.root() {
        if let Some(check) = &layout.header_check {
            check.run(&mut cursor.clone(), slots)?;
        }
        walk(header, cursor, slots, &mut visitor)?;
    }
    Ok((visitor.id, visitor.clock))
}

/// The id of a header of that form, and the clock's value after the header.
#[inline(always)]
fn read_form(
    form: &HeaderForm,
    cursor: &Cursor<'_>,
    clock: u64,
) -> Result<IdAndClock, DecodeError> {
    cursor.need(u64::from(form.bits))?;
    let start = ((cursor.pos >> 3) - cursor.base) as usize;
    let read = |field: BitField| {
        let rest = cursor
            .data
            .get(start + field.byte as usize..)
            .unwrap_or_default();
        let mut bytes = [0; 8];
        match rest.first_chunk::<8>() {
            Some(all) => bytes = *all,
            // Fewer than eight bytes are left.
            None => bytes
                .iter_mut()
                .zip(rest)
                .for_each(|(to, from)| *to = *from),
        }
        field.of(if field.big {
            u64::from_be_bytes(bytes)
        } else {
            u64::from_le_bytes(bytes)
        })
    };
    let clock = form.timestamp.map_or(clock, |field| {
        advance(clock, read(field), 64 - field.mask.leading_zeros())
    });
    Ok((form.id.map(read), clock))
}

struct HeaderVisitor {
    id: Option<u64>,
    clock: u64,
}

impl Visitor for HeaderVisitor {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        if node.roles.contains(Roles::EVENT_CLASS_ID) {
            self.id = Some(raw);
        }
        if node.roles.contains(Roles::CLOCK_TIMESTAMP) {
            self.clock = advance(self.clock, raw, class.length);
        }
    }
    fn variable_integer(&mut self, node: &Node, _: &IntClass, raw: u64, bytes: u64) {
        if node.roles.contains(Roles::EVENT_CLASS_ID) {
            self.id = Some(raw);
        }
        if node.roles.contains(Roles::CLOCK_TIMESTAMP) {
            self.clock = advance(self.clock, raw, variable_width(bytes));
        }
    }
}

/// A valid event record, whose parts can be walked over.
#[derive(Debug)]
pub struct Event<'a> {
    /// Layout of the data stream class.
    pub stream: &'a StreamLayout,
    /// Layout of the event class.
    pub class: &'a EventLayout,
    /// Index of the event class in [`StreamLayout::events`].
    pub class_index: usize,
    /// Clock value in cycles.
    pub clock: u64,
    /// Cursor at the first bit of the event record.
    pub start: Cursor<'a>,
    /// Cursor after the header.
    pub body: Cursor<'a>,
    /// Registers after the header was decoded.
    pub slots: &'a mut [u64],
}

impl Event<'_> {
    /// Walks over the header.
    ///
    /// # Errors
    /// Never for an event record that a reader returned.
    pub fn walk_header<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), DecodeError> {
        let mut cursor = self.start;
        match self.stream.event_header.root() {
            Some(header) => walk(header, &mut cursor, self.slots, visitor),
            None => Ok(()),
        }
    }

    /// Walks over the parts after the header, in order; calls `begin` at the start of each part.
    ///
    /// # Errors
    /// Never for an event record that a reader returned.
    pub fn walk_body<V: Visitor>(
        &mut self,
        visitor: &mut V,
        mut begin: impl FnMut(&mut V, crate::schema::Scope),
    ) -> Result<(), DecodeError> {
        use crate::schema::Scope;
        let mut cursor = self.body;
        let parts = [
            (Scope::CommonContext, &self.stream.common_context),
            (Scope::SpecificContext, &self.class.specific_context),
            (Scope::Payload, &self.class.payload),
        ];
        for (scope, part) in parts {
            if let Some(root) = part.root() {
                begin(visitor, scope);
                walk(root, &mut cursor, self.slots, visitor)?;
            }
        }
        Ok(())
    }
}
