//! Data streams: their files, and where their packets are.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::bits::{Cursor, DecodeError};
use crate::damage::Damage;
use crate::index;
use crate::layout::TraceLayout;
use crate::packet::{HeadError, MAGIC, PacketHead};
use crate::window::Window;

/// A data stream: the packets of one source, in the order of time.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Index of its class in the layout.
    pub class: usize,
    /// Its id within its class.
    pub id: Option<u64>,
    /// Its files (several after rotation).
    pub files: Vec<DataFile>,
    /// Its packets.
    pub packets: Vec<Packet>,
    /// Head of its first packet.
    pub head: PacketHead,
}

/// A file with packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its size in bytes when the trace was opened.
    pub bytes: u64,
}

/// A packet in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Index in [`Stream::files`].
    pub file: u32,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes that it takes in the file.
    pub bytes: u64,
    /// Bits of its content that can be decoded, from its start.
    pub content_bits: u64,
    /// Clock value at its beginning, in cycles.
    pub begin: Option<u64>,
    /// Clock value at its end, in cycles.
    pub end: Option<u64>,
    /// Running count of discarded event records.
    pub discarded: Option<u64>,
    /// Sequence number.
    pub sequence: Option<u64>,
}

/// What is found in one file.
pub(crate) struct FileScan {
    pub(crate) class: usize,
    pub(crate) id: Option<u64>,
    pub(crate) head: PacketHead,
    pub(crate) packets: Vec<Packet>,
}

/// Heads are a few dozen bytes; the scan reads that much at a time, and more when it must.
const HEAD_BYTES: usize = 4096;
const MOST_HEAD_BYTES: usize = 1 << 24;

/// Finds the packets of a file: by its index if that agrees with it, else by reading all heads.
/// The scans of a file that holds packets of several streams are several.
pub(crate) fn scan(
    layout: &TraceLayout,
    path: &Path,
    bytes: u64,
    index_path: Option<&Path>,
    damage: &mut Vec<Damage>,
) -> io::Result<Vec<FileScan>> {
    let file = File::open(path)?;
    let mut scanner =
        Scanner { layout, path, file, bytes, window: Window::default(), slots: layout.registers(), damage };
    if let Some(index_path) = index_path {
        match std::fs::read(index_path).map_err(|error| error.to_string()).and_then(|content| {
            index::parse(&content, bytes).map_err(|error| error.to_string())
        }) {
            Ok(entries) => {
                if let Some(scan) = scanner.by_index(&entries) {
                    return Ok(vec![scan]);
                }
            }
            Err(error) => scanner.damage.push(Damage::of(
                index_path,
                format!("the index is not used: {error}; the packets were found in the stream file"),
            )),
        }
    }
    scanner.by_heads()
}

struct Scanner<'a> {
    layout: &'a TraceLayout,
    path: &'a Path,
    file: File,
    bytes: u64,
    window: Window,
    slots: Vec<u64>,
    damage: &'a mut Vec<Damage>,
}

/// Sizes that the tracer left in a packet that it had not closed.
fn is_open(bits: Option<u64>) -> bool {
    bits == Some(u64::MAX)
}

impl Scanner<'_> {
    /// The head at an offset; `None` at the end of the file.
    fn head(&mut self, offset: u64, clock: u64) -> io::Result<Result<PacketHead, HeadError>> {
        let mut want = HEAD_BYTES;
        loop {
            self.window.clear();
            self.window.ensure(&self.file, offset, want, self.bytes, want)?;
            let mut cursor = Cursor::new(self.window.bytes());
            let result = PacketHead::decode(self.layout, &mut cursor, &mut self.slots, clock);
            let short = matches!(
                result,
                Err(HeadError::Decode(DecodeError::OutOfBounds { .. } | DecodeError::Length { .. }))
            );
            let more = self.bytes - offset > want as u64 && want < MOST_HEAD_BYTES;
            if !(short && more) {
                return Ok(result);
            }
            want *= 8;
        }
    }

    /// Trusts an index whose first and last entries agree with the packets that they tell of.
    fn by_index(&mut self, entries: &[index::IndexEntry]) -> Option<FileScan> {
        let (first, last) = (entries.first()?, entries.last()?);
        let mut scan: Option<FileScan> = None;
        for entry in [first, last] {
            let head = self.head(entry.offset, 0).ok()?.ok()?;
            let agrees = |told: Option<u64>, indexed| told.is_none_or(|told| told == indexed);
            let class_id = self.layout.streams.get(head.stream_class)?.id;
            if !agrees(head.total_bits, entry.packet_bits)
                || !agrees(head.content_bits, entry.content_bits)
                || !agrees(head.begin, entry.begin)
                || class_id != entry.stream_class
                || head.content_bits.is_none()
                || entry.content_bits < head.end_of_head
            {
                let message = "its index is not used: it tells of another packet here than the file has";
                self.damage.push(Damage::at(self.path, entry.offset, message));
                return None;
            }
            scan.get_or_insert_with(|| FileScan {
                class: head.stream_class,
                id: head.stream_id,
                head,
                packets: Vec::new(),
            });
        }
        let mut scan = scan?;
        let has_sequence = scan.head.sequence.is_some();
        let has_discarded = scan.head.discarded.is_some();
        let (has_begin, has_end) = (scan.head.begin.is_some(), scan.head.end.is_some());
        scan.packets.extend(entries.iter().map(|entry| Packet {
            file: 0,
            offset: entry.offset,
            bytes: entry.packet_bits / 8,
            content_bits: entry.content_bits,
            begin: has_begin.then_some(entry.begin),
            end: has_end.then_some(entry.end),
            discarded: has_discarded.then_some(entry.discarded),
            sequence: entry.sequence.filter(|_| has_sequence),
        }));
        Some(scan)
    }

    fn by_heads(&mut self) -> io::Result<Vec<FileScan>> {
        let mut scans: Vec<FileScan> = Vec::new();
        let (mut offset, mut clock) = (0, 0);
        while offset < self.bytes {
            match self.head(offset, clock)? {
                Ok(head) => {
                    clock = head.end.or(head.begin).unwrap_or(clock);
                    let packet = self.packet(offset, &head)?;
                    offset += packet.bytes;
                    let same = |scan: &&mut FileScan| scan.class == head.stream_class && scan.id == head.stream_id;
                    match scans.iter_mut().find(same) {
                        Some(scan) => scan.packets.push(packet),
                        None => scans.push(FileScan {
                            class: head.stream_class,
                            id: head.stream_id,
                            head,
                            packets: vec![packet],
                        }),
                    }
                }
                Err(error) => {
                    let next = self.next_magic(offset + 1)?;
                    let skipped = next - offset;
                    self.damage.push(Damage::at(self.path, offset, error.to_string()).skipping(skipped));
                    offset = next;
                }
            }
        }
        Ok(scans)
    }

    /// Decides where a packet ends, whatever its head says.
    fn packet(&mut self, offset: u64, head: &PacketHead) -> io::Result<Packet> {
        let rest = (self.bytes - offset).saturating_mul(8);
        let open = is_open(head.total_bits) || is_open(head.content_bits);
        let declared = head.total_bits.or(head.content_bits).filter(|_| !open);
        let mut total = declared.unwrap_or(rest);
        let mut content = head.content_bits.filter(|_| !open).unwrap_or(total);
        let complaint = if open {
            Some("the tracer did not close this packet: what was written is read".to_owned())
        } else if total % 8 != 0 {
            Some(format!("the packet's size, {total} bits, is not a whole number of bytes"))
        } else if total < head.end_of_head || content < head.end_of_head {
            Some(format!("the packet's size ({total} bits, content {content}) does not hold its own head"))
        } else if content > total {
            Some(format!("the packet's content ({content} bits) is larger than the packet ({total} bits)"))
        } else if total > rest {
            Some(format!("the file ends {} bytes before the packet does", (total - rest) / 8))
        } else {
            None
        };
        if open || total % 8 != 0 || total < head.end_of_head || total > rest {
            total = (self.next_magic(offset + head.end_of_head.div_ceil(8).max(1))? - offset) * 8;
        }
        if open {
            content = self.written(offset, total)?;
        }
        if let Some(complaint) = complaint {
            self.damage.push(Damage::at(self.path, offset, complaint));
        }
        if content < head.end_of_head {
            content = total;
        }
        Ok(Packet {
            file: 0,
            offset,
            bytes: total / 8,
            content_bits: content.min(total),
            begin: head.begin,
            end: head.end.filter(|_| !open),
            discarded: head.discarded,
            sequence: head.sequence,
        })
    }

    /// Bits of an unclosed packet up to its last byte that is not zero.
    fn written(&mut self, offset: u64, total: u64) -> io::Result<u64> {
        let (mut at, end, mut last) = (offset, offset + total / 8, offset);
        while at < end {
            self.window.clear();
            self.window.ensure(&self.file, at, 1 << 16, end, 1 << 16)?;
            let bytes = self.window.bytes();
            if let Some(position) = bytes.iter().rposition(|&byte| byte != 0) {
                last = at + position as u64 + 1;
            }
            at += (bytes.len() as u64).max(1);
        }
        Ok((last - offset) * 8)
    }

    /// Offset of the next packet: of the magic number, if packets of this trace begin with it;
    /// else the end of the file.
    fn next_magic(&mut self, from: u64) -> io::Result<u64> {
        let Some(magic) = self.layout.leading_magic(MAGIC as u32) else { return Ok(self.bytes) };
        let mut at = from;
        while at < self.bytes {
            self.window.clear();
            self.window.ensure(&self.file, at, 1 << 16, self.bytes, 1 << 16)?;
            let bytes = self.window.bytes();
            for found in memchr::memmem::find_iter(bytes, &magic) {
                let place = at + found as u64;
                // The same bytes may occur in a payload: only a sound head is a packet.
                let mut window = Window::default();
                window.ensure(&self.file, place, HEAD_BYTES, self.bytes, HEAD_BYTES)?;
                let mut cursor = Cursor::new(window.bytes());
                if PacketHead::decode(self.layout, &mut cursor, &mut self.slots, 0).is_ok() {
                    return Ok(place);
                }
            }
            at += (bytes.len() as u64).saturating_sub(3).max(1);
        }
        Ok(self.bytes)
    }
}
