//! Resynchronisation: finds the next packet of a file after bytes that belong to no packet.

use std::io;

use crate::bits::Cursor;
use crate::extent::{is_plausible, is_sound};
use crate::packet::{HeadError, PacketHead};
use crate::packets::packet_finder::{HEAD_BYTES, PacketFinder};

/// Bytes searched at a time.
const SEARCH_BYTES: usize = 1 << 16;
/// Minimum number of bytes in memory from the magic number on, unless the file ends earlier.
const SEARCH_HEAD: usize = 4096;
/// Maximum number of occurrences of the magic number in a file that are examined.
const MOST_CANDIDATES: u64 = 1 << 20;

impl PacketFinder<'_> {
    /// The end of a packet according to its own size, if another packet or the end of the file
    /// follows.
    pub(super) fn following_packet(
        &mut self,
        offset: u64,
        head: &PacketHead,
    ) -> io::Result<Option<u64>> {
        let rest = (self.bytes.saturating_sub(offset)).saturating_mul(8);
        let declared = head.total_bits.or(head.content_bits);
        let Some(total) = declared.filter(|&total| is_sound(total, head, rest)) else {
            return Ok(None);
        };
        let next = offset.saturating_add(total / 8);
        Ok((next >= self.bytes || self.head(next, 0)?.is_ok()).then_some(next))
    }

    /// The end of a packet with another magic number that is otherwise valid: another packet or the
    /// end of the file follows.
    pub(super) fn past_other_magic(
        &mut self,
        offset: u64,
        error: &HeadError,
    ) -> io::Result<Option<u64>> {
        if !matches!(error, HeadError::Magic(_)) {
            return Ok(None);
        }
        self.window.clear();
        self.window
            .ensure(&self.file, offset, HEAD_BYTES, self.bytes, HEAD_BYTES)?;
        let mut cursor = Cursor::new(self.window.bytes());
        self.decoded = None;
        let Ok(head) = PacketHead::decode_any(self.layout, &mut cursor, &mut self.slots) else {
            return Ok(None);
        };
        self.following_packet(offset, &head)
    }

    /// Number of bits of a packet up to its last nonzero byte.
    pub(super) fn written_bits(&mut self, offset: u64, total: u64) -> io::Result<u64> {
        let (mut at, end, mut last) = (offset, offset.saturating_add(total / 8), offset);
        while at < end {
            self.window.clear();
            self.window
                .ensure(&self.file, at, SEARCH_BYTES, end, SEARCH_BYTES)?;
            let bytes = self.window.bytes();
            if let Some(position) = bytes.iter().rposition(|&byte| byte != 0) {
                last = at + position as u64 + 1;
            }
            at += (bytes.len() as u64).max(1);
        }
        Ok((last - offset) * 8)
    }

    /// Offset of the next occurrence of the magic number that begins a packet, if packets of this
    /// trace begin with one; else the end of the file.
    pub(super) fn next_packet(&mut self, from: u64) -> io::Result<u64> {
        let found = self.next_packet_before(from, self.bytes)?;
        Ok(found.unwrap_or(self.bytes))
    }

    /// Like [`PacketFinder::next_packet`], but `None` unless the packet begins before `until`.
    pub(super) fn next_packet_before(&mut self, from: u64, until: u64) -> io::Result<Option<u64>> {
        let Some(magic) = self.magic() else {
            return Ok(None);
        };
        let mut at = from;
        while at < until {
            self.window.clear();
            // The padding after each packet is searched and is often short, so reads are no longer
            // than needed.
            let most = usize::try_from(until - at).unwrap_or(usize::MAX);
            let want = SEARCH_BYTES.min(most.saturating_add(SEARCH_HEAD));
            self.window.ensure(&self.file, at, want, self.bytes, want)?;
            let bytes = self.window.bytes();
            let is_last = at + bytes.len() as u64 >= self.bytes || bytes.len() < SEARCH_HEAD;
            let mut next = at + (bytes.len() as u64).saturating_sub(3).max(1);
            for found in memchr::memmem::find_iter(bytes, &magic) {
                if !is_last && found > 0 && bytes.len() - found < SEARCH_HEAD {
                    // The head may continue after the available bytes.
                    next = at + found as u64;
                    break;
                }
                self.candidates += 1;
                if self.candidates > MOST_CANDIDATES || at + found as u64 >= until {
                    return Ok(None);
                }
                let mut cursor = Cursor::new(bytes.get(found..).unwrap_or_default());
                self.decoded = None;
                let head = PacketHead::decode(self.layout, &mut cursor, &mut self.slots, 0);
                // The same bytes may occur in a payload, so a candidate must also have a valid
                // head.
                let rest = (self.bytes - at - found as u64).saturating_mul(8);
                let is_ours = |head: &PacketHead| !head.is_foreign || self.foreign.has(head);
                if head.is_ok_and(|head| is_ours(&head) && is_plausible(&head, rest)) {
                    return Ok(Some(at + found as u64));
                }
            }
            at = next;
        }
        Ok(None)
    }
}
