//! Hits together with the bytes that they refer to.

use super::hit::Hit;
use crate::bits::Cursor;
use crate::event::decode_head;
use crate::layout::StreamLayout;

/// The hits of a scan.
#[derive(Debug)]
pub struct Batch<'a> {
    pub(super) hits: &'a [Hit],
    pub(super) layout: &'a StreamLayout,
    /// Cursor at the start of the packet.
    pub(super) cursor: Cursor<'a>,
    pub(super) slots: &'a mut [u64],
}

impl<'a> Batch<'a> {
    /// The hits.
    pub fn hits(&self) -> &'a [Hit] {
        self.hits
    }

    /// Class index of a hit, a cursor at its body, and registers to decode with.
    #[inline(always)]
    pub fn record(&mut self, hit: &Hit) -> (usize, Cursor<'a>, &mut [u64]) {
        let body = body(self.layout, self.cursor, self.slots, hit);
        (class(self.layout, hit), body, self.slots)
    }

    /// Calls `show` for each hit with its class index, its clock value in cycles, a cursor at its
    /// body, and registers to decode with.
    #[inline(always)]
    pub fn for_each(mut self, mut show: impl FnMut(usize, u64, Cursor<'a>, &mut [u64])) {
        for hit in self.hits {
            let (class, body, slots) = self.record(hit);
            show(class, hit.clock, body, slots);
        }
    }
}

#[inline(always)]
fn class(layout: &StreamLayout, hit: &Hit) -> usize {
    if hit.general {
        hit.key as usize
    } else {
        layout.event_by_id(u64::from(hit.key)).unwrap_or(0)
    }
}

#[inline(always)]
fn body<'a>(layout: &StreamLayout, packet: Cursor<'a>, slots: &mut [u64], hit: &Hit) -> Cursor<'a> {
    let pos = match hit.general {
        true => behind_head(layout, packet, slots, hit.start),
        // Hits of the fast path contain the position of their bodies.
        false => hit.start,
    };
    // Built from parts in registers. Copying the cursor and then overwriting one field would stall
    // the copy until that field is stored.
    Cursor { pos, ..packet }
}

/// Decodes the header of an event record again, because later fields may take lengths and selectors
/// from it. The header was valid before, so it is valid now.
#[inline(never)]
fn behind_head(
    layout: &StreamLayout,
    mut cursor: Cursor<'_>,
    slots: &mut [u64],
    start: u64,
) -> u64 {
    cursor.pos = start;
    let _ = decode_head(layout, &mut cursor, slots, 0);
    cursor.pos
}
