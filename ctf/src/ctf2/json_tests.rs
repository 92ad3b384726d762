use super::*;
use serde_json::Value as Other;

/// A small deterministic generator (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
    fn text(&mut self, out: &mut String, depth: u32) {
        let spaces = ["", " ", "\n", "\t\r "];
        out.push_str(self.pick(&spaces));
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => out.push_str(self.pick(&["null", "true", "false"])),
            1 => out.push_str(&(self.next() as i64 >> self.below(64)).to_string()),
            2 => out.push_str(self.pick(&[
                "1.5",
                "-0.25e3",
                "2E-3",
                "0",
                "-0",
                "18446744073709551615",
            ])),
            3 | 4 => self.string(out),
            5 => self.list(out, depth, '[', ']'),
            _ => self.list(out, depth, '{', '}'),
        }
        out.push_str(self.pick(&spaces));
    }
    fn string(&mut self, out: &mut String) {
        let parts = [
            "a",
            "é",
            "\\n",
            "\\u00e9",
            "\\ud83d\\ude00",
            "\\\"",
            "\\/",
            "😀",
            "\\u0000",
            "",
            "\\b\\f",
        ];
        out.push('"');
        for _ in 0..self.below(5) {
            out.push_str(self.pick(&parts));
        }
        out.push('"');
    }
    fn list(&mut self, out: &mut String, depth: u32, open: char, close: char) {
        out.push(open);
        for index in 0..self.below(5) {
            if index > 0 {
                out.push(',');
            }
            if open == '{' {
                out.push_str(&format!(" \"key{index}\" :"));
            }
            self.text(out, depth - 1);
        }
        out.push(close);
    }
}

fn same(value: &Value, other: &Other) -> bool {
    match (&value.kind, other) {
        (JsonContent::Null, Other::Null) => true,
        (JsonContent::Bool(one), Other::Bool(other)) => one == other,
        (JsonContent::Str(one), Other::String(other)) => one == other,
        (JsonContent::Real(one), Other::Number(other)) => other.as_f64() == Some(*one),
        (JsonContent::Int(one), Other::Number(other)) => {
            other.as_i64().map(i128::from) == Some(*one)
                || other.as_u64().map(i128::from) == Some(*one)
                // Beyond 64 bits, and for `-0`, serde_json returns a real.
                || (other.is_f64() && other.as_f64() == Some(*one as f64))
        }
        (JsonContent::Array(items), Other::Array(others)) => {
            items.len() == others.len()
                && items
                    .iter()
                    .zip(others)
                    .all(|(one, other)| same(one, other))
        }
        (JsonContent::Object(properties), Other::Object(others)) => {
            properties.len() == others.len()
                && properties
                    .iter()
                    .zip(others)
                    .all(|(one, (key, other))| one.key == *key && same(&one.value, other))
        }
        _ => false,
    }
}

fn fault(text: &str) -> (usize, String) {
    let fault = parse(text.as_bytes(), 0).expect_err(text);
    (fault.at, fault.message)
}

#[test]
fn agrees_with_serde_json_on_valid_and_damaged_texts() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut accepted = 0;
    for round in 0..4000 {
        let mut text = String::new();
        random.text(&mut text, 4);
        if round % 2 == 1 {
            let mut bytes = text.into_bytes();
            let at = random.below(bytes.len() as u64) as usize;
            let replacement = random.pick(&[
                "\"", "{", "]", ",", ":", "\\", "0", "-", "e", " ", "\u{1}", "u",
            ]);
            bytes[at] = replacement.as_bytes()[0];
            let Ok(damaged) = String::from_utf8(bytes) else {
                continue;
            };
            text = damaged;
        }
        let ours = parse(text.as_bytes(), 0);
        let theirs: std::result::Result<Other, _> = serde_json::from_str(&text);
        match (&ours, &theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert!(same(ours, theirs), "{text}\n{ours:?}\n{theirs:?}");
                accepted += 1;
            }
            (Err(_), Err(_)) => {}
            // Only this parser rejects duplicate keys.
            (Err(fault), Ok(_)) => {
                assert!(fault.message.contains("duplicate"), "{text}\n{fault:?}")
            }
            // A real beyond the range of `f64` is infinite here, and no property accepts it.
            (Ok(_), Err(error)) => {
                assert!(
                    error.to_string().starts_with("number out of range"),
                    "{text}: {error}"
                );
            }
        }
    }
    assert!(accepted > 2000, "{accepted}");
}

#[test]
fn values_know_their_places() {
    let value = parse(b" {\"a\": [1, \"\xc3\xa9\", null]}", 100).unwrap();
    assert_eq!(value.at, 101);
    let JsonContent::Object(properties) = &value.kind else {
        panic!("{value:?}")
    };
    assert_eq!(properties[0].value.at, 107);
    let JsonContent::Array(items) = &properties[0].value.kind else {
        panic!("{value:?}")
    };
    assert_eq!(
        items.iter().map(|item| item.at).collect::<Vec<_>>(),
        [108, 111, 117]
    );
}

#[test]
fn integers_are_exact_and_reals_are_not_integers() {
    let kind = |text: &str| {
        std::mem::replace(
            &mut parse(text.as_bytes(), 0).unwrap().kind,
            JsonContent::Null,
        )
    };
    assert_eq!(
        kind("18446744073709551615"),
        JsonContent::Int(i128::from(u64::MAX))
    );
    assert_eq!(
        kind("-9223372036854775808"),
        JsonContent::Int(i128::from(i64::MIN))
    );
    assert_eq!(
        kind("170141183460469231731687303715884105728"),
        JsonContent::HugeInt
    );
    assert_eq!(kind("1.0"), JsonContent::Real(1.0));
    assert_eq!(kind("1e2"), JsonContent::Real(100.0));
}

#[test]
fn faults_have_their_places() {
    let cases = [
        ("{\"a\": 1, \"a\": 2}", 9, "duplicate property `a`"),
        ("[1, 2", 5, "ends too early"),
        ("[01]", 1, "leading zeros"),
        ("[1] x", 4, "expecting the end"),
        ("\"\\ud800\"", 1, "high surrogate"),
        ("\"\\udc00\"", 1, "low surrogate"),
        ("\"\\u12g4\"", 1, "hexadecimal"),
        ("\"a\u{1}\"", 2, "control character"),
        ("{\"a\" 1}", 5, "expecting `:`"),
        ("{a: 1}", 1, "property name"),
        ("tru", 0, "expecting `true`"),
        ("-", 1, "a digit"),
        ("1.", 2, "a digit"),
        ("", 0, "a JSON value"),
        ("\"\\x\"", 1, "unknown escape"),
    ];
    for (text, at, message) in cases {
        let found = fault(text);
        assert!(
            found.0 == at && found.1.contains(message),
            "{text}: {found:?}"
        );
    }
    let error = parse(b"\"a\xff\"", 10).unwrap_err();
    assert_eq!(
        (error.at, error.message.as_str()),
        (12, "invalid UTF-8 in JSON text")
    );
}

#[test]
fn nesting_is_bounded_and_many_keys_are_checked() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(nested(MAX_DEPTH).as_bytes(), 0).is_ok());
    assert!(fault(&nested(MAX_DEPTH + 1)).1.contains("nested deeper"));
    let (at, _) = fault(&format!(" {}", "[".repeat(MAX_DEPTH + 1)));
    assert_eq!(at, MAX_DEPTH + 1);
    let nested = "{\"a\":".repeat(100_000);
    assert!(fault(&nested).1.contains("ends too early"));
    let keys: Vec<String> = (0..100)
        .chain([57])
        .map(|key| format!("\"k{key}\":0"))
        .collect();
    assert!(
        fault(&format!("{{{}}}", keys.join(",")))
            .1
            .contains("duplicate property `k57`")
    );
}
