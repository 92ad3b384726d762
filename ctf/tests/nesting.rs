//! Metadata nested to the supported depth, and its event records: both formats, on small stacks.

use std::path::Path;

use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::metadata;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::scan::{Counts, ScanTable, Scanner};
use tracebraid_ctf::schema::{IntClass, MOST_LEVELS, TraceClass};
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::walk::Visitor;
use tracebraid_testkit::processes::thread_time;

const TRACE: &str =
    "typealias integer { size = 8; } := u8; trace { major = 1; minor = 8; byte_order = le; };\n";

/// Runs a test on a stack that a few hundred nested calls would exhaust.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(run);
    thread.unwrap().join().unwrap();
}

/// TSDL of an event with this number of levels around a field: those of its `fields`, and others.
fn tsdl(levels: u32, open: &str, field: &str, close: &str) -> String {
    let inner = levels as usize - 1;
    format!(
        "{TRACE}event {{ fields := struct {{\n{}{field}{}}}; }};\n",
        open.repeat(inner),
        close.repeat(inner)
    )
}

fn nested_structs(levels: u32) -> String {
    tsdl(levels, "struct{\n", "u8 f;", "}s;\n")
}

/// CTF 2 of an event whose payload is a structure with a single member of this class.
fn json(class: &str) -> String {
    format!(
        "\u{1e}{{\"type\":\"preamble\",\"version\":2}}\n\u{1e}{{\"type\":\"data-stream-class\"}}\n\
         \u{1e}{{\"type\":\"event-record-class\",\"payload-field-class\":{{\"type\":\"structure\",\
         \"member-classes\":[{{\"name\":\"s\",\"field-class\":\n{class}}}]}}}}\n"
    )
}

const JSON_BYTE: &str = "{\"type\":\"fixed-length-unsigned-integer\",\"length\":8,\"byte-order\":\"little-endian\",\"alignment\":8}";

/// The same with `levels` levels in total, including the root.
fn nested_json(levels: u32, open: &str, close: &str) -> String {
    let inner = levels as usize - 1;
    json(&format!(
        "{}{JSON_BYTE}{}",
        open.repeat(inner),
        close.repeat(inner)
    ))
}

const JSON_STRUCT: (&str, &str) = (
    "{\"type\":\"structure\",\"member-classes\":[{\"name\":\"s\",\"field-class\":\n",
    "}]}",
);
const JSON_ARRAY: (&str, &str) = (
    "{\"type\":\"static-length-array\",\"length\":1,\"element-field-class\":\n",
    "}",
);

/// Number of field classes in the only event's payload.
fn classes(trace: &TraceClass) -> usize {
    let payload = trace.streams[0].events[0].payload.as_ref().unwrap();
    payload.all().count()
}

#[track_caller]
fn assert_refused(text: &str, line: u64, column: u64) {
    let error = metadata::parse(text.as_bytes()).unwrap_err();
    assert!(error.message.contains("nested"), "{error}");
    assert_eq!(
        (error.line as u64, error.column as u64),
        (line, column),
        "{error}"
    );
}

#[test]
fn structs_of_tsdl() {
    on_a_small_stack(|| {
        let accepted = metadata::parse(nested_structs(MOST_LEVELS).as_bytes()).unwrap();
        assert_eq!(classes(&accepted), MOST_LEVELS as usize + 1);
        drop(accepted);
        // Two lines precede the first struct within the root.
        assert_refused(
            &nested_structs(MOST_LEVELS + 1),
            u64::from(MOST_LEVELS) + 2,
            1,
        );
        // Truncated metadata is rejected at any depth.
        let cut = &nested_structs(MOST_LEVELS)[..1_000_000];
        assert!(metadata::parse(cut.as_bytes()).is_err());
    });
}

#[test]
fn arrays_and_named_types_of_tsdl_count_as_levels() {
    on_a_small_stack(|| {
        let dims = |count: u32| format!("u8 f{};", "[1]".repeat(count as usize));
        let text = |count| tsdl(1, "", &dims(count), "");
        let accepted = metadata::parse(text(MOST_LEVELS - 1).as_bytes()).unwrap();
        assert_eq!(classes(&accepted), MOST_LEVELS as usize + 1);
        assert_refused(&text(MOST_LEVELS), 2, 19);
        assert_refused(&text(MOST_LEVELS + 9), 3, 5 + 3 * 8 + 1);

        let mut text = format!("{TRACE}struct s0 {{ u8 a; }};\n");
        for level in 1..=MOST_LEVELS {
            text.push_str(&format!("struct s{level}{{struct s{} a;}};\n", level - 1));
        }
        assert_refused(&text, u64::from(MOST_LEVELS) + 2, 1);
    });
}

#[test]
fn parentheses_need_no_level() {
    on_a_small_stack(|| {
        let (open, close) = ("(".repeat(1_000_000), ")".repeat(1_000_000));
        let text =
            format!("{TRACE}env {{ a = {open}1{close}; }}; struct s {{ u8 {open}x{close}; }};");
        metadata::parse(text.as_bytes()).unwrap();
        let text = format!("{TRACE}env {{ a = {open}1; }};");
        assert!(metadata::parse(text.as_bytes()).is_err());
    });
}

#[test]
fn structures_of_ctf2() {
    on_a_small_stack(|| {
        let (open, close) = JSON_STRUCT;
        let accepted = metadata::parse(nested_json(MOST_LEVELS, open, close).as_bytes()).unwrap();
        assert_eq!(classes(&accepted), MOST_LEVELS as usize + 1);
        drop(accepted);
        let text = nested_json(MOST_LEVELS + 1, open, close);
        assert_refused(&text, u64::from(MOST_LEVELS) + 3, 1);
    });
}

#[test]
fn arrays_and_aliases_of_ctf2_count_as_levels() {
    on_a_small_stack(|| {
        let (open, close) = JSON_ARRAY;
        let accepted = metadata::parse(nested_json(MOST_LEVELS, open, close).as_bytes()).unwrap();
        assert_eq!(classes(&accepted), MOST_LEVELS as usize + 1);
        assert_refused(
            &nested_json(MOST_LEVELS + 1, open, close),
            u64::from(MOST_LEVELS) + 3,
            1,
        );

        let mut text = "\u{1e}{\"type\":\"preamble\",\"version\":2}\n".to_owned();
        let mut alias = |name: u32, class: &str| {
            text.push_str(&format!(
                "\u{1e}{{\"type\":\"field-class-alias\",\"name\":\"{name}\",\"field-class\":\n{class}}}\n"
            ));
        };
        let half = MOST_LEVELS as usize / 2;
        alias(
            0,
            &format!("{}{JSON_BYTE}{}", open.repeat(half), close.repeat(half)),
        );
        alias(
            1,
            &format!("{}\"0\"{}", open.repeat(half), close.repeat(half)),
        );
        alias(2, &format!("{open}\"1\"{close}"));
        let lines = text.lines().count() as u64;
        assert_refused(&text, lines - 1, 1);
    });
}

#[test]
fn json_that_nests_is_refused_where_it_is_too_deep() {
    on_a_small_stack(|| {
        let most = 3 * MOST_LEVELS as usize + 64;
        let class = |depth: usize| {
            // The array is nested in the fragment, two objects and an array.
            let (open, close) = ("[".repeat(depth - 4), "]".repeat(depth - 4));
            json(&format!(
                "{{\"attributes\":{{\"x\":{open}{close}}},\"type\":\"null-terminated-string\"}}"
            ))
        };
        metadata::parse(class(most - 2).as_bytes()).unwrap();
        let before = "{\"attributes\":{\"x\":".len() as u64;
        assert_refused(&class(most - 1), 4, before + most as u64 - 5);
    });
}

/// Counts the values that it receives.
#[derive(Default)]
struct Told {
    begun: usize,
    ended: usize,
    integers: Vec<u64>,
}

impl Visitor for Told {
    fn integer(&mut self, _: &Node, _: &IntClass, raw: u64) {
        self.integers.push(raw);
    }
    fn begin_struct(&mut self, _: &Node, _: usize) {
        self.begun += 1;
    }
    fn end_struct(&mut self, _: &Node) {
        self.ended += 1;
    }
    fn begin_array(&mut self, _: &Node, _: u64) {
        self.begun += 1;
    }
    fn end_array(&mut self, _: &Node) {
        self.ended += 1;
    }
    fn begin_variant(&mut self, _: &Node, _: usize) {
        self.begun += 1;
    }
    fn end_variant(&mut self, _: &Node) {
        self.ended += 1;
    }
    fn optional(&mut self, _: &Node, present: bool) {
        self.begun += usize::from(present);
    }
    fn end_optional(&mut self, _: &Node) {
        self.ended += 1;
    }
}

fn open(place: &Path, metadata: &str, stream: &[u8]) -> Trace {
    std::fs::write(place.join("metadata"), metadata).unwrap();
    std::fs::write(place.join("stream"), stream).unwrap();
    Trace::open(place).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads event records that each have `levels` levels, and compares their integers.
#[track_caller]
fn assert_read(metadata: String, stream: Vec<u8>, levels: usize, expected: Vec<Vec<u64>>) {
    on_a_small_stack(move || {
        let place = tempfile::tempdir().unwrap();
        let trace = open(place.path(), &metadata, &stream);
        let stream = &trace.streams[0];
        let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 64);
        for integers in &expected {
            let mut told = Told::default();
            let mut event = reader.event().expect("an event record");
            event.walk_body(&mut told, |_, _| {}).unwrap();
            assert_eq!((told.begun, told.ended), (levels, levels));
            assert_eq!(told.integers, *integers);
            reader.advance();
        }
        assert!(reader.peek().is_none());
        assert_eq!(reader.take_damage(), []);

        let layout = &trace.layout.streams[stream.class];
        let table = std::sync::Arc::new(ScanTable::new(layout, |_| true));
        let mut scanner = Scanner::new(&trace, stream, table, 0..stream.packets.len()).unwrap();
        let mut counts = Counts::new(layout);
        let mut events = 0;
        while scanner.next_packet().is_some() {
            loop {
                let counted = scanner.count(&mut counts, 0..u64::MAX);
                events += counted.events;
                if counted.ended {
                    break;
                }
            }
        }
        assert_eq!(events, expected.len() as u64);
        let copy = (*trace.layout).clone();
        drop((trace, copy));
    });
}

#[test]
fn event_records_of_many_structs() {
    assert_read(
        nested_structs(MOST_LEVELS),
        vec![7, 8],
        MOST_LEVELS as usize,
        vec![vec![7], vec![8]],
    );
    let (open, close) = JSON_STRUCT;
    let metadata = nested_json(MOST_LEVELS, open, close);
    assert_read(metadata, vec![9], MOST_LEVELS as usize, vec![vec![9]]);
}

#[test]
fn event_records_of_many_arrays() {
    // Elements of constant size, and elements with strings, whose sizes are only known from the
    // data.
    let (open, close) = JSON_ARRAY;
    let metadata = nested_json(MOST_LEVELS, open, close);
    assert_read(metadata, vec![9], MOST_LEVELS as usize, vec![vec![9]]);
    let dims = "[1]".repeat(MOST_LEVELS as usize - 1);
    let metadata = tsdl(1, "", &format!("string f{dims};"), "");
    assert_read(
        metadata,
        b"ab\0c\0".to_vec(),
        MOST_LEVELS as usize,
        vec![vec![], vec![]],
    );
}

/// Number of levels that each have a length or a selector. Their locations are absolute paths, so
/// they cannot be as deep as other fields.
const REFERRING: usize = 1000;

#[test]
fn event_records_of_many_variants_and_sequences_of_tsdl() {
    let open = "enum : u8 { a, b } t; variant <t> { u8 a; struct { u8 n; struct {";
    let close = "} x[n]; } b; } v;";
    let metadata = tsdl(
        1,
        "",
        &format!("{}u8 f;{}", open.repeat(REFERRING), close.repeat(REFERRING)),
        "",
    );
    // Each tag selects the struct. Each sequence has one element, except the last, which has two.
    let mut stream = [1u8, 1].repeat(REFERRING);
    stream[2 * REFERRING - 1] = 2;
    stream.extend([5, 6]);
    let integers = stream.iter().map(|&byte| u64::from(byte)).collect();
    // The innermost struct occurs twice.
    assert_read(metadata, stream, 1 + 4 * REFERRING + 1, vec![integers]);
}

#[test]
fn event_records_of_many_variants_sequences_and_optionals_of_ctf2() {
    let member =
        |name: &str, class: &str| format!("{{\"name\":\"{name}\",\"field-class\":{class}}}");
    let open = format!(
        "{{\"type\":\"structure\",\"member-classes\":[{},\n{{\"name\":\"o\",\"field-class\":\
         {{\"type\":\"optional\",\"selector-field-location\":{{\"path\":[\"t\"]}},\"selector-field-ranges\":[[1,9]],\
         \"field-class\":{{\"type\":\"variant\",\"selector-field-location\":{{\"path\":[\"t\"]}},\
         \"options\":[{{\"selector-field-ranges\":[[1,1]],\"field-class\":{{\"type\":\"dynamic-length-array\",\
         \"length-field-location\":{{\"path\":[\"t\"]}},\"element-field-class\":\n",
        member("t", JSON_BYTE)
    );
    let close = "}}]}}}]}";
    let metadata = json(&format!(
        "{}{JSON_BYTE}{}",
        open.repeat(REFERRING),
        close.repeat(REFERRING)
    ));
    let mut stream = vec![1u8; REFERRING];
    stream.push(7);
    let integers = stream.iter().map(|&byte| u64::from(byte)).collect();
    assert_read(metadata, stream, 1 + 4 * REFERRING, vec![integers]);
}

#[test]
fn many_sequences_side_by_side() {
    let fields: String = (0..100_000)
        .map(|field| format!("u8 n{field}; u8 x{field}[n{field}];"))
        .collect();
    let metadata = tsdl(1, "", &fields, "");
    on_a_small_stack(move || {
        // More lengths than registers: fields without a register are reported when they are read.
        metadata::parse(metadata.as_bytes()).unwrap();
        let place = tempfile::tempdir().unwrap();
        let trace = open(place.path(), &metadata, &[0; 100_000]);
        let stream = &trace.streams[0];
        let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 64);
        assert!(reader.event().is_none());
        assert_eq!(reader.take_damage().len(), 1);
    });
}

#[test]
fn lengths_far_up_take_linear_time() {
    let most = 3000;
    let lengths: String = (0..most).map(|field| format!("u8 x{field}[n];")).collect();
    let text = format!(
        "{TRACE}event {{ fields := struct {{ u8 n; {}{lengths}{} }}; }};\n",
        "struct{".repeat(most),
        "}s;".repeat(most)
    );
    // The text may be accepted or rejected, but parsing must end.
    let start = thread_time();
    let _ = metadata::parse(text.as_bytes());
    assert!(
        thread_time() - start < std::time::Duration::from_secs(5),
        "{:?}",
        thread_time() - start
    );
}
