//! Buffer for lines before they are written: reused, and filled without `std::fmt`.

use super::slot::{SLOT, Slot};

/// Size of short copies: constant, whatever the number of bytes that count.
const CHUNK: usize = 32;

/// Number of bytes that must follow a literal so that it can be copied in [`CHUNK`]s.
pub(crate) const PADDING: usize = 2 * CHUNK;

/// A literal that may be copied in chunks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Padded {
    bytes: Vec<u8>,
    length: usize,
}

impl Padded {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut padded = Padded::default();
        padded.set(bytes);
        padded
    }

    /// The literal without its padding.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    /// Replaces the literal.
    pub(crate) fn set(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend([0; PADDING]);
        self.length = bytes.len();
    }
}

/// A growing buffer; bytes past its end are garbage that the next write overwrites.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    end: usize,
    spare: [u8; SLOT],
}

impl Buffer {
    /// An empty buffer with room for `room` bytes.
    pub(crate) fn new(room: usize) -> Self {
        Buffer {
            bytes: vec![0; room.max(64)],
            end: 0,
            spare: [0; SLOT],
        }
    }

    /// The bytes put so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.end).unwrap_or_default()
    }

    /// Number of bytes put so far.
    pub(crate) fn len(&self) -> usize {
        self.end
    }

    pub(crate) fn clear(&mut self) {
        self.end = 0;
    }

    /// Removes the bytes past `length`.
    pub(crate) fn truncate(&mut self, length: usize) {
        self.end = self.end.min(length);
    }

    /// The next `size` bytes to write to; the end advances by `advance` of them.
    #[inline(always)]
    fn room(&mut self, size: usize, advance: usize) -> &mut [u8] {
        if self.bytes.len() - self.end < size {
            self.grow(size);
        }
        let start = self.end;
        self.end += advance;
        &mut self.bytes[start..start + size]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, size: usize) {
        let length = (self.bytes.len() + size).max(self.bytes.len() * 2);
        self.bytes.resize(length, 0);
    }

    #[inline(always)]
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.room(bytes.len(), bytes.len()).copy_from_slice(bytes);
    }

    #[inline(always)]
    pub(crate) fn put_byte(&mut self, byte: u8) {
        self.room(1, 1)[0] = byte;
    }

    /// Puts `length` bytes of `source`, beginning at `start`. If `source` has [`PADDING`] bytes
    /// from there on, short copies have a constant size.
    #[inline(always)]
    pub(crate) fn put_padded(&mut self, source: &[u8], start: usize, length: usize) {
        if let Some(chunk) = source
            .get(start..)
            .and_then(|rest| rest.first_chunk::<PADDING>())
        {
            if length <= CHUNK {
                return self.room(CHUNK, length).copy_from_slice(&chunk[..CHUNK]);
            }
            if length <= PADDING {
                return self.room(PADDING, length).copy_from_slice(chunk);
            }
        }
        self.put(source.get(start..start + length).unwrap_or_default());
    }

    #[inline(always)]
    pub(crate) fn put_literal(&mut self, literal: &Padded) {
        self.put_padded(&literal.bytes, 0, literal.length);
    }

    /// Puts the first `length` of 16 bytes.
    #[inline(always)]
    pub(crate) fn put_part(&mut self, chunk: &[u8; 16], length: usize) {
        self.room(16, length.min(16)).copy_from_slice(chunk);
    }

    /// Room for one literal chunk and one number, which are written from its beginning.
    #[inline(always)]
    pub(crate) fn slot(&mut self) -> Slot<'_> {
        let start = self.end;
        if self.bytes.len() - start < SLOT {
            self.grow(SLOT);
        }
        match self
            .bytes
            .get_mut(start..)
            .and_then(|rest| rest.first_chunk_mut())
        {
            Some(slot) => Slot::of(slot),
            // Unreachable: `grow` has made room.
            None => Slot::of(&mut self.spare),
        }
    }

    /// Keeps `length` bytes of the slot.
    #[inline(always)]
    pub(crate) fn keep(&mut self, length: usize) {
        self.end = (self.end + length).min(self.bytes.len());
    }

    /// The whole buffer; the bytes past the length are free.
    #[inline(always)]
    pub(crate) fn all(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The whole buffer, after at least `size` more bytes have been made free.
    #[cold]
    pub(crate) fn grown(&mut self, size: usize) -> &mut [u8] {
        self.grow(size);
        &mut self.bytes
    }

    /// Sets the number of bytes that count.
    #[inline(always)]
    pub(crate) fn set_length(&mut self, length: usize) {
        self.end = length.min(self.bytes.len());
    }

    #[inline(always)]
    pub(crate) fn put_number(&mut self, write: impl FnOnce(Slot<'_>) -> usize) {
        let length = write(self.slot());
        self.keep(length);
    }

    /// Puts exactly nine digits of a number below 10^9.
    #[inline(always)]
    pub(crate) fn put_nine(&mut self, number: u32) {
        self.put_number(|mut slot| slot.nine(0, number));
    }

    /// Puts a decimal number.
    #[inline(always)]
    pub(crate) fn put_u64(&mut self, number: u64) {
        self.put_number(|mut slot| slot.decimal(0, number));
    }

    /// Puts a decimal number, with a sign if it is negative.
    #[inline(always)]
    pub(crate) fn put_i64(&mut self, number: i64) {
        self.put_number(|mut slot| slot.signed(0, number));
    }

    /// Puts a hexadecimal number in upper case, without prefix.
    #[inline(always)]
    pub(crate) fn put_hexadecimal(&mut self, number: u64) {
        self.put_number(|mut slot| slot.hexadecimal(0, number));
    }
}

impl std::fmt::Write for Buffer {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.put(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_format() {
        let mut number = 1u64;
        for shift in 0..64 {
            for _ in 0..500 {
                number = number
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let value = number >> shift;
                let mut buffer = Buffer::new(0);
                buffer.put_u64(value);
                buffer.put_byte(b' ');
                buffer.put_i64(value as i64);
                buffer.put_byte(b' ');
                buffer.put_hexadecimal(value);
                assert_eq!(
                    buffer.bytes(),
                    format!("{value} {} {value:X}", value as i64).as_bytes()
                );
            }
        }
        let mut buffer = Buffer::new(0);
        buffer.put_i64(i64::MIN);
        buffer.put_nine(7);
        buffer.put_nine(999_999_999);
        assert_eq!(buffer.bytes(), b"-9223372036854775808000000007999999999");
    }

    #[test]
    fn it_grows_and_short_copies_keep_their_length() {
        let mut buffer = Buffer::new(0);
        let source = [b'x'; 100];
        for _ in 0..100 {
            buffer.put_padded(&source, 3, 5);
            buffer.put_padded(&source, 95, 5);
            buffer.put_padded(&source, 0, 90);
            buffer.put_padded(&source, 9, 45);
            buffer.put_literal(&Padded::new(b"xxxxx"));
        }
        assert_eq!(buffer.bytes(), vec![b'x'; 15_000]);
    }
}
