//! Writes traces to disk in LTTng's layout.

use std::fs;
use std::path::Path;

/// A small version of LTTng's kernel metadata: compact headers, complete packet contexts.
pub const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace {
	major = 1; minor = 8; byte_order = le;
	uuid = "a38aef6e-4bf1-4b68-8a36-d4a98fb3ee38";
	packet.header := struct {
		uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id;
	};
};
clock { name = "c"; freq = 1000000000; offset = 5; };
typealias integer { size = 27; align = 1; signed = false; map = clock.c.value; } := uint27_c;
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := uint64_c;
stream {
	id = 0;
	event.header := struct {
		enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
		variant <id> {
			struct { uint27_c timestamp; } compact;
			struct { uint32_t id; uint64_c timestamp; } extended;
		} v;
	} align(8);
	packet.context := struct {
		uint64_c timestamp_begin; uint64_c timestamp_end;
		uint64_t content_size; uint64_t packet_size; uint64_t packet_seq_num;
		uint64_t events_discarded; uint32_t cpu_id;
	};
};
event { name = "number"; id = 0; stream_id = 0; fields := struct { uint32_t _number; }; };
event { name = "text"; id = 1; stream_id = 0; fields := struct { string _text; }; };
"#;

/// An event class that a program adds later.
pub const LATER_CLASS: &str =
    "event { name = \"late\"; id = 40; stream_id = 0; fields := struct { uint8_t _number; }; };\n";

pub const UUID: [u8; 16] = [
    0xa3, 0x8a, 0xef, 0x6e, 0x4b, 0xf1, 0x4b, 0x68, 0x8a, 0x36, 0xd4, 0xa9, 0x8f, 0xb3, 0xee, 0x38,
];

/// Size of a packet's header and context in bytes.
pub const HEAD: usize = 84;

/// A packet to write.
#[derive(Clone, Debug)]
pub struct Packet {
    pub instance: u64,
    pub begin: u64,
    pub end: u64,
    pub sequence: u64,
    pub discarded: u64,
    /// The bytes of the event records.
    pub events: Vec<u8>,
    pub padding: usize,
    /// Content and packet size in bits, if the packet contains wrong sizes.
    pub sizes: Option<(u64, u64)>,
}

impl Packet {
    /// Packet number `sequence` of a stream, with an event record at each time in `times`.
    pub fn new(instance: u64, sequence: u64, times: &[u64]) -> Self {
        let events = times
            .iter()
            .flat_map(|&time| number(time, time as u32))
            .collect();
        let (begin, end) = (
            times.first().copied().unwrap_or(0),
            times.last().copied().unwrap_or(0),
        );
        Packet {
            instance,
            begin,
            end,
            sequence,
            discarded: 0,
            events,
            padding: 16,
            sizes: None,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        let content = HEAD + self.events.len();
        let whole = (content as u64 * 8, (content + self.padding) as u64 * 8);
        let sizes = self.sizes.unwrap_or(whole);
        let mut bytes = 0xc1fc_1fc1_u32.to_le_bytes().to_vec();
        bytes.extend(UUID);
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(self.instance.to_le_bytes());
        for word in [
            self.begin,
            self.end,
            sizes.0,
            sizes.1,
            self.sequence,
            self.discarded,
        ] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(1u32.to_le_bytes());
        bytes.extend(&self.events);
        bytes.resize(content + self.padding, 0);
        bytes
    }
}

/// An event record with a number, in a compact header.
pub fn number(time: u64, value: u32) -> Vec<u8> {
    let header = (time as u32 & 0x7ff_ffff) << 5;
    [header.to_le_bytes(), value.to_le_bytes()].concat()
}

/// An event record in an extended header.
pub fn extended(id: u32, time: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![31];
    bytes.extend(id.to_le_bytes());
    bytes.extend(time.to_le_bytes());
    bytes.extend(payload);
    bytes
}

/// A stream file.
pub fn file(packets: &[Packet]) -> Vec<u8> {
    packets.iter().flat_map(Packet::bytes).collect()
}

/// The index of the file, of version 1.0 or 1.1.
pub fn index(packets: &[Packet], minor: u32) -> Vec<u8> {
    let length = if minor == 0 { 56 } else { 72 };
    let mut bytes: Vec<u8> = [0xc1f1_dcc1, 1, minor, length]
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect();
    let mut offset = 0u64;
    for packet in packets {
        let size = packet.bytes().len() as u64;
        let content = (HEAD + packet.events.len()) as u64 * 8;
        let mut words = vec![
            offset,
            size * 8,
            content,
            packet.begin,
            packet.end,
            packet.discarded,
            0,
        ];
        if minor > 0 {
            words.extend([packet.instance, packet.sequence]);
        }
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        offset += size;
    }
    bytes
}

/// Writes a trace directory with its stream files by name.
pub fn write(directory: &Path, metadata: &str, files: &[(&str, &[Packet])]) {
    fs::create_dir_all(directory).unwrap();
    fs::write(directory.join("metadata"), metadata).unwrap();
    for (name, packets) in files {
        fs::write(directory.join(name), file(packets)).unwrap();
    }
}
