//! Hostile TSDL: deep, huge, truncated or mangled. It may be rejected, but must do no harm.

use std::time::Duration;

use tracebraid_ctf::metadata;
use tracebraid_testkit::processes::thread_time;

const TRACE: &str =
    "typealias integer { size = 8; } := u8; trace { major = 1; minor = 8; byte_order = le; };\n";

#[test]
fn types_that_multiply_are_refused() {
    // Each type contains the previous type twice: 2^60 fields in 60 lines. With and without a
    // length that is resolved anew for each use.
    for leaf in ["u8 a;", "u8 a[n];"] {
        let mut text = format!("{TRACE}struct s0 {{ {leaf} }};\n");
        for level in 1..60 {
            text.push_str(&format!(
                "struct s{level} {{ struct s{0} a; struct s{0} b; }};\n",
                level - 1
            ));
        }
        text.push_str("event { fields := struct { u8 n; struct s59 x; }; };");
        let error = metadata::parse(text.as_bytes()).unwrap_err();
        assert!(error.message.contains("fields in all"), "{error}");
    }
}

#[test]
fn many_uses_of_a_large_type_are_refused() {
    let mut text = format!("{TRACE}struct s0 {{ u8 a[n]; }};\n");
    for level in 1..14 {
        text.push_str(&format!(
            "struct s{level} {{ struct s{0} a; struct s{0} b; }};\n",
            level - 1
        ));
    }
    text.push_str("stream { event.header := struct { u8 id; }; };\n");
    for id in 0..5000 {
        text.push_str(&format!(
            "event {{ id = {id}; fields := struct {{ u8 n; struct s13 x; }}; }};\n"
        ));
    }
    let error = metadata::parse(text.as_bytes()).unwrap_err();
    assert!(
        error
            .message
            .contains("more fields in all than are supported"),
        "{error}"
    );
}

#[test]
fn variants_that_multiply_targets_are_refused() {
    // A length after 40 nested variants of two options each has 2^40 candidates.
    let mut text = format!("{TRACE}enum e : u8 {{ a, b }};\n");
    let mut inner = "u8".to_owned();
    for level in 0..40 {
        text.push_str(&format!("variant v{level} {{ {inner} a; {inner} b; }};\n"));
        inner = format!("variant v{level} <stream.event.header.t>");
    }
    text.push_str("stream { event.header := struct { enum e t; }; };\n");
    text.push_str(&format!(
        "event {{ fields := struct {{ {inner} n; u8 x[n]; }}; }};"
    ));
    assert!(metadata::parse(text.as_bytes()).is_err());
}

#[test]
fn huge_arrays_are_only_numbers() {
    let ok = format!("{TRACE}event {{ fields := struct {{ u8 a[0x0fffffffffffffff]; }}; }};");
    assert!(metadata::parse(ok.as_bytes()).is_ok());
    let too_large =
        format!("{TRACE}event {{ fields := struct {{ u8 a[0xffffffff][0xffffffff]; }}; }};");
    let error = metadata::parse(too_large.as_bytes()).unwrap_err();
    assert!(error.message.contains("larger than 2^64 bits"), "{error}");
}

#[test]
fn long_names_and_many_types() {
    let name = "n".repeat(300_000);
    let mut text =
        format!("{TRACE}event {{ name = {name}; fields := struct {{ u8 {name}; }}; }};\n");
    for index in 0..20_000 {
        text.push_str(&format!(
            "typedef integer {{ size = 8; align = 8; }} t{index};\n"
        ));
    }
    for index in 0..5_000 {
        text.push_str(&format!(
            "callsite {{ name = \"c{index}\"; line = {index}; }};\n"
        ));
    }
    let class = metadata::parse(text.as_bytes()).unwrap();
    assert_eq!(class.streams[0].events[0].name.len(), 300_000);
}

#[test]
fn what_there_may_be_a_million_of_is_small() {
    use std::mem::size_of;
    use tracebraid_ctf::layout::{EventLayout, node::Node};
    use tracebraid_ctf::schema::{EventClass, FieldClass, Member};
    assert!(size_of::<EventClass>() <= 152);
    assert!(size_of::<EventLayout>() <= 72);
    assert!((size_of::<FieldClass>(), size_of::<Member>()) <= (32, 48));
    assert!(size_of::<Node>() <= 80);
}

#[test]
fn many_event_classes_share_the_names_of_their_fields() {
    let mut text = format!("{TRACE}stream {{ event.header := struct {{ u8 id; }}; }};\n");
    for id in 0..50_000 {
        text.push_str(&format!(
            "event {{ id = {id}; name = e{id}; fields := struct {{ u8 first; u8 second; }}; }};\n"
        ));
    }
    let start = thread_time();
    let class = metadata::parse(text.as_bytes()).unwrap();
    assert!(
        thread_time() - start < Duration::from_secs(5),
        "took {:?}",
        thread_time() - start
    );
    let name = |event: usize| match &class.streams[0].events[event].payload {
        Some(tracebraid_ctf::schema::FieldClass::Struct(payload)) => {
            payload.members[1].name.as_ptr()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(name(0), name(49_999));
    assert_eq!(class.streams[0].events[49_999].name, "e49999");
}

#[test]
fn many_members_labels_and_attributes_take_linear_time() {
    let count = 30_000;
    let list = |item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<String>();
    let text = format!(
        "{TRACE}env {{ {} }};\nevent {{ name = e; fields := struct {{ enum : integer {{ size = 32; }} {{ {} }} t; \
         variant <t> {{ {} }} v; {} u8 z[f{}]; }}; }};",
        list(&|index| format!("k{index} = 1;")),
        list(&|index| format!("l{index},")),
        list(&|index| format!("u8 l{index};")),
        list(&|index| format!("u8 f{index};")),
        count - 1
    );
    let start = thread_time();
    let class = metadata::parse(text.as_bytes()).unwrap();
    assert_eq!(class.environment.len(), count);
    assert!(
        thread_time() - start < Duration::from_secs(5),
        "took {:?}",
        thread_time() - start
    );
}

/// A sample that uses all features. After mangling, it must be either accepted or rejected.
const SAMPLE: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias u8 := int;
typealias integer { size = 64; map = clock.c.value; } := unsigned long;
trace { major = 1; minor = 8; uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564"; byte_order = le;
  packet.header := struct { integer { size = 32; } magic; u8 uuid[16]; u8 stream_id; }; };
env { n = 3; s = "a\n\x41"; };
clock { name = c; freq = 1000; offset = -5; };
struct header { enum : integer { size = 5; } { compact = 0 ... 30, extended = 31 } id;
  variant <id> { struct { unsigned long timestamp; } compact; struct { u8 id; } extended; } v; } align(8);
stream { id = 1; event.header := struct header; packet.context := struct { u8 packet_size; }; };
variant shared { u8 a; string b; };
event { name = "x"; id = 1; stream_id = 1; loglevel = 3; context := struct { u8 len; };
  fields := struct { u8 n; string s[n][2]; u8 t[env.n]; u8 w[event.context.len]; enum { a, b } tag;
    variant shared <tag> v; floating_point { exp_dig = 8; mant_dig = 24; } f; }; };
callsite { name = "x"; line = 5; };
"#;

/// A sequence of numbers that only depends on its seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Bytes with a meaning in TSDL.
const PIECES: &[u8] = b"{}[]<>();:=.,-*\"'\\/\0\x1e 0aL";

#[test]
fn the_sample_is_valid() {
    metadata::parse(SAMPLE.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn text_cut_anywhere_is_refused_or_accepted() {
    for end in 0..SAMPLE.len() {
        let _ = metadata::parse(&SAMPLE.as_bytes()[..end]);
    }
}

#[test]
fn mangled_bytes_are_refused_or_accepted() {
    let mut numbers = Numbers(1);
    for _ in 0..3000 {
        let mut text = SAMPLE.as_bytes().to_vec();
        for _ in 0..=numbers.below(4) {
            let at = numbers.below(text.len());
            match numbers.below(4) {
                0 => text[at] = numbers.below(256) as u8,
                1 => {
                    text.remove(at);
                }
                2 => text.insert(at, PIECES[numbers.below(PIECES.len())]),
                _ => text.truncate(at.max(1)),
            }
        }
        let _ = metadata::parse(&text);
    }
}

#[test]
fn shuffled_words_are_refused_or_accepted() {
    let words: Vec<&str> = SAMPLE
        .split_inclusive([' ', ';', '{', '}', '[', ']'])
        .collect();
    let mut numbers = Numbers(2);
    for _ in 0..3000 {
        let mut shuffled = words.clone();
        for _ in 0..=numbers.below(6) {
            let from = numbers.below(shuffled.len());
            let to = numbers.below(shuffled.len());
            match numbers.below(3) {
                0 => shuffled.swap(from, to),
                1 => shuffled[to] = shuffled[from],
                _ => {
                    shuffled.remove(from);
                }
            }
        }
        let _ = metadata::parse(shuffled.concat().as_bytes());
    }
}
