//! Shows fields whose shape depends on the data while walking over them.

use tracebraid_ctf::layout::node::Node;
use tracebraid_ctf::schema::{Encoding, IntClass};
use tracebraid_ctf::walk::{Visitor, wide_hexadecimal};

use super::buffer::Buffer;
use super::escape;
use super::style::{Style, shown_length};

/// The field that contains the next value.
#[derive(Clone, Copy, Debug)]
enum Frame {
    /// A struct, with the number of members shown so far.
    Struct(u64),
    /// An array, with the number of elements shown so far.
    Array(u64),
    /// A variant or an optional field, whose value has no name.
    Single,
    /// An array whose brackets the caller puts.
    Open,
    /// A field that is not shown.
    Hidden,
}

/// Shows the fields that it visits.
pub(crate) struct Shower<'a> {
    buffer: &'a mut Buffer,
    style: &'a Style,
    names: bool,
    frames: Vec<Frame>,
}

impl<'a> Shower<'a> {
    /// Shows one field without its own name, with the names of the members below it if `names` is
    /// true.
    pub(crate) fn new(buffer: &'a mut Buffer, style: &'a Style, names: bool) -> Self {
        Shower {
            buffer,
            style,
            names,
            frames: Vec::new(),
        }
    }

    /// Shows an array whose brackets the caller puts.
    pub(crate) fn within_array(buffer: &'a mut Buffer, style: &'a Style, names: bool) -> Self {
        Shower {
            buffer,
            style,
            names,
            frames: vec![Frame::Open],
        }
    }

    pub(crate) fn buffer(&mut self) -> &mut Buffer {
        self.buffer
    }

    /// Begins a field that is not shown, although no field around it is open.
    pub(crate) fn begin_hidden(&mut self) {
        self.frames.push(Frame::Hidden);
    }

    /// Puts separator and name; returns false if the field is not shown.
    fn lead(&mut self, node: &Node) -> bool {
        if !self.frames.is_empty() && self.style.hidden.hides(node) {
            return false;
        }
        match self.frames.last_mut() {
            None | Some(Frame::Single | Frame::Open) => {}
            Some(Frame::Hidden) => return false,
            Some(Frame::Struct(count)) => {
                self.style.put_separator(self.buffer, *count == 0);
                if self.names || self.style.json {
                    self.style.put_name(self.buffer, &node.name);
                }
                *count += 1;
            }
            Some(Frame::Array(index)) => {
                self.style.put_separator(self.buffer, *index == 0);
                if self.names && !self.style.json {
                    self.buffer.put_byte(b'[');
                    self.buffer.put_u64(*index);
                    self.buffer.put(b"] = ");
                }
                *index += 1;
            }
        }
        true
    }

    fn begin(&mut self, node: &Node, open: &str, frame: Frame) {
        let brackets = !matches!(self.frames.last(), Some(Frame::Open));
        if self.lead(node) {
            if brackets {
                self.buffer.put(open.as_bytes());
            }
            self.frames.push(frame);
        } else {
            self.frames.push(Frame::Hidden);
        }
    }

    fn end(&mut self, close: &str) {
        let shown = !matches!(self.frames.pop(), Some(Frame::Hidden) | None);
        if shown && !matches!(self.frames.last(), Some(Frame::Open)) {
            self.buffer.put(close.as_bytes());
        }
    }
}

impl Visitor for Shower<'_> {
    fn integer(&mut self, node: &Node, class: &IntClass, raw: u64) {
        if !self.lead(node) {
            return;
        }
        let length = shown_length(node, class);
        if class.is_enum {
            return self.style.put_enumeration(self.buffer, class, length, raw);
        }
        self.buffer.put(self.style.palette.value.as_bytes());
        self.style.put_integer(self.buffer, class, length, raw);
        self.buffer.put(self.style.palette.reset.as_bytes());
    }

    fn wide_integer(&mut self, node: &Node, _: &IntClass, bytes: &[u8]) {
        if !self.lead(node) {
            return;
        }
        let number = wide_hexadecimal(bytes);
        let quote = if self.style.json { "\"" } else { "" };
        self.buffer.put(self.style.palette.value.as_bytes());
        self.buffer
            .put(format!("{quote}{number}{quote}").as_bytes());
        self.buffer.put(self.style.palette.reset.as_bytes());
    }

    fn boolean(&mut self, node: &Node, value: bool) {
        if self.lead(node) {
            self.style.put_boolean(self.buffer, value);
        }
    }

    fn bits(&mut self, node: &Node, class: &IntClass, raw: u64) {
        if !self.lead(node) {
            return;
        }
        if class.mappings.is_empty() {
            self.style.put_bits(self.buffer, raw);
        } else {
            self.style.put_flags(self.buffer, class, raw);
        }
    }

    fn float(&mut self, node: &Node, _: u32, value: f64) {
        if self.lead(node) {
            self.style.put_float(self.buffer, value);
        }
    }

    fn string(&mut self, node: &Node, encoding: Encoding, bytes: &[u8]) {
        if self.lead(node) {
            let converted = escape::to_utf8(encoding, bytes);
            self.style
                .put_quoted(self.buffer, converted.as_deref().unwrap_or(bytes));
        }
    }

    fn blob(&mut self, node: &Node, bytes: &[u8]) {
        if self.lead(node) {
            self.style.put_blob(self.buffer, bytes);
        }
    }

    fn begin_struct(&mut self, node: &Node, _: usize) {
        self.begin(node, self.style.struct_brackets().0, Frame::Struct(0));
    }

    fn end_struct(&mut self, _: &Node) {
        self.end(self.style.struct_brackets().1);
    }

    fn begin_array(&mut self, node: &Node, _: u64) {
        self.begin(node, "[", Frame::Array(0));
    }

    fn end_array(&mut self, _: &Node) {
        self.end(if self.style.json { "]" } else { " ]" });
    }

    fn begin_variant(&mut self, node: &Node, _: usize) {
        self.begin(node, if self.style.json { "" } else { "{ " }, Frame::Single);
    }

    fn end_variant(&mut self, _: &Node) {
        self.end(if self.style.json { "" } else { " }" });
    }

    fn optional(&mut self, node: &Node, present: bool) {
        if present {
            self.begin_variant(node, 0);
        } else if self.lead(node) {
            self.buffer
                .put(if self.style.json { b"null" } else { b"<none>" });
        }
    }

    fn end_optional(&mut self, node: &Node) {
        self.end_variant(node);
    }
}
