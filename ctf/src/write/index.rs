//! LTTng's index files: see [`crate::index`] for the format. Version 1.1 is written.

use crate::index::{IndexEntry, MAGIC};

/// Size of a file's header in bytes.
pub const HEADER_BYTES: usize = 16;
/// Size of an entry in bytes.
pub const ENTRY_BYTES: usize = 72;

/// The header of an index file.
pub fn header() -> [u8; HEADER_BYTES] {
    let words = [MAGIC, 1, 1, ENTRY_BYTES as u32];
    let mut bytes = [0; HEADER_BYTES];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// The bytes of an entry. An unknown stream id or sequence number is written as 0.
pub fn entry(entry: &IndexEntry) -> [u8; ENTRY_BYTES] {
    let fields = [
        entry.offset,
        entry.packet_bits,
        entry.content_bits,
        entry.begin,
        entry.end,
        entry.discarded,
        entry.stream_class,
        entry.stream_id.unwrap_or(0),
        entry.sequence.unwrap_or(0),
    ];
    let mut bytes = [0; ENTRY_BYTES];
    for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
        place.copy_from_slice(&field.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{entry, header};
    use crate::index::{IndexEntry, parse};

    #[test]
    fn what_is_written_is_read() {
        let entries = [0, 1, 2].map(|number| IndexEntry {
            offset: number * 512,
            packet_bits: 4096,
            content_bits: 4000 + number,
            begin: 100 * number + 1,
            end: 100 * number + 99,
            discarded: number * 7,
            stream_class: 5,
            stream_id: Some(6),
            sequence: Some(number + 3),
        });
        let mut file = header().to_vec();
        file.extend(entries.iter().flat_map(entry));
        assert_eq!(parse(&file, 3 * 512).unwrap(), entries);
    }
}
