//! Converts eight digits at a time, in the lanes of one 64-bit word. This takes less time than one
//! division per pair of digits.

/// The eight decimal digits of a number below 10^8, as values 0 to 9, the first digit in the
/// lowest byte.
#[inline(always)]
pub(super) fn decimal8(number: u32) -> u64 {
    let number = u64::from(number);
    // Two lanes of four digits, then four of two, then eight of one. Quotients are multiplications
    // by a rounded-up reciprocal, which is exact for numbers this small.
    let fours = (number / 10_000) | ((number % 10_000) << 32);
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

/// Characters of the numbers below 1000, the first in the lowest byte, and their count in the
/// highest byte. Most numbers in traces are small.
pub(super) static SMALL: [u32; 1000] = small();

const fn small() -> [u32; 1000] {
    let mut table = [0; 1000];
    let mut number = 0;
    while number < 1000 {
        let (hundreds, tens, ones) = (number / 100, number / 10 % 10, number % 10);
        let characters = 0x30_30_30 | hundreds | tens << 8 | ones << 16;
        let count = if number > 99 {
            3
        } else if number > 9 {
            2
        } else {
            1
        };
        table[number as usize] = characters >> ((3 - count) * 8) | count << 24;
        number += 1;
    }
    table
}

/// Number of decimal digits of a number below 10^8. Not derived from the digits themselves: the
/// position of the next value must not wait for them.
#[inline(always)]
pub(super) fn decimal_count(number: u32) -> u32 {
    const MAX: u32 = u32::MAX;
    const POWERS: [u32; 16] = [
        0,
        10,
        100,
        1_000,
        10_000,
        100_000,
        1_000_000,
        10_000_000,
        100_000_000,
        1_000_000_000,
        MAX,
        MAX,
        MAX,
        MAX,
        MAX,
        MAX,
    ];
    let about = ((32 - (number | 1).leading_zeros()) * 1233) >> 12;
    about + 1 - u32::from(number < POWERS[(about & 15) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_digits() {
        for power in 0..8 {
            let power = 10u32.pow(power);
            for number in [
                power.saturating_sub(1),
                power,
                power + 1,
                power * 3,
                power * 9,
            ] {
                if number < 100_000_000 {
                    assert_eq!(
                        decimal_count(number),
                        number.to_string().len() as u32,
                        "{number}"
                    );
                }
            }
        }
        for (number, &entry) in SMALL.iter().enumerate() {
            let text = number.to_string();
            assert_eq!(&entry.to_le_bytes()[..text.len()], text.as_bytes());
            assert_eq!(entry >> 24, text.len() as u32);
        }
    }

    #[test]
    fn digits_are_those_of_format() {
        let mut number = 1u32;
        for step in 0..200_000u32 {
            let decimal = number % 100_000_000;
            assert_eq!(
                characters(decimal8(decimal)).to_le_bytes(),
                *format!("{decimal:08}").as_bytes()
            );
            let hexadecimal = hexadecimal_characters(hexadecimal8(number)).to_le_bytes();
            assert_eq!(hexadecimal, *format!("{number:08X}").as_bytes());
            number = number
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223 + step);
        }
        for edge in [0, 9, 10, 99, 100, 9_999, 10_000, 99_999_999] {
            assert_eq!(
                characters(decimal8(edge)).to_le_bytes(),
                *format!("{edge:08}").as_bytes()
            );
        }
    }
}
