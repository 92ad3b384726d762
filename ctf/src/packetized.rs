//! Metadata files: plain text, or packets that contain the text.
//!
//! A packet consists of a header of 37 bytes, the text, and padding up to the packet's size.

use std::borrow::Cow;

use crate::error::MetadataError;
use crate::schema::{ByteOrder, CtfVersion, Uuid};

/// First four bytes of a metadata packet, as an integer in the byte order of the metadata.
const MAGIC: u32 = 0x75d1_1d57;
/// Size of a packet's header in bytes.
const HEADER_SIZE: usize = 37;
/// First byte of the text of CTF 2 metadata: the record separator of RFC 7464.
const RECORD_SEPARATOR: u8 = 0x1e;
/// Start of plain text of CTF 1.8.
const SIGNATURE: &[u8] = b"/* CTF ";

/// The text of a metadata file, with properties of its container.
#[derive(Clone, Debug, PartialEq)]
pub struct Unpacked<'f> {
    /// Version of the format, which determines the language of the text.
    pub version: CtfVersion,
    /// The text of the file, or of its packets without headers and padding.
    pub text: Cow<'f, [u8]>,
    /// Properties of the packets; `None` for plain text.
    pub packets: Option<PacketInfo>,
}

/// Properties that the headers of all metadata packets share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Byte order of the headers.
    pub byte_order: ByteOrder,
    /// UUID in all headers.
    pub uuid: Uuid,
    /// Number of packets.
    pub count: usize,
}

/// Extracts the text of a metadata file.
///
/// Plain text must name version 1.8 if it begins with the signature of the specification (`/* CTF
/// 1.8`); text without a signature is accepted, as by other readers. Packets must have the magic
/// number, no compression, encryption or checksum, version 1.8 or 2.0, and all must have the same
/// version, byte order and UUID. An error about a packet contains the byte offset of the packet in
/// the file; its line and column are those at which the packet's text would have begun.
pub fn unpack_metadata(file: &[u8]) -> Result<Unpacked<'_>, MetadataError> {
    match first_word(file) {
        Some(bytes) if u32::from_le_bytes(bytes) == MAGIC => unpack(file, ByteOrder::Little),
        Some(bytes) if u32::from_be_bytes(bytes) == MAGIC => unpack(file, ByteOrder::Big),
        _ => {
            let version = plain_version(file)?;
            Ok(Unpacked {
                version,
                text: Cow::Borrowed(file),
                packets: None,
            })
        }
    }
}

fn first_word(bytes: &[u8]) -> Option<[u8; 4]> {
    bytes.first_chunk::<4>().copied()
}

fn plain_version(file: &[u8]) -> Result<CtfVersion, MetadataError> {
    let first = file.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        None => Err(MetadataError::at(file, 0, "the metadata is empty")),
        // The JSON parser gives the better message for JSON without its separator.
        Some(&(RECORD_SEPARATOR | b'{')) => Ok(CtfVersion::V2_0),
        Some(_) => {
            if let Some(rest) = file.strip_prefix(SIGNATURE)
                && !names_1_8(rest)
            {
                return Err(MetadataError::at(
                    file,
                    SIGNATURE.len(),
                    "unsupported version: plain text metadata begins with `/* CTF 1.8`",
                ));
            }
            Ok(CtfVersion::V1_8)
        }
    }
}

fn names_1_8(rest: &[u8]) -> bool {
    let number = |bytes: &[u8]| {
        let digits = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let text = std::str::from_utf8(bytes.get(..digits).unwrap_or_default()).ok()?;
        Some((text.parse::<u32>().ok()?, digits))
    };
    let Some((1, digits)) = number(rest) else {
        return false;
    };
    let Some((b'.', minor)) = rest.get(digits..).and_then(|rest| rest.split_first()) else {
        return false;
    };
    matches!(number(minor), Some((8, _)))
}

/// A decoded header of a packet.
struct Header {
    uuid: Uuid,
    checksum: u32,
    content_bits: u32,
    packet_bits: u32,
    compression: u8,
    encryption: u8,
    checksum_scheme: u8,
    version: (u8, u8),
}

impl Header {
    /// Decodes a header; `None` if its magic number is wrong or the header is truncated.
    fn decode(bytes: &[u8], byte_order: ByteOrder) -> Option<Header> {
        let bytes = bytes.first_chunk::<HEADER_SIZE>()?;
        let word = |at: usize| {
            let word = first_word(bytes.get(at..)?)?;
            Some(match byte_order {
                ByteOrder::Little => u32::from_le_bytes(word),
                ByteOrder::Big => u32::from_be_bytes(word),
            })
        };
        if word(0)? != MAGIC {
            return None;
        }
        let uuid = *bytes.get(4..)?.first_chunk::<16>()?;
        let [.., compression, encryption, checksum_scheme, major, minor] = *bytes;
        Some(Header {
            uuid,
            checksum: word(20)?,
            content_bits: word(24)?,
            packet_bits: word(28)?,
            compression,
            encryption,
            checksum_scheme,
            version: (major, minor),
        })
    }

    /// Version of the format, or a description of the header's fault.
    fn check(&self) -> Result<CtfVersion, String> {
        let version = match self.version {
            (1, 8) => CtfVersion::V1_8,
            (2, 0) => CtfVersion::V2_0,
            (major, minor) => {
                return Err(format!(
                    "unsupported version {major}.{minor}: expecting 1.8 or 2.0"
                ));
            }
        };
        if self.compression != 0 {
            return Err(format!(
                "it is compressed (scheme {}), which is not supported",
                self.compression
            ));
        }
        if self.encryption != 0 {
            return Err(format!(
                "it is encrypted (scheme {}), which is not supported",
                self.encryption
            ));
        }
        // In CTF 2, readers ignore checksums.
        if version == CtfVersion::V1_8 && (self.checksum_scheme != 0 || self.checksum != 0) {
            return Err(format!(
                "it has a checksum (scheme {}), which is not supported",
                self.checksum_scheme
            ));
        }
        if !self.content_bits.is_multiple_of(8) || !self.packet_bits.is_multiple_of(8) {
            return Err("its sizes are not multiples of 8 bits".to_owned());
        }
        if (self.content_bits / 8) < HEADER_SIZE as u32 {
            return Err(format!(
                "its content size ({} bits) is less than that of its header",
                self.content_bits
            ));
        }
        if self.packet_bits < self.content_bits {
            return Err(format!(
                "its content size ({} bits) is more than its packet size ({} bits)",
                self.content_bits, self.packet_bits
            ));
        }
        Ok(version)
    }
}

/// Decodes the header, version and content of the packet at the beginning of the bytes. The error
/// describes the fault. `first` contains version and UUID of the first packet; it is `None` for
/// that packet itself.
fn packet(
    bytes: &[u8],
    byte_order: ByteOrder,
    first: Option<(CtfVersion, Uuid)>,
) -> Result<(Header, CtfVersion, &[u8]), String> {
    if bytes.len() < HEADER_SIZE {
        return Err("its header is truncated".to_owned());
    }
    let header = Header::decode(bytes, byte_order)
        .ok_or("no magic number 0x75d11d57 in the byte order of the first packet")?;
    let version = header.check()?;
    if first.is_some_and(|(expected, _)| expected != version) {
        return Err("its version is not that of the first packet".to_owned());
    }
    if first.is_some_and(|(_, expected)| expected != header.uuid) {
        return Err("its UUID is not that of the first packet".to_owned());
    }
    let content_bytes = header.content_bits as usize / 8;
    let content = bytes.get(HEADER_SIZE..content_bytes);
    let content = content.ok_or_else(|| {
        let there = bytes.len();
        format!("its content is truncated: the file has {there} of its {content_bytes} bytes")
    })?;
    Ok((header, version, content))
}

fn unpack(file: &[u8], byte_order: ByteOrder) -> Result<Unpacked<'_>, MetadataError> {
    let mut text = Vec::with_capacity(file.len());
    let mut first: Option<(CtfVersion, Uuid)> = None;
    let mut offset = 0usize;
    let mut count = 0usize;
    while let Some(rest) = file
        .get(offset..)
        .filter(|rest| !rest.iter().all(|&byte| byte == 0))
    {
        let packet = packet(rest, byte_order, first).map_err(|message| {
            let number = count + 1;
            let message =
                format!("metadata packet {number} (at byte {offset} of the file): {message}");
            MetadataError::at(&text, text.len(), message)
        });
        let (header, version, content) = packet?;
        first.get_or_insert((version, header.uuid));
        text.extend_from_slice(content);
        offset = offset.saturating_add(header.packet_bits as usize / 8);
        count += 1;
    }
    match first {
        Some((version, uuid)) => Ok(Unpacked {
            version,
            text: Cow::Owned(text),
            packets: Some(PacketInfo {
                byte_order,
                uuid,
                count,
            }),
        }),
        None => Err(MetadataError::at(file, 0, "the metadata has no packets")),
    }
}
