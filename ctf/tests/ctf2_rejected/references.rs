//! Field locations, roles, and limits for nested aliases.

use super::{PREAMBLE, STREAM, rejected, rejected_class};

#[test]
fn locations() {
    let string = |location: &str| {
        format!(r#"{{"type": "dynamic-length-string", "length-field-location": {location}}}"#)
    };
    for (location, message) in [
        (r#"{"path": [▲1]}"#, "expecting a string or null"),
        (r#"{"path": ["u", ▲null]}"#, "may not be null"),
        (
            r#"▲{"path": ["nope"]}"#,
            "no structure member is named `nope`",
        ),
        (r#"▲{"path": [null, "u"]}"#, "no parent structure"),
        (
            r#"▲{"path": ["u", "x"]}"#,
            "leads on from an unsigned integer",
        ),
        (r#"▲{"path": ["str"]}"#, "leads to a string"),
        (
            r#"▲{"path": ["s"]}"#,
            "is a signed integer: expecting an unsigned integer",
        ),
        (
            r#"▲{"path": ["b"]}"#,
            "is a boolean: expecting an unsigned integer",
        ),
        (r#"▲{"path": ["f"]}"#, "leads to a string"),
        (r#"▲{"path": ["later"]}"#, "not decoded yet"),
        (
            r#"▲{"origin": "event-record-header", "path": ["u"]}"#,
            "there is no `event-record-header`",
        ),
        (
            r#"▲{"origin": "event-record-specific-context", "path": ["u"]}"#,
            "there is no",
        ),
    ] {
        rejected_class(&string(location), message);
    }
    let long = format!(r#"{{"path": ▲[{}"u"]}}"#, r#""f", null, "#.repeat(200));
    rejected_class(&string(&long), "more than 256 elements");
    let optional = |rest: &str| {
        format!(
            r#"{{"type": "optional", "field-class": {{"type": "null-terminated-string"}}, {rest}}}"#
        )
    };
    for (rest, message) in [
        (
            r#""selector-field-location": ▲{"path": ["u"]}"#,
            "a boolean where there is no `selector-field-ranges`",
        ),
        (
            r#""selector-field-ranges": [[1, 1]], "selector-field-location": ▲{"path": ["b"]}"#,
            "an integer where there is a",
        ),
        (
            r#""selector-field-ranges": ▲[], "selector-field-location": {"path": ["u"]}"#,
            "at least one",
        ),
    ] {
        rejected_class(&optional(rest), message);
    }
    let variant = r#"{"type": "variant", "selector-field-location": ▲{"path": ["b"]}, "options": [
        {"selector-field-ranges": [[0, 0]], "field-class": {"type": "null-terminated-string"}}]}"#;
    rejected_class(variant, "is a boolean: expecting an integer");
    let context = r#"{"type": "data-stream-class", "packet-context-field-class": {"type": "structure",
        "member-classes": [{"name": "a", "field-class": {"type": "dynamic-length-blob",
        "length-field-location": ▲{"origin": "event-record-payload", "path": ["u"]}}}]}}"#;
    rejected(
        &[PREAMBLE, context],
        "cannot depend on the `event-record-payload` scope",
    );
}

#[test]
fn locations_through_other_fields() {
    let unsigned = r#"{"type": "variable-length-unsigned-integer"}"#;
    let text = |path: &str| {
        format!(
            r#"{{"type": "dynamic-length-string", "length-field-location": ▲{{"path": [{path}]}}}}"#
        )
    };
    let nested = |first: &str, path: &str| {
        format!(
            r#"{{"type": "structure", "member-classes": [{{"name": "x", "field-class": {first}}},
                {{"name": "y", "field-class": {}}}]}}"#,
            text(path)
        )
    };
    let array = format!(
        r#"{{"type": "static-length-array", "length": 2, "element-field-class": {unsigned}}}"#
    );
    rejected_class(
        &nested(&array, r#""x""#),
        "an array that is not being decoded",
    );
    let optional = format!(
        r#"{{"type": "optional", "selector-field-location": {{"path": [null, "b"]}}, "field-class": {unsigned}}}"#
    );
    rejected_class(
        &nested(&optional, r#""x""#),
        "an optional field that may not exist",
    );
    let variant = |two: &str| {
        format!(
            r#"{{"type": "variant", "selector-field-location": {{"path": [null, "u"]}}, "options": [
                {{"selector-field-ranges": [[0, 0]], "field-class": {unsigned}}},
                {{"selector-field-ranges": [[1, 1]], "field-class": {two}}}]}}"#
        )
    };
    let signed = r#"{"type": "variable-length-signed-integer"}"#;
    rejected_class(
        &nested(&variant(signed), r#""x""#),
        "leads to an unsigned integer and to a signed integer",
    );
    rejected_class(
        &nested(&variant(r#"{"type": "structure"}"#), r#""x""#),
        "leads to a structure",
    );
    let inside = format!(
        r#"{{"type": "variant", "selector-field-location": ▲{{"path": ["f"]}}, "options": [
            {{"selector-field-ranges": [[0, 0]], "field-class": {unsigned}}}]}}"#
    );
    rejected_class(&inside, "not decoded yet");
    let own_element = r#"{"type": "dynamic-length-array", "length-field-location": ▲{"path": ["f"]},
        "element-field-class": {"type": "variable-length-unsigned-integer"}}"#;
    rejected_class(own_element, "an array that is not being decoded");
}

#[test]
fn roles() {
    let int = |roles: &str| {
        format!(
            r#"{{"type": "fixed-length-unsigned-integer", "length": 32, "byte-order": "big-endian", "roles": {roles}}}"#
        )
    };
    let header = |members: &str| {
        format!(
            r#"{{"type": "trace-class", "packet-header-field-class": {{"type": "structure", "member-classes": [{members}]}}}}"#
        )
    };
    let member =
        |name: &str, class: &str| format!(r#"{{"name": "{name}", "field-class": {class}}}"#);
    let magic = member("magic", &int(r#"["packet-magic-number"]"#));
    rejected(
        &[
            PREAMBLE,
            &header(&member("a", &int(r#"[▲"magic"]"#))),
            STREAM,
        ],
        "unexpected role `magic`",
    );
    rejected(
        &[
            PREAMBLE,
            &header(&member("a", &int(r#"[▲"metadata-stream-uuid"]"#))),
            STREAM,
        ],
        "unexpected role",
    );
    rejected(
        &[
            PREAMBLE,
            &header(&member("a", &int(r#"▲["packet-total-length"]"#))),
            STREAM,
        ],
        "only valid in `packet-context`",
    );
    let second = format!(
        "{magic}, {}",
        member("b", &int(r#"▲["packet-magic-number"]"#))
    );
    rejected(
        &[PREAMBLE, &header(&second), STREAM],
        "must be the first member",
    );
    let short = member("m", &int(r#"▲["packet-magic-number"]"#).replace("32", "31"));
    rejected(
        &[PREAMBLE, &header(&short), STREAM],
        "needs a fixed-length unsigned integer of 32 bits",
    );
    let variable =
        r#"{"type": "variable-length-unsigned-integer", "roles": ▲["packet-magic-number"]}"#;
    rejected(
        &[PREAMBLE, &header(&member("m", variable)), STREAM],
        "of 32 bits",
    );
    let uuid = |length: &str, roles: &str| {
        member(
            "uuid",
            &format!(r#"{{"type": "static-length-blob", "length": {length}, "roles": {roles}}}"#),
        )
    };
    let role = r#"["metadata-stream-uuid"]"#;
    rejected(
        &[PREAMBLE, &header(&uuid("▲15", role)), STREAM],
        "needs a length of 16",
    );
    rejected(
        &[PREAMBLE, &header(&uuid("16", &format!("▲{role}"))), STREAM],
        "needs the `uuid` property",
    );
    let clockless = r#"{"type": "data-stream-class", "event-record-header-field-class": {"type": "structure",
        "member-classes": [{"name": "t", "field-class": {"type": "variable-length-unsigned-integer",
        "roles": ▲["default-clock-timestamp"]}}]}}"#;
    rejected(
        &[PREAMBLE, clockless],
        "needs the `default-clock-class-id` property",
    );
    rejected_class(
        &int(r#"▲["event-record-class-id"]"#),
        "only valid in `event-record-header`",
    );
}

#[test]
fn aliases_of_aliases_cannot_blow_up() {
    let mut fragments = vec![PREAMBLE.to_owned()];
    for level in 0..60 {
        let inner = match level {
            0 => String::from(r#"{"type": "null-terminated-string"}"#),
            level => format!("\"a{}\"", level - 1),
        };
        fragments.push(format!(
            r#"{{"type": "field-class-alias", "name": "a{level}", "field-class": {{"type": "structure", "member-classes": [
                {{"name": "x", "field-class": {inner}}}, {{"name": "y", "field-class": {inner}}}]}}}}"#
        ));
    }
    fragments.push(String::from(STREAM));
    fragments.push(String::from(
        r#"{"type": "event-record-class", "payload-field-class": "a59"}"#,
    ));
    let fragments: Vec<&str> = fragments.iter().map(String::as_str).collect();
    rejected(&fragments, "too many field classes");
}

/// Each step down into the variant and up again doubles the number of candidates.
#[test]
fn a_location_cannot_take_forever() {
    let option = |index: usize| {
        format!(
            r#"{{"selector-field-ranges": [[{index}, {index}]], "field-class": {{"type": "structure", "member-classes": [
                {{"name": "x", "field-class": {{"type": "variable-length-unsigned-integer"}}}}]}}}}"#
        )
    };
    let class = format!(
        r#"{{"type": "structure", "member-classes": [
            {{"name": "v", "field-class": {{"type": "variant", "selector-field-location": {{"path": [null, "u"]}},
                "options": [{}, {}]}}}},
            {{"name": "d", "field-class": {{"type": "dynamic-length-string",
                "length-field-location": ▲{{"path": [{}"v", "x"]}}}}}}]}}"#,
        option(0),
        option(1),
        r#""v", null, "#.repeat(100)
    );
    rejected_class(&class, "too many candidates");
}
