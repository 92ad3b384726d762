//! Index files of LTTng: positions of the packets of a stream file, and the contents of their
//! contexts.
//!
//! A file consists of a header of four big-endian `u32` (magic number, major and minor version,
//! size of an entry in bytes) and entries of big-endian `u64`.

use anyhow::{Result, bail};

/// Magic number of an index file.
pub const MAGIC: u32 = 0xc1f1_dcc1;
/// The version of written files.
const VERSION: (u32, u32) = (1, 1);

/// The entry of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexEntry {
    /// Offset of the packet in the stream file, in bytes.
    pub offset: u64,
    /// Total length in bits.
    pub total_length: u64,
    /// Content length in bits.
    pub content_length: u64,
    /// Time of the beginning, in cycles.
    pub begin: u64,
    /// Time of the end, in cycles.
    pub end: u64,
    /// Cumulative count of discarded event records.
    pub discarded_events: u64,
    /// Id of the stream class.
    pub stream_class_id: u64,
    /// Id of the stream in its class (version 1.1).
    pub stream_id: u64,
    /// Sequence number (version 1.1).
    pub sequence_number: u64,
}

impl IndexEntry {
    fn fields(&self) -> [u64; 9] {
        [
            self.offset,
            self.total_length,
            self.content_length,
            self.begin,
            self.end,
            self.discarded_events,
            self.stream_class_id,
            self.stream_id,
            self.sequence_number,
        ]
    }
}

/// Encodes an index file.
pub fn encode(entries: &[IndexEntry]) -> Vec<u8> {
    let entry_bytes = IndexEntry::default().fields().len() * 8;
    let mut file = Vec::with_capacity(16 + entries.len() * entry_bytes);
    for number in [MAGIC, VERSION.0, VERSION.1, entry_bytes as u32] {
        file.extend(number.to_be_bytes());
    }
    for entry in entries {
        file.extend(entry.fields().iter().flat_map(|field| field.to_be_bytes()));
    }
    file
}

/// Reads an index file of any version 1.
///
/// # Errors
/// If the file is not an index, or ends within an entry.
pub fn decode(file: &[u8]) -> Result<Vec<IndexEntry>> {
    let number = |at: usize| -> Option<u32> {
        file.get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map(u32::from_be_bytes)
    };
    let (Some(MAGIC), Some(1), Some(_), Some(entry_bytes)) =
        (number(0), number(4), number(8), number(12))
    else {
        bail!("not an LTTng index file of version 1");
    };
    if entry_bytes < 56 || !file[16..].len().is_multiple_of(entry_bytes as usize) {
        bail!(
            "{} bytes are not a number of entries of {entry_bytes} bytes",
            file.len() - 16
        );
    }
    let entry = |bytes: &[u8]| {
        let field = |index: usize| {
            let bytes = bytes
                .get(index * 8..index * 8 + 8)
                .and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u64::from_be_bytes)
        };
        IndexEntry {
            offset: field(0),
            total_length: field(1),
            content_length: field(2),
            begin: field(3),
            end: field(4),
            discarded_events: field(5),
            stream_class_id: field(6),
            stream_id: field(7),
            sequence_number: field(8),
        }
    };
    Ok(file[16..]
        .chunks_exact(entry_bytes as usize)
        .map(entry)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let entries: Vec<IndexEntry> = (0..3)
            .map(|n| IndexEntry {
                offset: n * 4096,
                begin: n + 10,
                sequence_number: n,
                ..Default::default()
            })
            .collect();
        let file = encode(&entries);
        assert_eq!(file.len(), 16 + 3 * 72);
        assert_eq!(decode(&file).unwrap(), entries);
        assert!(decode(&file[..file.len() - 1]).is_err());
        assert!(decode(&file[..10]).is_err());
    }
}
