//! Records of integers in few bytes.

use serde::{Deserialize, Serialize};

use crate::pages::PAGE_BYTES;

/// Records of bytes and integers. Integers are encoded in LEB128 with the sign in the lowest bit,
/// and pages are those of [`Pages`](crate::pages::Pages). Records contain no types: the reader must
/// know the fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Packed {
    pages: Vec<Vec<u8>>,
}

/// A position between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackedPosition {
    page: usize,
    byte: usize,
}

/// A record that is being written.
#[derive(Debug)]
pub(crate) struct Record {
    bytes: [u8; MOST_BYTES],
    count: usize,
}

/// Maximum size of a record in bytes; excess bytes are dropped. Integers take at most ten bytes.
pub(crate) const MOST_BYTES: usize = 96;

impl Record {
    /// Appends a byte.
    #[inline]
    pub(crate) fn byte(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.count) {
            *place = byte;
            self.count += 1;
        }
    }

    /// Appends an integer.
    #[inline]
    pub(crate) fn int(&mut self, int: i64) {
        let mut rest = ((int << 1) ^ (int >> 63)) as u64;
        while rest >= 0x80 {
            self.byte(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.byte(rest as u8);
    }
}

/// Reads the fields of a record.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    page: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte.
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.page.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The next integer.
    #[inline]
    pub(crate) fn int(&mut self) -> Option<i64> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some((value >> 1) as i64 ^ -((value & 1) as i64));
            }
            shift += 7;
        }
    }
}

impl Packed {
    /// Appends the record that `fill` writes.
    #[inline]
    pub(crate) fn push(&mut self, fill: impl FnOnce(&mut Record)) {
        let mut record = Record {
            bytes: [0; MOST_BYTES],
            count: 0,
        };
        fill(&mut record);
        let record = record.bytes.get(..record.count).unwrap_or_default();
        match self.pages.last_mut() {
            Some(page) if page.len() + record.len() <= PAGE_BYTES => page.extend_from_slice(record),
            _ => self.push_page(record),
        }
    }

    #[cold]
    fn push_page(&mut self, record: &[u8]) {
        // Many lists never fill a page.
        let bytes = if self.pages.is_empty() { 0 } else { PAGE_BYTES };
        let mut page = Vec::with_capacity(bytes);
        page.extend_from_slice(record);
        self.pages.push(page);
    }

    /// True if there are no records.
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// The position after the last record.
    pub(crate) fn end(&self) -> PackedPosition {
        PackedPosition {
            page: self.pages.len().saturating_sub(1),
            byte: self.pages.last().map_or(0, Vec::len),
        }
    }

    /// Removes the records after a position.
    pub(crate) fn truncate(&mut self, end: PackedPosition) {
        self.pages.truncate(end.page + 1);
        if let Some(page) = self.pages.get_mut(end.page) {
            page.truncate(end.byte);
        }
        if end == PackedPosition::default() {
            self.pages.clear();
        }
    }

    /// Reads a record and advances to the next one; `None` at the end, or if `of` finds it
    /// malformed.
    #[inline]
    pub(crate) fn read<T>(
        &self,
        place: &mut PackedPosition,
        of: impl FnOnce(&mut Reader<'_>) -> Option<T>,
    ) -> Option<T> {
        let mut page = self.pages.get(place.page)?;
        if place.byte >= page.len() {
            page = self.pages.get(place.page + 1)?;
            *place = PackedPosition {
                page: place.page + 1,
                byte: 0,
            };
        }
        let mut reader = Reader {
            page,
            at: place.byte,
        };
        let record = of(&mut reader);
        place.byte = reader.at;
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTS: [i64; 12] = [
        0,
        -1,
        1,
        63,
        -64,
        64,
        -65,
        1 << 40,
        i64::MAX,
        i64::MIN,
        i64::MIN + 1,
        8191,
    ];

    /// Records of one to nine integers.
    fn records() -> impl Iterator<Item = Vec<i64>> {
        (0..3000).map(|at: usize| {
            let count = 1 + at % 9;
            (0..count).map(|int| INTS[(at * 7 + int) % 12]).collect()
        })
    }

    fn push(packed: &mut Packed, ints: &[i64]) {
        packed.push(|record| {
            record.byte(200);
            ints.iter().for_each(|&int| record.int(int));
        });
    }

    fn read(packed: &Packed, place: &mut PackedPosition, count: usize) -> Option<Vec<i64>> {
        packed.read(place, |reader| {
            assert_eq!(reader.byte(), Some(200));
            (0..count).map(|_| reader.int()).collect()
        })
    }

    #[test]
    fn what_is_written_is_read() {
        let mut packed = Packed::default();
        records().for_each(|ints| push(&mut packed, &ints));
        assert!(packed.pages.len() > 10);
        let mut place = PackedPosition::default();
        for record in records() {
            assert_eq!(read(&packed, &mut place, record.len()), Some(record));
        }
        assert_eq!(read(&packed, &mut place, 1), None);
    }

    #[test]
    fn records_are_cut_off_anywhere() {
        for kept in [0, 1, 2, 100, 1500, 2999, 3000] {
            let mut packed = Packed::default();
            let mut ends = vec![packed.end()];
            for record in records() {
                push(&mut packed, &record);
                ends.push(packed.end());
            }
            packed.truncate(ends[kept]);
            assert_eq!(packed.is_empty(), kept == 0);
            push(&mut packed, &[42]);
            let mut place = PackedPosition::default();
            for record in records().take(kept) {
                assert_eq!(read(&packed, &mut place, record.len()), Some(record));
            }
            assert_eq!(read(&packed, &mut place, 1), Some(vec![42]), "{kept}");
            assert_eq!(read(&packed, &mut place, 1), None);
        }
    }

    #[test]
    fn damage_is_no_integer() {
        let packed = Packed {
            pages: vec![vec![0xff; 30]],
        };
        assert_eq!(
            packed.read(&mut PackedPosition::default(), |reader| reader.int()),
            None
        );
    }
}
