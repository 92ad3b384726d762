//! Rules of both formats that generated traces do not cover, each with hand-made bytes.

use crate::formats_support::read_stream;
use tracebraid_ctf::trace::Trace;

/// Reads a stream: the fields and times of each event record, and the reported damage.
fn read(metadata: &str, stream: &[u8]) -> (Vec<String>, Vec<Option<u64>>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("metadata"), metadata).unwrap();
    std::fs::write(place.path().join("stream"), stream).unwrap();
    let trace = Trace::open(place.path()).unwrap_or_else(|error| panic!("{error}"));
    let mut told: Vec<String> = trace
        .damage
        .iter()
        .map(|damage| damage.message.clone())
        .collect();
    let (mut texts, mut times) = (Vec::new(), Vec::new());
    for stream in &trace.streams {
        let (shown, damage) = read_stream(&trace, stream, 64);
        times.extend(shown.iter().map(|event| event.clock));
        texts.extend(
            shown
                .into_iter()
                .map(|event| event.text.trim_end().to_owned()),
        );
        told.extend(damage);
    }
    (texts, times, told)
}

/// CTF 2 metadata: fragments after the preamble.
fn ctf2(fragments: &[&str]) -> String {
    let all = [r#"{"type":"preamble","version":2}"#]
        .iter()
        .chain(fragments);
    all.map(|fragment| format!("\u{1e}{fragment}\n")).collect()
}

fn payload(fields: &str) -> String {
    ctf2(&[
        r#"{"type":"data-stream-class"}"#,
        &format!(
            r#"{{"type":"event-record-class","payload-field-class":{{"type":"structure","member-classes":[{fields}]}}}}"#
        ),
    ])
}

fn field(name: &str, class: &str) -> String {
    format!(r#"{{"name":"{name}","field-class":{class}}}"#)
}

fn uint(length: u32, order: &str, more: &str) -> String {
    format!(
        r#"{{"type":"fixed-length-unsigned-integer","length":{length},"byte-order":"{order}-endian"{more}}}"#
    )
}

const LAST_TO_FIRST: &str = r#","bit-order":"last-to-first""#;
const FIRST_TO_LAST: &str = r#","bit-order":"first-to-last""#;

#[test]
fn the_byte_order_takes_bits_and_the_bit_order_places_them() {
    // 0xb1, 0x2c: bits from the least significant: 1000 1101, 0011 0100.
    let bytes = [0xb1, 0x2c];
    for (order, more, expected) in [
        ("little", "", 0x2cb1_u32),
        ("little", FIRST_TO_LAST, 0x2cb1),
        ("little", LAST_TO_FIRST, 0b1000_1101_0011_0100),
        ("big", "", 0xb12c),
        ("big", LAST_TO_FIRST, 0xb12c),
        ("big", FIRST_TO_LAST, 0b0011_0100_1000_1101),
    ] {
        let (texts, _, told) = read(&payload(&field("f", &uint(16, order, more))), &bytes);
        assert_eq!(
            (texts, told),
            (vec![format!("{{ {expected} }}")], vec![]),
            "{order} {more}"
        );
    }
    // Fields of 3 and 13 bits share a byte.
    let two = |order: &str, more: &str| {
        [
            field("a", &uint(3, order, more)),
            field("b", &uint(13, order, more)),
        ]
        .join(",")
    };
    let (texts, ..) = read(&payload(&two("big", "")), &bytes);
    assert_eq!(texts, ["{ 5 4396 }"]);
    let (texts, ..) = read(&payload(&two("big", FIRST_TO_LAST)), &bytes);
    assert_eq!(texts, ["{ 5 1681 }"]);
    let (texts, ..) = read(&payload(&two("little", "")), &bytes);
    assert_eq!(texts, ["{ 1 1430 }"]);
    let (texts, ..) = read(&payload(&two("little", LAST_TO_FIRST)), &bytes);
    assert_eq!(texts, ["{ 4 3380 }"]);
}

#[test]
fn a_byte_has_bits_of_one_byte_order_only() {
    let fields = [
        field("a", &uint(4, "little", "")),
        field("b", &uint(4, "big", "")),
    ]
    .join(",");
    let (texts, _, told) = read(&payload(&fields), &[1, 2]);
    assert_eq!(texts.len(), 0);
    assert!(
        told[0].contains("the byte order changes within a byte"),
        "{told:?}"
    );
    // The byte order may change at a byte boundary.
    let fields = [
        field("a", &uint(4, "little", "")),
        field("b", &uint(4, "little", "")),
        field("c", &uint(4, "big", "")),
        field("d", &uint(4, "little", r#","alignment":8"#)),
        field("e", &uint(4, "little", "")),
    ];
    let (texts, _, told) = read(&payload(&fields.join(",")), &[0x21, 0x30, 0x54]);
    assert_eq!((texts, told.len()), (vec!["{ 1 2 3 4 5 }".to_owned()], 0));
}

#[test]
fn an_array_may_bring_the_other_byte_order_to_the_middle_of_a_byte() {
    let array = r#"{"type":"dynamic-length-array","length-field-location":{"origin":"event-record-payload","path":["n"]},"element-field-class":CLASS}"#;
    let fields = [
        field("n", &uint(8, "little", "")),
        field("a", &array.replace("CLASS", &uint(2, "little", ""))),
        field("b", &uint(4, "big", "")),
        field("c", r#"{"type":"null-terminated-string"}"#),
    ];
    let metadata = payload(&fields.join(","));
    let (texts, _, told) = read(&metadata, &[4, 0b1110_0100, 0x50, 0]);
    assert_eq!(
        (texts, told.len()),
        (vec!["{ 4 [4: 0 1 2 3 ] 5 \"\" }".to_owned()], 0)
    );
    let (texts, _, told) = read(&metadata, &[0, 0x50, 0]);
    assert_eq!(
        (texts, told.len()),
        (vec!["{ 0 [0: ] 5 \"\" }".to_owned()], 0)
    );
    let (texts, _, told) = read(&metadata, &[1, 0b11, 0, 0]);
    assert!(
        texts.is_empty() && told[0].contains("byte order"),
        "{texts:?} {told:?}"
    );
}

#[test]
fn strings_of_wide_characters_end_with_a_whole_null() {
    let strings = |class: &str| payload(&field("s", class));
    let terminated = |encoding: &str| {
        strings(&format!(
            r#"{{"type":"null-terminated-string","encoding":"{encoding}"}}"#
        ))
    };
    let one = |metadata: &str, bytes: &[u8]| {
        let (texts, _, told) = read(metadata, bytes);
        assert_eq!(told, [""; 0]);
        texts.join(" ")
    };
    assert_eq!(
        one(&terminated("utf-16le"), &[b'a', 0, 0, 1, 0, 0]),
        "{ \"aĀ\" }"
    );
    assert_eq!(
        one(&terminated("utf-16be"), &[0, b'a', 1, 0, 0, 0]),
        "{ \"aĀ\" }"
    );
    assert_eq!(
        one(
            &terminated("utf-32be"),
            &[0, 0, 0, b'a', 0, 1, 0xf9, 0x80, 0, 0, 0, 0]
        ),
        "{ \"a🦀\" }"
    );
    let sized = |length: u32| {
        strings(&format!(
            r#"{{"type":"static-length-string","length":{length},"encoding":"utf-16le"}}"#
        ))
    };
    assert_eq!(one(&sized(6), &[b'a', 0, 0, 0, 9, 9]), "{ \"a\" }");
    // An odd byte is ignored after a null, and is half a character otherwise.
    assert_eq!(one(&sized(5), &[b'a', 0, 0, 0, 9]), "{ \"a\" }");
    let (texts, _, told) = read(&sized(3), &[b'a', 0, 9]);
    assert!(
        texts.is_empty() && told[0].contains("code unit"),
        "{texts:?} {told:?}"
    );
}

#[test]
fn a_variable_length_timestamp_has_seven_bits_for_each_byte() {
    let metadata = ctf2(&[
        r#"{"type":"clock-class","id":"c","frequency":1000}"#,
        r#"{"type":"data-stream-class","default-clock-class-id":"c","event-record-header-field-class":{"type":"structure","member-classes":[{"name":"t","field-class":{"type":"variable-length-unsigned-integer","roles":["default-clock-timestamp"]}}]}}"#,
        r#"{"type":"event-record-class"}"#,
    ]);
    // 100, then 20 (wraps to 128 + 20), then 5 in two bytes (14 bits: 16,384 + 5).
    let (_, times, told) = read(&metadata, &[100, 20, 0x85, 0x00]);
    assert_eq!(told, [""; 0]);
    assert_eq!(times, [Some(100), Some(148), Some(16_389)]);
}

#[test]
fn padding_belongs_to_the_array_even_if_it_is_empty() {
    let array = r#"{"type":"dynamic-length-array","length-field-location":{"origin":"event-record-payload","path":["n"]},"minimum-alignment":32,"element-field-class":{"type":"null-terminated-string"}}"#;
    let fields = [
        field("n", &uint(8, "little", "")),
        field("a", array),
        field("b", &uint(8, "little", "")),
    ];
    let (texts, _, told) = read(&payload(&fields.join(",")), &[0, 9, 9, 9, 7]);
    assert_eq!((texts, told.len()), (vec!["{ 0 [0: ] 7 }".to_owned()], 0));
}

#[test]
fn a_content_length_alone_is_the_packets_length() {
    let metadata = ctf2(&[
        r#"{"type":"data-stream-class","packet-context-field-class":{"type":"structure","member-classes":[{"name":"c","field-class":{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian","roles":["packet-content-length"]}}]}}"#,
        r#"{"type":"event-record-class","payload-field-class":{"type":"structure","member-classes":[{"name":"v","field-class":{"type":"fixed-length-unsigned-integer","length":8,"byte-order":"little-endian"}}]}}"#,
    ]);
    let (texts, _, told) = read(&metadata, &[24, 1, 2, 16, 3, 8]);
    assert_eq!(
        (texts.join(" "), told.len()),
        ("{ 1 } { 2 } { 3 }".to_owned(), 0)
    );
    let (texts, _, told) = read(&metadata, &[24, 1, 2, 16]);
    assert_eq!(texts.join(" "), "{ 1 } { 2 }");
    assert!(
        told[0].contains("the file ends 1 bytes before the packet does"),
        "{told:?}"
    );
}

#[test]
fn a_float_of_128_bits_may_lie_anywhere() {
    let metadata = "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n\
        event { name = e; fields := struct { integer { size = 4; } a;\n\
        floating_point { exp_dig = 15; mant_dig = 113; align = 1; } f; integer { size = 4; } b; }; };\n";
    let value: u128 = 0xc000_8000_0000_0000_0000_0000_0000_0000;
    let mut bytes = vec![];
    // Four bits, 128 bits of -3, four bits.
    for index in 0..17u32 {
        let low = if index == 0 {
            0x7
        } else {
            (value >> (index * 8 - 4) & 0xf) as u8
        };
        let high = if index == 16 {
            0x5
        } else {
            (value >> (index * 8) & 0xf) as u8
        };
        bytes.push(low | high << 4);
    }
    let (texts, _, told) = read(metadata, &bytes);
    assert_eq!(
        (texts, told),
        (
            vec![format!("{{ 7 float{:#x} 5 }}", (-3f64).to_bits())],
            vec![]
        )
    );
}
