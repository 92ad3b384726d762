//! Skip programs: how to get over fields without looking at them.
//!
//! Everything at a constant distance is merged into one addition. What follows a field of
//! variable length is walked. Known alignments are computed away.

use super::node::{Length, Node, NodeKind, Selector};
use super::shape::Shape;
use super::slots::Slot;
use crate::bits::{Cursor, DecodeError, FixedRead};

/// One step.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Go on by that many bits.
    Add(u64),
    /// Go to the next multiple of that many bits.
    Align(u32),
    /// Keep the field that many bits ahead.
    Save(FixedRead, u32, Slot),
    /// Variable-length integer; kept in the slots.
    VarInt(bool, Box<[Slot]>),
    /// Null-terminated string of code units of that many bytes.
    Str(u8),
    /// As many times as the slot says: that many bits, each stride apart.
    Repeat(Slot, u64, u64),
    /// The body (the next ops) that often.
    Loop(Length, u32, bool),
    /// Go to the op of the selected option.
    Switch(Selector, Box<[u32]>),
    /// Selected: go on; else go to that op.
    Unless(Selector, u32),
    /// Go to that op.
    Jump(u32),
}

/// Decodes nothing; moves over fields and keeps what later lengths and selectors need.
#[derive(Clone, Debug, Default)]
pub struct SkipProgram {
    ops: Box<[Op]>,
    /// If the program is one addition: that many bits.
    constant: Option<u64>,
    /// The program in a faster form, if it starts at a byte boundary and has one.
    shape: Option<Box<Shape>>,
}

impl SkipProgram {
    /// A faster form for records that start at byte boundaries; it keeps no registers.
    pub fn shape(&self) -> Option<&Shape> {
        self.shape.as_deref()
    }

    /// The distance in bits, if it does not depend on the data.
    pub fn constant(&self) -> Option<u64> {
        self.constant
    }

    /// Moves the cursor over the fields.
    #[inline]
    pub fn run(&self, cursor: &mut Cursor<'_>, slots: &mut [u64]) -> Result<(), DecodeError> {
        if let Some(bits) = self.constant {
            cursor.need(bits)?;
            cursor.pos += bits;
            return Ok(());
        }
        run(&self.ops, 0, self.ops.len(), cursor, slots)?;
        cursor.need(0)
    }
}

fn run(
    ops: &[Op],
    mut at: usize,
    end: usize,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
) -> Result<(), DecodeError> {
    while at < end {
        let Some(op) = ops.get(at) else { break };
        at += 1;
        match op {
            Op::Add(bits) => cursor.pos = cursor.pos.saturating_add(*bits),
            Op::Align(align) => cursor.align(*align),
            Op::Save(read, ahead, slot) => {
                let mut there = *cursor;
                there.pos = there.pos.saturating_add(u64::from(*ahead));
                set(slots, *slot, there.fixed(*read)?);
            }
            Op::VarInt(signed, saves) => {
                let value = cursor.leb128(*signed)?;
                saves.iter().for_each(|&slot| set(slots, slot, value));
            }
            Op::Str(unit) => {
                cursor.terminated(usize::from(*unit))?;
            }
            Op::Repeat(slot, bits, stride) => {
                let count = get(slots, *slot);
                let error = DecodeError::Length { at: cursor.pos, length: count };
                if count > 0 {
                    let bits = (count - 1).checked_mul(*stride).and_then(|sum| sum.checked_add(*bits)).ok_or(error)?;
                    cursor.need(bits)?;
                    cursor.pos += bits;
                }
            }
            Op::Loop(length, body, empty) => {
                let count = count(*length, slots, cursor, *empty)?;
                for _ in 0..count {
                    run(ops, at, at + *body as usize, cursor, slots)?;
                    cursor.need(0)?;
                }
                at += *body as usize;
            }
            Op::Switch(selector, targets) => {
                let value = get(slots, selector.slot);
                let option = selector.select(value).and_then(|option| targets.get(option as usize));
                at = *option.ok_or(DecodeError::NoOption { at: cursor.pos, selector: value })? as usize;
            }
            Op::Unless(selector, target) => {
                if selector.select(get(slots, selector.slot)).is_none() {
                    at = *target as usize;
                }
            }
            Op::Jump(target) => at = *target as usize,
        }
    }
    Ok(())
}

/// Elements without bits could be repeated for ever at no cost in data; no tracer writes more
/// than this many.
const MOST_EMPTY_ELEMENTS: u64 = 1 << 20;

/// The number of elements, refused when the rest of the packet cannot hold them.
#[inline(always)]
pub(crate) fn count(
    length: Length,
    slots: &[u64],
    cursor: &Cursor<'_>,
    empty: bool,
) -> Result<u64, DecodeError> {
    let count = match length {
        Length::Static(count) => count,
        Length::Slot(slot) => get(slots, slot),
    };
    let most = if empty { MOST_EMPTY_ELEMENTS } else { cursor.end.saturating_sub(cursor.pos) };
    if count > most { Err(DecodeError::Length { at: cursor.pos, length: count }) } else { Ok(count) }
}

#[inline(always)]
pub(crate) fn get(slots: &[u64], slot: Slot) -> u64 {
    slots.get(usize::from(slot)).copied().unwrap_or(0)
}

#[inline(always)]
pub(crate) fn set(slots: &mut [u64], slot: Slot, value: u64) {
    if let Some(place) = slots.get_mut(usize::from(slot)) {
        *place = value;
    }
}

/// Compiles skip programs. Knows the position modulo a power of two.
#[derive(Clone, Debug)]
pub(super) struct SkipBuilder {
    ops: Vec<Op>,
    pending: u64,
    modulus: u64,
    residue: u64,
    byte_start: bool,
}

impl SkipBuilder {
    /// The program starts at a multiple of `align` bits.
    pub(super) fn new(align: u32) -> Self {
        SkipBuilder { ops: Vec::new(), pending: 0, modulus: u64::from(align.max(1)), residue: 0, byte_start: align >= 8 }
    }

    /// What is known of the position: it is `residue` modulo `modulus`.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.modulus, self.residue)
    }

    /// Starts from what is known of the position.
    pub(super) fn at((modulus, residue): (u64, u64)) -> Self {
        SkipBuilder { ops: Vec::new(), pending: 0, modulus, residue, byte_start: modulus >= 8 && residue % 8 == 0 }
    }

    pub(super) fn finish(mut self) -> SkipProgram {
        let constant = self.ops.is_empty().then_some(self.pending);
        self.flush();
        let shape = if self.byte_start && constant.is_none() { Shape::new(&self.ops).map(Box::new) } else { None };
        SkipProgram { ops: self.ops.into(), constant, shape }
    }

    fn flush(&mut self) {
        if self.pending > 0 {
            self.ops.push(Op::Add(std::mem::take(&mut self.pending)));
        }
    }

    fn add(&mut self, bits: u64) {
        self.pending = self.pending.saturating_add(bits);
        self.residue = (self.residue + bits % self.modulus) % self.modulus;
    }

    pub(super) fn align(&mut self, align: u32) {
        let align = u64::from(align.max(1));
        if align <= self.modulus {
            self.add((align - self.residue % align) % align);
        } else {
            self.flush();
            self.ops.push(Op::Align(align as u32));
            (self.modulus, self.residue) = (align, 0);
        }
    }

    /// Only multiples of `unit` bits have been added since the last known position.
    fn blur(&mut self, unit: u64) {
        let unit = if unit == 0 { self.modulus } else { 1 << unit.trailing_zeros() };
        self.modulus = self.modulus.min(unit);
        self.residue %= self.modulus;
    }

    /// Gets over a field.
    pub(super) fn skip(&mut self, node: &Node) {
        self.align(node.align);
        match &node.kind {
            NodeKind::Int(read, _) | NodeKind::Bool(read) | NodeKind::BitArray(read, _) | NodeKind::BitMap(read, _) => {
                for &slot in &node.saves {
                    self.ops.push(Op::Save(*read, u32::try_from(self.pending).unwrap_or(u32::MAX), slot));
                }
                self.add(u64::from(read.length));
            }
            NodeKind::WideInt(class) => self.add(u64::from(class.length)),
            NodeKind::VarInt(class) => {
                self.flush();
                self.ops.push(Op::VarInt(class.signed, node.saves.clone()));
                self.blur(8);
            }
            NodeKind::Float(read) => self.add(u64::from(read.length)),
            NodeKind::WideFloat(_) => self.add(128),
            NodeKind::Str(encoding) => {
                self.flush();
                self.ops.push(Op::Str(encoding.unit_bytes() as u8));
                self.blur(8);
            }
            NodeKind::SizedStr(length, _) | NodeKind::Blob(length) => match length {
                Length::Static(bytes) => self.add(bytes.saturating_mul(8)),
                Length::Slot(slot) => self.repeat(*slot, 8, 8),
            },
            NodeKind::Array(length, element) => self.array(*length, element),
            NodeKind::Struct(members) => members.iter().for_each(|member| self.skip(member)),
            NodeKind::Variant(selector, options) => self.variant(selector, options),
            NodeKind::Optional(selector, element) => self.optional(selector, element),
        }
    }

    fn repeat(&mut self, slot: Slot, bits: u64, stride: u64) {
        self.flush();
        self.ops.push(Op::Repeat(slot, bits, stride));
        self.blur(bits);
        self.blur(stride);
    }

    fn array(&mut self, length: Length, element: &Node) {
        let align = u64::from(element.align);
        let mut body = SkipBuilder::new(element.align);
        body.skip(element);
        if body.ops.is_empty() {
            let bits = body.pending;
            let stride = bits.div_ceil(align).saturating_mul(align);
            match length {
                Length::Static(0) => {}
                Length::Static(count) => self.add((count - 1).saturating_mul(stride).saturating_add(bits)),
                Length::Slot(slot) => self.repeat(slot, bits, stride),
            }
            return;
        }
        // Each element begins by aligning itself, so that what the body was compiled with holds for
        // all of them: one pass is enough, however deep arrays are nested.
        self.flush();
        let before = (self.modulus, self.residue);
        let after = body.position();
        body.flush();
        let base = self.ops.len() as u32 + 2;
        self.ops.push(Op::Loop(length, body.ops.len() as u32 + 1, minimum_bits(element) == 0));
        self.ops.push(Op::Align(element.align));
        self.ops.extend(body.ops.into_iter().map(|op| op.moved(base)));
        (self.modulus, self.residue) = meet(before, after);
    }

    fn variant(&mut self, selector: &Selector, options: &[Node]) {
        self.flush();
        let before = (self.modulus, self.residue);
        let switch = self.ops.len();
        self.ops.push(Op::Jump(0));
        let (mut targets, mut jumps, mut after) = (Vec::new(), Vec::new(), None);
        for option in options {
            targets.push(self.ops.len() as u32);
            (self.modulus, self.residue) = before;
            self.skip(option);
            self.flush();
            let position = (self.modulus, self.residue);
            after = Some(after.map_or(position, |after| meet(after, position)));
            jumps.push(self.ops.len());
            self.ops.push(Op::Jump(0));
        }
        let end = self.ops.len() as u32;
        for jump in jumps {
            self.ops[jump] = Op::Jump(end);
        }
        self.ops[switch] = Op::Switch(selector.clone(), targets.into());
        (self.modulus, self.residue) = after.unwrap_or(before);
    }

    fn optional(&mut self, selector: &Selector, element: &Node) {
        self.flush();
        let before = (self.modulus, self.residue);
        let test = self.ops.len();
        self.ops.push(Op::Jump(0));
        self.skip(element);
        self.flush();
        self.ops[test] = Op::Unless(selector.clone(), self.ops.len() as u32);
        (self.modulus, self.residue) = meet(before, (self.modulus, self.residue));
    }
}

impl Op {
    /// The op with its jump targets moved.
    fn moved(self, by: u32) -> Op {
        match self {
            Op::Switch(selector, targets) => {
                Op::Switch(selector, targets.iter().map(|target| target + by).collect())
            }
            Op::Unless(selector, target) => Op::Unless(selector, target + by),
            Op::Jump(target) => Op::Jump(target + by),
            op => op,
        }
    }
}

/// What is known of a position that may be either.
fn meet(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    let mut modulus = a.0.min(b.0);
    while a.1 % modulus != b.1 % modulus {
        modulus /= 2;
    }
    (modulus, a.1 % modulus)
}

/// The least number of bits that a field takes, alignment aside.
pub(crate) fn minimum_bits(node: &Node) -> u64 {
    match &node.kind {
        NodeKind::Int(read, _)
        | NodeKind::Bool(read)
        | NodeKind::BitArray(read, _)
        | NodeKind::BitMap(read, _)
        | NodeKind::Float(read) => u64::from(read.length),
        NodeKind::WideInt(class) => u64::from(class.length),
        NodeKind::WideFloat(_) => 128,
        NodeKind::VarInt(_) => 8,
        NodeKind::Str(encoding) => encoding.unit_bytes() as u64 * 8,
        NodeKind::SizedStr(Length::Static(bytes), _) | NodeKind::Blob(Length::Static(bytes)) => {
            bytes.saturating_mul(8)
        }
        NodeKind::SizedStr(..) | NodeKind::Blob(_) => 0,
        NodeKind::Array(Length::Static(count), element) => count.saturating_mul(minimum_bits(element)),
        NodeKind::Array(..) | NodeKind::Optional(..) => 0,
        NodeKind::Struct(members) => {
            members.iter().fold(0u64, |sum, member| sum.saturating_add(minimum_bits(member)))
        }
        NodeKind::Variant(_, options) => options.iter().map(minimum_bits).min().unwrap_or(0),
    }
}
