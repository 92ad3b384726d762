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
    /// String of that many bytes in code units of so many.
    Units(Length, u8),
    /// As many times as the slot says: that many bits, each stride apart.
    Repeat(Slot, u64, u64),
    /// That many elements without a single bit.
    Empty(Length),
    /// The body (the next so many ops) that often; an element takes at least so many bits.
    Loop(Length, u32, u64),
    /// A field of that byte order (true: big) begins here.
    Order(bool),
    /// A field of that byte order ended here.
    SetOrder(bool),
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
    /// It counts array elements without a bit, or keeps byte orders.
    has_state: bool,
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
        if self.has_state {
            return self.run_with_state(cursor, slots);
        }
        run(&self.ops, 0, self.ops.len(), cursor, slots)?;
        cursor.need(0)
    }

    /// What failed may be tried again with more bytes: it must then find things as they were.
    #[cold]
    fn run_with_state(&self, cursor: &mut Cursor<'_>, slots: &mut [u64]) -> Result<(), DecodeError> {
        let state = [EMPTY, ORDER].map(|place| special(slots, place).map(|value| *value));
        let result = run(&self.ops, 0, self.ops.len(), cursor, slots).and_then(|()| cursor.need(0));
        if result.is_err() {
            restore(slots, state);
        }
        result
    }

    /// The same for fields that have been got over before: what they cost is not counted again.
    #[inline(always)]
    pub(crate) fn run_again(&self, cursor: &mut Cursor<'_>, slots: &mut [u64]) -> Result<(), DecodeError> {
        if !self.has_state {
            return self.run(cursor, slots);
        }
        let state = [EMPTY, ORDER].map(|place| special(slots, place).map(|value| *value));
        let result = self.run(cursor, slots);
        restore(slots, state);
        result
    }

    /// The program, if it finds out what walking over the same fields does not.
    pub(super) fn if_it_checks(self) -> Option<SkipProgram> {
        self.has_state.then_some(self)
    }
}

/// Registers behind those of fields: how many array elements without a bit the packet had, and
/// the byte order of the last fixed-length field (0: none, 1: little, 2: big endian).
pub(super) const SPECIAL_SLOTS: usize = 2;
const EMPTY: usize = 1;
const ORDER: usize = 2;

fn special(slots: &mut [u64], place: usize) -> Option<&mut u64> {
    let index = slots.len().checked_sub(place)?;
    slots.get_mut(index)
}

fn restore(slots: &mut [u64], state: [Option<u64>; 2]) {
    for (place, kept) in [EMPTY, ORDER].into_iter().zip(state) {
        if let (Some(value), Some(kept)) = (special(slots, place), kept) {
            *value = kept;
        }
    }
}

/// Prepares the registers for a packet.
pub(crate) fn start_packet(slots: &mut [u64]) {
    restore(slots, [Some(0), Some(0)]);
}

/// Counts elements without a bit. They could be repeated for ever at no cost in data: a packet
/// may have so many, and one more for each of its bits.
fn spend(slots: &mut [u64], cursor: &Cursor<'_>, count: u64) -> Result<(), DecodeError> {
    let Some(spent) = special(slots, EMPTY) else {
        return Ok(());
    };
    *spent = spent.saturating_add(count);
    if *spent > MOST_EMPTY_ELEMENTS.saturating_add(cursor.pos) {
        return Err(DecodeError::EmptyElements { at: cursor.pos });
    }
    Ok(())
}

const MOST_EMPTY_ELEMENTS: u64 = 1 << 20;

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
                let error = DecodeError::Length {
                    at: cursor.pos,
                    length: count,
                };
                if count > 0 {
                    let bits = (count - 1)
                        .checked_mul(*stride)
                        .and_then(|sum| sum.checked_add(*bits))
                        .ok_or(error)?;
                    cursor.need(bits).map_err(|_| DecodeError::TooLong {
                        at: cursor.pos,
                        length: count,
                        wanted: bits,
                    })?;
                    cursor.pos += bits;
                }
            }
            Op::Units(length, unit) => {
                let start = cursor.pos;
                let bytes = cursor.bytes(count(*length, slots, cursor, 8)?)?;
                let unit = usize::from(*unit);
                let is_whole = bytes.len() % unit == 0;
                if !is_whole && crate::walk::until_null(bytes, unit).len() == bytes.len() {
                    return Err(DecodeError::CodeUnit { at: start });
                }
            }
            Op::Empty(length) => spend(slots, cursor, count(*length, slots, cursor, 0)?)?,
            Op::Order(big) => {
                let last = special(slots, ORDER).map_or(0, |order| *order);
                if !cursor.pos.is_multiple_of(8) && last != 0 && last != 1 + u64::from(*big) {
                    return Err(DecodeError::ByteOrder { at: cursor.pos });
                }
            }
            Op::SetOrder(big) => {
                if let Some(order) = special(slots, ORDER) {
                    *order = 1 + u64::from(*big);
                }
            }
            Op::Loop(length, body, least) => {
                let count = count(*length, slots, cursor, *least)?;
                for _ in 0..count {
                    let before = cursor.pos;
                    run(ops, at, at + *body as usize, cursor, slots)?;
                    cursor.need(0)?;
                    if cursor.pos == before {
                        spend(slots, cursor, 1)?;
                    }
                }
                at += *body as usize;
            }
            Op::Switch(selector, targets) => {
                let value = get(slots, selector.slot);
                let option = selector
                    .select(value)
                    .and_then(|option| targets.get(option as usize));
                at = *option.ok_or(DecodeError::NoOption {
                    at: cursor.pos,
                    selector: value,
                })? as usize;
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

/// The number of elements of at least `least` bits, refused when the rest of the packet cannot
/// hold them.
#[inline(always)]
pub(crate) fn count(
    length: Length,
    slots: &[u64],
    cursor: &Cursor<'_>,
    least: u64,
) -> Result<u64, DecodeError> {
    let count = match length {
        Length::Static(count) => count,
        Length::Slot(slot) => get(slots, slot),
    };
    let rest = cursor.end.saturating_sub(cursor.pos);
    if least > 0 && count > rest / least {
        Err(DecodeError::Length {
            at: cursor.pos,
            length: count,
        })
    } else {
        Ok(count)
    }
}

#[inline(always)]
pub(crate) fn get(slots: &[u64], slot: Slot) -> u64 {
    // No length and no selector is that large: what has no register is reported.
    slots.get(usize::from(slot)).copied().unwrap_or(u64::MAX)
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
    /// Whether the byte order may change within a byte.
    mixed: bool,
    /// The byte order of the field before, if it is known.
    order: Option<bool>,
    /// The register has yet to be told of it: it is, only if someone may look.
    late: bool,
}

impl SkipBuilder {
    /// The program starts at a multiple of `align` bits.
    pub(super) fn new(align: u32, mixed: bool) -> Self {
        Self::at((u64::from(align.max(1)), 0), mixed)
    }

    /// What is known of the position: it is `residue` modulo `modulus`.
    pub(super) fn position(&self) -> (u64, u64) {
        (self.modulus, self.residue)
    }

    /// Starts from what is known of the position.
    pub(super) fn at((modulus, residue): (u64, u64), mixed: bool) -> Self {
        let byte_start = modulus >= 8 && residue % 8 == 0;
        SkipBuilder {
            ops: Vec::new(),
            pending: 0,
            modulus,
            residue,
            byte_start,
            mixed,
            order: None,
            late: false,
        }
    }

    pub(super) fn finish(mut self) -> SkipProgram {
        self.tell_order();
        let constant = self.ops.is_empty().then_some(self.pending);
        self.flush();
        let state = |op: &Op| {
            let order = matches!(op, Op::Order(_) | Op::SetOrder(_));
            order || matches!(op, Op::Empty(_) | Op::Loop(..))
        };
        let has_state = self.ops.iter().any(state);
        let shape = if self.byte_start && constant.is_none() {
            Shape::new(&self.ops).map(Box::new)
        } else {
            None
        };
        SkipProgram {
            ops: self.ops.into(),
            constant,
            has_state,
            shape,
        }
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
        let unit = if unit == 0 {
            self.modulus
        } else {
            1 << unit.trailing_zeros()
        };
        self.modulus = self.modulus.min(unit);
        self.residue %= self.modulus;
    }

    /// Gets over a field.
    pub(super) fn skip(&mut self, node: &Node) {
        self.align(node.align);
        match &node.kind {
            NodeKind::Int(read, _)
            | NodeKind::Bool(read)
            | NodeKind::BitArray(read, _)
            | NodeKind::BitMap(read, _) => {
                self.check_order(read.big);
                for &slot in &node.saves {
                    let ahead = u32::try_from(self.pending).unwrap_or_else(|_| {
                        self.flush();
                        0
                    });
                    self.ops.push(Op::Save(*read, ahead, slot));
                }
                self.add(u64::from(read.length));
                self.keep_order(read.big);
            }
            NodeKind::WideInt(class) => {
                let big = class.byte_order == crate::schema::ByteOrder::Big;
                self.check_order(big);
                self.add(u64::from(class.length));
                self.keep_order(big);
            }
            NodeKind::VarInt(class) => {
                self.flush();
                self.ops.push(Op::VarInt(class.signed, node.saves.clone()));
                self.blur(8);
            }
            NodeKind::Float(read) => self.float(*read, u64::from(read.length)),
            NodeKind::WideFloat(half) => self.float(*half, 128),
            NodeKind::Str(encoding) => {
                self.flush();
                self.ops.push(Op::Str(encoding.unit_bytes() as u8));
                self.blur(8);
            }
            NodeKind::SizedStr(length, encoding) if !is_whole(*length, encoding.unit_bytes()) => {
                self.flush();
                self.ops.push(Op::Units(*length, encoding.unit_bytes() as u8));
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

    fn float(&mut self, read: FixedRead, bits: u64) {
        self.check_order(read.big);
        self.add(bits);
        self.keep_order(read.big);
    }

    fn is_at_byte(&self) -> bool {
        self.modulus >= 8 && self.residue.is_multiple_of(8)
    }

    /// Bits of one byte must not be of two byte orders (CTF2-SPEC-2.0 section 6.4.3).
    fn check_order(&mut self, big: bool) {
        if self.mixed && !self.is_at_byte() && self.order != Some(big) {
            self.tell_order();
            self.flush();
            self.ops.push(Op::Order(big));
        }
    }

    fn keep_order(&mut self, big: bool) {
        if self.mixed && self.order != Some(big) {
            (self.order, self.late) = (Some(big), true);
        }
    }

    /// Puts what is known of the byte order where the program can look it up, unless a byte begins
    /// here, to which it does not matter.
    fn tell_order(&mut self) {
        if let Some(big) = self.order.filter(|_| self.late && !self.is_at_byte()) {
            self.flush();
            self.ops.push(Op::SetOrder(big));
            self.late = false;
        }
    }

    /// What is known is no longer so for certain.
    fn forget_order(&mut self) {
        (self.order, self.late) = (None, false);
    }

    fn repeat(&mut self, slot: Slot, bits: u64, stride: u64) {
        self.flush();
        self.ops.push(Op::Repeat(slot, bits, stride));
        self.blur(bits);
        self.blur(stride);
    }

    fn array(&mut self, length: Length, element: &Node) {
        let align = u64::from(element.align);
        let mut body = SkipBuilder::new(element.align, self.mixed);
        body.skip(element);
        if body.ops.is_empty() && body.pending == 0 {
            if length != Length::Static(0) {
                self.flush();
                self.ops.push(Op::Empty(length));
            }
            return;
        }
        if body.ops.is_empty() && (body.is_at_byte() || !body.late) {
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
        self.tell_order();
        self.flush();
        let before = (self.modulus, self.residue);
        let after = body.position();
        body.tell_order();
        body.flush();
        let base = self.ops.len() as u32 + 2;
        self.ops
            .push(Op::Loop(length, body.ops.len() as u32 + 1, element.minimum_bits));
        self.ops.push(Op::Align(element.align));
        self.ops.extend(body.ops.into_iter().map(|op| op.moved(base)));
        (self.modulus, self.residue) = meet(before, after);
        self.forget_order();
    }

    fn variant(&mut self, selector: &Selector, options: &[Node]) {
        self.tell_order();
        self.flush();
        let before = (self.modulus, self.residue);
        let switch = self.ops.len();
        self.ops.push(Op::Jump(0));
        let (mut targets, mut jumps, mut after) = (Vec::new(), Vec::new(), None);
        for option in options {
            targets.push(self.ops.len() as u32);
            (self.modulus, self.residue) = before;
            self.forget_order();
            self.skip(option);
            self.tell_order();
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
        self.forget_order();
    }

    fn optional(&mut self, selector: &Selector, element: &Node) {
        self.tell_order();
        self.flush();
        let before = (self.modulus, self.residue);
        let test = self.ops.len();
        self.ops.push(Op::Jump(0));
        self.forget_order();
        self.skip(element);
        self.tell_order();
        self.flush();
        self.ops[test] = Op::Unless(selector.clone(), self.ops.len() as u32);
        (self.modulus, self.residue) = meet(before, (self.modulus, self.residue));
        self.forget_order();
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

/// True if the length is known to be a whole number of code units.
fn is_whole(length: Length, unit: usize) -> bool {
    match length {
        Length::Static(bytes) => bytes % unit as u64 == 0,
        Length::Slot(_) => unit == 1,
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
