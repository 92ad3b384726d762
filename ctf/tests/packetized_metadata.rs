//! Metadata in packets: both byte orders, both versions, and invalid packets.

use tracebraid_ctf::metadata;
use tracebraid_ctf::packetized::unpack_metadata;
use tracebraid_ctf::schema::{ByteOrder, CtfVersion};

const TEXT: &str = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n";

/// A metadata packet with fields that can be made invalid.
struct Packet {
    byte_order: ByteOrder,
    uuid: [u8; 16],
    checksum: u32,
    content: Vec<u8>,
    content_bits: Option<u32>,
    padding: usize,
    packet_bits: Option<u32>,
    schemes: [u8; 3],
    version: [u8; 2],
}

impl Packet {
    fn new(content: &str) -> Self {
        Packet {
            byte_order: ByteOrder::Little,
            uuid: [7; 16],
            checksum: 0,
            content: content.as_bytes().to_vec(),
            content_bits: None,
            padding: 0,
            packet_bits: None,
            schemes: [0; 3],
            version: [1, 8],
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let word = |value: u32| match self.byte_order {
            ByteOrder::Little => value.to_le_bytes(),
            ByteOrder::Big => value.to_be_bytes(),
        };
        let content = (37 + self.content.len()) as u32 * 8;
        let mut bytes = word(0x75d1_1d57).to_vec();
        bytes.extend(self.uuid);
        bytes.extend(word(self.checksum));
        bytes.extend(word(self.content_bits.unwrap_or(content)));
        bytes.extend(word(
            self.packet_bits
                .unwrap_or(content + self.padding as u32 * 8),
        ));
        bytes.extend(self.schemes);
        bytes.extend(self.version);
        bytes.extend(&self.content);
        bytes.extend(vec![0xff; self.padding]);
        bytes
    }
}

#[test]
fn text_is_joined_across_packets() {
    let (first, second) = TEXT.split_at(30);
    for padding in [0, 1, 4000] {
        let mut packet = Packet {
            padding,
            ..Packet::new(first)
        };
        let mut file = packet.bytes();
        packet.content = second.as_bytes().to_vec();
        file.extend(packet.bytes());
        let unpacked = unpack_metadata(&file).unwrap();
        assert_eq!(&*unpacked.text, TEXT.as_bytes());
        assert_eq!(unpacked.version, CtfVersion::V1_8);
        let packets = unpacked.packets.unwrap();
        assert_eq!(
            (packets.byte_order, packets.uuid, packets.count),
            (ByteOrder::Little, [7; 16], 2)
        );
        metadata::parse(&file).unwrap();
    }
}

#[test]
fn plain_text_is_passed_on() {
    let unpacked = unpack_metadata(TEXT.as_bytes()).unwrap();
    assert_eq!((&*unpacked.text, unpacked.packets), (TEXT.as_bytes(), None));
    let unpacked = unpack_metadata(b"\x1e{}").unwrap();
    assert_eq!(unpacked.version, CtfVersion::V2_0);
}

#[test]
fn version_2_is_told_apart() {
    let packet = Packet {
        version: [2, 0],
        checksum: 5,
        ..Packet::new("\x1e{\"type\":\"preamble\",\"version\":2}")
    };
    let file = packet.bytes();
    let unpacked = unpack_metadata(&file).unwrap();
    assert_eq!(
        (unpacked.version, unpacked.text[0]),
        (CtfVersion::V2_0, 0x1e)
    );
}

#[test]
fn the_byte_order_of_packets_is_that_of_the_trace() {
    let big = Packet {
        byte_order: ByteOrder::Big,
        ..Packet::new(TEXT)
    };
    let error = metadata::parse(&big.bytes()).unwrap_err();
    assert_eq!((error.line, error.column), (2, 31), "{error}");
    assert!(error.message.contains("big endian"), "{error}");
    let text = TEXT.replace("= le", "= be");
    metadata::parse(
        &Packet {
            byte_order: ByteOrder::Big,
            ..Packet::new(&text)
        }
        .bytes(),
    )
    .unwrap();
    let error = metadata::parse(&Packet::new(&text).bytes()).unwrap_err();
    assert!(error.message.contains("little endian"), "{error}");
}

#[test]
fn the_uuid_of_packets_is_that_of_the_trace() {
    let text = TEXT.replace(
        "major",
        "uuid = \"07070707-0707-0707-0707-070707070707\"; major",
    );
    metadata::parse(&Packet::new(&text).bytes()).unwrap();
    metadata::parse(
        &Packet {
            uuid: [0; 16],
            ..Packet::new(&text)
        }
        .bytes(),
    )
    .unwrap();
    let error = metadata::parse(
        &Packet {
            uuid: [8; 16],
            ..Packet::new(&text)
        }
        .bytes(),
    )
    .unwrap_err();
    assert!(error.message.contains("UUID"), "{error}");
    assert_eq!((error.line, error.column), (2, 9), "{error}");
}

#[test]
fn wrong_packets_are_refused_with_their_place() {
    let cases: [(Packet, &str); 10] = [
        (
            Packet {
                version: [1, 7],
                ..Packet::new(TEXT)
            },
            "unsupported version 1.7",
        ),
        (
            Packet {
                version: [0, 0],
                ..Packet::new(TEXT)
            },
            "unsupported version 0.0",
        ),
        (
            Packet {
                schemes: [1, 0, 0],
                ..Packet::new(TEXT)
            },
            "compressed",
        ),
        (
            Packet {
                schemes: [0, 1, 0],
                ..Packet::new(TEXT)
            },
            "encrypted",
        ),
        (
            Packet {
                schemes: [0, 0, 1],
                ..Packet::new(TEXT)
            },
            "checksum",
        ),
        (
            Packet {
                checksum: 9,
                ..Packet::new(TEXT)
            },
            "checksum",
        ),
        (
            Packet {
                content_bits: Some(8),
                ..Packet::new(TEXT)
            },
            "less than that of its header",
        ),
        (
            Packet {
                content_bits: Some(37 * 8 + 3),
                ..Packet::new(TEXT)
            },
            "not multiples of 8",
        ),
        (
            Packet {
                packet_bits: Some(37 * 8),
                ..Packet::new(TEXT)
            },
            "more than its packet size",
        ),
        (
            Packet {
                content_bits: Some(u32::MAX - 7),
                packet_bits: Some(u32::MAX - 7),
                ..Packet::new(TEXT)
            },
            "its content is truncated",
        ),
    ];
    let first = Packet {
        padding: 3,
        ..Packet::new(TEXT)
    }
    .bytes();
    for (packet, fragment) in cases {
        let error = metadata::parse(&packet.bytes()).unwrap_err();
        assert!(error.message.contains(fragment), "{fragment}: {error}");
        assert!(
            error.message.contains("metadata packet 1 (at byte 0 "),
            "{error}"
        );
        let file = [first.clone(), packet.bytes()].concat();
        let error = metadata::parse(&file).unwrap_err();
        let place = format!("metadata packet 2 (at byte {} ", first.len());
        assert!(error.message.contains(&place), "{error}");
        assert_eq!((error.line, error.column), (3, 1), "{error}");
    }
}

#[test]
fn packets_must_agree_with_the_first() {
    let first = Packet::new(TEXT).bytes();
    let cases = [
        (
            Packet {
                uuid: [9; 16],
                ..Packet::new("")
            }
            .bytes(),
            "UUID is not that of the first",
        ),
        (
            Packet {
                version: [2, 0],
                ..Packet::new("")
            }
            .bytes(),
            "version is not that of the first",
        ),
        (
            Packet {
                byte_order: ByteOrder::Big,
                ..Packet::new("")
            }
            .bytes(),
            "no magic number",
        ),
        (b"nonsense".to_vec(), "its header is truncated"),
        (vec![b'x'; 100], "no magic number"),
    ];
    for (second, fragment) in cases {
        let error = metadata::parse(&[first.clone(), second].concat()).unwrap_err();
        assert!(error.message.contains(fragment), "{fragment}: {error}");
    }
    // Padding beyond the packet's size, and missing padding.
    metadata::parse(&[first.clone(), vec![0; 50]].concat()).unwrap();
    metadata::parse(
        &Packet {
            packet_bits: Some(1 << 20),
            ..Packet::new(TEXT)
        }
        .bytes(),
    )
    .unwrap();
}

#[test]
fn packets_cut_or_mangled_are_refused_or_accepted() {
    let file = [
        Packet {
            padding: 9,
            ..Packet::new(TEXT)
        }
        .bytes(),
        Packet::new(" ").bytes(),
    ]
    .concat();
    for end in 0..file.len() {
        let _ = metadata::parse(&file[..end]);
    }
    for at in 0..file.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff] {
            let mut mangled = file.clone();
            mangled[at] = value;
            let _ = metadata::parse(&mangled);
        }
    }
}
