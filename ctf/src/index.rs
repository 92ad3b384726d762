//! LTTng's index files: one entry for each packet of a stream file.
//!
//! Format (big endian): magic 0xC1F1DCC1, major, minor, entry length, each `u32`; then entries of
//! `u64`: offset in bytes, packet size and content size in bits, timestamps of begin and end,
//! discarded events, stream id, and since 1.1 stream instance id and packet sequence number.

/// Index entries that are compared with packet heads before the index is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexCheck {
    /// The first and the last entry, so that opening a trace does not read every packet head; every
    /// entry of an implausible index. The other entries are compared when their packets are read
    /// ([`Damage::contradicts_index`](crate::damage::Damage::contradicts_index)).
    #[default]
    Ends,
    /// Every entry.
    Every,
}

/// The magic number of index files.
pub const MAGIC: u32 = 0xC1F1_DCC1;

/// An entry of the index, for a single packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Byte offset in the stream file.
    pub offset: u64,
    /// Size of the packet in bits.
    pub packet_bits: u64,
    /// Size of the packet's content in bits.
    pub content_bits: u64,
    /// Clock value at the beginning of the packet, in cycles.
    pub begin: u64,
    /// Clock value at the end of the packet, in cycles.
    pub end: u64,
    /// Running count of discarded events.
    pub discarded: u64,
    /// Id of the data stream class.
    pub stream_class: u64,
    /// Id of the stream within its class (since 1.1).
    pub stream_id: Option<u64>,
    /// Sequence number (since 1.1).
    pub sequence: Option<u64>,
}

/// The reason why an index file was rejected. The packets are then found in the stream file itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexError {
    /// The file is shorter than its header, or ends within an entry.
    Truncated,
    /// The file has no magic number of an index.
    Magic,
    /// The major version or the entry length is unknown.
    Version,
    /// The entries do not cover the stream file without gaps.
    Inconsistent,
}

impl std::fmt::Display for IndexError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            IndexError::Truncated => "it ends in the middle of an entry",
            IndexError::Magic => "it does not begin with the magic number of index files",
            IndexError::Version => "its version or entry length is not supported",
            IndexError::Inconsistent => "its entries do not cover the stream file packet by packet",
        })
    }
}

const HEADER: usize = 16;
const ENTRY_1_0: usize = 56;
const ENTRY_1_1: usize = 72;

/// Larger files are not read: 64 MiB suffice for about a million packets.
const MOST_BYTES: u64 = 1 << 26;

/// Reads an index file.
///
/// # Errors
/// If the file cannot be read or is larger than 64 MiB.
pub fn read(path: &std::path::Path) -> std::io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.len() > MOST_BYTES {
        let message = format!("it is larger than {MOST_BYTES} bytes");
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            message,
        ));
    }
    std::fs::read(path)
}

/// Parses an index file and checks it against the size of its stream file, in bytes.
///
/// # Errors
/// If the index is damaged or does not match the stream file.
pub fn parse(bytes: &[u8], stream_bytes: u64) -> Result<Vec<IndexEntry>, IndexError> {
    let word = |at: usize| {
        bytes
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .map(u32::from_be_bytes)
    };
    let header = [0, 4, 8, 12].map(word);
    let [Some(magic), Some(major), Some(_), Some(length)] = header else {
        return Err(IndexError::Truncated);
    };
    if magic != MAGIC {
        return Err(IndexError::Magic);
    }
    let length = length as usize;
    if major != 1 || !(ENTRY_1_0..=4096).contains(&length) {
        return Err(IndexError::Version);
    }
    let entries = bytes.get(HEADER..).unwrap_or_default();
    if entries.len() % length != 0 {
        return Err(IndexError::Truncated);
    }
    let parsed: Vec<_> = entries.chunks_exact(length).map(entry).collect();
    let mut next = 0u64;
    for entry in &parsed {
        let sound = entry.offset == next
            && entry.packet_bits % 8 == 0
            && entry.packet_bits > 0
            && entry.content_bits <= entry.packet_bits;
        next = entry.offset.saturating_add(entry.packet_bits / 8);
        if !sound || next > stream_bytes {
            return Err(IndexError::Inconsistent);
        }
    }
    if next == stream_bytes {
        Ok(parsed)
    } else {
        Err(IndexError::Inconsistent)
    }
}

fn entry(bytes: &[u8]) -> IndexEntry {
    let field = |index: usize| {
        let at = index * 8;
        bytes
            .get(at..at + 8)
            .and_then(|b| b.try_into().ok())
            .map_or(0, u64::from_be_bytes)
    };
    let late = |index| (bytes.len() >= ENTRY_1_1).then(|| field(index));
    IndexEntry {
        offset: field(0),
        packet_bits: field(1),
        content_bits: field(2),
        begin: field(3),
        end: field(4),
        discarded: field(5),
        stream_class: field(6),
        stream_id: late(7),
        sequence: late(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(entries: &[[u64; 9]]) -> Vec<u8> {
        let mut bytes: Vec<u8> = [MAGIC, 1, 1, 72]
            .iter()
            .flat_map(|word| word.to_be_bytes())
            .collect();
        bytes.extend(entries.iter().flatten().flat_map(|word| word.to_be_bytes()));
        bytes
    }

    #[test]
    fn entries_must_cover_the_stream_file() {
        let good = file(&[
            [0, 800, 640, 1, 2, 0, 0, 3, 0],
            [100, 800, 800, 3, 4, 5, 0, 3, 1],
        ]);
        let entries = parse(&good, 200).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(
            (entries[1].offset, entries[1].discarded, entries[1].sequence),
            (100, 5, Some(1))
        );
        assert_eq!(parse(&good, 300), Err(IndexError::Inconsistent));
        assert_eq!(parse(&good[..80], 200), Err(IndexError::Truncated));
        assert_eq!(parse(&good[..10], 200), Err(IndexError::Truncated));
        assert_eq!(
            parse(b"this is not any index.", 200),
            Err(IndexError::Magic)
        );
        let gap = file(&[[8, 800, 640, 1, 2, 0, 0, 3, 0]]);
        assert_eq!(parse(&gap, 108), Err(IndexError::Inconsistent));
    }
}
