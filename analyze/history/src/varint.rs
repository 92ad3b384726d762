//! Numbers of variable length, and the codes of values.

pub(crate) use tracebraid_storage::varint::{Numbers, fold, put, unfold};

/// Code of the absence of a value.
pub(crate) const NULL: u64 = 0;

/// Code of a number; clamped to 62 bits.
#[inline(always)]
pub(crate) fn code(number: i64) -> u64 {
    const MOST: i64 = (1 << 61) - 1;
    fold(number.clamp(-MOST, MOST)) + 1
}

/// The number with a code.
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
        fn codes_give_numbers(value in -(1i64 << 60)..(1i64 << 60)) {
            prop_assert_eq!(number(code(value)), Some(value));
        }
    }
}
