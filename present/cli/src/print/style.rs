//! Appearance of values and of the text between them.

use tracebraid_ctf::layout::node::{Node, NodeKind};
use tracebraid_ctf::schema::{DisplayBase, IntClass};
use tracebraid_language::Cpus;

use super::buffer::Buffer;
use super::escape;
use super::hidden::Hidden;

/// Terminal codes; empty without colours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    /// Names of scopes and header fields.
    pub(crate) name: &'static str,
    /// Names of fields.
    pub(crate) field: &'static str,
    /// Values and labels.
    pub(crate) value: &'static str,
    /// Values without a label.
    pub(crate) unknown: &'static str,
    /// Names of events.
    pub(crate) event: &'static str,
    /// Times.
    pub(crate) time: &'static str,
    /// Resets the terminal to normal.
    pub(crate) reset: &'static str,
}

impl Palette {
    /// No colours.
    pub(crate) const NONE: Palette = Palette {
        name: "",
        field: "",
        value: "",
        unknown: "",
        event: "",
        time: "",
        reset: "",
    };

    /// The codes that babeltrace2 emits.
    pub(crate) const COLOURS: Palette = Palette {
        name: "\x1b[1m",
        field: "\x1b[36m",
        value: "\x1b[1m",
        unknown: "\x1b[1m\x1b[1m\x1b[31m",
        event: "\x1b[1m\x1b[1m\x1b[35m",
        time: "\x1b[1m\x1b[1m\x1b[33m",
        reset: "\x1b[0m",
    };
}

/// Syntax of a trace's fields.
#[derive(Debug)]
pub(crate) struct Style {
    /// Whether the output is JSON instead of text.
    pub(crate) json: bool,
    /// Colours; none for JSON.
    pub(crate) palette: Palette,
    /// Fields that are not shown.
    pub(crate) hidden: Hidden,
    /// Location of the CPU in event records.
    pub(crate) cpus: Cpus,
}

/// Mask for the bits that the hexadecimal digits (4 bits each) or octal digits (3) of a field show.
pub(crate) fn digit_mask(length: u32, bits: u32) -> u64 {
    let rounded = length.div_ceil(bits) * bits;
    if length >= 64 || rounded >= 64 {
        u64::MAX
    } else {
        (1 << rounded) - 1
    }
}

/// Length in bits from which the number of a field's digits follows; 64 for variable-length
/// integers.
pub(crate) fn shown_length(node: &Node, class: &IntClass) -> u32 {
    if matches!(node.kind, NodeKind::VarInt(_)) || class.length == 0 {
        64
    } else {
        class.length.min(64)
    }
}

impl Style {
    /// Puts an integer without labels and colours.
    pub(crate) fn put_integer(&self, buffer: &mut Buffer, class: &IntClass, length: u32, raw: u64) {
        match class.base {
            _ if self.json => put_decimal(buffer, class.signed, raw),
            DisplayBase::Decimal => put_decimal(buffer, class.signed, raw),
            DisplayBase::Hexadecimal => {
                buffer.put(b"0x");
                buffer.put_hexadecimal(raw & digit_mask(length, 4));
            }
            DisplayBase::Octal => {
                let mask = if class.signed {
                    digit_mask(length, 3)
                } else {
                    u64::MAX
                };
                buffer.put(format!("0{:o}", raw & mask).as_bytes());
            }
            DisplayBase::Binary => {
                buffer.put(b"0b");
                (0..length)
                    .rev()
                    .for_each(|bit| buffer.put_byte(b'0' + (raw >> bit & 1) as u8));
            }
        }
    }

    /// Puts an enumeration's labels and value.
    pub(crate) fn put_enumeration(
        &self,
        buffer: &mut Buffer,
        class: &IntClass,
        length: u32,
        raw: u64,
    ) {
        let value = if class.signed {
            i128::from(raw as i64)
        } else {
            i128::from(raw)
        };
        let labels = class
            .mappings
            .iter()
            .filter(|mapping| mapping.ranges.iter().any(|range| range.contains(value)));
        let labels = labels.map(|mapping| mapping.label.as_str());
        self.put_labelled(buffer, labels, |buffer| {
            buffer.put(self.palette.value.as_bytes());
            self.put_integer(buffer, class, length, raw);
            buffer.put(self.palette.reset.as_bytes());
        });
    }

    /// Puts a bit map's flags and value.
    pub(crate) fn put_flags(&self, buffer: &mut Buffer, class: &IntClass, raw: u64) {
        let active = |bit: u32| raw >> bit & 1 == 1;
        let is_set = |range: &tracebraid_ctf::schema::IntRange| {
            (0..class.length.min(64)).any(|bit| active(bit) && range.contains(i128::from(bit)))
        };
        let labels = class
            .mappings
            .iter()
            .filter(|mapping| mapping.ranges.iter().any(is_set));
        let labels = labels.map(|mapping| mapping.label.as_str());
        self.put_labelled(buffer, labels, |buffer| self.put_bits(buffer, raw));
    }

    /// Puts a bit array.
    pub(crate) fn put_bits(&self, buffer: &mut Buffer, raw: u64) {
        if self.json {
            return buffer.put_u64(raw);
        }
        buffer.put(self.palette.value.as_bytes());
        buffer.put(b"0x");
        buffer.put_hexadecimal(raw);
        buffer.put(self.palette.reset.as_bytes());
    }

    fn put_labelled<'l>(
        &self,
        buffer: &mut Buffer,
        labels: impl Iterator<Item = &'l str>,
        value: impl FnOnce(&mut Buffer),
    ) {
        let (open, middle, close) = if self.json {
            ("{\"labels\":[", "],\"value\":", "}")
        } else {
            ("( ", " : container = ", " )")
        };
        buffer.put(open.as_bytes());
        let mut first = true;
        for label in labels {
            if !std::mem::take(&mut first) {
                buffer.put(if self.json { b"," } else { b", " });
            }
            self.put_quoted(buffer, label.as_bytes());
        }
        if first && !self.json {
            buffer.put(self.palette.unknown.as_bytes());
            buffer.put(b"<unknown>");
            buffer.put(self.palette.reset.as_bytes());
        }
        buffer.put(middle.as_bytes());
        value(buffer);
        buffer.put(close.as_bytes());
    }

    /// Puts a string with quotes and colours.
    pub(crate) fn put_quoted(&self, buffer: &mut Buffer, bytes: &[u8]) {
        buffer.put(self.palette.value.as_bytes());
        buffer.put_byte(b'"');
        if self.json {
            escape::put_json(buffer, bytes);
        } else {
            escape::put_text(buffer, bytes, 0, bytes.len());
        }
        buffer.put_byte(b'"');
        buffer.put(self.palette.reset.as_bytes());
    }

    /// Puts a floating-point number.
    pub(crate) fn put_float(&self, buffer: &mut Buffer, value: f64) {
        if self.json {
            // JSON has no infinities and no NaN.
            let text = if value.is_finite() {
                format!("{value:?}")
            } else {
                format!("\"{value}\"")
            };
            return buffer.put(text.as_bytes());
        }
        buffer.put(self.palette.value.as_bytes());
        buffer.put(super::float::percent_g(value).as_bytes());
        buffer.put(self.palette.reset.as_bytes());
    }

    /// Puts a boolean.
    pub(crate) fn put_boolean(&self, buffer: &mut Buffer, value: bool) {
        buffer.put(self.palette.value.as_bytes());
        buffer.put(if value { b"true" } else { b"false" });
        buffer.put(self.palette.reset.as_bytes());
    }

    /// Puts bytes: `{ 0x01, 0xFF }` as text, a string of hexadecimal digits as JSON.
    pub(crate) fn put_blob(&self, buffer: &mut Buffer, bytes: &[u8]) {
        if self.json {
            buffer.put_byte(b'"');
            put_hexadecimal_bytes(buffer, bytes);
            return buffer.put_byte(b'"');
        }
        buffer.put(b"{");
        for (index, byte) in bytes.iter().enumerate() {
            buffer.put(if index == 0 { b" " } else { b", " });
            buffer.put(self.palette.value.as_bytes());
            buffer.put(format!("0x{byte:02X}").as_bytes());
            buffer.put(self.palette.reset.as_bytes());
        }
        buffer.put(b" }");
    }

    /// Puts the name before the value of a member.
    pub(crate) fn put_name(&self, buffer: &mut Buffer, name: &str) {
        if self.json {
            self.put_quoted(buffer, name.as_bytes());
            buffer.put_byte(b':');
        } else {
            buffer.put(self.palette.field.as_bytes());
            buffer.put(name.as_bytes());
            buffer.put(self.palette.reset.as_bytes());
            buffer.put(b" = ");
        }
    }

    /// Puts the separator before a member or an element.
    pub(crate) fn put_separator(&self, buffer: &mut Buffer, first: bool) {
        match (self.json, first) {
            (true, true) => {}
            (true, false) => buffer.put(b","),
            (false, true) => buffer.put(b" "),
            (false, false) => buffer.put(b", "),
        }
    }

    /// The brackets around a structure's members.
    pub(crate) fn struct_brackets(&self) -> (&'static str, &'static str) {
        if self.json { ("{", "}") } else { ("{", " }") }
    }
}

pub(crate) fn put_decimal(buffer: &mut Buffer, signed: bool, raw: u64) {
    if signed {
        buffer.put_i64(raw as i64)
    } else {
        buffer.put_u64(raw)
    }
}

/// Puts two hexadecimal digits for each byte.
pub(crate) fn put_hexadecimal_bytes(buffer: &mut Buffer, bytes: &[u8]) {
    bytes
        .iter()
        .for_each(|byte| buffer.put(format!("{byte:02x}").as_bytes()));
}
