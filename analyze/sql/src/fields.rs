//! Fields of event records as JSON, as `tracebraid print --format json` writes them.

use tracebraid_ctf::bits::DecodeError;
use tracebraid_ctf::event::Event;
use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::schema::{Encoding, IntClass, Scope};
use tracebraid_ctf::walk::{Visitor, wide_hexadecimal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The event's own fields.
    Payload,
    /// The fields of its contexts.
    Context,
}

/// The fields of an event record, as a JSON object.
///
/// # Errors
/// None for an event record that a reader returned.
pub(crate) fn json(event: &mut Event<'_>, part: Part) -> Result<String, DecodeError> {
    let mut writer = Writer {
        text: "{".to_owned(),
        is_wanted: false,
        is_first: true,
        open: Vec::new(),
    };
    event.walk_body(&mut writer, |writer, scope| {
        writer.is_wanted = (scope == Scope::Payload) == (part == Part::Payload);
    })?;
    writer.text.push('}');
    Ok(writer.text)
}

/// The enclosing construct of the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Around {
    /// All selected scopes: their members are members of one object.
    Scope,
    Struct,
    Array,
    /// A variant or an optional, which its value replaces.
    Same,
}

struct Writer {
    text: String,
    is_wanted: bool,
    /// True if no member has been written yet in the innermost enclosing construct.
    is_first: bool,
    open: Vec<Around>,
}

impl Writer {
    /// Writes the separator and the member's name before a value; false if the value is not
    /// selected.
    fn lead(&mut self, node: &Node) -> bool {
        if !self.is_wanted {
            return false;
        }
        let around = self.open.last().copied();
        if matches!(around, Some(Around::Same)) {
            return true;
        }
        if !std::mem::take(&mut self.is_first) {
            self.text.push(',');
        }
        if !matches!(around, Some(Around::Array)) {
            self.string(&node.name);
            self.text.push(':');
        }
        true
    }

    fn put(&mut self, node: &Node, value: impl FnOnce(&mut String)) {
        if self.lead(node) {
            value(&mut self.text);
        }
    }

    fn string(&mut self, text: &str) {
        put_string(&mut self.text, text);
    }

    fn begin(&mut self, node: &Node, around: Around, bracket: Option<char>) {
        if !self.is_wanted {
            return;
        }
        if self.open.is_empty() && around == Around::Struct {
            // The scope itself.
            return self.open.push(Around::Scope);
        }
        self.lead(node);
        self.open.push(around);
        if let Some(bracket) = bracket {
            self.text.push(bracket);
            self.is_first = true;
        }
    }

    fn end(&mut self) {
        if !self.is_wanted {
            return;
        }
        match self.open.pop() {
            Some(Around::Struct) => self.text.push('}'),
            Some(Around::Array) => self.text.push(']'),
            // The next scope continues the same object.
            Some(Around::Scope | Around::Same) | None => return,
        }
        self.is_first = false;
    }

    /// Writes an enumeration's value with its labels.
    fn labelled<'l>(&mut self, labels: impl Iterator<Item = &'l str>, value: String) {
        self.text.push_str("{\"labels\":[");
        for (place, label) in labels.enumerate() {
            if place > 0 {
                self.text.push(',');
            }
            self.string(label);
        }
        self.text.push_str("],\"value\":");
        self.text.push_str(&value);
        self.text.push('}');
    }
}

impl Visitor for Writer {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        if !self.lead(node) {
            return;
        }
        let (text, value) = match class.signed {
            true => ((raw as i64).to_string(), i128::from(raw as i64)),
            false => (raw.to_string(), i128::from(raw)),
        };
        if !class.is_enum {
            return self.text.push_str(&text);
        }
        let mappings = class.mappings.iter();
        let labels =
            mappings.filter(|mapping| mapping.ranges.iter().any(|range| range.contains(value)));
        self.labelled(labels.map(|mapping| mapping.label.as_str()), text);
    }

    fn wide_integer(&mut self, node: &Node, _: &IntClass, bytes: &[u8]) {
        self.put(node, |text| {
            text.push_str(&format!("\"{}\"", wide_hexadecimal(bytes)));
        });
    }

    fn boolean(&mut self, node: &Node, value: bool) {
        self.put(node, |text| {
            text.push_str(if value { "true" } else { "false" })
        });
    }

    fn bits(&mut self, node: &Node, class: &IntClass, raw: u64) {
        if !self.lead(node) {
            return;
        }
        if class.mappings.is_empty() {
            return self.text.push_str(&raw.to_string());
        }
        let is_set = |range: &tracebraid_ctf::schema::IntRange| {
            (0..class.length.min(64))
                .any(|bit| raw >> bit & 1 == 1 && range.contains(i128::from(bit)))
        };
        let mappings = class.mappings.iter();
        let labels = mappings.filter(|mapping| mapping.ranges.iter().any(is_set));
        self.labelled(
            labels.map(|mapping| mapping.label.as_str()),
            raw.to_string(),
        );
    }

    fn float(&mut self, node: &Node, _: u32, value: f64) {
        self.put(node, |text| match value.is_finite() {
            true => text.push_str(&format!("{value:?}")),
            // JSON has no infinities and no NaN.
            false => text.push_str(&format!("\"{value}\"")),
        });
    }

    fn string(&mut self, node: &Node, encoding: Encoding, bytes: &[u8]) {
        self.put(node, |text| put_string(text, &decoded(encoding, bytes)));
    }

    fn blob(&mut self, node: &Node, bytes: &[u8]) {
        self.put(node, |text| {
            text.push('"');
            bytes
                .iter()
                .for_each(|byte| text.push_str(&format!("{byte:02x}")));
            text.push('"');
        });
    }

    fn begin_struct(&mut self, node: &Node, _: usize) {
        self.begin(node, Around::Struct, Some('{'));
    }

    fn end_struct(&mut self, _: &Node) {
        self.end();
    }

    fn begin_array(&mut self, node: &Node, _: u64) {
        self.begin(node, Around::Array, Some('['));
    }

    fn end_array(&mut self, _: &Node) {
        self.end();
    }

    fn begin_variant(&mut self, node: &Node, _: usize) {
        self.begin(node, Around::Same, None);
    }

    fn end_variant(&mut self, _: &Node) {
        self.end();
    }

    fn optional(&mut self, node: &Node, present: bool) {
        match present {
            true => self.begin(node, Around::Same, None),
            false => self.put(node, |text| text.push_str("null")),
        }
    }

    fn end_optional(&mut self, _: &Node) {
        self.end();
    }
}

/// Decodes a string; invalid units become U+FFFD.
fn decoded(encoding: Encoding, bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    let is_big = matches!(encoding, Encoding::Utf16Be | Encoding::Utf32Be);
    match encoding {
        Encoding::Utf8 => String::from_utf8_lossy(bytes),
        Encoding::Utf16Be | Encoding::Utf16Le => {
            let (units, _) = bytes.as_chunks::<2>();
            let unit = |&unit: &[u8; 2]| match is_big {
                true => u16::from_be_bytes(unit),
                false => u16::from_le_bytes(unit),
            };
            let characters = char::decode_utf16(units.iter().map(unit));
            let text: String = characters
                .map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            text.into()
        }
        Encoding::Utf32Be | Encoding::Utf32Le => {
            let (units, _) = bytes.as_chunks::<4>();
            let code = |&unit: &[u8; 4]| match is_big {
                true => u32::from_be_bytes(unit),
                false => u32::from_le_bytes(unit),
            };
            let characters = units.iter().map(|unit| char::from_u32(code(unit)));
            let text: String = characters
                .map(|found| found.unwrap_or(char::REPLACEMENT_CHARACTER))
                .collect();
            text.into()
        }
    }
}

fn put_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' || control == '\u{7f}' => {
                out.push_str(&format!("\\u{:04x}", control as u32));
            }
            character => out.push(character),
        }
    }
    out.push('"');
}
