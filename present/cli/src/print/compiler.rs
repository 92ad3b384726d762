//! Compiles layouts of event classes to line programs, once for each class.

use std::rc::Rc;
use std::sync::Arc;

use tracebraid_ctf::bits::FixedRead;
use tracebraid_ctf::layout::node::{Choice, Length, Node, NodeKind};
use tracebraid_ctf::layout::tree::{Part, Parts};
use tracebraid_ctf::schema::{DisplayBase, Encoding, IntClass};

use super::buffer::{Buffer, Padded};
use super::program::{Elements, Enumeration, LineOp, LineStep, Program, put_index};
use super::slot::LITERAL;
use super::style::Style;

/// The texts of enumeration values below this limit are precomputed.
const READY_VALUES: u64 = 64;
/// The texts of element indices below this limit are precomputed.
const READY_INDICES: u64 = 64;
/// Arrays of a constant length up to this limit are unrolled into steps.
const UNROLLED: u64 = 16;
/// Maximum depth of nested programs (of elements and options). Fields at a greater depth are shown
/// by walking over them.
const MOST_DEPTH: u32 = 8;

pub(crate) struct Compiler {
    program: Program,
    /// Constant text since the last value.
    pending: Buffer,
    /// Greatest alignment in bits since the last value.
    align: u32,
    /// Number of enclosing programs.
    depth: u32,
}

impl Compiler {
    pub(crate) fn new(style: Rc<Style>) -> Self {
        Self::at_depth(style, 0)
    }

    fn at_depth(style: Rc<Style>, depth: u32) -> Self {
        let program = Program {
            steps: Vec::new(),
            style,
        };
        Compiler {
            program,
            pending: Buffer::new(256),
            align: 1,
            depth,
        }
    }

    /// Adds constant text.
    pub(crate) fn text(&mut self, text: &[u8]) {
        self.pending.put(text);
    }

    pub(crate) fn finish(mut self) -> Program {
        self.step(1, LineOp::Literal);
        self.program.steps.shrink_to_fit();
        self.program
    }

    fn step(&mut self, align: u32, kind: LineOp) {
        let align = self.align.max(align).max(1);
        self.align = 1;
        if align > 128 {
            self.program.steps.push(LineStep {
                kind: LineOp::Align(align),
                length: 0,
                mask: 0,
                literal: [0; LITERAL],
            });
        }
        let (pieces, last) = self.pending.bytes().as_chunks::<LITERAL>();
        for piece in pieces {
            let length = LITERAL as u8;
            self.program.steps.push(LineStep {
                kind: LineOp::Literal,
                length,
                mask: 0,
                literal: *piece,
            });
        }
        let mut literal = [0; LITERAL];
        literal
            .iter_mut()
            .zip(last)
            .for_each(|(to, &from)| *to = from);
        let mask = (align.min(128) - 1) as u8;
        self.program.steps.push(LineStep {
            kind,
            length: last.len() as u8,
            mask,
            literal,
        });
        self.pending.clear();
    }

    /// Adds a field with all fields that it contains.
    pub(crate) fn field(&mut self, part: Part<'_>, names: bool) {
        let style = self.program.style.clone();
        let (begin, end) = style.struct_brackets();
        // The remaining members of each enclosing structure, and whether none has been shown yet.
        let mut open: Vec<(Parts<'_>, bool)> = Vec::new();
        let mut next = Some(part);
        loop {
            if let Some(part) = next.take() {
                if let NodeKind::Struct(_) = part.kind {
                    self.align = self.align.max(part.align);
                    self.text(begin.as_bytes());
                    open.push((part.parts(), true));
                } else {
                    self.value(part, names);
                }
            }
            let Some((members, first)) = open.last_mut() else {
                return;
            };
            match members.next() {
                Some(member) if style.hidden.hides(&member) => self.hidden(member),
                Some(member) => {
                    style.put_separator(&mut self.pending, std::mem::take(first));
                    if names || style.json {
                        style.put_name(&mut self.pending, &member.name);
                    }
                    next = Some(member);
                }
                None => {
                    self.text(end.as_bytes());
                    open.pop();
                }
            }
        }
    }

    /// Adds a field that is not a structure.
    fn value(&mut self, part: Part<'_>, names: bool) {
        match &part.kind {
            NodeKind::Int(read, class) => self.integer(part, *read, class),
            NodeKind::Str(Encoding::Utf8) => self.string(part.node(), LineOp::Text),
            NodeKind::SizedStr(length, Encoding::Utf8) => {
                self.string(part.node(), LineOp::SizedText(*length));
            }
            NodeKind::Array(length) if self.depth < MOST_DEPTH => self.array(part, *length, names),
            NodeKind::Variant(choice) if self.depth < MOST_DEPTH => {
                self.variant(part, choice, names)
            }
            _ => self.walked(part, names),
        }
    }

    fn walked(&mut self, part: Part<'_>, names: bool) {
        self.step(part.align, LineOp::Walk(part.to_tree(), names));
    }

    fn variant(&mut self, part: Part<'_>, choice: &Arc<Choice>, names: bool) {
        if part
            .parts()
            .any(|option| self.program.style.hidden.hides(&option))
        {
            return self.walked(part, names);
        }
        let options = part.parts().map(|option| {
            let mut compiler = Compiler::at_depth(self.program.style.clone(), self.depth + 1);
            let (open, close) = if self.program.style.json {
                ("", "")
            } else {
                ("{ ", " }")
            };
            compiler.text(open.as_bytes());
            compiler.field(option, names);
            compiler.text(close.as_bytes());
            compiler.finish()
        });
        let options = options.collect();
        self.step(
            part.align,
            LineOp::Variant(Box::new((choice.clone(), options))),
        );
    }

    /// Adds a step that skips a field without showing it.
    pub(crate) fn hidden(&mut self, part: Part<'_>) {
        let kind = match &part.kind {
            NodeKind::Int(read, _) if part.saves.is_empty() => LineOp::Skip(u64::from(read.length)),
            _ => LineOp::WalkBlindly(part.to_tree()),
        };
        self.step(part.align, kind);
    }

    fn array(&mut self, part: Part<'_>, length: Length, names: bool) {
        let Some(element) = part.element() else {
            return;
        };
        let style = self.program.style.clone();
        self.align = self.align.max(part.align);
        self.text(b"[");
        match length {
            Length::Static(length) if length <= UNROLLED && is_scalar(&element) => {
                for index in 0..length {
                    put_index(&style, &mut self.pending, index, names);
                    self.field(element, names);
                }
            }
            _ => {
                let mut compiler = Compiler::at_depth(style.clone(), self.depth + 1);
                compiler.field(element, names);
                let ready = |index| {
                    let mut buffer = Buffer::new(32);
                    put_index(&style, &mut buffer, index, names);
                    Padded::new(buffer.bytes())
                };
                let ready = (0..READY_INDICES).map(ready).collect();
                let elements = Elements {
                    length,
                    program: compiler.finish(),
                    ready,
                    tree: part.to_tree(),
                    names,
                };
                self.step(part.align, LineOp::Elements(Box::new(elements)));
            }
        }
        self.text(if style.json { b"]" } else { b" ]" });
    }

    fn string(&mut self, node: &Node, kind: LineOp) {
        self.text(self.program.style.palette.value.as_bytes());
        self.text(b"\"");
        self.step(node.align, kind);
        self.text(b"\"");
        self.text(self.program.style.palette.reset.as_bytes());
    }

    fn integer(&mut self, part: Part<'_>, read: FixedRead, class: &Arc<IntClass>) {
        let node = part.node();
        let style = self.program.style.clone();
        let length = u32::from(read.length);
        if !node.saves.is_empty() {
            self.step(node.align, LineOp::Keep(read, node.saves.clone()));
        }
        if class.is_enum {
            let ready = (0..READY_VALUES).map(|value| {
                let mut buffer = Buffer::new(64);
                style.put_enumeration(&mut buffer, class, length, value);
                Padded::new(buffer.bytes())
            });
            let ready = ready.collect();
            return self.step(
                node.align,
                LineOp::Enumeration(
                    read,
                    Box::new(Enumeration {
                        class: class.clone(),
                        ready,
                    }),
                ),
            );
        }
        // A negative number is shown in two's complement, which must be whole hexadecimal digits.
        let whole_digits = !class.signed || length.is_multiple_of(4);
        let kind = match class.base {
            _ if read.reversed => return self.walked(part, false),
            _ if style.json && class.signed => LineOp::Signed(read),
            _ if style.json => LineOp::Unsigned(read),
            DisplayBase::Hexadecimal if whole_digits => LineOp::Hexadecimal(read),
            DisplayBase::Decimal if class.signed => LineOp::Signed(read),
            DisplayBase::Decimal => LineOp::Unsigned(read),
            _ => return self.walked(part, false),
        };
        self.text(style.palette.value.as_bytes());
        if matches!(kind, LineOp::Hexadecimal(..)) {
            self.text(b"0x");
        }
        self.step(node.align, kind);
        self.text(style.palette.reset.as_bytes());
    }
}

fn is_scalar(node: &Node) -> bool {
    matches!(
        node.kind,
        NodeKind::Int(..) | NodeKind::Str(_) | NodeKind::SizedStr(Length::Static(_), _)
    )
}
