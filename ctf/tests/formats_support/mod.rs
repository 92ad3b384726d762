//! Renders the results of the reader and of the reference reader in the same form, for comparison.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod lttng;

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use tracebraid_ctf::bits::DecodeError;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::scan::{Counts, Progress, ScanTable, Scanner};
use tracebraid_ctf::schema::{Encoding, FieldClass, IntClass, Scope};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::walk::Visitor;
use tracebraid_testkit::value::Value;

/// Writes every field that it receives.
#[derive(Default)]
pub struct Renderer {
    pub text: String,
}

impl Renderer {
    fn put(&mut self, args: std::fmt::Arguments<'_>) {
        self.text.write_fmt(args).unwrap();
        self.text.push(' ');
    }
}

fn signed_or_not(class: &IntClass, raw: u64) -> i128 {
    if class.signed {
        i128::from(raw as i64)
    } else {
        i128::from(raw)
    }
}

impl Visitor for Renderer {
    fn integer(&mut self, _: &Node, class: &IntClass, raw: u64) {
        self.put(format_args!("{}", signed_or_not(class, raw)));
    }
    fn wide_integer(&mut self, _: &Node, _: &IntClass, bytes: &[u8]) {
        self.put(format_args!("wide{bytes:?}"));
    }
    fn boolean(&mut self, _: &Node, value: bool) {
        self.put(format_args!("{value}"));
    }
    fn bits(&mut self, _: &Node, _: &IntClass, raw: u64) {
        self.put(format_args!("bits{raw:#x}"));
    }
    fn float(&mut self, _: &Node, _: u32, value: f64) {
        self.put(format_args!("{}", float_text(value)));
    }
    fn string(&mut self, _: &Node, encoding: Encoding, bytes: &[u8]) {
        self.put(format_args!("{:?}", decode(bytes, encoding)));
    }
    fn blob(&mut self, _: &Node, bytes: &[u8]) {
        self.put(format_args!("blob{bytes:?}"));
    }
    fn begin_struct(&mut self, _: &Node, _: usize) {
        self.put(format_args!("{{"));
    }
    fn end_struct(&mut self, _: &Node) {
        self.put(format_args!("}}"));
    }
    fn begin_array(&mut self, _: &Node, length: u64) {
        self.put(format_args!("[{length}:"));
    }
    fn end_array(&mut self, _: &Node) {
        self.put(format_args!("]"));
    }
    fn begin_variant(&mut self, _: &Node, option: usize) {
        self.put(format_args!("<{option}:"));
    }
    fn end_variant(&mut self, _: &Node) {
        self.put(format_args!(">"));
    }
    fn optional(&mut self, _: &Node, present: bool) {
        self.put(format_args!("{}", if present { "some(" } else { "none" }));
    }
    fn end_optional(&mut self, _: &Node) {
        self.put(format_args!(")"));
    }
}

fn float_text(value: f64) -> String {
    if value.is_nan() {
        "nan".into()
    } else {
        format!("float{:#x}", value.to_bits())
    }
}

/// Text of bytes in an encoding; invalid characters become U+FFFD.
pub fn decode(bytes: &[u8], encoding: Encoding) -> String {
    let wide = |from: fn([u8; 2]) -> u16| {
        let units = bytes
            .chunks(2)
            .map(move |chunk| chunk.try_into().map_or(0xd800, from));
        char::decode_utf16(units)
            .map(|c| c.unwrap_or('\u{fffd}'))
            .collect()
    };
    let widest = |from: fn([u8; 4]) -> u32| {
        let chars = bytes.chunks(4).map(|chunk| {
            chunk
                .try_into()
                .ok()
                .and_then(|chunk| char::from_u32(from(chunk)))
        });
        chars.map(|c| c.unwrap_or('\u{fffd}')).collect()
    };
    match encoding {
        Encoding::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
        Encoding::Utf16Be => wide(u16::from_be_bytes),
        Encoding::Utf16Le => wide(u16::from_le_bytes),
        Encoding::Utf32Be => widest(u32::from_be_bytes),
        Encoding::Utf32Le => widest(u32::from_le_bytes),
    }
}

/// True for CTF 1.8's arrays of encoded bytes, which are text.
pub fn is_text(element: &FieldClass) -> bool {
    matches!(element, FieldClass::Int(int) if int.length == 8 && int.align == 8 && int.encoding.is_some())
}

/// Renders an expected value in the same form.
pub fn expected(value: &Value, class: &FieldClass, out: &mut String) {
    match (value, class) {
        (Value::Int(value), _) => write!(out, "{value} ").unwrap(),
        (Value::UInt(value), _) => write!(out, "{value} ").unwrap(),
        (Value::Wide(bytes), _) => write!(out, "wide{bytes:?} ").unwrap(),
        (Value::Bool(value), _) => write!(out, "{value} ").unwrap(),
        (Value::Bits(value), _) => write!(out, "bits{value:#x} ").unwrap(),
        (Value::Float { length, bits }, _) => {
            write!(out, "{} ", float_text(float(*length, *bits))).unwrap()
        }
        (Value::Str(text), _) => write!(out, "{text:?} ").unwrap(),
        (Value::Blob(bytes), _) => write!(out, "blob{bytes:?} ").unwrap(),
        (
            Value::Array(values),
            FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. },
        ) => {
            if is_text(element) {
                write!(out, "{:?} ", value.array_text().unwrap()).unwrap();
                return;
            }
            write!(out, "[{}: ", values.len()).unwrap();
            values
                .iter()
                .for_each(|value| expected(value, element, out));
            out.push_str("] ");
        }
        (Value::Struct(values), FieldClass::Struct(class)) => {
            out.push_str("{ ");
            for (value, member) in values.iter().zip(&class.members) {
                expected(value, &member.class, out);
            }
            out.push_str("} ");
        }
        (Value::Variant { option, value }, FieldClass::Variant(class)) => {
            write!(out, "<{option}: ").unwrap();
            expected(value, &class.options[*option].class, out);
            out.push_str("> ");
        }
        (Value::Optional(None), _) => out.push_str("none "),
        (Value::Optional(Some(value)), FieldClass::Optional(class)) => {
            out.push_str("some( ");
            expected(value, &class.element, out);
            out.push_str(") ");
        }
        _ => panic!("{value:?} is no value of {class:?}"),
    }
}

/// Converts any IEEE 754 binary format to `f64`, rounding towards zero, by its definition.
fn float(length: u32, bits: u128) -> f64 {
    let (exponent_bits, fraction_bits) = match length {
        16 => (5, 10),
        32 => return f64::from(f32::from_bits(bits as u32)),
        64 => return f64::from_bits(bits as u64),
        _ => (15, 112),
    };
    let sign = if bits >> (length - 1) & 1 == 1 {
        -1.0
    } else {
        1.0
    };
    let exponent = (bits >> fraction_bits & ((1 << exponent_bits) - 1)) as i32;
    let fraction = bits & ((1 << fraction_bits) - 1);
    let bias = (1 << (exponent_bits - 1)) - 1;
    if exponent == (1 << exponent_bits) - 1 {
        return if fraction == 0 {
            sign * f64::INFINITY
        } else {
            f64::NAN
        };
    }
    let (power, significand) = match exponent {
        0 => (1 - bias, fraction),
        exponent => (exponent - bias, fraction | 1 << fraction_bits),
    };
    // Truncated to the 53 bits of an f64 (fewer for its subnormal numbers) before the conversion.
    let drop = if length == 128 {
        60 + (-1022 - power).clamp(0, 60)
    } else {
        0
    };
    let significand = (significand >> drop) << drop;
    let mut value = significand as f64;
    let mut left = power - fraction_bits;
    while left != 0 && value != 0.0 && value.is_finite() {
        let step = left.clamp(-500, 500);
        value *= 2f64.powi(step);
        left -= step;
    }
    if value.is_infinite() {
        sign * f64::INFINITY
    } else {
        sign * value
    }
}

/// A rendered event record: class, clock and the four parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    pub class: usize,
    pub clock: Option<u64>,
    pub text: String,
}

/// Every event record of a stream with all its fields, and the damage that was found.
pub fn read_stream(trace: &Trace, stream: &Stream, window: usize) -> (Vec<Shown>, Vec<String>) {
    let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), window);
    let mut shown = Vec::new();
    while reader.peek().is_some() {
        let mut event = reader.event().expect("an event record that was found");
        let mut renderer = Renderer::default();
        event.walk_header(&mut renderer).expect("a sound header");
        event
            .walk_body(&mut renderer, |_, _| {})
            .expect("a sound body");
        let clock = event.stream.clock.map(|_| event.clock);
        shown.push(Shown {
            class: event.class_index,
            clock,
            text: renderer.text,
        });
        reader.advance();
    }
    let damage = reader
        .take_damage()
        .iter()
        .map(ToString::to_string)
        .collect();
    (shown, damage)
}

/// Opens a trace and reads all fields of all its event records; returns the damage that was found,
/// too.
pub fn read_trace(directory: &Path) -> Result<(usize, Vec<String>), String> {
    let trace = Trace::open(directory).map_err(|error| error.to_string())?;
    let mut damage: Vec<String> = trace.damage.iter().map(ToString::to_string).collect();
    let mut events = 0;
    for stream in &trace.streams {
        let (shown, found) = read_stream(&trace, stream, 1 << 17);
        events += shown.len();
        damage.extend(found);
    }
    Ok((events, damage))
}

/// Event records by class, as the scanner counts them.
pub fn scan_counts(trace: &Trace, stream: &Stream) -> (Vec<u64>, Vec<String>) {
    let layout = &trace.layout.streams[stream.class];
    let table = Arc::new(ScanTable::new(layout, |_| false));
    let mut scanner = Scanner::new(trace, stream, table, 0..stream.packets.len()).unwrap();
    let mut counts = Counts::new(layout);
    while scanner.next_packet().is_some() {
        while !scanner.count(&mut counts, 0..u64::MAX).ended {}
    }
    (
        counts.take(layout),
        scanner
            .take_damage()
            .iter()
            .map(ToString::to_string)
            .collect(),
    )
}

/// The scanner's hits for the chosen classes: class, clock, and each of the body's fields.
pub fn scan_hits(
    trace: &Trace,
    stream: &Stream,
    chosen: impl Fn(usize) -> bool,
) -> Vec<(usize, u64, Vec<String>)> {
    let layout = &trace.layout.streams[stream.class];
    let table = Arc::new(ScanTable::new(layout, chosen));
    let mut scanner = Scanner::new(trace, stream, table, 0..stream.packets.len()).unwrap();
    let fields: Vec<_> = (0..layout.events.len())
        .map(|class| fields(trace, stream.class, class))
        .collect();
    let mut found = Vec::new();
    while scanner.next_packet().is_some() {
        loop {
            let progress = scanner.scan();
            let mut batch = scanner.batch();
            for hit in batch.hits() {
                let (class, body, slots) = batch.record(hit);
                let values = fields[class].iter().map(|(scope, path)| {
                    field_text(trace, stream.class, class, *scope, path, body, slots)
                });
                found.push((class, hit.clock, values.collect()));
            }
            if progress == Progress::PacketEnd {
                break;
            }
        }
    }
    found
}

/// Value of a field, read by its reference.
pub fn field_text(
    trace: &Trace,
    stream: usize,
    class: usize,
    scope: Scope,
    path: &[String],
    body: tracebraid_ctf::bits::Cursor<'_>,
    slots: &mut [u64],
) -> String {
    use tracebraid_ctf::layout::node::NodeKind;
    let steps: Vec<&str> = path.iter().map(String::as_str).collect();
    let layout = &trace.layout.streams[stream];
    let field = layout
        .field(class, scope, &steps)
        .expect("a way to the field");
    let result: Result<String, DecodeError> = match field.kind() {
        NodeKind::Int(_, int) | NodeKind::VarInt(int) => field
            .integer(body, slots)
            .map(|raw| signed_or_not(int, raw).to_string()),
        NodeKind::Bool(_) => field.integer(body, slots).map(|raw| (raw != 0).to_string()),
        NodeKind::BitArray(..) | NodeKind::BitMap(..) => field
            .integer(body, slots)
            .map(|raw| format!("bits{raw:#x}")),
        NodeKind::Float(_) => field.float(body, slots).map(float_text),
        NodeKind::Str(encoding) | NodeKind::SizedStr(_, encoding) => field
            .bytes(body, slots)
            .map(|bytes| format!("{:?}", decode(bytes, *encoding))),
        NodeKind::Blob(_) => field
            .bytes(body, slots)
            .map(|bytes| format!("blob{bytes:?}")),
        kind => panic!("{kind:?} cannot be read by reference"),
    };
    result.unwrap_or_else(|error| format!("error: {error}"))
}

/// Every field that a reference can lead to: scope and path, in the order of decoding.
pub fn fields(trace: &Trace, stream: usize, class: usize) -> Vec<(Scope, Vec<String>)> {
    let schema = &trace.layout.class.streams[stream];
    let parts = [
        (Scope::CommonContext, &schema.common_context),
        (
            Scope::SpecificContext,
            &schema.events[class].specific_context,
        ),
        (Scope::Payload, &schema.events[class].payload),
    ];
    let mut found = Vec::new();
    for (scope, part) in parts {
        if let Some(class) = part {
            leaves(class, &mut Vec::new(), &mut |path| {
                found.push((scope, path.to_vec()))
            });
        }
    }
    found
}

/// Number of array elements that are compared.
const MOST_ELEMENTS: u64 = 5;

fn leaves(class: &FieldClass, path: &mut Vec<String>, found: &mut impl FnMut(&[String])) {
    match class {
        FieldClass::Struct(class) => {
            for member in &class.members {
                path.push(member.name.to_string());
                leaves(&member.class, path, found);
                path.pop();
            }
        }
        FieldClass::Array {
            element, length, ..
        } if !is_text(element) => {
            for index in 0..(*length).min(MOST_ELEMENTS) {
                path.push(index.to_string());
                leaves(element, path, found);
                path.pop();
            }
        }
        FieldClass::Sequence { element, .. } if !is_text(element) => {}
        FieldClass::Variant(_)
        | FieldClass::Optional { .. }
        | FieldClass::Float { length: 128, .. } => {}
        FieldClass::Int(int) if int.length > 64 => {}
        _ => found(path),
    }
}

/// The same fields of an expected event record.
pub fn expected_fields(parts: [(&Option<Value>, &Option<FieldClass>); 3]) -> Vec<String> {
    let mut texts = Vec::new();
    for (value, class) in parts {
        if let (Some(value), Some(class)) = (value, class) {
            expected_leaves(value, class, &mut texts);
        }
    }
    texts
}

fn expected_leaves(value: &Value, class: &FieldClass, texts: &mut Vec<String>) {
    match (value, class) {
        (Value::Struct(values), FieldClass::Struct(class)) => {
            values
                .iter()
                .zip(&class.members)
                .for_each(|(value, member)| expected_leaves(value, &member.class, texts));
        }
        (Value::Array(values), FieldClass::Array { element, .. }) if !is_text(element) => {
            values
                .iter()
                .take(MOST_ELEMENTS as usize)
                .for_each(|value| expected_leaves(value, element, texts));
        }
        (_, FieldClass::Sequence { element, .. }) if !is_text(element) => {}
        (
            _,
            FieldClass::Variant(_)
            | FieldClass::Optional { .. }
            | FieldClass::Float { length: 128, .. },
        ) => {}
        (Value::Wide(_), _) => {}
        _ => {
            let mut text = String::new();
            expected(value, class, &mut text);
            texts.push(text.trim_end().to_owned());
        }
    }
}
