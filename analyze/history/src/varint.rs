//! Numbers of variable length (LEB128) in bytes, and the codes of values.

/// Appends a number: 7 bits a byte, the lowest first.
#[inline]
pub(crate) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes numbers from bytes, which may be anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers<'b> {
    bytes: &'b [u8],
}

impl<'b> Numbers<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Numbers { bytes }
    }

    /// The next number; `None` behind the last byte, or if it has more than 64 bits.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
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

    /// What has not been taken.
    pub(crate) fn rest(&self) -> &'b [u8] {
        self.bytes
    }
}

/// A signed number as one without a sign, small if it is near 0.
#[inline(always)]
pub(crate) fn fold(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// The number that [`fold`] gave.
#[inline(always)]
pub(crate) fn unfold(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Code of a value: 0 is none.
pub(crate) const NULL: u64 = 0;

/// Code of a number; those of more than 62 bits are cut there.
#[inline(always)]
pub(crate) fn code(number: i64) -> u64 {
    const MOST: i64 = (1 << 61) - 1;
    fold(number.clamp(-MOST, MOST)) + 1
}

/// The number with that code.
#[inline(always)]
pub(crate) fn number(code: u64) -> Option<i64> {
    Some(unfold(code.checked_sub(1)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
        fn codes_give_numbers(value in -(1i64 << 60)..(1i64 << 60)) {
            prop_assert_eq!(number(code(value)), Some(value));
            prop_assert_eq!(unfold(fold(value)), value);
        }
    }
}
