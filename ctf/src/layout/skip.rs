//! Skip programs: advance past fields without decoding them.
//!
//! All fields at a constant distance are merged into a single addition. Fields after a field of
//! variable length are skipped at run time. Known alignments are computed at compile time.

use super::node::{Choice, Length};
use super::op::Op;
use super::shape::Shape;
use super::slots::Slot;
use crate::bits::{Cursor, DecodeError};
use crate::stack::Stack;

/// Advances past fields without decoding them, and stores the values that later lengths and
/// selectors need.
#[derive(Clone, Debug)]
pub struct SkipProgram(Way);

#[derive(Clone, Debug)]
enum Way {
    /// A constant number of bits.
    Constant(u64),
    Steps(Box<Steps>),
}

#[derive(Clone, Debug)]
struct Steps {
    ops: Box<[Op]>,
    /// The program counts array elements of zero bits, stores byte orders, or has loops.
    has_state: bool,
    /// The program in a faster form: see [`SkipProgram::keep_shape`].
    shape: Option<Shape>,
}

impl Default for SkipProgram {
    fn default() -> Self {
        SkipProgram(Way::Constant(0))
    }
}

impl SkipProgram {
    pub(super) fn of_bits(bits: u64) -> Self {
        SkipProgram(Way::Constant(bits))
    }

    pub(super) fn of_ops(ops: Vec<Op>) -> Self {
        let state = |op: &Op| {
            let order = matches!(op, Op::Order(_) | Op::SetOrder(_));
            order || matches!(op, Op::Empty(_) | Op::Loop(..))
        };
        SkipProgram(Way::Steps(Box::new(Steps {
            has_state: ops.iter().any(state),
            shape: None,
            ops: ops.into(),
        })))
    }

    /// The program in a faster form, which uses no slots: see [`Shape::new`].
    pub(super) fn shape(&self, residue: u64, ends_in_byte: bool) -> Option<Shape> {
        match &self.0 {
            Way::Constant(bits) => Shape::new(&[Op::Add(*bits)], residue, ends_in_byte),
            Way::Steps(steps) => Shape::new(&steps.ops, residue, ends_in_byte),
        }
    }

    /// Stores a faster form for event records that begin at byte boundaries.
    pub(super) fn keep_shape(&mut self, shape: Option<Shape>) {
        if let Way::Steps(steps) = &mut self.0 {
            steps.shape = shape;
        }
    }

    pub(super) fn kept_shape(&self) -> Option<&Shape> {
        match &self.0 {
            Way::Constant(_) => None,
            Way::Steps(steps) => steps.shape.as_ref(),
        }
    }

    /// The distance in bits, if it does not depend on the data.
    pub fn constant(&self) -> Option<u64> {
        match self.0 {
            Way::Constant(bits) => Some(bits),
            Way::Steps(_) => None,
        }
    }

    /// Advances the cursor past the fields.
    #[inline]
    pub fn run(&self, cursor: &mut Cursor<'_>, slots: &mut [u64]) -> Result<(), DecodeError> {
        match &self.0 {
            Way::Constant(bits) => {
                cursor.need(*bits)?;
                cursor.pos += bits;
                Ok(())
            }
            Way::Steps(steps) if steps.has_state => steps.run_with_state(cursor, slots),
            Way::Steps(steps) => {
                run(&steps.ops, cursor, slots)?;
                cursor.need(0)
            }
        }
    }

    /// Like [`SkipProgram::run`] for fields that have been skipped before: elements of zero bits
    /// are not counted again.
    #[inline(always)]
    pub(crate) fn run_again(
        &self,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
    ) -> Result<(), DecodeError> {
        if !self.has_state() {
            return self.run(cursor, slots);
        }
        let state = [EMPTY, ORDER].map(|place| special(slots, place).map(|value| *value));
        let result = self.run(cursor, slots);
        restore(slots, state);
        result
    }

    #[inline(always)]
    fn has_state(&self) -> bool {
        matches!(&self.0, Way::Steps(steps) if steps.has_state)
    }

    /// The program, if it detects faults that walking over the same fields does not.
    pub(super) fn if_it_checks(self) -> Option<SkipProgram> {
        self.has_state().then_some(self)
    }
}

impl Steps {
    /// On failure, restores the state, since the program may run again with more bytes.
    #[cold]
    fn run_with_state(
        &self,
        cursor: &mut Cursor<'_>,
        slots: &mut [u64],
    ) -> Result<(), DecodeError> {
        let state = [EMPTY, ORDER].map(|place| special(slots, place).map(|value| *value));
        let result = run_loops(&self.ops, cursor, slots).and_then(|()| cursor.need(0));
        if result.is_err() {
            restore(slots, state);
        }
        result
    }
}

/// Registers after those of fields: the number of array elements of zero bits in the packet so far,
/// and the byte order of the last fixed-length field (0: none, 1: little, 2: big endian).
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

/// Counts elements of zero bits, which could be repeated for ever at no cost in data. A packet may
/// have `MOST_EMPTY_ELEMENTS` of them, plus one for each of its bits.
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

/// Runs a program without loops.
fn run(ops: &[Op], cursor: &mut Cursor<'_>, slots: &mut [u64]) -> Result<(), DecodeError> {
    let mut at = 0;
    while let Some(op) = ops.get(at) {
        at += 1;
        step(op, &mut at, cursor, slots)?;
    }
    Ok(())
}

/// State of a loop.
#[derive(Debug)]
struct Turns {
    /// Number of iterations after the current one.
    left: u64,
    start: usize,
    end: usize,
    /// Position at which the current iteration began, in bits.
    before: u64,
}

/// Runs a program that may have nested loops, to any depth.
fn run_loops(ops: &[Op], cursor: &mut Cursor<'_>, slots: &mut [u64]) -> Result<(), DecodeError> {
    let mut open: Stack<Turns> = Stack::new();
    let mut at = 0;
    loop {
        while let Some(turns) = open.last_mut().filter(|turns| at == turns.end) {
            cursor.need(0)?;
            if cursor.pos == turns.before {
                spend(slots, cursor, 1)?;
            }
            if turns.left > 0 {
                turns.left -= 1;
                turns.before = cursor.pos;
                at = turns.start;
                break;
            }
            open.pop();
        }
        let Some(op) = ops.get(at) else { return Ok(()) };
        at += 1;
        let Op::Loop(length, body, least) = op else {
            step(op, &mut at, cursor, slots)?;
            continue;
        };
        let (start, end) = (at, at + *body as usize);
        match count(*length, slots, cursor, *least)?.checked_sub(1) {
            Some(left) => open.push(Turns {
                left,
                start,
                end,
                before: cursor.pos,
            }),
            None => at = end,
        }
    }
}

/// Runs an op other than a loop; `at` is the index of the next op and is set by jumps.
#[inline(always)]
fn step(
    op: &Op,
    at: &mut usize,
    cursor: &mut Cursor<'_>,
    slots: &mut [u64],
) -> Result<(), DecodeError> {
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
        Op::Repeat(slot, bits, stride) => repeat(get(slots, *slot), *bits, *stride, cursor)?,
        Op::Units(length, unit) => {
            let start = cursor.pos;
            let bytes = cursor.bytes(count(*length, slots, cursor, 8)?)?;
            let unit = usize::from(*unit);
            let is_whole = bytes.len() % unit == 0;
            if !is_whole && crate::bits::until_null(bytes, unit).len() == bytes.len() {
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
        // Handled by the caller.
        Op::Loop(..) => {}
        Op::Switch(choice, targets) => *at = option_of(choice, targets, cursor, slots)?,
        Op::Unless(selector, target) => {
            if selector.select(get(slots, selector.slot)).is_none() {
                *at = *target as usize;
            }
        }
        Op::Jump(target) => *at = *target as usize,
    }
    Ok(())
}

/// Advances past `count` elements of `bits` bits each, `stride` apart.
#[inline(always)]
fn repeat(count: u64, bits: u64, stride: u64, cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
    let Some(more) = count.checked_sub(1) else {
        return Ok(());
    };
    let wanted = more
        .checked_mul(stride)
        .and_then(|sum| sum.checked_add(bits));
    let wanted = wanted.ok_or(DecodeError::Length {
        at: cursor.pos,
        length: count,
    })?;
    cursor.need(wanted).map_err(|_| DecodeError::TooLong {
        at: cursor.pos,
        length: count,
        wanted,
    })?;
    cursor.pos += wanted;
    Ok(())
}

/// Index of the op at which the selected option begins.
#[inline(always)]
fn option_of(
    choice: &Choice,
    targets: &[u32],
    cursor: &Cursor<'_>,
    slots: &[u64],
) -> Result<usize, DecodeError> {
    let value = get(slots, choice.selector.slot);
    let option = choice.selector.select(value);
    let target = option.and_then(|option| targets.get(option as usize));
    target
        .map(|&target| target as usize)
        .ok_or(DecodeError::NoOption {
            at: cursor.pos,
            selector: value,
        })
}

/// The number of elements, each of at least `least` bits. An error if the rest of the packet is too
/// short for them.
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
    // No valid length or selector is that large, so a field without a register is reported as
    // damage.
    slots.get(usize::from(slot)).copied().unwrap_or(u64::MAX)
}

#[inline(always)]
pub(crate) fn set(slots: &mut [u64], slot: Slot, value: u64) {
    if let Some(place) = slots.get_mut(usize::from(slot)) {
        *place = value;
    }
}
