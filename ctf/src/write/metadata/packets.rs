//! Metadata packets of CTF 1.8.

use crate::schema::{ByteOrder, Uuid};

/// First four bytes, as an integer in the trace's byte order.
const MAGIC: u32 = 0x75d1_1d57;
/// Size of the header in bytes.
const HEADER_BYTES: usize = 37;

/// A metadata packet that contains all of `text`. If it is appended to a file in a single write,
/// readers see either the whole text or none of it. `None` if the text is too large for a packet
/// (half a gigabyte).
pub fn packet(text: &str, uuid: Option<Uuid>, order: ByteOrder) -> Option<Vec<u8>> {
    let bytes = HEADER_BYTES.checked_add(text.len())?;
    let bits = u32::try_from(bytes.checked_mul(8)?).ok()?;
    let word = |value: u32| match order {
        ByteOrder::Little => value.to_le_bytes(),
        ByteOrder::Big => value.to_be_bytes(),
    };
    let mut packet = Vec::with_capacity(bytes);
    packet.extend(word(MAGIC));
    packet.extend(uuid.unwrap_or_default());
    // No checksum; content size and packet size.
    for value in [0, bits, bits] {
        packet.extend(word(value));
    }
    // No compression, encryption or checksum scheme; version 1.8.
    packet.extend([0, 0, 0, 1, 8]);
    packet.extend_from_slice(text.as_bytes());
    Some(packet)
}

#[cfg(test)]
mod tests {
    use super::packet;
    use crate::packetized::unpack_metadata;
    use crate::schema::ByteOrder;

    #[test]
    fn packets_one_after_the_other_hold_the_text() {
        for order in [ByteOrder::Little, ByteOrder::Big] {
            let texts = ["/* CTF 1.8 */ trace {", "", "};", "event { };"];
            let packets = texts.map(|text| packet(text, Some([7; 16]), order).unwrap());
            let file = packets.concat();
            let unpacked = unpack_metadata(&file).unwrap();
            assert_eq!(unpacked.text, texts.concat().as_bytes());
            let info = unpacked.packets.unwrap();
            assert_eq!(
                (info.byte_order, info.uuid, info.count),
                (order, [7; 16], 4)
            );
        }
    }
}
