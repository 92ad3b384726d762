//! Writes fixed-length fields: the inverse of [`FixedRead::read`].

use crate::bits::FixedRead;

/// Writes the low bits of `value` at bit `at` of `data`, replacing existing bits. False, without
/// writing, if they extend past the end.
#[inline(always)]
pub(super) fn put(data: &mut [u8], at: u64, how: FixedRead, value: u64) -> bool {
    let index = (at >> 3) as usize;
    if at & 7 != 0 || how.reversed {
        return put_slow(data, at, how, value);
    }
    macro_rules! whole {
        ($int:ty) => {{
            let value = value as $int;
            let bytes = if how.big {
                value.to_be_bytes()
            } else {
                value.to_le_bytes()
            };
            match data
                .get_mut(index..)
                .and_then(|rest| rest.first_chunk_mut())
            {
                Some(place) => {
                    *place = bytes;
                    true
                }
                None => false,
            }
        }};
    }
    match how.length {
        8 => whole!(u8),
        16 => whole!(u16),
        32 => whole!(u32),
        64 => whole!(u64),
        _ => put_slow(data, at, how, value),
    }
}

/// Like `put`, for any position and bit order, byte by byte.
#[cold]
fn put_slow(data: &mut [u8], at: u64, how: FixedRead, value: u64) -> bool {
    let length = u32::from(how.length);
    let (index, shift) = ((at >> 3) as usize, (at & 7) as u32);
    let unused = 64 - length;
    let value = if how.reversed {
        value.reverse_bits() >> unused
    } else {
        value << unused >> unused
    };
    let bytes = (shift + length).div_ceil(8);
    let field = index
        .checked_add(bytes as usize)
        .and_then(|end| data.get_mut(index..end));
    let Some(field) = field else { return false };
    // All bytes of the field combined into a number.
    let move_up = if how.big {
        bytes * 8 - shift - length
    } else {
        shift
    };
    let mask = (u128::from(u64::MAX >> unused)) << move_up;
    let value = u128::from(value) << move_up;
    for (digit, byte) in (0u32..).zip(field) {
        let digit = if how.big { bytes - 1 - digit } else { digit };
        let (mask, value) = ((mask >> (digit * 8)) as u8, (value >> (digit * 8)) as u8);
        *byte = *byte & !mask | value;
    }
    true
}

/// True if a field of this size can hold the value. The upper half of a signed field's range is
/// negative.
#[inline(always)]
pub(super) fn fits_unsigned(how: FixedRead, value: u64) -> bool {
    let bits = u32::from(how.length) - u32::from(how.signed);
    bits >= 64 || value >> bits == 0
}

/// Like `fits_unsigned`, for a signed value.
#[inline(always)]
pub(super) fn fits_signed(how: FixedRead, value: i64) -> bool {
    if !how.signed {
        return value >= 0 && fits_unsigned(how, value as u64);
    }
    let unused = 64 - u32::from(how.length);
    value << unused >> unused == value
}

/// The next multiple of `align`, a power of two. A division would take longer than all other steps.
#[inline(always)]
pub(super) fn align_up(at: u64, align: u32) -> u64 {
    let mask = u64::from(align.max(1)) - 1;
    at.saturating_add(mask) & !mask
}

#[cfg(test)]
mod tests {
    use super::{fits_signed, fits_unsigned, put};
    use crate::bits::FixedRead;

    #[test]
    fn what_is_put_is_read_and_nothing_else_changes() {
        for length in 1..=64u8 {
            for at in 0..24u64 {
                for form in 0..8u8 {
                    let how = FixedRead {
                        length,
                        big: form & 1 == 1,
                        signed: form & 2 == 2,
                        reversed: form & 4 == 4,
                    };
                    let value = 0x9e37_79b9_7f4a_7c15u64.rotate_left(at as u32);
                    let mut data = [0xa5u8; 16];
                    assert!(put(&mut data, at, how, value));
                    let unused = 64 - u32::from(length);
                    let expected = match how.signed {
                        true => ((value as i64) << unused >> unused) as u64,
                        false => value << unused >> unused,
                    };
                    assert_eq!(how.read(&data, at), Some(expected), "{how:?} at {at}");
                    let bit = FixedRead {
                        length: 1,
                        signed: false,
                        reversed: false,
                        ..how
                    };
                    for other in
                        (0..128).filter(|other| !(at..at + u64::from(length)).contains(other))
                    {
                        assert_eq!(
                            bit.read(&data, other),
                            bit.read(&[0xa5; 16], other),
                            "{how:?} at {at}"
                        );
                    }
                    assert!(!put(&mut data, 129 - u64::from(length), how, value));
                }
            }
        }
    }

    #[test]
    fn ranges() {
        let how = |length, signed| FixedRead {
            length,
            big: false,
            signed,
            reversed: false,
        };
        assert!(fits_unsigned(how(8, false), 255) && !fits_unsigned(how(8, false), 256));
        assert!(fits_unsigned(how(8, true), 127) && !fits_unsigned(how(8, true), 128));
        assert!(fits_unsigned(how(64, false), u64::MAX) && !fits_unsigned(how(64, true), u64::MAX));
        assert!(fits_signed(how(8, true), -128) && !fits_signed(how(8, true), -129));
        assert!(fits_signed(how(8, false), 255) && !fits_signed(how(8, false), -1));
        assert!(fits_signed(how(64, true), i64::MIN) && fits_signed(how(1, true), -1));
    }
}
