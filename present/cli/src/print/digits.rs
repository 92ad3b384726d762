//! Digits, eight at a time: all of them are computed in the lanes of one 64-bit word, which takes
//! less time than one division per pair of digits.

/// The eight decimal digits of a number below 10^8, as values 0 to 9, the first digit in the
/// lowest byte.
#[inline(always)]
pub(super) fn decimal8(number: u32) -> u64 {
    let number = u64::from(number);
    // Two lanes of four digits, four of two, eight of one; the quotients are by multiplication
    // with a rounded-up reciprocal, exact for numbers this small.
    let fours = number / 10_000 | (number % 10_000) << 32;
    let hundreds = (fours * 10_486) >> 20 & 0x7f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// The eight hexadecimal digits, as values 0 to 15, the first digit in the lowest byte.
#[inline(always)]
pub(super) fn hexadecimal8(number: u32) -> u64 {
    let halves = u64::from(number) >> 16 | (u64::from(number) & 0xffff) << 32;
    let bytes = halves >> 8 & 0x00ff_0000_00ff | (halves & 0x00ff_0000_00ff) << 16;
    bytes >> 4 & 0x000f_000f_000f_000f | (bytes & 0x000f_000f_000f_000f) << 8
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// Values 0 to 9 to characters.
#[inline(always)]
pub(super) fn characters(digits: u64) -> u64 {
    digits | ZEROS
}

/// Values 0 to 15 to characters, with capital letters.
#[inline(always)]
pub(super) fn hexadecimal_characters(digits: u64) -> u64 {
    let letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (digits | ZEROS) + letters * 7
}

/// How many of eight digits are leading zeros, 7 for the number 0.
#[inline(always)]
pub(super) fn leading_zeros(digits: u64) -> u32 {
    (digits | 1 << 56).trailing_zeros() >> 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_format() {
        let mut number = 1u32;
        for step in 0..200_000u32 {
            let decimal = number % 100_000_000;
            assert_eq!(characters(decimal8(decimal)).to_le_bytes(), *format!("{decimal:08}").as_bytes());
            let hexadecimal = hexadecimal_characters(hexadecimal8(number)).to_le_bytes();
            assert_eq!(hexadecimal, *format!("{number:08X}").as_bytes());
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223 + step);
        }
        for edge in [0, 9, 10, 99, 100, 9_999, 10_000, 99_999_999] {
            assert_eq!(characters(decimal8(edge)).to_le_bytes(), *format!("{edge:08}").as_bytes());
            assert_eq!(leading_zeros(decimal8(edge)), 8 - edge.to_string().len() as u32);
        }
    }
}
