//! Reads fixed-length fields from bytes: any length up to 64 bits, at any bit position, in both
//! byte orders.
//!
//! Positions are in bits from the start of the *packet*. The available bytes may be a window that
//! begins later in the packet.

use crate::schema::ByteOrder;

/// Largest event record, in bytes. Larger records are skipped, since a record must fit into memory.
pub const MOST_RECORD_BYTES: u64 = 1 << 28;

/// A window over a packet, with a read position.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    /// The bytes of the window.
    pub data: &'a [u8],
    /// Packet-relative byte offset of `data[0]`.
    pub base: u64,
    /// Packet-relative position of the next bit to decode.
    pub pos: u64,
    /// Packet-relative bit position after the last decodable bit; never past the end of `data`.
    pub end: u64,
}

/// The reason why a field could not be decoded, with the packet-relative bit position of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The field extends past the end of the content or of the window.
    OutOfBounds {
        /// Position of the field, in bits.
        at: u64,
        /// Bits that the field needs; `u64::MAX` if unknown (an unterminated string).
        wanted: u64,
    },
    /// No option matches the value of a selector.
    NoOption {
        /// Position after the selector, in bits.
        at: u64,
        /// The selector's raw value.
        selector: u64,
    },
    /// The length of an array or string is larger than the packet.
    Length {
        /// Position of the array or string, in bits.
        at: u64,
        /// The length.
        length: u64,
    },
    /// An array or string with this number of elements extends past the end of the content or of
    /// the window.
    TooLong {
        /// Position of the array or string, in bits.
        at: u64,
        /// The length.
        length: u64,
        /// Bits that the elements need.
        wanted: u64,
    },
    /// A variable-length integer has more than 64 significant bits.
    VarIntTooLong {
        /// Position of the field, in bits.
        at: u64,
    },
    /// A field begins within a byte whose earlier bits have the other byte order.
    ByteOrder {
        /// Position of the field, in bits.
        at: u64,
    },
    /// An array has more elements of zero bits than any real data contains.
    EmptyElements {
        /// Position of the array, in bits.
        at: u64,
    },
    /// An event record is larger than [`MOST_RECORD_BYTES`].
    TooLarge {
        /// Position of the event record, in bits.
        at: u64,
    },
    /// A sized string ends within a code unit, before any null.
    CodeUnit {
        /// Position of the string, in bits.
        at: u64,
    },
    /// An event record has a class id that the metadata does not define.
    UnknownEventClass {
        /// Position of the event record, in bits.
        at: u64,
        /// The id.
        id: u64,
    },
}

impl DecodeError {
    /// Packet-relative position of the error, in bits.
    pub fn position(&self) -> u64 {
        match *self {
            DecodeError::OutOfBounds { at, .. }
            | DecodeError::NoOption { at, .. }
            | DecodeError::Length { at, .. }
            | DecodeError::TooLong { at, .. }
            | DecodeError::VarIntTooLong { at }
            | DecodeError::ByteOrder { at }
            | DecodeError::EmptyElements { at }
            | DecodeError::CodeUnit { at }
            | DecodeError::TooLarge { at }
            | DecodeError::UnknownEventClass { at, .. } => at,
        }
    }

    /// Whether the field may become decodable when more of the packet's bytes are available.
    pub(crate) fn may_go_on(self, content_bits: u64) -> bool {
        match self {
            DecodeError::OutOfBounds {
                wanted: u64::MAX, ..
            } => true,
            DecodeError::OutOfBounds { at, wanted } | DecodeError::TooLong { at, wanted, .. } => at
                .checked_add(wanted)
                .is_some_and(|end| end <= content_bits),
            DecodeError::Length { at, length } => length <= content_bits.saturating_sub(at),
            _ => false,
        }
    }
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            DecodeError::OutOfBounds {
                wanted: u64::MAX, ..
            } => {
                write!(
                    f,
                    "a string is not terminated before the end of the packet's content"
                )
            }
            DecodeError::OutOfBounds { wanted: 0, .. } => {
                write!(
                    f,
                    "the padding before a field extends past the end of the packet's content"
                )
            }
            DecodeError::OutOfBounds { wanted, .. } => {
                write!(
                    f,
                    "a field of {wanted} bits extends past the end of the packet's content"
                )
            }
            DecodeError::NoOption { selector, .. } => {
                write!(f, "the selector value {selector} matches no option")
            }
            DecodeError::Length { length, .. } | DecodeError::TooLong { length, .. } => {
                write!(f, "a length of {length} is more than the packet can hold")
            }
            DecodeError::VarIntTooLong { .. } => {
                write!(f, "a variable-length integer has more than 64 bits")
            }
            DecodeError::ByteOrder { .. } => {
                write!(f, "the byte order changes within a byte")
            }
            DecodeError::EmptyElements { .. } => {
                write!(f, "too many array elements that take no space")
            }
            DecodeError::TooLarge { .. } => {
                write!(
                    f,
                    "the event record is larger than {} MiB",
                    MOST_RECORD_BYTES >> 20
                )
            }
            DecodeError::CodeUnit { .. } => {
                write!(f, "a string ends in the middle of a character's code unit")
            }
            DecodeError::UnknownEventClass { id, .. } => {
                write!(f, "the metadata has no event class with id {id}")
            }
        }
    }
}

impl std::error::Error for DecodeError {}

/// How to read a fixed-length field of up to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedRead {
    /// Length in bits: 1 to 64.
    pub length: u8,
    /// Big endian.
    pub big: bool,
    /// Two's complement.
    pub signed: bool,
    /// The first bit read is the most significant bit of a little-endian field, or the least
    /// significant bit of a big-endian field.
    pub reversed: bool,
}

impl FixedRead {
    /// `length` must be 1 to 64.
    pub fn new(length: u32, byte_order: ByteOrder, signed: bool, reversed: bool) -> Self {
        FixedRead {
            length: length.clamp(1, 64) as u8,
            big: byte_order == ByteOrder::Big,
            signed,
            reversed,
        }
    }

    /// Reads at bit `at` of `data`; signed values are sign-extended. `None` if the field extends
    /// past the end of `data`.
    #[inline(always)]
    pub fn read(self, data: &[u8], at: u64) -> Option<u64> {
        let index = (at >> 3) as usize;
        let shift = (at & 7) as u32;
        let length = u32::from(self.length);
        if !self.reversed
            && shift + length <= 64
            && let Some(bytes) = data.get(index..).and_then(|rest| rest.first_chunk::<8>())
        {
            let word = if self.big {
                u64::from_be_bytes(*bytes) << shift
            } else {
                u64::from_le_bytes(*bytes) << (64 - length - shift)
            };
            return Some(if self.signed {
                ((word as i64) >> (64 - length)) as u64
            } else {
                word >> (64 - length)
            });
        }
        self.read_slow(data, index, shift)
    }

    #[cold]
    fn read_slow(self, data: &[u8], index: usize, shift: u32) -> Option<u64> {
        let length = u32::from(self.length);
        let bytes = (shift + length).div_ceil(8) as usize;
        let field = data.get(index..index.checked_add(bytes)?)?;
        let mut value: u128 = 0;
        if self.big {
            for &byte in field {
                value = value << 8 | u128::from(byte);
            }
            value >>= bytes as u32 * 8 - shift - length;
        } else {
            for &byte in field.iter().rev() {
                value = value << 8 | u128::from(byte);
            }
            value >>= shift;
        }
        let mut value = value as u64;
        if self.reversed {
            // The byte order alone determines in which order bits are taken from the data. The bit
            // order only determines from which end they fill the value (CTF2-SPEC-2.0 section
            // 6.4.3).
            value = (value << (64 - length)).reverse_bits();
        }
        Some(self.extend(value))
    }

    fn extend(self, value: u64) -> u64 {
        let unused = 64 - u32::from(self.length);
        if self.signed {
            (((value << unused) as i64) >> unused) as u64
        } else {
            value << unused >> unused
        }
    }
}

impl<'a> Cursor<'a> {
    /// A cursor at bit 0 of a packet whose first bytes are `data`.
    pub fn new(data: &'a [u8]) -> Self {
        Cursor {
            data,
            base: 0,
            pos: 0,
            end: data.len() as u64 * 8,
        }
    }

    /// Moves to the next multiple of `align` bits (a power of two).
    #[inline(always)]
    pub fn align(&mut self, align: u32) {
        let mask = u64::from(align.max(1)) - 1;
        self.pos = self.pos.saturating_add(mask) & !mask;
    }

    /// Checks that `bits` more bits can be read.
    #[inline(always)]
    pub fn need(&self, bits: u64) -> Result<(), DecodeError> {
        match self.pos.checked_add(bits) {
            Some(end) if end <= self.end => Ok(()),
            _ => Err(DecodeError::OutOfBounds {
                at: self.pos,
                wanted: bits,
            }),
        }
    }

    /// Reads a fixed-length field and advances past it.
    #[inline(always)]
    pub fn fixed(&mut self, read: FixedRead) -> Result<u64, DecodeError> {
        self.need(u64::from(read.length))?;
        let error = DecodeError::OutOfBounds {
            at: self.pos,
            wanted: u64::from(read.length),
        };
        let at = self.pos.checked_sub(self.base * 8).ok_or(error)?;
        let value = read.read(self.data, at).ok_or(error)?;
        self.pos += u64::from(read.length);
        Ok(value)
    }

    /// Returns `length` bytes at the position, which must be byte-aligned, and advances past them.
    #[inline(always)]
    pub fn bytes(&mut self, length: u64) -> Result<&'a [u8], DecodeError> {
        let bits = length.checked_mul(8).ok_or(DecodeError::Length {
            at: self.pos,
            length,
        })?;
        self.need(bits)?;
        let error = DecodeError::OutOfBounds {
            at: self.pos,
            wanted: bits,
        };
        let start = ((self.pos >> 3).checked_sub(self.base).ok_or(error)?) as usize;
        let bytes = self.data.get(start..start + length as usize).ok_or(error)?;
        self.pos += bits;
        Ok(bytes)
    }

    /// Returns the bytes up to the next null code unit of `unit` bytes (1, 2 or 4), without the
    /// null, and advances past it.
    #[inline(always)]
    pub fn terminated(&mut self, unit: usize) -> Result<&'a [u8], DecodeError> {
        let error = DecodeError::OutOfBounds {
            at: self.pos,
            wanted: u64::MAX,
        };
        let start = ((self.pos >> 3).checked_sub(self.base).ok_or(error)?) as usize;
        let end = ((self.end >> 3).checked_sub(self.base).ok_or(error)?) as usize;
        let rest = self.data.get(start..end).ok_or(error)?;
        let length = if unit == 1 {
            find_null(rest)
        } else {
            rest.chunks_exact(unit)
                .position(|code| code.iter().all(|&byte| byte == 0))
                .map(|n| n * unit)
        };
        let length = length.ok_or(error)?;
        self.pos += (length + unit) as u64 * 8;
        Ok(&rest[..length])
    }

    /// Reads 128 bits and advances past them; `half` describes how to read 64 bits.
    pub(crate) fn wide(&mut self, half: FixedRead) -> Result<u128, DecodeError> {
        self.need(128)?;
        let (first, second) = (self.fixed(half)?, self.fixed(half)?);
        let is_first_high = half.big != half.reversed;
        let (high, low) = if is_first_high {
            (first, second)
        } else {
            (second, first)
        };
        Ok(u128::from(high) << 64 | u128::from(low))
    }

    /// Reads a variable-length (LEB128) integer and advances past it.
    pub fn leb128(&mut self, signed: bool) -> Result<u64, DecodeError> {
        let at = self.pos;
        let mut value = 0u128;
        let mut shift = 0;
        loop {
            let byte = self.bytes(1)?.first().copied().unwrap_or(0);
            // Padding bytes beyond 64 bits are legal as long as they add no value.
            if shift < 126 {
                value |= u128::from(byte & 0x7f) << shift;
                shift += 7;
            } else if byte & 0x7f
                != if signed && value >> 125 & 1 == 1 {
                    0x7f
                } else {
                    0
                }
            {
                return Err(DecodeError::VarIntTooLong { at });
            }
            if byte & 0x80 == 0 {
                break;
            }
        }
        if signed {
            let value = ((value << (128 - shift)) as i128) >> (128 - shift);
            i64::try_from(value)
                .map(|value| value as u64)
                .map_err(|_| DecodeError::VarIntTooLong { at })
        } else {
            u64::try_from(value).map_err(|_| DecodeError::VarIntTooLong { at })
        }
    }
}

/// Index of the first null byte. Names in traces are short, so the first eight bytes are tested at
/// once before the general search is called.
#[inline(always)]
pub(crate) fn find_null(bytes: &[u8]) -> Option<usize> {
    if let Some(first) = bytes.first_chunk::<8>() {
        let word = u64::from_le_bytes(*first);
        let hit = word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080;
        if hit != 0 {
            return Some((hit.trailing_zeros() >> 3) as usize);
        }
    }
    memchr::memchr(0, bytes)
}

/// The bytes before the first null code unit.
#[inline(always)]
pub(crate) fn until_null(bytes: &[u8], unit: usize) -> &[u8] {
    let length = if unit == 1 {
        find_null(bytes)
    } else {
        bytes
            .chunks_exact(unit)
            .position(|code| code.iter().all(|&byte| byte == 0))
            .map(|n| n * unit)
    };
    length
        .and_then(|length| bytes.get(..length))
        .unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the specification defines it.
    fn reference(data: &[u8], at: u64, length: u32, big: bool, last_to_first: bool) -> u64 {
        let mut value = 0u64;
        for bit in 0..u64::from(length) {
            let byte = data[((at + bit) / 8) as usize];
            let index = if big {
                7 - (at + bit) % 8
            } else {
                (at + bit) % 8
            };
            let place = if last_to_first {
                u64::from(length) - bit - 1
            } else {
                bit
            };
            value |= u64::from(byte >> index & 1) << place;
        }
        value
    }

    #[test]
    fn every_length_at_every_bit_equals_the_bitwise_definition() {
        let data: Vec<u8> = (0..40u32)
            .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13) as u8)
            .collect();
        for length in 1..=64 {
            for at in 0..(40 * 8 - length) {
                for big in [false, true] {
                    let order = if big {
                        ByteOrder::Big
                    } else {
                        ByteOrder::Little
                    };
                    let read = FixedRead::new(length, order, false, false);
                    let expected = reference(&data, u64::from(at), length, big, big);
                    let other = FixedRead::new(length, order, false, true);
                    let reversed = reference(&data, u64::from(at), length, big, !big);
                    assert_eq!(
                        other.read(&data, u64::from(at)),
                        Some(reversed),
                        "{length} at {at} {big}"
                    );
                    assert_eq!(
                        read.read(&data, u64::from(at)),
                        Some(expected),
                        "{length} at {at} {big}"
                    );
                    let signed = FixedRead {
                        signed: true,
                        ..read
                    }
                    .read(&data, u64::from(at))
                    .unwrap() as i64;
                    let shift = 64 - length;
                    assert_eq!(signed, ((expected << shift) as i64) >> shift);
                }
            }
            let over = 40 * 8 - u64::from(length) + 1;
            assert_eq!(
                FixedRead::new(length, ByteOrder::Little, false, false).read(&data, over),
                None
            );
        }
    }

    #[test]
    fn leb128_takes_all_of_64_bits_and_no_more() {
        let ten = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(Cursor::new(&ten).leb128(false), Ok(u64::MAX));
        let more = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03];
        assert!(matches!(
            Cursor::new(&more).leb128(false),
            Err(DecodeError::VarIntTooLong { .. })
        ));
        assert_eq!(Cursor::new(&[0x7f]).leb128(true).map(|v| v as i64), Ok(-1));
        assert_eq!(
            Cursor::new(&[0x80, 0x7f]).leb128(true).map(|v| v as i64),
            Ok(-128)
        );
        let endless = [0x80u8; 64];
        assert!(matches!(
            Cursor::new(&endless).leb128(false),
            Err(DecodeError::OutOfBounds { .. })
        ));
    }

    #[test]
    fn strings_end_at_their_null_or_not_at_all() {
        let mut cursor = Cursor::new(b"lo\0eth0-a-longer-name\0rest");
        assert_eq!(cursor.terminated(1), Ok(&b"lo"[..]));
        assert_eq!(cursor.terminated(1), Ok(&b"eth0-a-longer-name"[..]));
        assert!(cursor.terminated(1).is_err());
        let mut wide = Cursor::new(&[65, 0, 0, 66, 0, 0, 9]);
        assert_eq!(wide.terminated(2), Ok(&[65, 0, 0, 66][..]));
    }
}
