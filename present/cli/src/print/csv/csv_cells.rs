//! Values of event records as cells of CSV.

use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::schema::{Encoding, IntClass};
use tracebraid_ctf::walk::{Visitor, wide_hexadecimal};

use crate::csv::must_quote;
use crate::print::buffer::Buffer;
use crate::print::escape;
use crate::print::style::{Style, put_decimal, put_hexadecimal_bytes};
use crate::print::visitor::Shower;

/// Cells of a packet context or an event record, quoted as CSV requires, in the order of the data.
#[derive(Debug)]
pub(super) struct Cells {
    text: Buffer,
    /// End of each cell in `text`, in bytes; a cell begins where the previous one ends.
    ends: Vec<usize>,
}

impl Cells {
    pub(super) fn new() -> Self {
        Cells {
            text: Buffer::new(256),
            ends: Vec::new(),
        }
    }

    /// Replaces all cells by those of `first`.
    #[inline]
    pub(super) fn begin_with(&mut self, first: &Cells) {
        self.clear();
        self.text.put(first.text.bytes());
        self.ends.extend_from_slice(&first.ends);
    }

    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Puts the cell with this index; nothing if there are fewer cells.
    #[inline]
    pub(super) fn put(&mut self, index: usize, out: &mut Buffer) {
        let start = match index.checked_sub(1) {
            Some(previous) => self.ends.get(previous),
            None => Some(&0),
        };
        if let (Some(&start), Some(&end)) = (start, self.ends.get(index)) {
            out.put_padded(self.text.all(), start, end - start);
        }
    }
}

/// Puts text, in quotes if CSV requires them; invalid UTF-8 becomes U+FFFD.
pub(crate) fn put_quoted_if_needed(out: &mut Buffer, text: &[u8]) {
    let is_plain = |byte: &u8| (0x20..0x7f).contains(byte) && *byte != b',' && *byte != b'"';
    if text.iter().all(is_plain) {
        return out.put(text);
    }
    let text = String::from_utf8_lossy(text);
    if !must_quote(&text) {
        return out.put(text.as_bytes());
    }
    out.put_byte(b'"');
    out.put(text.replace('"', "\"\"").as_bytes());
    out.put_byte(b'"');
}

/// Makes cells of the fields that it visits. The members of structures are cells of their own;
/// arrays, and structures in variants and optionals, are one cell of JSON.
pub(super) struct CellWriter<'a> {
    /// Writes the JSON. It must begin each cell without an open field.
    json: Shower<'a>,
    ends: &'a mut Vec<usize>,
    style: &'a Style,
    /// Number of open variants and optionals around the next value, outside of JSON.
    choices: usize,
    /// Number of open arrays and structures that are JSON.
    compounds: usize,
}

impl<'a> CellWriter<'a> {
    /// `style` must be that of JSON.
    #[inline]
    pub(super) fn new(cells: &'a mut Cells, style: &'a Style) -> Self {
        CellWriter {
            json: Shower::new(&mut cells.text, style, true),
            ends: &mut cells.ends,
            style,
            choices: 0,
            compounds: 0,
        }
    }

    /// Puts a value outside of JSON.
    #[inline(always)]
    fn put(&mut self, node: &Node, put: impl FnOnce(&mut Buffer)) {
        if !self.style.hidden.hides(node) {
            put(self.json.buffer());
            self.end_cell();
        }
    }

    /// Ends the cell, unless a variant or an optional around it is open.
    #[inline(always)]
    fn end_cell(&mut self) {
        if self.choices == 0 {
            self.ends.push(self.json.buffer().len());
        }
    }

    fn end_choice(&mut self, node: &Node) {
        self.choices = self.choices.saturating_sub(1);
        if !self.style.hidden.hides(node) {
            self.end_cell();
        }
    }

    /// Begins an array or a structure.
    fn begin_compound(&mut self, node: &Node, begin: impl FnOnce(&mut Shower<'a>)) {
        if self.compounds == 0 && self.style.hidden.hides(node) {
            self.json.begin_hidden();
        } else {
            begin(&mut self.json);
        }
        self.compounds += 1;
    }

    fn end_compound(&mut self, node: &Node) {
        self.compounds = self.compounds.saturating_sub(1);
        if self.compounds > 0 || self.style.hidden.hides(node) {
            return;
        }
        let start = self.ends.last().copied().unwrap_or(0);
        let buffer = self.json.buffer();
        let text = buffer.bytes().get(start..).unwrap_or_default().to_vec();
        buffer.truncate(start);
        put_quoted_if_needed(buffer, &text);
        self.end_cell();
    }
}

impl Visitor for CellWriter<'_> {
    #[inline(always)]
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        match self.compounds {
            0 => self.put(node, |buffer| put_decimal(buffer, class.signed, raw)),
            _ => self.json.integer(node, class, raw),
        }
    }

    fn wide_integer(&mut self, node: &Node, class: &IntClass, bytes: &[u8]) {
        match self.compounds {
            0 => self.put(node, |buffer| {
                buffer.put(wide_hexadecimal(bytes).as_bytes());
            }),
            _ => self.json.wide_integer(node, class, bytes),
        }
    }

    fn boolean(&mut self, node: &Node, value: bool) {
        match self.compounds {
            0 => self.put(node, |buffer| {
                buffer.put(if value { b"true" } else { b"false" });
            }),
            _ => self.json.boolean(node, value),
        }
    }

    fn bits(&mut self, node: &Node, class: &IntClass, raw: u64) {
        match self.compounds {
            0 => self.put(node, |buffer| buffer.put_u64(raw)),
            _ => self.json.bits(node, class, raw),
        }
    }

    fn float(&mut self, node: &Node, length: u32, value: f64) {
        match self.compounds {
            0 => self.put(node, |buffer| buffer.put(format!("{value:?}").as_bytes())),
            _ => self.json.float(node, length, value),
        }
    }

    fn string(&mut self, node: &Node, encoding: Encoding, bytes: &[u8]) {
        match self.compounds {
            0 => self.put(node, |buffer| {
                let converted = escape::to_utf8(encoding, bytes);
                put_quoted_if_needed(buffer, converted.as_deref().unwrap_or(bytes));
            }),
            _ => self.json.string(node, encoding, bytes),
        }
    }

    fn blob(&mut self, node: &Node, bytes: &[u8]) {
        match self.compounds {
            0 => self.put(node, |buffer| put_hexadecimal_bytes(buffer, bytes)),
            _ => self.json.blob(node, bytes),
        }
    }

    #[inline(always)]
    fn begin_struct(&mut self, node: &Node, members: usize) {
        if self.compounds > 0 || self.choices > 0 {
            self.begin_compound(node, |json| json.begin_struct(node, members));
        }
    }

    #[inline(always)]
    fn end_struct(&mut self, node: &Node) {
        if self.compounds > 0 {
            self.json.end_struct(node);
            self.end_compound(node);
        }
    }

    fn begin_array(&mut self, node: &Node, length: u64) {
        self.begin_compound(node, |json| json.begin_array(node, length));
    }

    fn end_array(&mut self, node: &Node) {
        self.json.end_array(node);
        self.end_compound(node);
    }

    fn begin_variant(&mut self, node: &Node, option: usize) {
        match self.compounds {
            0 => self.choices += 1,
            _ => self.json.begin_variant(node, option),
        }
    }

    fn end_variant(&mut self, node: &Node) {
        match self.compounds {
            0 => self.end_choice(node),
            _ => self.json.end_variant(node),
        }
    }

    fn optional(&mut self, node: &Node, present: bool) {
        match (self.compounds, present) {
            (0, true) => self.choices += 1,
            (0, false) => self.put(node, |_| ()),
            _ => self.json.optional(node, present),
        }
    }

    fn end_optional(&mut self, node: &Node) {
        match self.compounds {
            0 => self.end_choice(node),
            _ => self.json.end_optional(node),
        }
    }
}
