//! A piece of the output of constant size that takes one literal and one number without further
//! checks for room.

use super::digits::{
    SMALL, characters, decimal_count, decimal8, hexadecimal_characters, hexadecimal8,
};

/// Size of a slot in bytes.
pub(crate) const SLOT: usize = OFFSETS + LITERAL;

/// Offsets are taken modulo this number. With a literal more they stay within the slot, so the
/// compiler omits bounds checks. No value begins this far into the slot, which has room for two
/// literals and two numbers.
const OFFSETS: usize = 128;

/// Maximum size of a short literal in bytes.
pub(crate) const LITERAL: usize = 32;

/// A literal of at most [`LITERAL`] bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Short {
    bytes: [u8; LITERAL],
    length: usize,
}

impl Short {
    /// A copy of `bytes`; `None` if they are too long.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let mut short = Short {
            length: bytes.len(),
            ..Short::default()
        };
        short.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(short)
    }
}

#[derive(Debug)]
pub(crate) struct Slot<'b> {
    bytes: &'b mut [u8; SLOT],
}

impl<'b> Slot<'b> {
    #[inline(always)]
    pub(crate) fn of(bytes: &'b mut [u8; SLOT]) -> Self {
        Slot { bytes }
    }

    /// Puts a literal at the beginning.
    #[inline(always)]
    pub(crate) fn literal(&mut self, literal: &[u8; LITERAL]) {
        self.bytes[..LITERAL].copy_from_slice(literal);
    }

    /// Puts a literal; returns the offset of its end.
    #[inline(always)]
    pub(crate) fn short_literal(&mut self, at: usize, literal: &Short) -> usize {
        let place = at % OFFSETS;
        self.bytes[place..place + LITERAL].copy_from_slice(&literal.bytes);
        at + literal.length
    }

    #[inline(always)]
    fn word(&mut self, at: usize, characters: u64) {
        let at = at % OFFSETS;
        self.bytes[at..at + 8].copy_from_slice(&characters.to_le_bytes());
    }

    /// Puts a number below 10^8 without leading zeros; returns the offset of its end.
    #[inline(always)]
    fn short(&mut self, at: usize, number: u32) -> usize {
        if let Some(&entry) = SMALL.get(number as usize) {
            let place = at % OFFSETS;
            self.bytes[place..place + 4].copy_from_slice(&entry.to_le_bytes());
            return at + (entry >> 24) as usize;
        }
        let count = decimal_count(number);
        self.word(at, characters(decimal8(number)) >> ((64 - count * 8) & 63));
        at + count as usize
    }

    /// Puts exactly eight digits of a number below 10^8.
    #[inline(always)]
    fn eight(&mut self, at: usize, number: u32) -> usize {
        self.word(at, characters(decimal8(number)));
        at + 8
    }

    /// Puts exactly nine digits of a number below 10^9.
    #[inline(always)]
    pub(crate) fn nine(&mut self, at: usize, number: u32) -> usize {
        self.bytes[at % OFFSETS] = b'0' + (number / 100_000_000) as u8;
        self.eight(at + 1, number % 100_000_000)
    }

    /// Puts a decimal number.
    #[inline(always)]
    pub(crate) fn decimal(&mut self, at: usize, number: u64) -> usize {
        const PART: u64 = 100_000_000;
        if number < PART {
            self.short(at, number as u32)
        } else if number < PART * PART {
            let at = self.short(at, (number / PART) as u32);
            self.eight(at, (number % PART) as u32)
        } else {
            let high = number / PART;
            let at = self.short(at, (high / PART) as u32);
            let at = self.eight(at, (high % PART) as u32);
            self.eight(at, (number % PART) as u32)
        }
    }

    /// Puts a decimal number, with a sign if it is negative.
    #[inline(always)]
    pub(crate) fn signed(&mut self, at: usize, number: i64) -> usize {
        self.bytes[at % OFFSETS] = b'-';
        self.decimal(at + usize::from(number < 0), number.unsigned_abs())
    }

    /// Puts a hexadecimal number in upper case, without prefix.
    #[inline(always)]
    pub(crate) fn hexadecimal(&mut self, at: usize, number: u64) -> usize {
        let (low, high) = (number as u32, (number >> 32) as u32);
        let first = if high != 0 { high } else { low };
        let count = (35 - (first | 1).leading_zeros()) >> 2;
        self.word(
            at,
            hexadecimal_characters(hexadecimal8(first)) >> ((64 - count * 8) & 63),
        );
        let at = at + count as usize;
        if high == 0 {
            return at;
        }
        self.word(at, hexadecimal_characters(hexadecimal8(low)));
        at + 8
    }
}
