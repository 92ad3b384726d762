//! A small trace, written byte by byte, with all forms of fields of CTF 1.8.

use std::path::{Path, PathBuf};

/// Properties of the small trace.
#[derive(Clone, Copy, Debug)]
pub struct Small<'a> {
    /// Seconds that are added to the clock's values.
    pub offset: i64,
    /// Further lines of its clock block.
    pub clock: &'a str,
    /// Last byte of its UUID.
    pub uuid: u8,
    /// Times of event records in nanoseconds of its clock; the event classes alternate.
    pub times: &'a [u64],
}

/// Times before and after the origin of a clock with a negative offset, some of which are equal.
pub const TIMES: [u64; 9] = [
    1_000_000_000,
    1_000_000_001,
    1_000_000_001,
    1_500_000_000,
    2_999_999_999,
    3_000_000_000,
    4_000_000_123,
    65_000_000_000,
    90_000_000_000_000,
];

impl Default for Small<'_> {
    fn default() -> Self {
        Small {
            offset: 1_700_000_000,
            clock: "",
            uuid: 1,
            times: &TIMES,
        }
    }
}

const METADATA: &str = r#"/* CTF 1.8 */
trace {
	major = 1; minor = 8; byte_order = le;
	uuid = "00000000-0000-0000-0000-0000000000@UUID@";
	packet.header := struct {
		integer { size = 32; align = 8; } magic;
		integer { size = 8; align = 8; } uuid[16];
		integer { size = 32; align = 8; } stream_id;
	};
};
env { hostname = "box"; domain = "ust"; procname = "tool"; vpid = 4242; };
clock {
	name = c;
	freq = 1000000000;
	offset_s = @OFFSET@;
	@CLOCK@
};
typealias integer { size = 64; align = 8; map = clock.c.value; } := stamp_t;
typealias integer { size = 8; align = 8; } := u8;
typealias integer { size = 16; align = 8; } := u16;
typealias integer { size = 32; align = 8; } := u32;
typealias integer { size = 64; align = 8; } := u64;
stream {
	id = 0;
	packet.context := struct {
		stamp_t timestamp_begin; stamp_t timestamp_end; u64 content_size; u64 packet_size; u32 cpu_id;
	};
	event.header := struct { u16 id; stamp_t timestamp; };
	event.context := struct { integer { size = 32; align = 8; signed = true; } _vtid; };
};
event {
	id = 0; name = "numbers"; stream_id = 0; loglevel = 6; model.emf.uri = "http://example.org/numbers";
	fields := struct {
		u8 _small;
		integer { size = 16; align = 8; signed = true; } _negative;
		integer { size = 32; align = 8; base = 16; } _hexadecimal;
		integer { size = 12; align = 8; signed = true; base = 16; } _odd;
		integer { size = 16; align = 8; base = 8; } _octal;
		integer { size = 8; align = 8; signed = true; base = 8; } _negative_octal;
		integer { size = 5; align = 8; base = 2; } _binary;
		u64 _most;
		integer { size = 64; align = 8; signed = true; } _least;
		floating_point { exp_dig = 8; mant_dig = 24; align = 8; byte_order = le; } _single;
		floating_point { exp_dig = 11; mant_dig = 53; align = 8; byte_order = le; } _double;
		integer { size = 32; align = 8; byte_order = be; } _big;
	};
};
event {
	id = 1; name = "strings:\"quoted\""; stream_id = 0;
	context := struct { string _where; };
	fields := struct {
		string _plain;
		string _escaped;
		integer { size = 8; align = 8; encoding = UTF8; } _fixed[6];
		u8 _length;
		integer { size = 8; align = 8; encoding = UTF8; } _counted[_length];
	};
};
event {
	id = 2; name = "compound"; stream_id = 0;
	fields := struct {
		struct { u8 a; struct { u8 b; } inner; } _nested;
		struct { } _empty;
		u8 _numbers[3];
		u8 _count;
		u16 _sequence[_count];
		struct { u8 x; u8 y; } _points[2];
		enum : u8 { "zero", "two or three" = 2 ... 3, "three" = 3, "many" = 200 ... 255 } _label;
		enum : u8 { one, other } _tag;
		variant <_tag> { u16 one; string other; } _choice;
	};
};
"#;

impl Small<'_> {
    /// Writes the trace into a new directory.
    pub fn write(&self, directory: &Path) -> PathBuf {
        std::fs::create_dir_all(directory).expect("a directory");
        let metadata = METADATA
            .replace("@UUID@", &format!("{:02x}", self.uuid))
            .replace("@OFFSET@", &self.offset.to_string())
            .replace("@CLOCK@", self.clock);
        std::fs::write(directory.join("metadata"), metadata).expect("metadata");
        std::fs::write(directory.join("stream_0"), self.stream()).expect("a stream");
        directory.to_owned()
    }

    fn stream(&self) -> Vec<u8> {
        let mut events = Vec::new();
        for (index, &time) in self.times.iter().enumerate() {
            let id = (index % 3) as u16;
            events.extend(id.to_le_bytes());
            events.extend(time.to_le_bytes());
            events.extend((100 + index as i32).to_le_bytes());
            match id {
                0 => numbers(&mut events, index as u8),
                1 => strings(&mut events),
                _ => compound(&mut events, index as u8),
            }
        }
        let head = 4 + 16 + 4 + 4 * 8 + 4;
        let bits = (head + events.len() as u64) * 8;
        let mut packet = Vec::new();
        packet.extend(0xC1FC_1FC1u32.to_le_bytes());
        packet.extend([0; 15]);
        packet.push(self.uuid);
        packet.extend(0u32.to_le_bytes());
        packet.extend(self.times.first().copied().unwrap_or(0).to_le_bytes());
        packet.extend(self.times.last().copied().unwrap_or(0).to_le_bytes());
        packet.extend(bits.to_le_bytes());
        packet.extend(bits.to_le_bytes());
        packet.extend(3u32.to_le_bytes());
        packet.extend(events);
        packet
    }
}

fn numbers(bytes: &mut Vec<u8>, index: u8) {
    bytes.push(index);
    bytes.extend((-12345i16).to_le_bytes());
    bytes.extend(0xDEAD_BEEFu32.to_le_bytes());
    bytes.extend((-2i16 & 0x0fff).to_le_bytes());
    bytes.extend(0o1234u16.to_le_bytes());
    bytes.push(-8i8 as u8);
    bytes.push(0b10110);
    bytes.extend(u64::MAX.to_le_bytes());
    bytes.extend(i64::MIN.to_le_bytes());
    bytes.extend((f32::from(index) * 0.1 - 0.05).to_le_bytes());
    bytes.extend((1.5e-7 * 10f64.powi(i32::from(index) * 3)).to_le_bytes());
    bytes.extend(123_456_789u32.to_be_bytes());
}

fn strings(bytes: &mut Vec<u8>) {
    bytes.extend(b"in a context\0");
    bytes.extend(b"a string of more than sixteen bytes, and then some more\0");
    bytes.extend(b"it's \"so\"?\\\n\t\x07\x08\x1b\x0c\r\x0b\x01\x7f d\xc3\xa9j\xc3\xa0\0");
    bytes.extend(b"fix\0\0\0");
    bytes.push(4);
    bytes.extend(b"four");
}

fn compound(bytes: &mut Vec<u8>, index: u8) {
    bytes.extend([1, 2]);
    bytes.extend([7, 8, 9]);
    let count = index % 4;
    bytes.push(count);
    (0..count).for_each(|element| bytes.extend((u16::from(element) * 1000).to_le_bytes()));
    bytes.extend([1, 2, 3, 4]);
    bytes.push([0, 3, 9, 201][usize::from(index / 3 % 4)]);
    let tag = index / 3 % 2;
    bytes.push(tag);
    if tag == 0 {
        bytes.extend(5u16.to_le_bytes())
    } else {
        bytes.extend(b"else\0")
    }
}
