//! Reads packet heads at offsets of a file, and collects the faults of packets.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::bits::{Cursor, DecodeError};
use crate::damage::Damage;
use crate::layout::TraceLayout;
use crate::packet::{HeadError, MAGIC, PacketHead};
use crate::packets::foreign::{Foreign, foreign_uuid};
use crate::window::Window;

/// Number of bytes that are read for a head. Most heads have a few dozen bytes; longer heads are
/// read again with more. In a trace of small packets, larger reads would cover a great part of the
/// file.
pub(super) const HEAD_BYTES: usize = 512;
pub(super) const MOST_HEAD_BYTES: usize = 1 << 24;
/// Maximum number of damaged packets of a file that are reported individually.
pub(crate) const MOST_FAULTS: u64 = 1000;

/// Finds the packets of a file of `bytes` bytes.
pub(super) struct PacketFinder<'a> {
    pub(super) layout: &'a TraceLayout,
    pub(super) path: &'a Path,
    pub(super) file: File,
    pub(super) bytes: u64,
    pub(super) window: Window,
    pub(super) slots: Vec<u64>,
    /// Offset of the packet whose head was decoded last. The registers belong to this packet.
    pub(super) decoded: Option<u64>,
    /// Number of occurrences of the magic number that `resync` has examined.
    pub(super) candidates: u64,
    /// Number of candidates that `hidden` has examined.
    pub(super) hidden: u64,
    faults: u64,
    pub(super) foreign: Foreign,
    pub(super) damage: &'a mut Vec<Damage>,
}

impl<'a> PacketFinder<'a> {
    pub(super) fn new(
        layout: &'a TraceLayout,
        path: &'a Path,
        bytes: u64,
        damage: &'a mut Vec<Damage>,
    ) -> io::Result<Self> {
        Ok(PacketFinder {
            layout,
            path,
            file: File::open(path)?,
            bytes,
            window: Window::default(),
            slots: layout.registers(),
            decoded: None,
            candidates: 0,
            hidden: 0,
            faults: 0,
            foreign: Foreign::default(),
            damage,
        })
    }

    /// The magic number in the byte order of the trace; `None` if packets have none.
    pub(super) fn magic(&self) -> Option<[u8; 4]> {
        self.layout.leading_magic(MAGIC as u32)
    }

    pub(super) fn report_fault(&mut self, damage: Damage) {
        self.faults += 1;
        if self.faults <= MOST_FAULTS {
            self.damage.push(damage);
        }
    }

    pub(super) fn report_more_faults(&mut self) {
        if let Some(more) = self
            .faults
            .checked_sub(MOST_FAULTS)
            .filter(|&more| more > 0)
        {
            let packets = match more {
                1 => "1 more packet of this file is".to_owned(),
                more => format!("{more} more packets of this file are"),
            };
            self.damage
                .push(Damage::of(self.path, format!("{packets} damaged")));
        }
    }

    /// The head at an offset, which lies before the end of the file.
    pub(super) fn head(
        &mut self,
        offset: u64,
        clock: u64,
    ) -> io::Result<Result<PacketHead, HeadError>> {
        let mut want = HEAD_BYTES;
        self.decoded = Some(offset);
        loop {
            self.window.clear();
            self.window
                .ensure(&self.file, offset, want, self.bytes, want)?;
            let mut cursor = Cursor::new(self.window.bytes());
            let result = PacketHead::decode(self.layout, &mut cursor, &mut self.slots, clock);
            let short = matches!(
                result,
                Err(HeadError::Decode(
                    DecodeError::OutOfBounds { .. }
                        | DecodeError::Length { .. }
                        | DecodeError::TooLong { .. }
                ))
            );
            let more = self.bytes.saturating_sub(offset) > want as u64 && want < MOST_HEAD_BYTES;
            if !(short && more) {
                return Ok(result);
            }
            want *= 8;
        }
    }

    /// Reports packets with a UUID other than that of the metadata, once per file. True if there
    /// are any.
    pub(super) fn report_foreign(&mut self, is_indexed: bool) -> bool {
        let Some((offset, uuid)) = self.foreign.first else {
            return false;
        };
        // With an index, only the first and the last packet were checked.
        let count = (!is_indexed).then_some(self.foreign.count);
        let message = foreign_uuid(count, uuid, self.layout.class.uuid);
        self.damage.push(Damage::at(self.path, offset, message));
        true
    }
}
