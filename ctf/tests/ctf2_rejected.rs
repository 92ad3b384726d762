//! CTF 2 metadata that must be rejected, with the position and the message of the error.
//!
//! In each case, `▲` marks the value that the error must point at; the mark is removed before
//! parsing.

mod references;

use tracebraid_ctf::ctf2;
use tracebraid_ctf::error::MetadataError;

const PREAMBLE: &str = r#"{"type": "preamble", "version": 2}"#;
const STREAM: &str = r#"{"type": "data-stream-class"}"#;

/// Writes fragments as a metadata stream without the mark; returns the position of the mark.
fn marked(fragments: &[&str]) -> (String, Option<usize>) {
    let text: String = fragments
        .iter()
        .map(|fragment| format!("\u{1e}{fragment}\n"))
        .collect();
    let at = text.find('▲');
    (text.replace('▲', ""), at)
}

fn rejected(fragments: &[&str], message: &str) -> MetadataError {
    let (text, at) = marked(fragments);
    let error = ctf2::parse(text.as_bytes()).expect_err(&text);
    assert!(
        error.message.contains(message),
        "{text}\nexpected: {message}\nfound: {error}"
    );
    if let Some(at) = at {
        assert_eq!(error.offset, at, "{text}\nfound: {error}");
    }
    error
}

/// Checks that a field class is rejected as the member `f` of a payload, after members `u`, `s`,
/// `b` and `str`.
fn rejected_class(class: &str, message: &str) {
    rejected(&[PREAMBLE, STREAM, &payload(class)], message);
}

fn accepted_class(class: &str) {
    let (text, _) = marked(&[PREAMBLE, STREAM, &payload(class)]);
    ctf2::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"));
}

fn payload(class: &str) -> String {
    format!(
        r#"{{"type": "event-record-class", "payload-field-class": {{"type": "structure", "member-classes": [
            {{"name": "u", "field-class": {{"type": "variable-length-unsigned-integer"}}}},
            {{"name": "s", "field-class": {{"type": "variable-length-signed-integer"}}}},
            {{"name": "b", "field-class": {{"type": "fixed-length-boolean", "length": 8, "byte-order": "big-endian"}}}},
            {{"name": "str", "field-class": {{"type": "null-terminated-string"}}}},
            {{"name": "f", "field-class": {class}}},
            {{"name": "later", "field-class": {{"type": "variable-length-unsigned-integer"}}}}
        ]}}}}"#
    )
}

#[test]
fn sequences() {
    rejected(&[], "missing preamble");
    rejected(&[PREAMBLE], "missing data stream class");
    rejected(&[STREAM], "the first fragment must be the preamble");
    rejected(&[PREAMBLE, &format!("▲{PREAMBLE}")], "duplicate preamble");
    rejected(
        &[PREAMBLE, r#"{"type": ▲"stream-class"}"#],
        "expecting `clock-class`, `data-stream-class`",
    );
    rejected(&[PREAMBLE, r#"▲{"id": 3}"#], "missing property `type`");
    rejected(
        &[PREAMBLE, r#"{"type": ▲3}"#],
        "`type`: expecting a string, not an integer",
    );
    rejected(&[PREAMBLE, "▲[1]"], "expecting an object");
    rejected(&[PREAMBLE, "{} ▲{}"], "expecting the end of the fragment");
    rejected(&[PREAMBLE, " \n"], "expecting a JSON value");
    rejected(
        &[PREAMBLE, r#"{"type": "data-stream-class", ▲"type": 0}"#],
        "duplicate property `type`",
    );
    let error = ctf2::parse(format!("{PREAMBLE}\n").as_bytes()).unwrap_err();
    assert!(
        error.offset == 0 && error.message.contains("record separator"),
        "{error}"
    );
    assert!(ctf2::parse(b"").is_err());
}

#[test]
fn separators_in_a_row_are_one() {
    let text = format!("\u{1e}\u{1e}{PREAMBLE}\n\u{1e}{STREAM}\u{1e}");
    ctf2::parse(text.as_bytes()).unwrap();
}

#[test]
fn lines_and_columns() {
    let error = rejected(
        &[
            PREAMBLE,
            "{\n\t\"type\": \"data-stream-class\",\n\t\"é\": 1, \"id\": -1}",
        ],
        "unknown",
    );
    assert_eq!((error.line, error.column), (4, 7));
    assert_eq!(error.source_line, "\t\"é\": 1, \"id\": -1}");
    let error = rejected(
        &[PREAMBLE, "{\"type\": \"data-stream-class\", \"id\": -1}"],
        "`id` -1 is too small",
    );
    assert_eq!((error.line, error.column), (2, 38));
}

#[test]
fn preambles() {
    let preamble = |rest: &str| format!(r#"{{"type": "preamble"{rest}}}"#);
    for (rest, message) in [
        ("", "missing property `version`"),
        (r#", "version": ▲1"#, "expecting 2"),
        (
            r#", "version": ▲2.0"#,
            "expecting an integer, not a real number",
        ),
        (r#", "version": ▲"2""#, "expecting an integer, not a string"),
        (
            r#", "version": 2, "uuid": ▲"0051d20e-3389-4157-9693-e7d5d8565aa0""#,
            "expecting an array",
        ),
        (
            r#", "version": 2, "uuid": ▲[1, 2, 3]"#,
            "expecting an array of 16 integers, not of 3",
        ),
        (
            r#", "version": 2, "uuid": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,▲256]"#,
            "too large: expecting at most 255",
        ),
        (r#", "version": 2, "minor": ▲0"#, "unknown property `minor`"),
        (
            r#", "version": 2, "extensions": ▲{"my.tracer": {"piano": null}}"#,
            "extensions of `my.tracer`",
        ),
        (
            r#", "version": 2, "extensions": ▲[]"#,
            "expecting an object",
        ),
        (
            r#", "version": 2, "attributes": ▲[]"#,
            "expecting an object",
        ),
    ] {
        rejected(&[&preamble(rest), STREAM], message);
    }
}

#[test]
fn aliases() {
    let alias = |rest: &str| format!(r#"{{"type": "field-class-alias", {rest}}}"#);
    let string = r#"{"type": "null-terminated-string"}"#;
    let good = alias(&format!(r#""name": "a", "field-class": {string}"#));
    rejected(
        &[
            PREAMBLE,
            &good,
            &alias(&format!(r#""name": ▲"a", "field-class": {string}"#)),
        ],
        "duplicate field class alias `a`",
    );
    rejected(
        &[PREAMBLE, &alias(r#""name": "b", "field-class": ▲"b""#)],
        "no field class alias `b`",
    );
    rejected(
        &[PREAMBLE, &alias(r#""name": "b", "field-class": ▲null"#)],
        "expecting a field class",
    );
    rejected(
        &[PREAMBLE, &alias(r#""name": "b""#)],
        "missing property `field-class`",
    );
    let event = r#"{"type": "event-record-class", "payload-field-class": ▲"a"}"#;
    rejected(
        &[PREAMBLE, STREAM, &good, event],
        "is a string: expecting a structure",
    );
}

#[test]
fn trace_classes() {
    let trace = |rest: &str| format!(r#"{{"type": "trace-class"{rest}}}"#);
    rejected(
        &[PREAMBLE, &trace(""), &format!("▲{}", trace("")), STREAM],
        "duplicate trace class",
    );
    rejected(
        &[PREAMBLE, STREAM, &format!("▲{}", trace(""))],
        "may not follow a data stream class",
    );
    rejected(
        &[PREAMBLE, &trace(r#", "uid": ▲7"#), STREAM],
        "`uid`: expecting a string",
    );
    rejected(
        &[PREAMBLE, &trace(r#", "environment": ▲[]"#), STREAM],
        "expecting an object",
    );
    rejected(
        &[PREAMBLE, &trace(r#", "environment": {"a": ▲true}"#), STREAM],
        "environment entry `a`",
    );
    rejected(
        &[
            PREAMBLE,
            &trace(r#", "environment": {"a": ▲18446744073709551616}"#),
            STREAM,
        ],
        "out of range",
    );
    let header = r#", "packet-header-field-class": ▲{"type": "null-terminated-string"}"#;
    rejected(&[PREAMBLE, &trace(header), STREAM], "expecting a structure");
}

#[test]
fn clock_classes() {
    let clock = |rest: &str| format!(r#"{{"type": "clock-class", "id": "c"{rest}}}"#);
    for (rest, message) in [
        ("", "missing property `frequency`"),
        (r#", "frequency": ▲0"#, "too small: expecting at least 1"),
        (r#", "frequency": ▲1e9"#, "expecting an integer, not a real"),
        (
            r#", "frequency": 1, "origin": ▲"epoch""#,
            "expecting `unix-epoch`",
        ),
        (
            r#", "frequency": 1, "origin": ▲1970"#,
            "expecting a string or an object",
        ),
        (
            r#", "frequency": 1, "origin": ▲{"name": "n"}"#,
            "missing property `uid`",
        ),
        (
            r#", "frequency": 1, "origin": {"name": "n", "uid": "u", "x": ▲0}"#,
            "unknown property `x`",
        ),
        (
            r#", "frequency": 9, "offset-from-origin": {"cycles": ▲9}"#,
            "expecting less than the frequency",
        ),
        (
            r#", "frequency": 9, "offset-from-origin": {"cycles": ▲-1}"#,
            "too small",
        ),
        (
            r#", "frequency": 9, "offset-from-origin": {"seconds": ▲9223372036854775808}"#,
            "out of range",
        ),
        (
            r#", "frequency": 9, "offset-from-origin": {"attributes": ▲{}}"#,
            "unknown property `attributes`",
        ),
        (r#", "frequency": 9, "precision": ▲-2"#, "too small"),
        (
            r#", "frequency": 9, "offset": ▲{}"#,
            "unknown property `offset`",
        ),
    ] {
        rejected(&[PREAMBLE, &clock(rest), STREAM], message);
    }
    let good = clock(r#", "frequency": 9"#);
    rejected(
        &[PREAMBLE, &good, &good.replace("\"c\"", "▲\"c\""), STREAM],
        "duplicate clock class",
    );
    let one = r#"{"type": "clock-class", "id": "1", "name": "n", "uid": "u", "frequency": 9}"#;
    let two = r#"▲{"type": "clock-class", "id": "2", "name": "n", "uid": "u", "frequency": 8}"#;
    rejected(
        &[PREAMBLE, one, two, STREAM],
        "same identity (namespace, name, uid) as `1`",
    );
    let late = r#"{"type": "data-stream-class", "default-clock-class-id": ▲"c"}"#;
    rejected(&[PREAMBLE, late, &good], "no clock class with the `id` `c`");
}

#[test]
fn stream_and_event_classes() {
    let stream = r#"{"type": "data-stream-class", "id": ▲18446744073709551616}"#;
    rejected(
        &[PREAMBLE, stream],
        "too large: expecting at most 18446744073709551615",
    );
    rejected(
        &[PREAMBLE, STREAM, &format!("▲{STREAM}")],
        "duplicate data stream class with the `id` 0",
    );
    let orphan = r#"{"type": "event-record-class", "data-stream-class-id": ▲1}"#;
    rejected(
        &[PREAMBLE, STREAM, orphan],
        "no data stream class with the `id` 1",
    );
    let empty = r#"▲{"type": "event-record-class", "payload-field-class": {"type": "structure",
        "member-classes": [{"name": "a", "field-class": {"type": "static-length-string", "length": 0}}]}}"#;
    rejected(&[PREAMBLE, STREAM, empty], "would be empty");
    let one = payload(r#"{"type": "structure"}"#);
    rejected(
        &[PREAMBLE, STREAM, &one, &format!("▲{one}")],
        "duplicate event record class with the `id` 0",
    );
}

#[test]
fn fixed_length_classes() {
    let bits = r#""length": 8, "byte-order": "big-endian""#;
    for kind in ["bit-array", "boolean", "unsigned-integer", "signed-integer"] {
        let class = |rest: &str| format!(r#"{{"type": "fixed-length-{kind}"{rest}}}"#);
        rejected_class(
            &format!("▲{}", class(r#", "length": 8"#)),
            "missing property `byte-order`",
        );
        rejected_class(
            &class(r#", "length": ▲65, "byte-order": "big-endian""#),
            "expecting at most 64",
        );
        rejected_class(
            &class(&format!(r#", {bits}, "alignment": ▲12"#)),
            "not a power of two",
        );
        rejected_class(
            &class(&format!(r#", {bits}, "alignment": ▲8589934592"#)),
            "too large",
        );
        rejected_class(
            &class(&format!(r#", {bits}, "bit-order": ▲"msb-first""#)),
            "expecting `first-to-last`",
        );
        accepted_class(&class(&format!(
            r#", {bits}, "bit-order": "last-to-first", "alignment": 1"#
        )));
    }
    for (class, message) in [
        (
            r#"▲{"type": "fixed-length-bit-map", "length": 8, "byte-order": "big-endian"}"#,
            "`flags`",
        ),
        (
            r#"{"type": "fixed-length-bit-map", "length": 8, "byte-order": "big-endian", "flags": ▲{}}"#,
            "one flag",
        ),
        (
            r#"{"type": "fixed-length-bit-map", "length": 8, "byte-order": "big-endian",
                "flags": {"a": [[0, ▲8]]}}"#,
            "out of range: expecting 0 to 7",
        ),
        (
            r#"{"type": "fixed-length-floating-point-number", "length": ▲48, "byte-order": "big-endian"}"#,
            "16, 32, 64",
        ),
        (
            r#"{"type": "fixed-length-floating-point-number", "length": ▲192, "byte-order": "big-endian"}"#,
            "more than 128",
        ),
        (
            r#"{"type": "fixed-length-signed-integer", "length": 8, "byte-order": "big-endian", "roles": ▲[]}"#,
            "`roles`",
        ),
    ] {
        rejected_class(class, message);
    }
    for length in [16, 32, 64, 128] {
        accepted_class(&format!(
            r#"{{"type": "fixed-length-floating-point-number", "length": {length}, "byte-order": "big-endian"}}"#
        ));
    }
}

#[test]
fn integer_properties() {
    let unsigned =
        |rest: &str| format!(r#"{{"type": "variable-length-unsigned-integer", {rest}}}"#);
    let signed = |rest: &str| format!(r#"{{"type": "variable-length-signed-integer", {rest}}}"#);
    rejected_class(
        &unsigned(r#""preferred-display-base": ▲3"#),
        "expecting 2, 8, 10, or 16",
    );
    rejected_class(
        &unsigned(r#""mappings": {"a": [[▲-1, 1]]}"#),
        "out of range",
    );
    rejected_class(
        &unsigned(r#""mappings": {"a": [[0, ▲18446744073709551616]]}"#),
        "out of range",
    );
    rejected_class(
        &signed(r#""mappings": {"a": [[0, ▲9223372036854775808]]}"#),
        "out of range",
    );
    rejected_class(
        &signed(r#""mappings": {"a": [▲[3, 2]]}"#),
        "3 is greater than 2",
    );
    rejected_class(&signed(r#""mappings": {"a": [▲[3]]}"#), "two bounds");
    rejected_class(
        &signed(r#""mappings": {"a": ▲[]}"#),
        "at least one integer range",
    );
    rejected_class(&signed(r#""roles": ▲[]"#), "unknown property `roles`");
    rejected_class(&signed(r#""length": ▲8"#), "unknown property `length`");
    accepted_class(&unsigned(
        r#""mappings": {"a": [[18446744073709551615, 18446744073709551615]], "": [[0, 0]]}"#,
    ));
    accepted_class(&signed(
        r#""mappings": {"a": [[-9223372036854775808, 9223372036854775807]]}"#,
    ));
}

#[test]
fn compound_classes() {
    let string = r#"{"type": "null-terminated-string"}"#;
    for (class, message) in [
        (
            r#"{"type": "structure", "member-classes": ▲{}}"#,
            "expecting an array",
        ),
        (
            r#"{"type": "structure", "member-classes": [▲"x"]}"#,
            "expecting an object",
        ),
        (
            r#"{"type": "structure", "member-classes": [▲{"name": "x"}]}"#,
            "missing property `field-class`",
        ),
        (
            r#"{"type": "structure", "minimum-alignment": ▲0}"#,
            "not a power of two",
        ),
        (
            r#"▲{"type": "static-length-array", "length": 1}"#,
            "missing property `element-field-class`",
        ),
        (
            r#"{"type": "static-length-array", "length": ▲-1, "element-field-class": "x"}"#,
            "too small",
        ),
        (
            r#"{"type": "variant", "selector-field-location": {"path": ["u"]}, "options": ▲[]}"#,
            "one option",
        ),
        (
            r#"{"type": "static-length-blob", "length": 16, "media-type": ▲1}"#,
            "expecting a string",
        ),
        (
            r#"{"type": "static-length-string", "length": 1, "encoding": ▲"UTF-8"}"#,
            "expecting `utf-16be`",
        ),
    ] {
        rejected_class(class, message);
    }
    rejected_class(
        &format!(
            r#"{{"type": "structure", "member-classes": [{{"name": "x", "field-class": {string}}},
                {{"name": ▲"x", "field-class": {string}}}]}}"#
        ),
        "duplicate structure member name `x`",
    );
    let variant = |one: &str, two: &str| {
        format!(
            r#"{{"type": "variant", "selector-field-location": {{"path": ["s"]}}, "options": [
                {{{one}, "field-class": {string}}}, {{{two}, "field-class": {string}}}]}}"#
        )
    };
    let ranges = |ranges: &str| format!(r#""selector-field-ranges": {ranges}"#);
    rejected_class(
        &variant(&ranges("[[9, 9], [1, 4]]"), &ranges("▲[[-5, -1], [4, 7]]")),
        "options #1 and #2 overlap at 4",
    );
    rejected_class(
        &variant(&ranges("[[0, 9]]"), &ranges("▲[[3, 4]]")),
        "overlap at 3",
    );
    accepted_class(&variant(
        &ranges("[[1, 4], [2, 3], [4, 6]]"),
        &ranges("[[-5, 0], [7, 7]]"),
    ));
    let named = |ranges: &str, mark: &str| {
        format!(r#""name": {mark}"x", "selector-field-ranges": {ranges}"#)
    };
    rejected_class(
        &variant(&named("[[1, 1]]", ""), &named("[[2, 2]]", "▲")),
        "duplicate variant option name `x`",
    );
    rejected_class(
        &variant(&ranges("[[1, 1]]"), r#""name": "y""#),
        "missing property `selector-field-ranges`",
    );
}
