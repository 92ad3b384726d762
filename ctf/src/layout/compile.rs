//! Compiles nodes to skip programs.

use std::sync::Arc;

use super::node::{Choice, Length, Node, NodeKind, Selector};
use super::op::Op;
use super::skip::SkipProgram;
use super::slots::Slot;
use super::tree::{Part, Parts};
use crate::bits::FixedRead;
use crate::schema::ByteOrder;

/// State of the program at the current position, as far as it is known at compile time.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Bits to advance that no op contains yet.
    pending: u64,
    /// The position is `residue` modulo `modulus`, a power of two.
    modulus: u64,
    residue: u64,
    /// Byte order of the previous field, if it is known.
    order: Option<bool>,
    /// The program has not stored the byte order yet. It does so only if a later op may need it.
    late: bool,
}

impl Known {
    fn at((modulus, residue): (u64, u64)) -> Self {
        Known {
            pending: 0,
            modulus,
            residue,
            order: None,
            late: false,
        }
    }

    fn position(&self) -> (u64, u64) {
        (self.modulus, self.residue)
    }

    fn is_at_byte(&self) -> bool {
        self.modulus >= 8 && self.residue.is_multiple_of(8)
    }
}

/// A field that is being compiled, with its remaining parts.
struct Open<'n> {
    parts: Parts<'n>,
    what: OpenNode<'n>,
}

enum OpenNode<'n> {
    Struct,
    Array(Loop),
    Variant(Branches<'n>),
    /// Index of the op that tests, and the known position there.
    Optional(&'n Arc<Selector>, usize, (u64, u64)),
}

/// An array. It is compiled as a loop unless its elements turn out to have a constant size.
struct Loop {
    length: Length,
    align: u64,
    /// State before the array, number of ops before it, and the known position at its start.
    before: Known,
    ops: usize,
    start: (u64, u64),
    /// Index of the op after the one that aligns each element.
    body: usize,
}

struct Branches<'n> {
    choice: &'n Arc<Choice>,
    /// Index of the op that selects, and the known position there.
    switch: usize,
    start: (u64, u64),
    /// Start of each option, and the jump at its end.
    targets: Vec<u32>,
    jumps: Vec<usize>,
    /// Known position after the options compiled so far.
    end: Option<(u64, u64)>,
}

/// Compiles skip programs. Tracks the position modulo a power of two.
#[derive(Clone, Debug)]
pub(super) struct SkipBuilder {
    ops: Vec<Op>,
    known: Known,
    /// Whether the byte order may change within a byte.
    mixed: bool,
}

impl SkipBuilder {
    /// The program starts at a multiple of `align` bits.
    pub(super) fn new(align: u32, mixed: bool) -> Self {
        Self::at((u64::from(align.max(1)), 0), mixed)
    }

    /// The known position, as `(modulus, residue)`.
    pub(super) fn position(&self) -> (u64, u64) {
        self.known.position()
    }

    /// The program starts at a position `(modulus, residue)`.
    pub(super) fn at(position: (u64, u64), mixed: bool) -> Self {
        let known = Known::at(position);
        SkipBuilder {
            ops: Vec::new(),
            known,
            mixed,
        }
    }

    pub(super) fn finish(mut self) -> SkipProgram {
        self.tell_order();
        if self.ops.is_empty() {
            return SkipProgram::of_bits(self.known.pending);
        }
        self.flush();
        SkipProgram::of_ops(self.ops)
    }

    fn flush(&mut self) {
        if self.known.pending > 0 {
            self.ops
                .push(Op::Add(std::mem::take(&mut self.known.pending)));
        }
    }

    fn add(&mut self, bits: u64) {
        let known = &mut self.known;
        known.pending = known.pending.saturating_add(bits);
        known.residue = (known.residue + bits % known.modulus) % known.modulus;
    }

    pub(super) fn align(&mut self, align: u32) {
        let align = u64::from(align.max(1));
        if align <= self.known.modulus {
            self.add((align - self.known.residue % align) % align);
        } else {
            self.flush();
            self.ops.push(Op::Align(align as u32));
            (self.known.modulus, self.known.residue) = (align, 0);
        }
    }

    /// Only multiples of `unit` bits have been added since the last known position.
    fn blur(&mut self, unit: u64) {
        let unit = if unit == 0 {
            self.known.modulus
        } else {
            1 << unit.trailing_zeros()
        };
        self.known.modulus = self.known.modulus.min(unit);
        self.known.residue %= self.known.modulus;
    }

    fn put(&mut self, op: Op) {
        self.flush();
        self.ops.push(op);
    }

    /// Skips a field and all fields within it.
    pub(super) fn skip(&mut self, part: Part<'_>) {
        if self.plain(part.node()) {
            return;
        }
        let mut open = vec![self.open(part)];
        while let Some(top) = open.last_mut() {
            let part = top.parts.next();
            if let OpenNode::Variant(branches) = &mut top.what {
                self.end_option(branches);
                if part.is_some() {
                    self.begin_option(branches);
                }
            }
            match part {
                Some(part) if self.plain(part.node()) => {}
                Some(part) => {
                    let new = self.open(part);
                    open.push(new);
                }
                None => {
                    let done = open.pop();
                    done.into_iter().for_each(|done| self.end(done.what));
                }
            }
        }
    }

    /// Skips a field without parts; false if the field has parts.
    fn plain(&mut self, node: &Node) -> bool {
        self.align(node.align);
        match &node.kind {
            NodeKind::Int(read, _)
            | NodeKind::Bool(read)
            | NodeKind::BitArray(read, _)
            | NodeKind::BitMap(read, _) => self.integer(*read, &node.saves),
            NodeKind::WideInt(class) => {
                self.fixed(class.byte_order == ByteOrder::Big, u64::from(class.length));
            }
            NodeKind::Float(read) => self.fixed(read.big, u64::from(read.length)),
            NodeKind::WideFloat(half) => self.fixed(half.big, 128),
            NodeKind::VarInt(class) => self.bytes(Op::VarInt(class.signed, node.saves.clone())),
            NodeKind::Str(encoding) => self.bytes(Op::Str(encoding.unit_bytes() as u8)),
            NodeKind::SizedStr(length, encoding) if !is_whole(*length, encoding.unit_bytes()) => {
                self.bytes(Op::Units(*length, encoding.unit_bytes() as u8));
            }
            NodeKind::SizedStr(length, _) | NodeKind::Blob(length) => match length {
                Length::Static(bytes) => self.add(bytes.saturating_mul(8)),
                Length::Slot(slot) => self.repeat(*slot, 8, 8),
            },
            NodeKind::Struct(_)
            | NodeKind::Array(_)
            | NodeKind::Variant(_)
            | NodeKind::Optional(_) => {
                return false;
            }
        }
        true
    }

    /// Begins a field that has parts. It is aligned already.
    fn open<'n>(&mut self, part: Part<'n>) -> Open<'n> {
        let what = match &part.node().kind {
            NodeKind::Array(length) => {
                let (align, least) = part
                    .element()
                    .map_or((1, 0), |element| (element.align, element.minimum_bits));
                OpenNode::Array(self.begin_loop(*length, align, least))
            }
            NodeKind::Variant(choice) => OpenNode::Variant(self.begin_variant(choice)),
            NodeKind::Optional(selector) => {
                let (at, start) = self.begin_choice();
                OpenNode::Optional(selector, at, start)
            }
            _ => OpenNode::Struct,
        };
        let parts = part.parts();
        Open { parts, what }
    }

    fn end(&mut self, what: OpenNode<'_>) {
        match what {
            OpenNode::Struct => {}
            OpenNode::Array(array) => self.end_loop(array),
            OpenNode::Variant(branches) => self.end_variant(branches),
            OpenNode::Optional(selector, test, start) => {
                self.tell_order();
                self.flush();
                let end = self.ops.len() as u32;
                self.set(test, Op::Unless(selector.clone(), end));
                self.known = Known::at(meet(start, self.position()));
            }
        }
    }

    fn integer(&mut self, read: FixedRead, saves: &[Slot]) {
        self.check_order(read.big);
        for &slot in saves {
            let ahead = u32::try_from(self.known.pending).unwrap_or_else(|_| {
                self.flush();
                0
            });
            self.ops.push(Op::Save(read, ahead, slot));
        }
        self.add(u64::from(read.length));
        self.keep_order(read.big);
    }

    fn fixed(&mut self, big: bool, bits: u64) {
        self.check_order(big);
        self.add(bits);
        self.keep_order(big);
    }

    /// Skips a field of whole bytes.
    fn bytes(&mut self, op: Op) {
        self.put(op);
        self.blur(8);
    }

    /// Bits of a byte must not have different byte orders (CTF2-SPEC-2.0 section 6.4.3).
    fn check_order(&mut self, big: bool) {
        if self.mixed && !self.known.is_at_byte() && self.known.order != Some(big) {
            self.tell_order();
            self.put(Op::Order(big));
        }
    }

    fn keep_order(&mut self, big: bool) {
        if self.mixed && self.known.order != Some(big) {
            (self.known.order, self.known.late) = (Some(big), true);
        }
    }

    /// Emits an op that stores the known byte order, unless the position is at a byte boundary,
    /// where the byte order does not matter.
    fn tell_order(&mut self) {
        let known = self.known;
        if let Some(big) = known.order.filter(|_| known.late && !known.is_at_byte()) {
            self.put(Op::SetOrder(big));
            self.known.late = false;
        }
    }

    fn repeat(&mut self, slot: Slot, bits: u64, stride: u64) {
        self.put(Op::Repeat(slot, bits, stride));
        self.blur(bits);
        self.blur(stride);
    }

    /// Each element begins with an alignment op, so that the assumptions made for the body hold for
    /// all elements. One pass is enough, however deep arrays are nested.
    fn begin_loop(&mut self, length: Length, align: u32, least: u64) -> Loop {
        let (before, ops) = (self.known, self.ops.len());
        self.tell_order();
        self.flush();
        let start = self.position();
        self.ops.push(Op::Loop(length, 0, least));
        self.ops.push(Op::Align(align));
        let align = u64::from(align);
        self.known = Known::at((align, 0));
        Loop {
            length,
            align,
            before,
            ops,
            start,
            body: self.ops.len(),
        }
    }

    fn end_loop(&mut self, array: Loop) {
        let body = self.known;
        let is_plain = self.ops.len() == array.body;
        if is_plain && (body.pending == 0 || body.is_at_byte() || !body.late) {
            self.ops.truncate(array.ops);
            self.known = array.before;
            return self.elements(array.length, body.pending, array.align);
        }
        self.tell_order();
        self.flush();
        // The body begins with the alignment op.
        let count = (self.ops.len() + 1 - array.body) as u32;
        if let Some(Op::Loop(_, body, _)) = self.ops.get_mut(array.body - 2) {
            *body = count;
        }
        self.known = Known::at(meet(array.start, body.position()));
    }

    /// Skips elements of constant size.
    fn elements(&mut self, length: Length, bits: u64, align: u64) {
        let stride = bits.div_ceil(align).saturating_mul(align);
        match length {
            Length::Static(0) => {}
            length if bits == 0 => self.put(Op::Empty(length)),
            Length::Static(count) => {
                self.add((count - 1).saturating_mul(stride).saturating_add(bits))
            }
            Length::Slot(slot) => self.repeat(slot, bits, stride),
        }
    }

    /// Reserves the op that selects. Returns its index and the known position there.
    fn begin_choice(&mut self) -> (usize, (u64, u64)) {
        self.tell_order();
        self.flush();
        let start = self.position();
        self.ops.push(Op::Jump(0));
        self.known = Known::at(start);
        (self.ops.len() - 1, start)
    }

    fn begin_variant<'n>(&mut self, choice: &'n Arc<Choice>) -> Branches<'n> {
        let (switch, start) = self.begin_choice();
        Branches {
            choice,
            switch,
            start,
            targets: Vec::new(),
            jumps: Vec::new(),
            end: None,
        }
    }

    fn begin_option(&mut self, branches: &mut Branches<'_>) {
        branches.targets.push(self.ops.len() as u32);
        self.known = Known::at(branches.start);
    }

    /// Ends the option that was begun, if any.
    fn end_option(&mut self, branches: &mut Branches<'_>) {
        if branches.targets.len() == branches.jumps.len() {
            return;
        }
        self.tell_order();
        self.flush();
        let end = self.position();
        branches.end = Some(branches.end.map_or(end, |other| meet(other, end)));
        branches.jumps.push(self.ops.len());
        self.ops.push(Op::Jump(0));
    }

    fn end_variant(&mut self, branches: Branches<'_>) {
        let end = self.ops.len() as u32;
        for jump in branches.jumps {
            self.set(jump, Op::Jump(end));
        }
        let switch = Op::Switch(branches.choice.clone(), branches.targets.into());
        self.set(branches.switch, switch);
        self.known = Known::at(branches.end.unwrap_or(branches.start));
    }

    fn set(&mut self, at: usize, op: Op) {
        if let Some(place) = self.ops.get_mut(at) {
            *place = op;
        }
    }
}

/// True if the length is certainly a whole number of code units.
fn is_whole(length: Length, unit: usize) -> bool {
    match length {
        Length::Static(bytes) => bytes % unit as u64 == 0,
        Length::Slot(_) => unit == 1,
    }
}

/// The known position if it may be either of two.
fn meet(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    let mut modulus = a.0.min(b.0);
    while a.1 % modulus != b.1 % modulus {
        modulus /= 2;
    }
    (modulus, a.1 % modulus)
}
