//! Times of the first event records of packets.

use crate::bits::{Cursor, DecodeError};
use crate::event::decode_head;
use crate::layout::StreamLayout;
use crate::packet::PacketHead;
use crate::packets::packet_finder::{HEAD_BYTES, MOST_HEAD_BYTES, PacketFinder};
use crate::stream::Packet;

impl PacketFinder<'_> {
    /// Clock value of a packet's first event record. It may be earlier than the begin in the head
    /// (a fault of barectf), and replaces a missing begin.
    ///
    /// Needs no further access to the file for most packets, since the bytes after the head were
    /// read together with it.
    pub(super) fn first(&mut self, packet: &Packet, head: &PacketHead) -> Option<u64> {
        let layout = self.layout.streams.get(head.stream_class)?;
        // Timestamps of fewer bits continue from the clock value in the head, so they cannot be
        // earlier.
        if layout.clock.is_none() || (packet.clock.is_some() && !layout.has_full_timestamps) {
            return None;
        }
        if self.decoded != Some(packet.offset) {
            self.head(packet.offset, 0).ok()?.ok()?;
        }
        let mut want = HEAD_BYTES;
        loop {
            let filled = self
                .window
                .ensure(&self.file, packet.offset, want, self.bytes, want);
            filled.ok()?;
            let (data, base) = crate::source::slice(&self.window, packet)?;
            let have = (base + data.len() as u64) * 8;
            let mut cursor = Cursor {
                data,
                base,
                pos: head.end_of_head,
                end: have.min(packet.content_bits),
            };
            let clock = packet.clock.unwrap_or(0);
            match first_record(layout, &mut cursor, &mut self.slots, clock) {
                Ok(clock) => return Some(clock),
                Err(error)
                    if have < packet.content_bits
                        && want < MOST_HEAD_BYTES
                        && error.may_go_on(packet.content_bits) =>
                {
                    want *= 8;
                }
                Err(_) => return None,
            }
        }
    }

    /// Like [`PacketFinder::first`], for a packet whose head has not been read yet.
    pub(super) fn first_of(&mut self, packet: &Packet) -> Option<u64> {
        let head = self.head(packet.offset, 0).ok()?.ok()?;
        self.first(packet, &head)
    }
}

/// The clock after the event record at the cursor, if the whole record can be decoded.
fn first_record(
    layout: &StreamLayout,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
    clock: u64,
) -> Result<u64, DecodeError> {
    if cursor.pos >= cursor.end {
        return Err(DecodeError::OutOfBounds {
            at: cursor.pos,
            wanted: u64::MAX,
        });
    }
    let head = decode_head(layout, cursor, slots, clock)?;
    if let Some(event) = layout.events.get(head.class) {
        event.body.run(cursor, slots)?;
    }
    Ok(head.clock)
}
