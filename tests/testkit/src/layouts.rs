//! Traces in the layouts of various tracers, of any length, for tests and measurements of the
//! scanner.
//!
//! All have the same event classes, as far as their headers allow: of constant size, with strings,
//! with a sequence, with a length before a string, with a variant, with a sequence of bits. Equal
//! arguments give equal traces.

use crate::rng::Rng;
use crate::value::Value;
use crate::write::{EventValues, PacketWriter};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::Path;
use tracebraid_ctf::schema::TraceClass;

/// The framing of packets and event records in a layout.
struct Layout {
    name: &'static str,
    byte_order: &'static str,
    /// TSDL of the packet context, the event record header and the common context.
    packet_context: &'static str,
    header: &'static str,
    context: &'static str,
    /// Alignment of the integers of payloads, in bits.
    align: u32,
    /// A file contains several packets: the context has their sizes.
    has_sizes: bool,
    /// Header of an event record with an id and a time.
    values: fn(u64, u64) -> Vec<Value>,
}

const SIZES: &str =
    "u64 packet_size; u64 content_size; u64c timestamp_begin; u64c timestamp_end; u32 cpu_id;";

const LAYOUTS: [Layout; 12] = [
    Layout {
        name: "dpdk",
        byte_order: "le",
        packet_context: "u32 cpu_id; u8 name[32];",
        header: "struct { integer { size = 48; align = 16; map = clock.c.value; } timestamp; u16 id; } align(64)",
        context: "",
        align: 8,
        has_sizes: false,
        values: |id, time| vec![Value::UInt(time & ((1 << 48) - 1)), Value::UInt(id)],
    },
    Layout {
        name: "barectf",
        byte_order: "le",
        packet_context: SIZES,
        header: "struct { u64 id; u64c timestamp; }",
        context: "",
        align: 8,
        has_sizes: true,
        values: |id, time| vec![Value::UInt(id), Value::UInt(time)],
    },
    Layout {
        name: "natural",
        byte_order: "le",
        packet_context: SIZES,
        header: "struct { u16 id; integer { size = 32; align = 32; map = clock.c.value; } timestamp; }",
        context: "",
        align: 0,
        has_sizes: true,
        values: |id, time| vec![Value::UInt(id), Value::UInt(time & 0xffff_ffff)],
    },
    Layout {
        name: "natural-large",
        byte_order: "le",
        packet_context: SIZES,
        header: "struct { enum : integer { size = 16; align = 16; } { compact = 0 ... 65534, extended = 65535 } id; \
            variant <id> { struct { integer { size = 32; align = 32; map = clock.c.value; } timestamp; } compact; \
            struct { integer { size = 32; align = 32; } id; \
            integer { size = 64; align = 64; map = clock.c.value; } timestamp; } extended; } v; } align(16)",
        context: "",
        align: 0,
        has_sizes: true,
        values: |id, time| with_extension(65535, 0xffff_ffff, id, time),
    },
    Layout {
        name: "natural-compact",
        byte_order: "be",
        packet_context: SIZES,
        header: "struct { enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id; \
            variant <id> { struct { integer { size = 27; align = 1; map = clock.c.value; } timestamp; } compact; \
            struct { integer { size = 32; align = 32; } id; \
            integer { size = 64; align = 64; map = clock.c.value; } timestamp; } extended; } v; } align(32)",
        context: "",
        align: 0,
        has_sizes: true,
        values: |id, time| with_extension(31, (1 << 27) - 1, id, time),
    },
    Layout {
        name: "big-endian",
        byte_order: "be",
        packet_context: SIZES,
        header: "struct { u16 id; integer { size = 32; align = 8; map = clock.c.value; } timestamp; }",
        context: "",
        align: 8,
        has_sizes: true,
        values: |id, time| vec![Value::UInt(id), Value::UInt(time & 0xffff_ffff)],
    },
    Layout {
        name: "big-endian-compact",
        byte_order: "be",
        packet_context: SIZES,
        header: "struct { enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id; \
            variant <id> { struct { integer { size = 27; align = 1; map = clock.c.value; } timestamp; } compact; \
            struct { u32 id; u64c timestamp; } extended; } v; } align(8)",
        context: "",
        align: 8,
        has_sizes: true,
        values: |id, time| with_extension(31, (1 << 27) - 1, id, time),
    },
    Layout {
        name: "extended",
        byte_order: "le",
        packet_context: SIZES,
        header: "struct { enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id; \
            variant <id> { struct { integer { size = 27; align = 1; map = clock.c.value; } timestamp; } compact; \
            struct { u32 id; u64c timestamp; } extended; } v; } align(8)",
        context: "",
        align: 8,
        has_sizes: true,
        values: |id, time| with_extension(0, 0, id, time),
    },
    Layout {
        name: "contexts",
        byte_order: "le",
        packet_context: SIZES,
        header: "struct { enum : u16 { compact = 0 ... 65534, extended = 65535 } id; \
            variant <id> { struct { integer { size = 32; align = 8; map = clock.c.value; } timestamp; } compact; \
            struct { u32 id; u64c timestamp; } extended; } v; } align(8)",
        context: "u32 vtid; u32 vpid; string procname;",
        align: 8,
        has_sizes: true,
        values: |id, time| with_extension(65535, 0xffff_ffff, id, time),
    },
    Layout {
        name: "bit-packed",
        byte_order: "le",
        packet_context: SIZES,
        header: "struct { integer { size = 3; align = 1; } flags; integer { size = 5; align = 1; } id; \
            integer { size = 37; align = 1; map = clock.c.value; } timestamp; } align(8)",
        context: "",
        align: 8,
        has_sizes: true,
        values: |id, time| {
            vec![
                Value::UInt(time & 7),
                Value::UInt(id),
                Value::UInt(time & ((1 << 37) - 1)),
            ]
        },
    },
    Layout {
        name: "unaligned",
        byte_order: "le",
        packet_context: SIZES,
        header: "struct { integer { size = 8; align = 1; } id; \
            integer { size = 40; align = 1; map = clock.c.value; } timestamp; }",
        context: "",
        align: 1,
        has_sizes: true,
        values: |id, time| vec![Value::UInt(id), Value::UInt(time & ((1 << 40) - 1))],
    },
    Layout {
        name: "timeless",
        byte_order: "le",
        packet_context: "u64 packet_size; u64 content_size; u32 cpu_id;",
        header: "struct { u8 id; }",
        context: "",
        align: 8,
        has_sizes: true,
        values: |id, _| vec![Value::UInt(id)],
    },
];

/// LTTng's headers: compact if the id is below the escape value and the upper bits of the time are
/// unchanged.
fn with_extension(escape: u64, mask: u64, id: u64, time: u64) -> Vec<Value> {
    let is_compact = id < escape && !time.is_multiple_of(50);
    let (tag, option, value) = match is_compact {
        true => (id, 0, vec![Value::UInt(time & mask)]),
        false => (escape.max(31), 1, vec![Value::UInt(id), Value::UInt(time)]),
    };
    let value = Box::new(Value::Struct(value));
    vec![Value::UInt(tag), Value::Variant { option, value }]
}

/// Names of the layouts.
pub fn names() -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().map(|layout| layout.name)
}

fn integers(align: u32) -> String {
    let of = |size: u32, name: &str| {
        let align = if align == 0 { size } else { align };
        format!(
            "typealias integer {{ size = {size}; align = {align}; signed = false; }} := {name};\n"
        )
    };
    [(8, "p8"), (16, "p16"), (32, "p32"), (64, "p64")]
        .map(|(size, name)| of(size, name))
        .concat()
}

fn metadata(layout: &Layout) -> String {
    let whole = [(8, "u8"), (16, "u16"), (32, "u32"), (64, "u64")];
    let whole = whole.map(|(size, name)| {
        format!("typealias integer {{ size = {size}; align = 8; signed = false; }} := {name};\n")
    });
    let context = match layout.context {
        "" => String::new(),
        fields => format!("event.context := struct {{ {fields} }};"),
    };
    format!(
        "/* CTF 1.8 */\n{whole}{integers}\
        trace {{ major = 1; minor = 8; byte_order = {order}; packet.header := struct {{ u32 magic; }}; }};\n\
        clock {{ name = c; freq = 1000000000; }};\n\
        typealias integer {{ size = 64; align = 8; signed = false; map = clock.c.value; }} := u64c;\n\
        stream {{ packet.context := struct {{ {packet} }}; event.header := {header}; {context} }};\n\
        event {{ name = fixed; id = 0; fields := struct {{ p32 a; p64 b; p16 c; }}; }};\n\
        event {{ name = empty; id = 1; fields := struct {{ }}; }};\n\
        event {{ name = text; id = 2; fields := struct {{ p32 a; string s; p16 b; }}; }};\n\
        event {{ name = texts; id = 3; fields := struct {{ string a; p32 b; string c; p32 d; }}; }};\n\
        event {{ name = list; id = 4; fields := struct {{ p32 n; p64 items[n]; p8 z; }}; }};\n\
        event {{ name = kept; id = 5; fields := struct {{ p16 n; string s; p16 items[n]; }}; }};\n\
        event {{ name = choice; id = 6; fields := struct {{ enum : p8 {{ A = 0, B = 1, C = 2 }} tag; \
        variant <tag> {{ p32 A; string B; struct {{ }} C; }} v; p16 z; }}; }};\n\
        typealias integer {{ size = 1; align = 1; signed = false; }} := bit;\n\
        event {{ name = bits; id = 7; fields := struct {{ p8 n; bit flags[n]; bit more[3]; p16 z; }}; }};\n",
        whole = whole.concat(),
        integers = integers(layout.align),
        order = layout.byte_order,
        packet = layout.packet_context,
        header = layout.header,
    )
}

/// Writes a trace in a layout with at least `events` event records, in streams of several packets
/// where packets have sizes.
///
/// # Errors
/// If no layout has the name, or the files cannot be written.
pub fn write(name: &str, events: u64, destination: &Path) -> Result<()> {
    let Some(layout) = LAYOUTS.iter().find(|layout| layout.name == name) else {
        bail!(
            "no layout is named {name}; the layouts are {}",
            names().collect::<Vec<_>>().join(", ")
        );
    };
    let text = metadata(layout);
    let class =
        tracebraid_ctf::tsdl::parse(text.as_bytes()).map_err(|error| anyhow::anyhow!("{error}"))?;
    fs::create_dir_all(destination)
        .with_context(|| format!("cannot make {}", destination.display()))?;
    fs::write(destination.join("metadata"), text)?;
    let mut rng = Rng::new(7);
    let mut time = 1_000_000;
    for stream in 0..STREAMS {
        let mut data = Vec::new();
        let packets = if layout.has_sizes { PACKETS } else { 1 };
        for _ in 0..packets {
            let count = events.div_ceil(STREAMS * packets) + rng.below(9);
            data.extend(packet(layout, &class, stream, count, &mut time, &mut rng)?);
        }
        fs::write(destination.join(format!("stream_{stream}")), data)?;
    }
    Ok(())
}

const STREAMS: u64 = 2;
const PACKETS: u64 = 40;
const MAGIC: u64 = 0xc1fc_1fc1;

fn packet(
    layout: &Layout,
    class: &TraceClass,
    stream: u64,
    events: u64,
    time: &mut u64,
    rng: &mut Rng,
) -> Result<Vec<u8>> {
    let stream_class = class.streams.first().context("a stream class")?;
    let end = *time + events * 100 + 1;
    let context = match (
        layout.has_sizes,
        layout.packet_context.contains("timestamp_begin"),
    ) {
        (false, _) => vec![Value::UInt(stream), Value::Array(vec![Value::UInt(65); 32])],
        (true, false) => [0, 0, stream].map(Value::UInt).into(),
        (true, true) => [0, 0, *time, end, stream].map(Value::UInt).into(),
    };
    let header = Value::Struct(vec![Value::UInt(MAGIC)]);
    let context = Value::Struct(context);
    let mut writer = PacketWriter::new(class, stream_class, Some(&header), Some(&context))?;
    let mut turn = 0;
    for _ in 0..events {
        *time += 1 + rng.below(99);
        let class = next_class(rng, &mut turn);
        let has_context = stream_class.common_context.is_some();
        let values = EventValues {
            header: Some(Value::Struct((layout.values)(class, *time))),
            common_context: has_context.then(|| common_context(rng)),
            specific_context: None,
            payload: Some(Value::Struct(payload(class, rng))),
        };
        writer.event(class as usize, &values)?;
    }
    *time = end;
    Ok(writer.finish(&[])?.0)
}

/// Programs repeat themselves: most event records follow each other as in [`USUAL`].
fn next_class(rng: &mut Rng, turn: &mut usize) -> u64 {
    if rng.chance(4) {
        return rng.below(8);
    }
    *turn = (*turn + 1) % USUAL.len();
    USUAL[*turn]
}

/// Classes in their usual order: half of the event records have constant sizes.
const USUAL: [u64; 16] = [0, 1, 0, 2, 0, 0, 3, 1, 0, 4, 0, 1, 6, 0, 5, 2];

fn common_context(rng: &mut Rng) -> Value {
    let number = |rng: &mut Rng| Value::UInt(rng.below(30_000));
    Value::Struct(vec![number(rng), number(rng), text(rng)])
}

/// Most strings in traces are names of threads.
fn text(rng: &mut Rng) -> Value {
    let length = if rng.chance(90) {
        rng.between(2, 14)
    } else {
        rng.below(50)
    };
    Value::Str(
        (0..length)
            .map(|_| char::from(b'a' + rng.below(26) as u8))
            .collect(),
    )
}

fn payload(class: u64, rng: &mut Rng) -> Vec<Value> {
    let number = |rng: &mut Rng| Value::UInt(rng.below(1 << 16));
    let small = |rng: &mut Rng| Value::UInt(rng.below(256));
    let list = |rng: &mut Rng| -> Vec<Value> {
        (0..rng.below(5))
            .map(|_| Value::UInt(rng.below(1 << 16)))
            .collect()
    };
    match class {
        0 => vec![number(rng), number(rng), number(rng)],
        1 => Vec::new(),
        2 => vec![number(rng), text(rng), number(rng)],
        3 => vec![text(rng), number(rng), text(rng), number(rng)],
        4 => {
            let items = list(rng);
            vec![
                Value::UInt(items.len() as u64),
                Value::Array(items),
                small(rng),
            ]
        }
        5 => {
            let items = list(rng);
            vec![
                Value::UInt(items.len() as u64),
                text(rng),
                Value::Array(items),
            ]
        }
        7 => {
            let bits =
                |rng: &mut Rng, count| (0..count).map(|_| Value::UInt(rng.below(2))).collect();
            let count = rng.below(40);
            let flags = Value::Array(bits(rng, count));
            vec![
                Value::UInt(count),
                flags,
                Value::Array(bits(rng, 3)),
                number(rng),
            ]
        }
        _ => {
            let option = rng.below(3) as usize;
            let value = match option {
                0 => number(rng),
                1 => text(rng),
                _ => Value::Struct(Vec::new()),
            };
            let value = Box::new(value);
            vec![
                Value::UInt(option as u64),
                Value::Variant { option, value },
                number(rng),
            ]
        }
    }
}
