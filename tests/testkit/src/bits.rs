//! Bits of a packet in the two bit orders of CTF, read and written one at a time, so that the code
//! can be verified by reading.
//!
//! Positions and lengths are in bits from the start of the buffer. In little-endian order the first
//! bit of a byte is its least significant bit, and the first bit of a field is the field's least
//! significant bit; in big-endian order both are the most significant bits.

use tracebraid_ctf::schema::ByteOrder;

/// Reads `length` (at most 128) bits at `position` as an unsigned integer.
///
/// `None` if the bits are not all in `data`, or `length` is above 128.
pub fn read(data: &[u8], position: u64, length: u32, order: ByteOrder) -> Option<u128> {
    if length > 128 {
        return None;
    }
    let end = position.checked_add(u64::from(length))?;
    if end > (data.len() as u64).saturating_mul(8) {
        return None;
    }
    if position.is_multiple_of(8) && length.is_multiple_of(8) {
        let bytes = data.get((position / 8) as usize..(end / 8) as usize)?;
        let fold = |value: u128, &byte: &u8| (value << 8) | u128::from(byte);
        return Some(match order {
            ByteOrder::Little => bytes.iter().rev().fold(0, fold),
            ByteOrder::Big => bytes.iter().fold(0, fold),
        });
    }
    let mut value = 0u128;
    for index in 0..length {
        let bit = u128::from(bit_at(data, position + u64::from(index), order)?);
        match order {
            ByteOrder::Little => value |= bit << index,
            ByteOrder::Big => value = (value << 1) | bit,
        }
    }
    Some(value)
}

/// The bit at `position` in the given bit order.
fn bit_at(data: &[u8], position: u64, order: ByteOrder) -> Option<bool> {
    let byte = *data.get((position / 8) as usize)?;
    Some(byte & mask_of(position, order) != 0)
}

fn mask_of(position: u64, order: ByteOrder) -> u8 {
    let in_byte = (position % 8) as u32;
    match order {
        ByteOrder::Little => 1 << in_byte,
        ByteOrder::Big => 0x80 >> in_byte,
    }
}

/// Overwrites the bits at `position` with the low `length` (at most 128) bits of `value`.
///
/// `None`, without writing, if `data` is too short or `length` is above 128.
pub fn write(
    data: &mut [u8],
    position: u64,
    length: u32,
    order: ByteOrder,
    value: u128,
) -> Option<()> {
    if length > 128 {
        return None;
    }
    let end = position.checked_add(u64::from(length))?;
    if end > (data.len() as u64).saturating_mul(8) {
        return None;
    }
    for index in 0..length {
        let significance = match order {
            ByteOrder::Little => index,
            ByteOrder::Big => length - 1 - index,
        };
        let at = position + u64::from(index);
        let byte = data.get_mut((at / 8) as usize)?;
        let mask = mask_of(at, order);
        if (value >> significance) & 1 == 1 {
            *byte |= mask;
        } else {
            *byte &= !mask;
        }
    }
    Some(())
}

/// The low `length` bits of `value` in reverse order.
pub fn reverse(value: u128, length: u32) -> u128 {
    if length == 0 {
        return 0;
    }
    value.reverse_bits() >> (128 - length.min(128))
}

/// Interprets `value`, an integer of `length` bits, as two's complement.
pub fn sign_extend(value: u128, length: u32) -> i128 {
    if length == 0 || length >= 128 {
        return value as i128;
    }
    let shift = 128 - length;
    ((value << shift) as i128) >> shift
}

/// The low `length` bits set.
pub fn mask(length: u32) -> u128 {
    if length >= 128 {
        u128::MAX
    } else {
        (1 << length) - 1
    }
}

/// `position` rounded up to a multiple of `align` (in bits); `None` on overflow.
pub fn align_up(position: u64, align: u32) -> Option<u64> {
    position.checked_next_multiple_of(u64::from(align.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_bits() {
        let data = [0b1010_0110, 0b1100_0011, 0xff];
        assert_eq!(read(&data, 0, 8, ByteOrder::Little), Some(0b1010_0110));
        assert_eq!(read(&data, 0, 16, ByteOrder::Little), Some(0xc3a6));
        assert_eq!(read(&data, 0, 16, ByteOrder::Big), Some(0xa6c3));
        assert_eq!(read(&data, 0, 3, ByteOrder::Little), Some(0b110));
        assert_eq!(read(&data, 0, 3, ByteOrder::Big), Some(0b101));
        // Across the byte boundary: bits 4..12.
        assert_eq!(read(&data, 4, 8, ByteOrder::Little), Some(0b0011_1010));
        assert_eq!(read(&data, 4, 8, ByteOrder::Big), Some(0b0110_1100));
        assert_eq!(read(&data, 17, 8, ByteOrder::Little), None);
        assert_eq!(read(&data, u64::MAX, 8, ByteOrder::Little), None);
    }

    #[test]
    fn what_is_written_is_read() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            for position in 0..20 {
                for length in 1..=128 {
                    let value = 0x0123_4567_89ab_cdef_f00d_1337_dead_beef_u128 & mask(length);
                    for fill in [0, 0xff] {
                        let mut data = [fill; 20];
                        write(&mut data, position, length, order, value).unwrap();
                        assert_eq!(read(&data, position, length, order), Some(value));
                        let rest = read(&data, position + u64::from(length), 7, order).unwrap();
                        assert_eq!(rest, u128::from(fill) & 0x7f);
                    }
                }
            }
        }
    }

    #[test]
    fn bit_helpers() {
        assert_eq!(reverse(0b0011, 4), 0b1100);
        assert_eq!(reverse(1, 64), 1 << 63);
        assert_eq!(sign_extend(0xff, 8), -1);
        assert_eq!(sign_extend(0x7f, 8), 127);
        assert_eq!(align_up(9, 8), Some(16));
        assert_eq!(align_up(u64::MAX, 8), None);
    }
}
