//! Integers of variable length (LEB128).
//!
//! In: 64-bit integers. Out: each in the minimum number of bytes; and the integers decoded from
//! bytes. Promise: decoding any bytes ends, in time linear in their length.

/// Appends a number: 7 bits per byte, the lowest first.
#[inline(always)]
pub fn put(bytes: &mut Vec<u8>, number: u64) {
    if number >> 56 != 0 {
        return put_large(bytes, number);
    }
    // The length of a number is hard to predict, so all eight bytes are written and the excess is
    // then truncated.
    let length = (63 - (number | 1).leading_zeros()) / 7 + 1;
    let others_follow = MORE & !(u64::MAX << (8 * (length - 1)));
    bytes.extend_from_slice(&(spread(number) | others_follow).to_le_bytes());
    bytes.truncate(bytes.len() - 8 + length as usize);
}

/// The bit of each byte that marks that another byte follows.
const MORE: u64 = 0x8080_8080_8080_8080;

/// The lowest 56 bits, seven in each byte.
#[inline(always)]
fn spread(number: u64) -> u64 {
    let fours = number & 0x0fff_ffff | (number & 0x00ff_ffff_f000_0000) << 4;
    let pairs = fours & 0x0000_3fff_0000_3fff | (fours & 0x0fff_c000_0fff_c000) << 2;
    pairs & 0x007f_007f_007f_007f | (pairs & 0x3f80_3f80_3f80_3f80) << 1
}

#[cold]
fn put_large(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Decodes numbers from arbitrary bytes.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'b> {
    bytes: &'b [u8],
}

impl<'b> Numbers<'b> {
    /// A decoder of `bytes`.
    pub fn new(bytes: &'b [u8]) -> Self {
        Numbers { bytes }
    }

    /// Decodes the next number. `None` after the last byte, or if the number has more than 64 bits.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "numbers may follow after a `None`, so it is not an iterator"
    )]
    pub fn next(&mut self) -> Option<u64> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        if first < 0x80 {
            return Some(u64::from(first));
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let (&byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// The bytes that have not been decoded yet.
    pub fn rest(&self) -> &'b [u8] {
        self.bytes
    }
}

/// Maps a signed number to an unsigned number that is small if the signed number is near 0.
#[inline(always)]
pub fn fold(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The inverse of [`fold`].
#[inline(always)]
pub fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_take_as_few_bytes_as_they_can() {
        for bits in 0..64 {
            for number in [1u64 << bits, (1u64 << bits) - 1, (1u64 << bits) + 1] {
                let (mut bytes, mut plain) = (vec![7], vec![7]);
                put(&mut bytes, number);
                put_large(&mut plain, number);
                assert_eq!(bytes, plain, "{number}");
            }
        }
    }

    proptest! {
        #[test]
        fn numbers_are_taken_as_they_were_put(numbers in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| put(&mut bytes, number));
            let mut found = Numbers::new(&bytes);
            for &number in &numbers {
                prop_assert_eq!(found.next(), Some(number));
            }
            prop_assert_eq!(found.next(), None);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut numbers = Numbers::new(&bytes);
            let mut count = 0;
            while numbers.next().is_some() {
                count += 1;
            }
            prop_assert!(count <= bytes.len());
        }

        #[test]
        fn signs_fold_away(value in any::<i64>()) {
            prop_assert_eq!(unfold(fold(value)), value);
        }
    }
}
