//! JSON lines contain the same values as text lines.

use crate::support::small::Small;
use crate::support::{recorded, text};
use serde_json::Value;

fn lines(arguments: &[&str]) -> Vec<Value> {
    let mut all = vec!["print", "--format", "json"];
    all.extend(arguments);
    text(&all)
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

#[test]
fn all_kinds_of_fields_keep_their_types() {
    let directory = tempfile::tempdir().unwrap();
    let trace = Small::default().write(&directory.path().join("small"));
    let lines = lines(&[trace.to_str().unwrap()]);
    assert_eq!(lines.len(), 9);
    let numbers = &lines[0];
    assert_eq!(numbers["timestamp"], 1_700_000_001_000_000_000i64);
    assert_eq!(numbers["date"], "2023-11-14T22:13:21.000000000Z");
    assert_eq!(numbers["hostname"], "box");
    assert_eq!(numbers["name"], "numbers");
    assert_eq!(numbers["cpu"], 3);
    assert_eq!(numbers["packet_context"]["cpu_id"], 3);
    assert_eq!(numbers["common_context"]["vtid"], 100);
    let payload = &numbers["payload"];
    assert_eq!(payload["most"].as_u64(), Some(u64::MAX));
    assert_eq!(payload["least"].as_i64(), Some(i64::MIN));
    assert_eq!(payload["hexadecimal"], 0xDEAD_BEEFu32);
    assert_eq!(payload["odd"], -2);
    assert_eq!(payload["negative_octal"], -8);
    assert_eq!(payload["binary"], 0b10110);
    assert_eq!(payload["double"], 1.5e-7);
    let strings = &lines[1];
    assert_eq!(strings["name"], "strings:\"quoted\"");
    assert_eq!(strings["specific_context"]["where"], "in a context");
    let escaped = "it's \"so\"?\\\n\t\u{7}\u{8}\u{1b}\u{c}\r\u{b}\u{1}\u{7f} d\u{e9}j\u{e0}";
    assert_eq!(strings["payload"]["escaped"], escaped);
    assert_eq!(strings["payload"]["fixed"], "fix");
    assert_eq!(strings["payload"]["counted"], "four");
    let compound = &lines[5]["payload"];
    assert_eq!(compound["nested"]["inner"]["b"], 2);
    assert_eq!(compound["empty"], serde_json::json!({}));
    assert_eq!(compound["numbers"], serde_json::json!([7, 8, 9]));
    assert_eq!(
        compound["points"],
        serde_json::json!([{"x": 1, "y": 2}, {"x": 3, "y": 4}])
    );
    assert_eq!(
        compound["label"],
        serde_json::json!({"labels": ["two or three", "three"], "value": 3})
    );
    assert_eq!(compound["choice"], "else");
    assert_eq!(
        lines[8]["payload"]["label"],
        serde_json::json!({"labels": [], "value": 9})
    );
}

#[test]
fn as_many_lines_in_the_same_order_as_text() {
    let trace = recorded("kernel-discarded").join("kernel-discarded");
    let trace = trace.to_str().unwrap();
    let json = lines(&[trace]);
    let text = text(&["print", "--clock-seconds", "--no-delta", trace]);
    assert_eq!(json.len(), 27_682);
    for (json, text) in json.iter().zip(text.lines()) {
        let time = json["timestamp"].as_i64().unwrap();
        let start = format!(
            "[{}.{:09}] vm1 {}: ",
            time / 1_000_000_000,
            time % 1_000_000_000,
            json["name"].as_str().unwrap()
        );
        assert!(text.starts_with(&start), "{text}\n{json}");
    }
}
