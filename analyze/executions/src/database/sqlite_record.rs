//! Rows in the record format of SQLite.
//!
//! File format: <https://www.sqlite.org/fileformat.html>, sections 1.6 (varints) and 2.1 (records).

/// Appends an SQLite varint: most significant bits first, at most 9 bytes.
pub(super) fn put_varint(bytes: &mut Vec<u8>, number: u64) {
    if number < 1 << 7 {
        return bytes.push(number as u8);
    }
    let mut reversed = [0; 9];
    // In a varint of 9 bytes, the last byte holds 8 bits.
    let is_longest = number >> 56 != 0;
    let (mut rest, mut count) = (number, 0);
    if is_longest {
        reversed[0] = number as u8;
        (rest, count) = (number >> 8, 1);
    }
    while count < 9 && (is_longest || rest != 0) {
        reversed[count] = rest as u8 & 0x7f | if count > 0 { 0x80 } else { 0 };
        rest >>= 7;
        count += 1;
    }
    bytes.extend(reversed[..count].iter().rev());
}

/// Row in the SQLite record format: a header with the serial types, then the values.
#[derive(Debug, Default)]
pub(super) struct Record {
    kinds: Vec<u8>,
    values: Vec<u8>,
    bytes: Vec<u8>,
}

impl Record {
    pub(super) fn clear(&mut self) {
        self.kinds.clear();
        self.values.clear();
    }

    pub(super) fn null(&mut self) {
        self.kinds.push(0);
    }

    pub(super) fn integer(&mut self, number: i64) {
        let bytes = number.to_be_bytes();
        let (kind, length) = match number {
            0 => (8, 0),
            1 => (9, 0),
            -0x80..=0x7f => (1, 1),
            -0x8000..=0x7fff => (2, 2),
            -0x80_0000..=0x7f_ffff => (3, 3),
            -0x8000_0000..=0x7fff_ffff => (4, 4),
            -0x8000_0000_0000..=0x7fff_ffff_ffff => (5, 6),
            _ => (6, 8),
        };
        self.kinds.push(kind);
        self.values
            .extend_from_slice(bytes.get(8 - length..).unwrap_or_default());
    }

    /// NaN is stored as NULL, as SQLite does.
    pub(super) fn float(&mut self, number: f64) {
        if number.is_nan() {
            return self.null();
        }
        self.kinds.push(7);
        self.values.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn text(&mut self, text: &str) {
        put_varint(&mut self.kinds, 13 + 2 * text.len() as u64);
        self.values.extend_from_slice(text.as_bytes());
    }

    pub(super) fn blob(&mut self, blob: &[u8]) {
        put_varint(&mut self.kinds, 12 + 2 * blob.len() as u64);
        self.values.extend_from_slice(blob);
    }

    /// The encoded record.
    pub(super) fn bytes(&mut self) -> &[u8] {
        self.bytes.clear();
        // The header length includes itself.
        let mut length = self.kinds.len() as u64 + 1;
        if length >= 1 << 7 {
            length += 1;
        }
        put_varint(&mut self.bytes, length);
        self.bytes.extend_from_slice(&self.kinds);
        self.bytes.extend_from_slice(&self.values);
        &self.bytes
    }
}
