//! Event records nested deeper than compiled programs support, and as deep as possible.

use crate::support::text;
use tracebraid_ctf::schema::MOST_LEVELS;

const TRACE: &str = "/* CTF 1.8 */ typealias integer { size = 8; } := u8;\n\
                     trace { major = 1; minor = 8; byte_order = le; };\n";

/// Output of `print` for the only event record of a trace, as text and as JSON.
fn printed(fields: &str, stream: &[u8]) -> (String, String) {
    let place = tempfile::tempdir().unwrap();
    let metadata = format!("{TRACE}event {{ name = e; fields := struct {{ {fields} }}; }};");
    std::fs::write(place.path().join("metadata"), metadata).unwrap();
    std::fs::write(place.path().join("stream"), stream).unwrap();
    let directory = place.path().to_str().unwrap();
    let json = text(&["print", "--format", "json", directory]);
    (text(&["print", directory]), json)
}

#[test]
fn as_many_structs_as_are_supported() {
    let levels = MOST_LEVELS as usize - 1;
    let fields = format!("{}u8 f;{}", "struct{".repeat(levels), "}s;".repeat(levels));
    let (text, json) = printed(&fields, &[7]);
    let expected = format!(
        "e: {{{} f = 7{} }}\n",
        " s = {".repeat(levels),
        " }".repeat(levels)
    );
    assert!(text == expected, "{:.200}", text);
    let expected = format!(
        "{}{{\"f\":7}}{}",
        "{\"s\":".repeat(levels),
        "}".repeat(levels)
    );
    assert!(json.contains(&expected), "{:.200}", json);
}

#[test]
fn arrays_and_variants_within_each_other() {
    let levels = 30;
    let open = "enum : u8 { a, b } t; variant <t> { u8 a; struct { u8 n; struct { ";
    let close = "} x[n]; } b; } v;";
    let fields = format!("{}u8 f[2];{}", open.repeat(levels), close.repeat(levels));
    let mut stream = [1u8, 1].repeat(levels);
    stream[2 * levels - 1] = 2;
    stream.extend([5, 6, 7, 8]);
    let (text, json) = printed(&fields, &stream);

    let (before, after) = (
        "{ t = ( \"b\" : container = 1 ), v = { { n = 1, x = [ [0] = ",
        " ] } } }",
    );
    let last = before.replace("n = 1", "n = 2");
    let expected = format!(
        "e: {}{last}{{ f = [ [0] = 5, [1] = 6 ] }}, [1] = {{ f = [ [0] = 7, [1] = 8 ] }}{}\n",
        before.repeat(levels - 1),
        after.repeat(levels)
    );
    assert_eq!(text, expected);

    let before = "{\"t\":{\"labels\":[\"b\"],\"value\":1},\"v\":{\"n\":1,\"x\":[";
    let last = before.replace("\"n\":1", "\"n\":2");
    let expected = format!(
        "{}{last}{{\"f\":[5,6]}},{{\"f\":[7,8]}}{}",
        before.repeat(levels - 1),
        "]}}".repeat(levels)
    );
    assert!(json.contains(&expected), "{json}");
}
