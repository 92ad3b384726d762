//! The schema that TSDL is converted to: byte orders, roles, clocks, names, and locations of
//! lengths and tags.

use tracebraid_ctf::schema::*;
use tracebraid_ctf::tsdl;

fn parse(text: &str) -> TraceClass {
    tsdl::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// A little-endian trace with `u8`, and the payload of its only event.
fn payload(declarations: &str, fields: &str) -> FieldClass {
    let class = parse(&format!(
        "typealias integer {{ size = 8; }} := u8; typealias u8 := int;
        trace {{ major = 1; minor = 8; byte_order = le; }}; {declarations}
        event {{ name = e; fields := struct {{ {fields} }}; }};"
    ));
    class.streams[0].events[0].payload.clone().unwrap()
}

fn members(class: &FieldClass) -> &[Member] {
    match class {
        FieldClass::Struct(class) => &class.members,
        other => panic!("no struct: {other:?}"),
    }
}

fn int(class: &FieldClass) -> &IntClass {
    match class {
        FieldClass::Int(class) => class,
        other => panic!("no integer: {other:?}"),
    }
}

fn length_of(class: &FieldClass) -> &FieldLocation {
    match class {
        FieldClass::Sequence { length, .. } => length,
        other => panic!("no sequence: {other:?}"),
    }
}

fn variant(class: &FieldClass) -> &VariantClass {
    match class {
        FieldClass::Variant(class) => class,
        other => panic!("no variant: {other:?}"),
    }
}

fn location(scope: Scope, paths: &[&[u32]]) -> FieldLocation {
    FieldLocation {
        scope,
        paths: paths.iter().map(|path| path.to_vec()).collect(),
    }
}

#[test]
fn native_byte_order_is_that_of_a_trace_block_that_comes_later() {
    let class = parse(
        "typealias integer { size = 16; } := native;
        typealias integer { size = 16; byte_order = le; } := little;
        typealias floating_point { exp_dig = 8; mant_dig = 24; } := float;
        event { fields := struct { native a; little b; float c; integer { size = 4; } d; }; };
        trace { major = 1; minor = 8; byte_order = be; };",
    );
    assert_eq!(class.byte_order, ByteOrder::Big);
    let payload = class.streams[0].events[0].payload.as_ref().unwrap();
    let [a, b, c, d] = members(payload) else {
        panic!()
    };
    assert_eq!(
        (int(&a.class).byte_order, int(&a.class).align),
        (ByteOrder::Big, 8)
    );
    assert_eq!(int(&b.class).byte_order, ByteOrder::Little);
    let float = FieldClass::Float {
        length: 32,
        align: 1,
        byte_order: ByteOrder::Big,
        reversed_bits: false,
    };
    assert_eq!(c.class, float);
    assert_eq!(int(&d.class).align, 1, "no multiple of 8 bits: packed");
}

#[test]
fn attributes_of_integers() {
    let payload = payload(
        "",
        "integer { size = 24; align = 64; signed = TRUE; base = hex; encoding = UTF8; byte_order = network; } a;",
    );
    let class = int(&members(&payload)[0].class);
    assert_eq!((class.length, class.align, class.signed), (24, 64, true));
    assert_eq!(
        (class.base, class.encoding),
        (DisplayBase::Hexadecimal, Some(Encoding::Utf8))
    );
    assert_eq!((class.byte_order, class.is_enum), (ByteOrder::Big, false));
    assert_eq!(payload.align(), 64);
}

#[test]
fn display_bases_have_several_names() {
    let bases = [
        (DisplayBase::Binary, "2 b bin binary"),
        (DisplayBase::Octal, "8 o oct octal"),
        (DisplayBase::Decimal, "10 d dec decimal i u"),
        (DisplayBase::Hexadecimal, "16 x X hex hexadecimal p"),
    ];
    for (base, names) in bases {
        for name in names.split(' ') {
            let payload = payload("", &format!("integer {{ size = 8; base = {name}; }} a;"));
            assert_eq!(int(&members(&payload)[0].class).base, base, "{name}");
        }
    }
}

#[test]
fn bodies_without_a_field_name_declare_types_only() {
    let payload = payload(
        "",
        "u8 a; struct { u8 x; }; struct t { u8 y; }; enum : u8 { P }; enum e : u8 { a, b }; enum e tag;
        variant <tag> { typealias u8 := v; v a; u8 b; }; variant w { u8 a; u8 b; };
        struct t c; variant w <tag> d;",
    );
    let names: Vec<_> = members(&payload)
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    assert_eq!(names, ["a", "tag", "c", "d"]);
}

#[test]
fn one_underscore_is_removed_from_names() {
    let payload = payload(
        "",
        "u8 _a; u8 __b; u8 _; u8 str; u8 _str; u8 len; string s[len];",
    );
    let names: Vec<_> = members(&payload)
        .iter()
        .map(|member| member.name.as_str())
        .collect();
    // Without its underscore, `_str` would have the same name as another field.
    assert_eq!(names, ["a", "_b", "", "str", "_str", "len", "s"]);
}

#[test]
fn lengths_are_found_by_the_names_as_written() {
    let payload = payload("", "u8 __x_length; u8 _x[ __x_length ];");
    assert_eq!(
        length_of(&members(&payload)[1].class),
        &location(Scope::Payload, &[&[0]])
    );
}

#[test]
fn the_innermost_field_of_a_name_is_the_length() {
    let payload = payload(
        "",
        "u8 n; struct { u8 a[n]; u8 n; u8 b[n]; struct { u8 c[n]; } t; } s;",
    );
    let inner = members(&members(&payload)[1].class);
    assert_eq!(
        length_of(&inner[0].class),
        &location(Scope::Payload, &[&[0]])
    );
    assert_eq!(
        length_of(&inner[2].class),
        &location(Scope::Payload, &[&[1, 1]])
    );
    assert_eq!(
        length_of(&members(&inner[3].class)[0].class),
        &location(Scope::Payload, &[&[1, 1]])
    );
}

#[test]
fn a_type_refers_to_the_fields_around_its_definition() {
    // As in the example of the specification, 4.2.2: the string of the same name is not the target.
    let payload = payload(
        "",
        "u8 len; typedef struct { u8 a[len]; } t; struct { string len; t x; } outer;",
    );
    let x = &members(&members(&payload)[1].class)[1].class;
    assert_eq!(
        length_of(&members(x)[0].class),
        &location(Scope::Payload, &[&[0]])
    );
}

#[test]
fn a_type_from_elsewhere_refers_to_the_fields_around_its_use() {
    let payload = payload(
        "struct s { u8 a[n]; };",
        "u8 n; struct { struct s x; } o; struct { u8 n; struct s y; } p;",
    );
    let x = &members(&members(&payload)[1].class)[0].class;
    assert_eq!(
        length_of(&members(x)[0].class),
        &location(Scope::Payload, &[&[0]])
    );
    let y = &members(&members(&payload)[2].class)[1].class;
    assert_eq!(
        length_of(&members(y)[0].class),
        &location(Scope::Payload, &[&[2, 0]])
    );
}

#[test]
fn paths_lead_through_structs_and_the_current_element() {
    let payload = payload(
        "",
        "struct { u8 n; } h; u8 a[h.n]; struct { u8 m; u8 b[m]; u8 c[event.fields.s.m]; } s[3];",
    );
    let list = members(&payload);
    assert_eq!(
        length_of(&list[1].class),
        &location(Scope::Payload, &[&[0, 0]])
    );
    let FieldClass::Array {
        element, length: 3, ..
    } = &list[2].class
    else {
        panic!()
    };
    assert_eq!(
        length_of(&members(element)[1].class),
        &location(Scope::Payload, &[&[2, 0, 0]])
    );
    assert_eq!(
        length_of(&members(element)[2].class),
        &location(Scope::Payload, &[&[2, 0, 0]])
    );
}

#[test]
fn a_length_in_a_variant_has_a_path_for_each_option() {
    let payload = payload(
        "",
        "enum : u8 { x, y } t; variant <t> { struct { u8 n; } x; struct { string s; u8 n; } y; } v; u8 a[v.n];
        u8 b[v.y.n];",
    );
    let list = members(&payload);
    assert_eq!(
        length_of(&list[2].class),
        &location(Scope::Payload, &[&[1, 0, 0], &[1, 1, 1]])
    );
    assert_eq!(
        length_of(&list[3].class),
        &location(Scope::Payload, &[&[1, 1, 1]])
    );
}

#[test]
fn within_an_option_only_that_option_counts() {
    let payload = payload(
        "",
        "enum : u8 { x, y } t;
        variant <t> { struct { string n; } x; struct { u8 n; u8 a[event.fields.v.n]; } y; } v;",
    );
    let y = &variant(&members(&payload)[1].class).options[1].class;
    assert_eq!(
        length_of(&members(y)[1].class),
        &location(Scope::Payload, &[&[1, 1, 0]])
    );
}

#[test]
fn absolute_paths_lead_to_every_scope() {
    let class = parse(
        "typealias integer { size = 8; } := u8;
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u8 a; u8 n; }; };
        event {
            context := struct { u8 x; u8 n; };
            fields := struct {
                u8 s0[trace.packet.header.n]; u8 s1[stream.packet.context.n]; u8 s2[stream.event.header.n];
                u8 s3[stream.event.context.n]; u8 s4[event.context.n]; u8 n; u8 s6[event.fields.n];
            };
        };
        stream {
            packet.context := struct { u8 n; }; event.header := struct { u8 b; u8 c; u8 n; };
            event.context := struct { u8 d; u8 e; u8 f; u8 n; };
        };",
    );
    let list = members(class.streams[0].events[0].payload.as_ref().unwrap());
    let found: Vec<_> = [0, 1, 2, 3, 4, 6]
        .iter()
        .map(|&index: &usize| length_of(&list[index].class).clone())
        .collect();
    let expected = [
        location(Scope::PacketHeader, &[&[1]]),
        location(Scope::PacketContext, &[&[0]]),
        location(Scope::EventHeader, &[&[2]]),
        location(Scope::CommonContext, &[&[3]]),
        location(Scope::SpecificContext, &[&[1]]),
        location(Scope::Payload, &[&[5]]),
    ];
    assert_eq!(found, expected);
}

#[test]
fn lengths_of_several_dimensions_and_of_the_environment() {
    let payload = payload("env { n = 5; };", "u8 len; u8 a[2][env.n]; u8 b[3][len];");
    let FieldClass::Array {
        element, length: 2, ..
    } = &members(&payload)[1].class
    else {
        panic!()
    };
    assert!(matches!(**element, FieldClass::Array { length: 5, .. }));
    let FieldClass::Array {
        element, length: 3, ..
    } = &members(&payload)[2].class
    else {
        panic!()
    };
    assert_eq!(length_of(element), &location(Scope::Payload, &[&[0]]));
}

#[test]
fn enumerations_and_the_options_that_they_select() {
    let payload = payload(
        "",
        "enum : integer { size = 8; signed = true; } { A = -3, B, C = 5 ... 9, D, A = 20, \"x y\" } t;
        variant <t> { u8 C; u8 none; u8 A; u8 _B; } v;",
    );
    let [t, v] = members(&payload) else { panic!() };
    let range = |lower, upper| IntRange { lower, upper };
    let expected = [
        ("A", vec![range(-3, -3), range(20, 20)]),
        ("B", vec![range(-2, -2)]),
        ("C", vec![range(5, 9)]),
        ("D", vec![range(10, 10)]),
        ("x y", vec![range(21, 21)]),
    ];
    let found: Vec<_> = int(&t.class)
        .mappings
        .iter()
        .map(|mapping| (mapping.label.as_str(), mapping.ranges.clone()))
        .collect();
    assert_eq!(found, expected);
    assert!(int(&t.class).is_enum);
    let v = variant(&v.class);
    assert_eq!(*v.selector, location(Scope::Payload, &[&[0]]));
    let options: Vec<_> = v
        .options
        .iter()
        .map(|option| (option.name.as_deref().unwrap(), option.ranges.clone()))
        .collect();
    let expected = [
        ("C", vec![range(5, 9)]),
        ("none", vec![]),
        ("A", vec![range(-3, -3), range(20, 20)]),
        ("B", vec![range(-2, -2)]),
    ];
    assert_eq!(options, expected);
}

const LTTNG: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace {
    major = 1; minor = 8; uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564"; byte_order = le;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; };
};
env { domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; };
clock {
    name = "monotonic"; uuid = "0b1bb408-1eb1-4cd1-b638-c5624c6a19c6"; description = "Monotonic Clock";
    freq = 1000000000; offset_s = 7; offset = 1795224828576349957; precision = 3;
};
typealias integer { size = 27; align = 1; map = clock.monotonic.value; } := uint27_clock_t;
typealias integer { size = 64; align = 8; map = clock.monotonic.value; } := uint64_clock_t;
struct event_header_compact {
    enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
    variant <id> {
        struct { uint27_clock_t timestamp; } compact;
        struct { uint32_t id; uint64_clock_t timestamp; } extended;
    } v;
} align(8);
stream {
    id = 3;
    event.header := struct event_header_compact;
    packet.context := struct {
        uint64_clock_t timestamp_begin; uint64_clock_t timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id;
    };
};
event { name = "a"; id = 5; stream_id = 3; loglevel = 13; model.emf.uri = "http://x"; };
event { name = "b"; id = 9; stream_id = 3; fields := struct { uint8_t id; uint64_clock_t when; }; };
"#;

#[test]
fn roles_and_clock_of_an_lttng_trace() {
    let class = parse(LTTNG);
    assert_eq!(class.uuid.unwrap()[..4], [0x2a, 0x64, 0x22, 0xd0]);
    assert_eq!(class.env_str("domain"), Some("kernel"));
    assert_eq!(class.env("tracer_major"), Some(&EnvValue::Int(2)));
    let header = members(class.packet_header.as_ref().unwrap());
    assert_eq!(int(&header[0].class).roles, Roles::PACKET_MAGIC);
    assert!(matches!(
        header[1].class,
        FieldClass::Array {
            length: 16,
            roles: Roles::METADATA_UUID,
            ..
        }
    ));
    assert_eq!(int(&header[2].class).roles, Roles::STREAM_CLASS_ID);
    assert_eq!(int(&header[3].class).roles, Roles::STREAM_ID);

    let [clock] = class.clocks.as_slice() else {
        panic!()
    };
    assert_eq!(
        (clock.id.as_str(), clock.name.as_deref()),
        ("monotonic", Some("monotonic"))
    );
    assert_eq!(
        (clock.offset_seconds, clock.offset_cycles),
        (7, 1_795_224_828_576_349_957)
    );
    assert_eq!((clock.frequency, clock.precision), (1_000_000_000, Some(3)));
    assert_eq!(
        clock.uid.as_deref(),
        Some("0b1bb408-1eb1-4cd1-b638-c5624c6a19c6")
    );
    assert_eq!(
        clock.origin,
        ClockOrigin::UnixEpoch,
        "LTTng's clock is absolute, said or not"
    );

    let [stream] = class.streams.as_slice() else {
        panic!()
    };
    assert_eq!((stream.id, stream.default_clock), (3, Some(0)));
    let roles: Vec<_> = members(stream.packet_context.as_ref().unwrap())
        .iter()
        .map(|member| int(&member.class).roles)
        .collect();
    let expected = [
        Roles::CLOCK_TIMESTAMP,
        Roles::PACKET_END_TIMESTAMP,
        Roles::PACKET_CONTENT_LENGTH,
        Roles::PACKET_TOTAL_LENGTH,
        Roles::PACKET_SEQUENCE_NUMBER,
        Roles::DISCARDED_EVENTS,
        Roles::NONE,
    ];
    assert_eq!(roles, expected);

    let header = stream.event_header.as_ref().unwrap();
    assert_eq!(header.align(), 8);
    let [id, v] = members(header) else { panic!() };
    assert_eq!(int(&id.class).roles, Roles::EVENT_CLASS_ID);
    let v = variant(&v.class);
    assert_eq!(*v.selector, location(Scope::EventHeader, &[&[0]]));
    assert_eq!(
        v.options[0].ranges,
        [IntRange {
            lower: 0,
            upper: 30
        }]
    );
    assert_eq!(
        int(&members(&v.options[0].class)[0].class).roles,
        Roles::CLOCK_TIMESTAMP
    );
    assert_eq!(
        int(&members(&v.options[1].class)[0].class).roles,
        Roles::EVENT_CLASS_ID
    );

    let [a, b] = stream.events.as_slice() else {
        panic!()
    };
    assert_eq!((a.id, a.name.as_str(), a.log_level), (5, "a", Some(13)));
    assert_eq!(a.model_emf_uri.as_deref(), Some("http://x"));
    assert!(a.payload.is_none());
    let b = members(b.payload.as_ref().unwrap());
    assert_eq!(
        int(&b[0].class).roles,
        Roles::NONE,
        "`id` of a payload is a field like any other"
    );
    assert_eq!(
        (int(&b[1].class).roles, int(&b[1].class).clock),
        (Roles::NONE, Some(0))
    );
}

#[test]
fn fields_of_the_wrong_kind_have_no_role() {
    let class = parse(
        "typealias integer { size = 8; align = 8; } := u8;
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct {
            u8 first; integer { size = 32; } magic; integer { size = 8; align = 16; } uuid[16]; string stream_id;
            integer { size = 8; signed = true; } stream_instance_id; }; };
        stream { packet.context := struct { string packet_size; struct { u8 content_size; } s; };
            event.header := struct { string id; }; };",
    );
    let header = members(class.packet_header.as_ref().unwrap());
    assert_eq!(
        int(&header[1].class).roles,
        Roles::NONE,
        "not the first field"
    );
    assert!(matches!(
        header[2].class,
        FieldClass::Array {
            roles: Roles::NONE,
            ..
        }
    ));
    assert_eq!(int(&header[4].class).roles, Roles::NONE);
    let context = members(class.streams[0].packet_context.as_ref().unwrap());
    assert_eq!(
        int(&members(&context[1].class)[0].class).roles,
        Roles::NONE,
        "not in the root"
    );
}

#[test]
fn timestamps_that_are_mapped_to_no_clock_count_the_only_one() {
    let trace = |clocks: &str| {
        parse(&format!(
            "typealias integer {{ size = 64; }} := u64; trace {{ major = 1; minor = 8; byte_order = le; }}; {clocks}
            stream {{ event.header := struct {{ u64 timestamp; }};
                packet.context := struct {{ u64 timestamp_begin; u64 timestamp_end; }}; }};"
        ))
    };
    let implicit = trace("");
    assert_eq!(
        (implicit.clocks.len(), implicit.clocks[0].frequency),
        (1, 1_000_000_000)
    );
    assert_eq!(implicit.clocks[0].origin, ClockOrigin::Unknown);
    let one = trace("clock { name = c; freq = 50; absolute = true; };");
    assert_eq!((one.clocks.len(), one.clocks[0].frequency), (1, 50));
    for class in [implicit, one] {
        let stream = &class.streams[0];
        assert_eq!(stream.default_clock, Some(0));
        let header = members(stream.event_header.as_ref().unwrap());
        assert_eq!(
            (int(&header[0].class).roles, int(&header[0].class).clock),
            (Roles::CLOCK_TIMESTAMP, Some(0))
        );
        let context = members(stream.packet_context.as_ref().unwrap());
        assert_eq!(int(&context[0].class).roles, Roles::CLOCK_TIMESTAMP);
        assert_eq!(
            (int(&context[1].class).roles, int(&context[1].class).clock),
            (Roles::PACKET_END_TIMESTAMP, Some(0))
        );
    }
    let two = trace("clock { name = c; }; clock { name = d; };");
    assert_eq!(two.streams[0].default_clock, None);
    let none = parse("trace { major = 1; minor = 8; byte_order = le; }; stream { };");
    assert!(none.clocks.is_empty() && none.streams[0].default_clock.is_none());
}

#[test]
fn clocks_of_streams() {
    let class = parse(
        "trace { major = 1; minor = 8; byte_order = le;
            packet.header := struct { integer { size = 8; } stream_id; }; };
        clock { name = a; offset = -5; offset_s = -7; };
        clock { name = \"b\"; absolute = TRUE; };
        stream { id = 1; event.header := struct { integer { size = 8; map = clock.b.value; } t; }; };
        stream { id = 2; event.header := struct { integer { size = 8; map = clock.a.value; } t; }; };
        stream { id = 4; };",
    );
    let clocks: Vec<_> = class
        .streams
        .iter()
        .map(|stream| (stream.id, stream.default_clock))
        .collect();
    assert_eq!(clocks, [(1, Some(1)), (2, Some(0)), (4, None)]);
    assert_eq!(
        (
            class.clocks[0].offset_cycles,
            class.clocks[0].offset_seconds
        ),
        (-5, -7)
    );
    assert_eq!(
        (&class.clocks[0].origin, &class.clocks[1].origin),
        (&ClockOrigin::Unknown, &ClockOrigin::UnixEpoch)
    );
}

#[test]
fn events_find_their_streams() {
    let class = parse(
        "typealias integer { size = 8; } := u8;
        trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u8 stream_id; }; };
        event { name = early; id = 1; stream_id = 7; fields := struct { u8 a; }; };
        stream { id = 7; event.header := struct { u8 id; }; };
        stream { id = 8; };
        event { name = late; id = 0; stream_id = 7; fields := struct { u8 a; }; };
        event { name = other; id = 1; stream_id = 8; fields := struct { u8 a; }; };",
    );
    let names: Vec<Vec<&str>> = class
        .streams
        .iter()
        .map(|stream| {
            stream
                .events
                .iter()
                .map(|event| event.name.as_str())
                .collect()
        })
        .collect();
    assert_eq!(names, [vec!["early", "late"], vec!["other"]]);
    let alone = parse(
        "trace { major = 1; minor = 8; byte_order = le; }; event { fields := struct { string s; }; };",
    );
    assert_eq!(
        (
            alone.streams.len(),
            alone.streams[0].id,
            alone.streams[0].events.len()
        ),
        (1, 0, 1)
    );
}

#[test]
fn strings_with_escapes() {
    let class = parse(
        "trace { major = 1; minor = 8; byte_order = le; };
        env { a = \"\\n \\x41 \\x0231 \\101\\43\\0431 \\\\ \\\" \\u00e9 \\u yeah\"; b = \"cut\\0off\"; c = L\"wide\"; };",
    );
    assert_eq!(class.env_str("a"), Some("\n A #1 A##1 \\ \" \u{e9} u yeah"));
    assert_eq!(
        (class.env_str("b"), class.env_str("c")),
        (Some("cut"), Some("wide"))
    );
}

#[test]
fn bytes_that_are_no_utf_8_are_replaced_in_strings() {
    let class =
        tsdl::parse(b"trace { major = 1; minor = 8; byte_order = le; }; env { a = \"caf\xe9\"; };")
            .unwrap();
    assert_eq!(class.env_str("a"), Some("caf\u{fffd}"));
}

#[test]
fn types_of_several_words_and_pointers() {
    let payload = payload(
        "typealias integer { size = 64; } := unsigned long;
        typealias integer { size = 48; } := unsigned long *;
        typealias integer { size = 40; } := struct page *;
        typedef unsigned long two[2];",
        "unsigned long a; const unsigned long *b; struct page *c; two d; u8 e, g;",
    );
    let list = members(&payload);
    let lengths: Vec<_> = [0, 1, 2, 4, 5]
        .iter()
        .map(|&index: &usize| int(&list[index].class).length)
        .collect();
    assert_eq!(lengths, [64, 48, 40, 8, 8]);
    assert!(
        matches!(&list[3].class, FieldClass::Array { element, length: 2, .. } if int(element).length == 64)
    );
}

#[test]
fn inner_scopes_hide_outer_types() {
    let payload = payload(
        "struct s { u8 a; };",
        "typealias integer { size = 16; } := u8; u8 x; struct s y;",
    );
    assert_eq!(int(&members(&payload)[0].class).length, 16);
    assert_eq!(
        int(&members(&members(&payload)[1].class)[0].class).length,
        8
    );
}

#[test]
fn equal_types_are_shared() {
    let payload = payload("struct s { u8 a; u8 b; };", "struct s x; struct s y;");
    let [x, y] = members(&payload) else { panic!() };
    let (FieldClass::Struct(x), FieldClass::Struct(y)) = (&x.class, &y.class) else {
        panic!()
    };
    assert!(std::sync::Arc::ptr_eq(x, y));
}

/// The trace block, clocks, streams and events may be in any order. Only types must precede their
/// use.
#[test]
fn blocks_may_come_in_any_order() {
    let types = "typealias integer { size = 64; map = clock.b.value; } := stamp;
        typealias integer { size = 8; } := u8;";
    let blocks = [
        "trace { major = 1; minor = 8; byte_order = be; };",
        "clock { name = a; freq = 1; }; clock { name = b; freq = 2; };",
        "stream { id = 3; event.header := struct { u8 id; stamp t; }; };",
        "event { name = \"e\"; id = 1; stream_id = 3; fields := struct { u8 n; u8 x[stream.event.header.id]; }; };",
        "event { name = \"f\"; id = 2; stream_id = 3; fields := struct { u8 n; }; };",
    ];
    let expected = parse(&format!("{}{types}{}", blocks[0], blocks[1..].concat()));
    assert_eq!(expected.streams[0].default_clock, Some(1));
    // The last block, an event, stays in its position, since events keep their order.
    for first in 0..4 {
        for second in 0..4 {
            let mut order = blocks;
            order[..4].rotate_left(first);
            order[..4].swap(0, second);
            let text = format!("{types}{}", order.concat());
            assert_eq!(parse(&text), expected, "{text}");
        }
    }
}

#[test]
fn a_clock_that_no_block_describes_is_refused_wherever_it_is_used() {
    let error = |more: &str| {
        let text = format!(
            "trace {{ major = 1; minor = 8; byte_order = le; }};\n{more}
            typealias integer {{ size = 64; map = clock.c.value; }} := stamp;
            event {{ fields := struct {{ stamp t; }}; }};"
        );
        tsdl::parse(text.as_bytes()).unwrap_err()
    };
    let error = error("clock { name = d; };");
    assert!(error.message.contains("clock `c`"), "{error}");
    assert_eq!(error.line, 3);
    // The clock is described twice, after its use.
    let text = "trace { major = 1; minor = 8; byte_order = le; };
        typealias integer { size = 64; map = clock.c.value; } := stamp;
        clock { name = c; };\nclock { name = c; };";
    let error = tsdl::parse(text.as_bytes()).unwrap_err();
    assert!(
        error.message.contains("there is a clock `c` already"),
        "{error}"
    );
    assert_eq!(error.line, 4);
}

#[test]
fn names_of_types_end_with_their_scope() {
    let fields = "typealias integer { size = 16; } := u8; u8 a;
        struct { typealias integer { size = 32; } := u8; u8 b; struct { u8 c; } s; } t; u8 d;";
    let payload = payload("", fields);
    let lengths: Vec<u32> = payload
        .all()
        .filter_map(|class| match class {
            FieldClass::Int(class) => Some(class.length),
            _ => None,
        })
        .collect();
    assert_eq!(lengths, [16, 32, 32, 16]);
    let text = "trace { major = 1; minor = 8; byte_order = le; };
        event { fields := struct { struct { typealias integer { size = 8; } := inner; inner a; } s;\ninner b; }; };";
    let error = tsdl::parse(text.as_bytes()).unwrap_err();
    assert!(error.message.contains("unknown type `inner`"), "{error}");
    assert_eq!((error.line, error.column), (3, 1));
}
