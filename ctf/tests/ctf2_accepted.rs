//! The schema of accepted CTF 2 metadata, and damaged metadata that must not make the parser panic.

use std::sync::Arc;

use tracebraid_ctf::ctf2;
use tracebraid_ctf::schema::{
    ByteOrder, ClockOrigin, CtfVersion, DisplayBase, Encoding, EnvValue, FieldClass, FieldLocation,
    IntRange, Roles, Scope, StructClass, TraceClass,
};

/// Metadata that uses every field class and most properties; `␞` stands for the separator.
const FULL: &str = include_str!("data/ctf2/full.json-seq.txt");

fn full_text() -> Vec<u8> {
    FULL.replace('␞', "\u{1e}").into_bytes()
}

fn full() -> TraceClass {
    ctf2::parse(&full_text()).unwrap_or_else(|error| panic!("{error}"))
}

fn structure(class: Option<&FieldClass>) -> &StructClass {
    match class {
        Some(FieldClass::Struct(class)) => class,
        other => panic!("not a structure: {other:?}"),
    }
}

fn member<'a>(class: &'a StructClass, name: &str) -> &'a FieldClass {
    &class
        .members
        .iter()
        .find(|member| member.name == name)
        .expect(name)
        .class
}

fn at(scope: Scope, paths: &[&[u32]]) -> Arc<FieldLocation> {
    Arc::new(FieldLocation {
        scope,
        paths: paths.iter().map(|path| path.to_vec()).collect(),
    })
}

fn range(lower: i128, upper: i128) -> IntRange {
    IntRange { lower, upper }
}

#[test]
fn trace_class() {
    let trace = full();
    assert_eq!(trace.version, CtfVersion::V2_0);
    assert_eq!(
        trace.uuid,
        Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255])
    );
    assert_eq!(trace.namespace.as_deref(), Some("my.ns"));
    assert_eq!(
        (trace.name.as_deref(), trace.uid.as_deref()),
        (Some(""), Some("some-id"))
    );
    let environment = [
        ("host", EnvValue::Str(String::from("hôte"))),
        ("answer", EnvValue::Int(-42)),
        ("big", EnvValue::Int(i128::from(u64::MAX))),
    ];
    assert_eq!(
        trace.environment,
        environment.map(|(key, value)| (key.to_owned(), value))
    );
    let header = structure(trace.packet_header.as_ref());
    assert_eq!(header.min_align, 64);
    let FieldClass::Int(magic) = member(header, "magic") else {
        panic!()
    };
    assert_eq!(
        (magic.length, magic.align, magic.byte_order),
        (32, 1, ByteOrder::Big)
    );
    assert_eq!(
        (magic.base, magic.roles),
        (DisplayBase::Hexadecimal, Roles::PACKET_MAGIC)
    );
    assert!(!magic.signed && !magic.reversed_bits && !magic.is_enum);
    let FieldClass::StaticBlob {
        length: 16,
        media_type: None,
        roles,
    } = member(header, "uuid")
    else {
        panic!()
    };
    assert_eq!(*roles, Roles::METADATA_UUID);
    let FieldClass::VarInt(id) = member(header, "_id") else {
        panic!()
    };
    assert_eq!(id.roles, Roles::STREAM_CLASS_ID | Roles::STREAM_ID);
}

#[test]
fn clock_classes() {
    let trace = full();
    let ids: Vec<&str> = trace.clocks.iter().map(|clock| clock.id.as_str()).collect();
    assert_eq!(ids, ["unknown", "mono", "epoch"]);
    assert_eq!(trace.clocks[0].origin, ClockOrigin::Unknown);
    assert_eq!(
        (trace.clocks[0].precision, trace.clocks[0].accuracy),
        (None, None)
    );
    assert_eq!(trace.clocks[2].origin, ClockOrigin::UnixEpoch);
    let mono = &trace.clocks[1];
    assert_eq!(
        (mono.offset_seconds, mono.offset_cycles, mono.frequency),
        (-5, 999_999_999, 1_000_000_000)
    );
    assert_eq!((mono.precision, mono.accuracy), (Some(10), Some(20)));
    assert_eq!(mono.description.as_deref(), Some("a clock"));
    let origin = ClockOrigin::Custom {
        namespace: Some(String::from("o.ns")),
        name: String::from("boot"),
        uid: String::from("42"),
    };
    assert_eq!(mono.origin, origin);
    assert_eq!(trace.streams[0].default_clock, Some(1));
}

#[test]
fn data_stream_class() {
    let trace = full();
    let stream = trace.stream_class(7).expect("the stream class");
    assert_eq!(stream.name.as_deref(), Some("stream"));
    let context = structure(stream.packet_context.as_ref());
    let FieldClass::Sequence {
        element,
        length,
        min_align: 16,
    } = member(context, "names")
    else {
        panic!()
    };
    assert_eq!(*length, at(Scope::PacketContext, &[&[0]]));
    assert_eq!(
        **element,
        FieldClass::Str {
            encoding: Encoding::Utf16Le
        }
    );
    let header = structure(stream.event_header.as_ref());
    let FieldClass::Int(id) = member(header, "id") else {
        panic!()
    };
    assert!(
        id.is_enum
            && id.mappings[1].label == "extended"
            && id.mappings[1].ranges == [range(31, 31)]
    );
    let FieldClass::Variant(variant) = member(header, "v") else {
        panic!()
    };
    assert_eq!(variant.selector, at(Scope::EventHeader, &[&[0]]));
    let names: Vec<Option<&str>> = variant
        .options
        .iter()
        .map(|option| option.name.as_deref())
        .collect();
    assert_eq!(names, [Some("compact"), None]);
    let common = structure(stream.common_context.as_ref());
    let FieldClass::Int(selector) = member(common, "sel") else {
        panic!()
    };
    assert!(selector.signed && selector.reversed_bits);
    assert_eq!(selector.mappings[0].ranges, [range(-5, -1), range(9, 9)]);
}

#[test]
fn event_record_class() {
    let trace = full();
    let event = &trace.streams[0].events[0];
    assert_eq!((event.id, event.name.as_str()), (3, "event"));
    assert_eq!(
        (event.namespace.as_deref(), event.uid.as_deref()),
        (Some("e.ns"), Some("e1"))
    );
    assert_eq!(
        (event.log_level, event.model_emf_uri.as_deref()),
        (Some(13), Some("http://example.com/"))
    );
    let specific = structure(event.specific_context.as_ref());
    let FieldClass::Bool(flag) = member(specific, "flag") else {
        panic!()
    };
    assert!(flag.length == 1 && !flag.reversed_bits);
    let payload = structure(event.payload.as_ref());
    let FieldClass::BitArray(bits) = member(payload, "bits") else {
        panic!()
    };
    assert!(bits.length == 3 && !bits.reversed_bits);
    let FieldClass::BitMap(map) = member(payload, "map") else {
        panic!()
    };
    assert_eq!(map.mappings[0].ranges, [range(0, 0), range(3, 5)]);
    let float = FieldClass::Float {
        length: 64,
        align: 32,
        byte_order: ByteOrder::Big,
        reversed_bits: false,
    };
    let FieldClass::Optional(optional) = member(payload, "sometimes") else {
        panic!()
    };
    assert_eq!(optional.selector, at(Scope::PacketContext, &[&[0]]));
    assert_eq!(
        (optional.ranges.as_deref(), &optional.element),
        (Some(&[range(1, 2), range(250, 255)][..]), &float)
    );
    assert_eq!(
        *member(payload, "fixed"),
        FieldClass::StaticStr {
            length: 12,
            encoding: Encoding::Utf8
        }
    );
    assert!(structure(Some(member(payload, "_"))).members.is_empty());
}

#[test]
fn resolved_locations() {
    let trace = full();
    let payload = structure(trace.streams[0].events[0].payload.as_ref());
    let FieldClass::Variant(glass) = member(payload, "glass") else {
        panic!()
    };
    assert_eq!(glass.selector, at(Scope::CommonContext, &[&[0]]));
    assert_eq!(glass.options[1].ranges, [range(-32, -2)]);

    // From inside an option, only that option counts; from outside, all options count.
    let third = structure(Some(&glass.options[2].class));
    let FieldClass::DynBlob { length, media_type } = member(third, "lock") else {
        panic!()
    };
    assert_eq!(*length, at(Scope::Payload, &[&[0, 2, 0]]));
    assert_eq!(media_type.as_deref(), Some("image/tiff"));
    let FieldClass::DynStr {
        length,
        encoding: Encoding::Utf32Be,
    } = member(payload, "margin")
    else {
        panic!()
    };
    assert_eq!(
        *length,
        at(Scope::Payload, &[&[0, 0, 0], &[0, 1, 1], &[0, 2, 0]])
    );

    // Through the element of an array that is being decoded, from a nested structure.
    let FieldClass::Array {
        element,
        length: 43,
        ..
    } = member(payload, "nature")
    else {
        panic!()
    };
    let inner = structure(Some(member(structure(Some(element)), "inner")));
    for name in ["joystick", "up"] {
        let FieldClass::DynStr { length, .. } = member(inner, name) else {
            panic!()
        };
        assert_eq!(*length, at(Scope::Payload, &[&[2, 0, 0]]), "{name}");
    }

    // Through an optional that is being decoded.
    let FieldClass::Optional(optional) = member(payload, "maybe") else {
        panic!()
    };
    assert_eq!(optional.ranges, None);
    assert_eq!(optional.selector, at(Scope::SpecificContext, &[&[0]]));
    let FieldClass::Sequence { length, .. } = member(structure(Some(&optional.element)), "items")
    else {
        panic!()
    };
    assert_eq!(*length, at(Scope::Payload, &[&[3, 0, 0]]));
}

#[test]
fn an_alias_resolves_where_it_is_used() {
    let text = "\u{1e}{\"type\": \"preamble\", \"version\": 2}
\u{1e}{\"type\": \"field-class-alias\", \"name\": \"text\", \"field-class\":
  {\"type\": \"dynamic-length-string\", \"length-field-location\": {\"path\": [\"n\"]}}}
\u{1e}{\"type\": \"data-stream-class\"}
\u{1e}{\"type\": \"event-record-class\", \"payload-field-class\": {\"type\": \"structure\", \"member-classes\": [
  {\"name\": \"n\", \"field-class\": {\"type\": \"variable-length-unsigned-integer\"}},
  {\"name\": \"one\", \"field-class\": \"text\"},
  {\"name\": \"in\", \"field-class\": {\"type\": \"structure\", \"member-classes\": [
    {\"name\": \"n\", \"field-class\": {\"type\": \"variable-length-unsigned-integer\"}},
    {\"name\": \"two\", \"field-class\": \"text\"}]}}]}}
";
    let trace = ctf2::parse(text.as_bytes()).unwrap();
    let payload = structure(trace.streams[0].events[0].payload.as_ref());
    let location = |class: &FieldClass| match class {
        FieldClass::DynStr { length, .. } => length.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        location(member(payload, "one")),
        at(Scope::Payload, &[&[0]])
    );
    let inner = structure(Some(member(payload, "in")));
    assert_eq!(
        location(member(inner, "two")),
        at(Scope::Payload, &[&[2, 0]])
    );
}

#[test]
fn attributes_that_are_not_understood_are_ignored() {
    let with = |attributes: &str| {
        let event = format!("\"attributes\": {attributes}");
        let old = r#""attributes": {"babeltrace.org,2020": {"log-level": "debug:line", "emf-uri": "http://example.com/"}}"#;
        let text = FULL.replace('␞', "\u{1e}");
        assert!(text.contains(old));
        let trace = ctf2::parse(text.replace(old, &event).as_bytes()).unwrap();
        let event = trace.streams[0].events[0].clone();
        (event.log_level, event.model_emf_uri)
    };
    assert_eq!(
        with(r#"{"lttng.org,2009": {"log-level": "warning"}}"#),
        (Some(4), None)
    );
    assert_eq!(
        with(r#"{"lttng.org,2009": {"log-level": "loud", "emf-uri": 3}}"#),
        (None, None)
    );
    assert_eq!(
        with(r#"{"babeltrace.org,2020": [], "other": {"log-level": "info"}}"#),
        (None, None)
    );
}

/// Damages the metadata in many variants: every truncation, and every byte replaced by other
/// significant bytes.
#[test]
fn damage_never_panics_and_points_into_the_text() {
    let text = full_text();
    for cut in 0..text.len() {
        if let Err(error) = ctf2::parse(&text[..cut]) {
            assert!(error.offset <= cut, "cut at {cut}: {error}");
        }
    }
    let mut rejected = 0;
    for index in 0..text.len() {
        for byte in [b'"', b'0', b'[', b'}', 0x1e, 0xff] {
            let mut damaged = text.clone();
            damaged[index] = byte;
            if let Err(error) = ctf2::parse(&damaged) {
                assert!(error.offset <= damaged.len() && !error.message.is_empty());
                rejected += 1;
            }
        }
    }
    assert!(rejected > text.len(), "{rejected}");
}

/// Replaces whole JSON tokens by tokens of other kinds and of extreme values.
#[test]
fn wrong_values_never_panic() {
    let text = full_text();
    let tokens = [
        "-1",
        "0",
        "1",
        "64",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "99999999999999999999999999999999999999999",
        "1.5",
        "1e400",
        "null",
        "true",
        "\"\"",
        "[]",
        "{}",
        "[[0,0]]",
        "\"u8\"",
        "[null, null, \"n\"]",
    ];
    let starts: Vec<usize> = (1..text.len())
        .filter(|&at| {
            text[at - 1] == b' '
                && (text[at].is_ascii_digit() || text[at] == b'"' || text[at] == b'[')
        })
        .collect();
    assert!(starts.len() > 300);
    for start in starts {
        let end = token_end(&text, start);
        for token in tokens {
            let mut changed = text[..start].to_vec();
            changed.extend_from_slice(token.as_bytes());
            changed.extend_from_slice(&text[end..]);
            if let Err(error) = ctf2::parse(&changed) {
                assert!(error.offset <= changed.len());
            }
        }
    }
}

/// The end of the string, number or array that starts there.
fn token_end(text: &[u8], start: usize) -> usize {
    let mut depth = 0;
    let mut is_quoted = false;
    for (index, &byte) in text.iter().enumerate().skip(start) {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'[' | b'{' if !is_quoted => depth += 1,
            b']' | b'}' if !is_quoted && depth == 0 => return index,
            b']' | b'}' if !is_quoted => depth -= 1,
            b',' | b':' if !is_quoted && depth == 0 => return index,
            _ => {}
        }
    }
    text.len()
}
