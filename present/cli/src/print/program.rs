//! Show programs: what a line of one event class looks like, worked out once.
//!
//! All constant text between two values (the end of one scope, the next name, brackets) is one
//! literal; a value whose place and size are known is one step; what depends on the data more than
//! that is walked over.

use std::sync::Arc;

use tracebraid_ctf::bits::{Cursor, DecodeError, FixedRead};
use tracebraid_ctf::layout::node::{Length, Node, NodeKind};
use tracebraid_ctf::schema::{DisplayBase, Encoding, IntClass};
use tracebraid_ctf::walk::walk;

use super::buffer::{Buffer, PADDING};
use super::escape::{put_json, put_text};
use super::style::{Style, digit_mask, is_hidden};
use super::visitor::Shower;

/// Values of enumerations up to this one have their text ready.
const READY_VALUES: u64 = 64;

#[derive(Debug)]
enum Kind {
    /// Nothing but the literal.
    Literal,
    /// Go on by that many bits.
    Skip(u64),
    Unsigned(FixedRead),
    Signed(FixedRead),
    Hexadecimal(FixedRead, u64),
    Enumeration(FixedRead, Arc<IntClass>, Box<[Box<[u8]>]>),
    /// Null-terminated, in UTF-8.
    Text,
    /// So many bytes of which those before the first null count, in UTF-8.
    FixedText(u64),
    /// Walk over it; the flag: with names.
    Walk(Box<Node>, bool),
    /// Walk over it and show nothing.
    WalkBlindly(Box<Node>),
}

#[derive(Debug)]
struct Step {
    /// Place and length of the literal before the value.
    start: u32,
    length: u32,
    /// Alignment of the value in bits, less one.
    mask: u64,
    kind: Kind,
}

/// Shows some scopes of an event record one after the other.
#[derive(Debug)]
pub(crate) struct Program {
    literals: Vec<u8>,
    steps: Vec<Step>,
    style: Style,
}

/// Compiles programs.
pub(crate) struct Compiler {
    program: Program,
    /// Constant text since the last value.
    pending: Buffer,
    /// Alignment in bits that was met since the last value.
    align: u32,
}

impl Compiler {
    /// An empty program.
    pub(crate) fn new(style: Style) -> Self {
        let program = Program { literals: Vec::new(), steps: Vec::new(), style };
        Compiler { program, pending: Buffer::new(256), align: 1 }
    }

    /// Adds constant text.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.pending.put(text);
    }

    /// The program.
    pub(crate) fn finish(mut self) -> Program {
        self.step(1, Kind::Literal);
        self.program.literals.extend([0; PADDING]);
        self.program
    }

    fn step(&mut self, align: u32, kind: Kind) {
        let mask = u64::from(self.align.max(align).max(1)) - 1;
        self.align = 1;
        let (start, length) = (self.program.literals.len() as u32, self.pending.len() as u32);
        self.program.literals.extend_from_slice(self.pending.bytes());
        self.pending.clear();
        self.program.steps.push(Step { start, length, mask, kind });
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, node: &Node, names: bool) {
        let style = self.program.style;
        match &node.kind {
            NodeKind::Int(read, class) if node.saves.is_empty() => self.integer(node, *read, class),
            NodeKind::Str(Encoding::Utf8) => {
                self.begin_string();
                self.step(node.align, Kind::Text);
                self.end_string();
            }
            NodeKind::SizedStr(Length::Static(length), Encoding::Utf8) => {
                self.begin_string();
                self.step(node.align, Kind::FixedText(*length));
                self.end_string();
            }
            NodeKind::Struct(members) => {
                self.align = self.align.max(node.align);
                let (open, close) = style.struct_brackets();
                self.text(open.as_bytes());
                let mut first = true;
                for member in members {
                    if is_hidden(member) {
                        self.hidden(member);
                        continue;
                    }
                    style.put_separator(&mut self.pending, std::mem::take(&mut first));
                    if names || style.json {
                        style.put_name(&mut self.pending, &member.name);
                    }
                    self.field(member, names);
                }
                self.text(close.as_bytes());
            }
            _ => self.step(node.align, Kind::Walk(Box::new(node.clone()), names)),
        }
    }

    /// Adds a field that is not shown.
    pub(crate) fn hidden(&mut self, node: &Node) {
        let kind = match &node.kind {
            NodeKind::Int(read, _) if node.saves.is_empty() => Kind::Skip(u64::from(read.length)),
            _ => Kind::WalkBlindly(Box::new(node.clone())),
        };
        self.step(node.align, kind);
    }

    fn begin_string(&mut self) {
        self.text(self.program.style.palette.value.as_bytes());
        self.text(b"\"");
    }

    fn end_string(&mut self) {
        self.text(b"\"");
        self.text(self.program.style.palette.reset.as_bytes());
    }

    fn integer(&mut self, node: &Node, read: FixedRead, class: &Arc<IntClass>) {
        let style = self.program.style;
        let length = u32::from(read.length);
        if class.is_enum {
            let ready = (0..READY_VALUES).map(|value| {
                let mut buffer = Buffer::new(64);
                style.put_enumeration(&mut buffer, class, length, value);
                buffer.bytes().into()
            });
            return self.step(node.align, Kind::Enumeration(read, class.clone(), ready.collect()));
        }
        let kind = match class.base {
            DisplayBase::Hexadecimal if !style.json => Kind::Hexadecimal(read, digit_mask(length, 4)),
            DisplayBase::Octal | DisplayBase::Binary if !style.json => Kind::Walk(Box::new(node.clone()), false),
            _ if class.signed => Kind::Signed(read),
            _ => Kind::Unsigned(read),
        };
        let coloured = !matches!(kind, Kind::Walk(..));
        if coloured {
            self.text(style.palette.value.as_bytes());
        }
        if matches!(kind, Kind::Hexadecimal(..)) {
            self.text(b"0x");
        }
        self.step(node.align, kind);
        if coloured {
            self.text(style.palette.reset.as_bytes());
        }
    }
}

impl Program {
    /// Shows what is at the cursor.
    ///
    /// # Errors
    /// When the data is not what the layout says; some of it has then been put.
    #[inline]
    pub(crate) fn run(
        &self,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
        buffer: &mut Buffer,
    ) -> Result<(), DecodeError> {
        for step in &self.steps {
            buffer.put_padded(&self.literals, step.start as usize, step.length as usize);
            cursor.pos = cursor.pos.saturating_add(step.mask) & !step.mask;
            match &step.kind {
                Kind::Literal => {}
                Kind::Skip(bits) => cursor.pos = cursor.pos.saturating_add(*bits),
                Kind::Unsigned(read) => buffer.put_u64(cursor.fixed(*read)?),
                Kind::Signed(read) => buffer.put_i64(cursor.fixed(*read)? as i64),
                Kind::Hexadecimal(read, mask) => buffer.put_hexadecimal(cursor.fixed(*read)? & mask),
                Kind::Enumeration(read, class, ready) => {
                    let raw = cursor.fixed(*read)?;
                    match ready.get(raw as usize) {
                        Some(text) => buffer.put(text),
                        None => self.style.put_enumeration(buffer, class, u32::from(read.length), raw),
                    }
                }
                Kind::Text => self.put_string(buffer, cursor.terminated(1)?),
                Kind::FixedText(length) => {
                    let bytes = cursor.bytes(*length)?;
                    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                    self.put_string(buffer, bytes.get(..end).unwrap_or_default());
                }
                Kind::Walk(node, names) => {
                    walk(node, cursor, slots, &mut Shower::new(buffer, &self.style, *names))?;
                }
                Kind::WalkBlindly(node) => {
                    let length = buffer.len();
                    walk(node, cursor, slots, &mut Shower::new(buffer, &self.style, false))?;
                    buffer.truncate(length);
                }
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn put_string(&self, buffer: &mut Buffer, bytes: &[u8]) {
        if self.style.json { put_json(buffer, bytes) } else { put_text(buffer, bytes) }
    }
}
