//! The generator produces all features of the formats: a reader that passes on its traces has
//! handled every feature.

use std::collections::BTreeMap;
use tracebraid_ctf::schema::{ByteOrder, CtfVersion, Encoding, FieldClass, Scope, TraceClass};
use tracebraid_testkit::generate::{Generated, Options, generate};

#[derive(Default)]
struct Seen {
    counts: BTreeMap<String, u64>,
}

impl Seen {
    fn note(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    fn location(&mut self, location: &tracebraid_ctf::schema::FieldLocation, from: Scope) {
        if location.scope != from {
            self.note(format!("{from:?} refers to {:?}", location.scope));
        }
        if location.paths.len() > 1 {
            self.note("several paths");
        }
        if location.paths.iter().any(|path| path.len() > 1) {
            self.note("nested target");
        }
    }

    fn class(&mut self, class: &FieldClass, scope: Scope, depth: usize) {
        self.note(format!("depth {}", depth.min(4)));
        match class {
            FieldClass::Int(int) => {
                self.note(if int.is_enum {
                    "enumeration"
                } else {
                    "integer"
                });
                self.note(format!("length {}", int.length.min(65)));
                if int.align < 8 && int.length % 8 != 0 {
                    self.note(format!("bit-packed {:?}", int.byte_order));
                }
                if int.reversed_bits {
                    self.note("reversed bits");
                }
                if int.encoding.is_some() {
                    self.note("text array");
                }
            }
            FieldClass::Bool(_) => self.note("boolean"),
            FieldClass::BitArray(_) => self.note("bit array"),
            FieldClass::BitMap(_) => self.note("bit map"),
            FieldClass::VarInt(int) => {
                self.note(format!("variable-length, signed: {}", int.signed))
            }
            FieldClass::Float { length, align, .. } => {
                self.note(format!("float {length}, byte-aligned: {}", align % 8 == 0))
            }
            FieldClass::Str { encoding } => self.note(format!("string {encoding:?}")),
            FieldClass::StaticStr { encoding, .. } => {
                self.note(format!("static string {encoding:?}"))
            }
            FieldClass::DynStr { length, encoding } => {
                self.location(length, scope);
                self.note(if *encoding == Encoding::Utf8 {
                    "dynamic string"
                } else {
                    "dynamic wide string"
                });
            }
            FieldClass::StaticBlob { .. } => self.note("static BLOB"),
            FieldClass::DynBlob { length, .. } => {
                self.location(length, scope);
                self.note("dynamic BLOB");
            }
            FieldClass::Array {
                element, length, ..
            } => {
                self.note(if *length == 0 { "empty array" } else { "array" });
                self.class(element, scope, depth + 1);
            }
            FieldClass::Sequence {
                element, length, ..
            } => {
                self.note("sequence");
                self.location(length, scope);
                self.class(element, scope, depth + 1);
            }
            FieldClass::Struct(class) => {
                self.note(if class.members.is_empty() {
                    "empty structure"
                } else {
                    "structure"
                });
                for member in &class.members {
                    self.class(&member.class, scope, depth + 1);
                }
            }
            FieldClass::Variant(class) => {
                self.note("variant");
                self.location(&class.selector, scope);
                for option in &class.options {
                    self.class(&option.class, scope, depth + 1);
                }
            }
            FieldClass::Optional(class) => {
                self.note(format!("optional with ranges: {}", class.ranges.is_some()));
                self.location(&class.selector, scope);
                self.class(&class.element, scope, depth + 1);
            }
        }
    }

    fn schema(&mut self, class: &TraceClass) {
        self.note(format!("trace {:?}", class.byte_order));
        self.note(format!("{} clocks", class.clocks.len()));
        let mut scope = |scope: Scope, root: &Option<FieldClass>| match root {
            Some(root) => self.class(root, scope, 0),
            None => self.note(format!("no {scope:?}")),
        };
        scope(Scope::PacketHeader, &class.packet_header);
        for stream in &class.streams {
            scope(Scope::PacketContext, &stream.packet_context);
            scope(Scope::EventHeader, &stream.event_header);
            scope(Scope::CommonContext, &stream.common_context);
            for event in &stream.events {
                scope(Scope::SpecificContext, &event.specific_context);
                scope(Scope::Payload, &event.payload);
            }
        }
    }

    fn data(&mut self, generated: &Generated) {
        for stream in &generated.streams {
            self.note(if stream.index.is_some() {
                "index"
            } else {
                "no index"
            });
            self.note(if stream.packets.len() > 1 {
                "several packets"
            } else {
                "one packet"
            });
            for packet in &stream.packets {
                if packet.events.is_empty() {
                    self.note("empty packet");
                }
                if packet.total_length > packet.content_length + 7 {
                    self.note("padding");
                }
                if packet.begin.is_none() {
                    self.note("packet without time");
                }
            }
        }
        let magic = generated.metadata.get(..4).unwrap_or(&[]);
        match magic {
            [0x57, 0x1d, 0xd1, 0x75] => {
                self.note(format!("metadata in packets {:?}", ByteOrder::Little))
            }
            [0x75, 0xd1, 0x1d, 0x57] => {
                self.note(format!("metadata in packets {:?}", ByteOrder::Big))
            }
            _ => self.note("plain metadata"),
        }
    }
}

fn seen(version: CtfVersion) -> Seen {
    let mut seen = Seen::default();
    for seed in 0..300 {
        let generated = generate(&Options {
            seed,
            version,
            ..Options::default()
        })
        .unwrap();
        seen.schema(&generated.class);
        seen.data(&generated);
    }
    seen
}

fn expect(seen: &Seen, features: &[&str]) {
    let missing: Vec<_> = features
        .iter()
        .filter(|feature| seen.counts.get(**feature).is_none_or(|&count| count < 5))
        .collect();
    assert!(
        missing.is_empty(),
        "rare or missing: {missing:?} of {:#?}",
        seen.counts
    );
}

const COMMON: [&str; 36] = [
    "integer",
    "enumeration",
    "length 1",
    "length 7",
    "length 33",
    "length 64",
    "bit-packed Little",
    "bit-packed Big",
    "float 32, byte-aligned: true",
    "float 64, byte-aligned: false",
    "string Utf8",
    "array",
    "empty array",
    "sequence",
    "structure",
    "empty structure",
    "variant",
    "nested target",
    "depth 4",
    "trace Little",
    "0 clocks",
    "1 clocks",
    "2 clocks",
    "no PacketHeader",
    "no PacketContext",
    "no EventHeader",
    "no CommonContext",
    "no SpecificContext",
    "no Payload",
    "index",
    "no index",
    "several packets",
    "empty packet",
    "padding",
    "plain metadata",
    "packet without time",
];

#[test]
fn ctf_1_8_has_everything() {
    let seen = seen(CtfVersion::V1_8);
    expect(&seen, &COMMON);
    expect(
        &seen,
        &[
            "text array",
            "length 65",
            "trace Big",
            "metadata in packets Little",
            "metadata in packets Big",
            "Payload refers to PacketHeader",
            "Payload refers to PacketContext",
            "Payload refers to EventHeader",
            "Payload refers to CommonContext",
            "Payload refers to SpecificContext",
        ],
    );
}

#[test]
fn ctf_2_has_everything() {
    let seen = seen(CtfVersion::V2_0);
    expect(&seen, &COMMON);
    expect(
        &seen,
        &[
            "boolean",
            "bit array",
            "bit map",
            "variable-length, signed: true",
            "variable-length, signed: false",
            "float 16, byte-aligned: true",
            "float 128, byte-aligned: true",
            "string Utf16Be",
            "string Utf32Le",
            "static string Utf8",
            "static string Utf16Le",
            "dynamic string",
            "dynamic wide string",
            "static BLOB",
            "dynamic BLOB",
            "optional with ranges: true",
            "optional with ranges: false",
            "several paths",
            "reversed bits",
            "Payload refers to PacketHeader",
            "Payload refers to SpecificContext",
        ],
    );
}

#[test]
fn equal_options_give_equal_traces() {
    let options = Options {
        seed: 5,
        ..Options::default()
    };
    let (one, other) = (generate(&options).unwrap(), generate(&options).unwrap());
    assert_eq!(one.metadata, other.metadata);
    assert!(
        one.streams
            .iter()
            .zip(&other.streams)
            .all(|(one, other)| one.data == other.data)
    );
    let third = generate(&Options { seed: 6, ..options }).unwrap();
    assert_ne!(one.metadata, third.metadata);
}
