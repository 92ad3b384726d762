//! Shapes: skip programs whose steps all begin and end at byte boundaries, compiled further so that
//! skipping an event record takes a handful of instructions.
//!
//! A shape is a graph. An `Exit` adds a constant number of bytes and leads to the next `Part`: a
//! string, an array, or a branch on the value of a field. A length or selector is read at its
//! distance before the part that uses it, or from a register if a part of variable size lies
//! between.

use super::header::BitField;
use super::node::Selector;
use super::op::Op;
use super::slots::Slot;
use crate::bits::FixedRead;

/// A compiled shape. All distances are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Exit from the byte in which the body begins.
    pub(crate) first: Exit,
    pub(crate) parts: Vec<Part>,
    /// The event record may end within its last byte.
    pub(crate) ends_in_byte: bool,
}

/// An edge to the next part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) bytes: u32,
    pub(crate) to: To,
}

/// Target of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    /// The end of the event record.
    End,
    /// The part with this index.
    Part(u32),
    /// Unreachable with valid data.
    Nowhere,
}

/// A part of variable size, or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A null-terminated string of bytes.
    Text(Exit),
    /// A variable-length integer.
    VarInt(Exit),
    /// Elements of this number of bytes each.
    Array(Source, u32, Exit),
    /// `(N, M)`: elements of N bits each, then M bits of other fields, rounded up to a byte.
    Bits(Source, (u32, u32), Exit),
    /// Padding to a multiple of this number of bytes from the packet's start.
    Align(u32, Exit),
    /// Stores a value in a register.
    Keep(Near, u8, Exit),
    /// An exit for each value from 0 to at most 255. Larger values are invalid.
    Branch(Source, Box<[Exit]>),
}

/// Location of a length or selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Near(Near),
    Kept(u8),
}

/// A value in the bytes before a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Near {
    /// Distance from the first of the eight bytes that contain the value to the part.
    pub(crate) back: u32,
    pub(crate) field: BitField,
}

/// Number of registers of a shape.
pub(crate) const REGISTERS: usize = 4;
/// Largest number of parts. A larger shape would not be worth its memory. Also bounds the
/// recursion.
const MOST_PARTS: usize = 96;
/// Minimum widths in bits of signed counts and selectors: see [`Finder::source`].
const SIGNED_COUNT: u8 = 32;
const SIGNED_SELECTOR: u8 = 9;
/// Number of elements from which an array is left to the skip program.
pub(crate) const MOST_ELEMENTS: u64 = 1 << 28;
/// Size in bits from which an element that is not whole bytes is left to the skip program.
pub(crate) const MOST_ELEMENT_BITS: u64 = 1 << 8;
/// Largest number of bytes that an exit adds.
const MOST_BYTES: u32 = 1 << 24;

impl Shape {
    /// Finds the shape of a program that starts `residue` bits past a byte boundary. `None` if the
    /// program has no shape, or if the event record might end within a byte and `ends_in_byte` does
    /// not allow it.
    pub(super) fn new(ops: &[Op], residue: u64, ends_in_byte: bool) -> Option<Shape> {
        let mut finder = Finder {
            ops,
            may_end_in_byte: ends_in_byte,
            ends_in_byte: false,
            parts: Vec::new(),
            begun: 0,
            earlier: Vec::new(),
            registers: Vec::new(),
        };
        let first = finder.exit(0, (0, residue), &mut Vec::new())?;
        Some(Shape {
            first,
            parts: finder.parts,
            ends_in_byte: finder.ends_in_byte,
        })
    }

    /// Whether any part is aligned to more than a byte.
    pub(crate) fn has_alignment(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Align(..)))
    }

    /// The lengths and selectors that the shape reads.
    pub(crate) fn values(&self) -> impl Iterator<Item = Near> {
        self.parts.iter().filter_map(|part| match part {
            Part::Array(Source::Near(near), ..)
            | Part::Bits(Source::Near(near), ..)
            | Part::Branch(Source::Near(near), _)
            | Part::Keep(near, ..) => Some(*near),
            _ => None,
        })
    }
}

struct Finder<'a> {
    ops: &'a [Op],
    may_end_in_byte: bool,
    ends_in_byte: bool,
    parts: Vec<Part>,
    /// Number of parts that are finished or under construction.
    begun: usize,
    /// Slots whose values lie before a part of variable size.
    earlier: Vec<Slot>,
    /// The slot of each register.
    registers: Vec<Slot>,
}

/// Slots with the positions of their values since the last part of variable size, in bits.
type Saved = Vec<(Slot, u64, FixedRead)>;

impl Finder<'_> {
    /// Follows the program from the op at `at`. The last exit ended at bit `anchor`, which begins a
    /// byte; the current position is `bits`.
    fn exit(
        &mut self,
        mut at: usize,
        (anchor, mut bits): (u64, u64),
        saved: &mut Saved,
    ) -> Option<Exit> {
        let kept = saved.len();
        let ops = self.ops;
        let exit = loop {
            let Some(op) = ops.get(at) else {
                let is_in_byte = !bits.is_multiple_of(8);
                if is_in_byte && !self.may_end_in_byte {
                    return None;
                }
                self.ends_in_byte |= is_in_byte;
                break Exit {
                    bytes: bytes(anchor, bits.checked_next_multiple_of(8)?)?,
                    to: To::End,
                };
            };
            at += 1;
            match op {
                Op::Add(more) => bits = bits.checked_add(*more)?,
                // The parts of a shape begin at byte boundaries.
                Op::Align(align @ ..=8) => {
                    bits = bits.checked_next_multiple_of(u64::from(*align))?
                }
                Op::Save(read, ahead, slot) => {
                    saved.push((*slot, bits.checked_add(u64::from(*ahead))?, *read));
                }
                // Jumps only lead forward.
                Op::Jump(target) => at = *target as usize,
                op => {
                    break Exit {
                        bytes: bytes(anchor, bits)?,
                        to: To::Part(self.part(op, at, bits, saved)?),
                    };
                }
            }
        };
        saved.truncate(kept);
        Some(exit)
    }

    /// Builds the part for an op; `at` is the index of the next op.
    fn part(&mut self, op: &Op, at: usize, bits: u64, saved: &mut Saved) -> Option<u32> {
        self.begun += 1;
        if self.begun > MOST_PARTS {
            return None;
        }
        let part = match op {
            Op::Switch(choice, targets) => {
                let of = |option: u32| targets.get(option as usize).map(|&target| target as usize);
                let option = |value| choice.selector.select(value).and_then(of);
                self.branch(&choice.selector, option, bits, saved)?
            }
            Op::Unless(selector, target) => {
                let option = |value| match selector.select(value) {
                    Some(_) => Some(at),
                    None => Some(*target as usize),
                };
                self.branch(selector, option, bits, saved)?
            }
            Op::Str(1) => Part::Text(self.behind(at, saved)?),
            Op::VarInt(_, saves) if saves.is_empty() => Part::VarInt(self.behind(at, saved)?),
            Op::Align(align) => Part::Align(align / 8, self.behind(at, saved)?),
            Op::Repeat(slot, element, stride) if element == stride => {
                let source = self.source(*slot, bits, saved, SIGNED_COUNT)?;
                if element.is_multiple_of(8) {
                    Part::Array(source, bytes(0, *element)?, self.behind(at, saved)?)
                } else {
                    let (more, at) = self.up_to_byte(at)?;
                    let units = (
                        below(*element, MOST_ELEMENT_BITS)?,
                        below(more, MOST_BYTES.into())?,
                    );
                    Part::Bits(source, units, self.behind(at, saved)?)
                }
            }
            _ => return None,
        };
        let part = self.add(part);
        self.keep(part, bits, saved)
    }

    /// Number of bits that the ops from index `at` add up to the next byte boundary, and the index
    /// of the first op after it.
    fn up_to_byte(&mut self, mut at: usize) -> Option<(u64, usize)> {
        let mut bits = 0u64;
        loop {
            match self.ops.get(at) {
                Some(Op::Add(more)) => bits = bits.checked_add(*more)?,
                Some(Op::Align(1)) => {}
                // A larger alignment begins at the byte boundary.
                Some(Op::Align(8..)) => return Some((bits, at)),
                None if self.may_end_in_byte => {
                    self.ends_in_byte = true;
                    return Some((bits, at));
                }
                _ => return None,
            }
            at += 1;
        }
    }

    fn add(&mut self, part: Part) -> u32 {
        self.parts.push(part);
        self.parts.len() as u32 - 1
    }

    /// The exit from a part of variable size; `at` is the index of the next op.
    fn behind(&mut self, at: usize, saved: &Saved) -> Option<Exit> {
        let before = self.earlier.len();
        self.earlier.extend(saved.iter().map(|(slot, ..)| *slot));
        let exit = self.exit(at, (0, 0), &mut Vec::new());
        self.earlier.truncate(before);
        exit
    }

    /// Adds parts that store the values which are needed after a part of variable size.
    fn keep(&mut self, part: u32, bits: u64, saved: &Saved) -> Option<u32> {
        let mut first = part;
        if matches!(self.parts.get(part as usize), Some(Part::Branch(..))) {
            // The exits of a branch read the values at their distance.
            return Some(first);
        }
        for register in 0..self.registers.len() {
            let slot = *self.registers.get(register)?;
            let Some((_, at, read)) = saved.iter().rev().find(|(saved, ..)| *saved == slot) else {
                continue;
            };
            let then = Exit {
                bytes: 0,
                to: To::Part(first),
            };
            let at = near(*at, *read, bits).filter(|_| !read.signed)?;
            first = self.add(Part::Keep(at, register as u8, then));
        }
        Some(first)
    }

    /// The source of a slot's value for a part at `bits`. The value is read as an unsigned number,
    /// so a signed field must have at least `signed` bits: negative values are then out of range.
    fn source(&mut self, slot: Slot, bits: u64, saved: &Saved, signed: u8) -> Option<Source> {
        if let Some((_, at, read)) = saved.iter().rev().find(|(saved, ..)| *saved == slot) {
            return (!read.signed || read.length >= signed)
                .then(|| near(*at, *read, bits).map(Source::Near))
                .flatten();
        }
        if !self.earlier.contains(&slot) {
            return None;
        }
        let known = self.registers.iter().position(|of| *of == slot);
        let register = known.unwrap_or_else(|| {
            self.registers.push(slot);
            self.registers.len() - 1
        });
        (register < REGISTERS).then_some(Source::Kept(register as u8))
    }

    fn branch(
        &mut self,
        selector: &Selector,
        option: impl Fn(u64) -> Option<usize>,
        bits: u64,
        saved: &mut Saved,
    ) -> Option<Part> {
        let source = self.source(selector.slot, bits, saved, SIGNED_SELECTOR)?;
        let mut known: Vec<(usize, Exit)> = Vec::new();
        let mut exits = Vec::with_capacity(256);
        for value in 0..256 {
            let exit = match option(value) {
                None => Exit {
                    bytes: 0,
                    to: To::Nowhere,
                },
                Some(target) => match known.iter().find(|(of, _)| *of == target) {
                    Some((_, exit)) => *exit,
                    None => {
                        let exit = self.exit(target, (bits, bits), saved)?;
                        known.push((target, exit));
                        exit
                    }
                },
            };
            exits.push(exit);
        }
        Some(Part::Branch(source, exits.into()))
    }
}

fn below(value: u64, limit: u64) -> Option<u32> {
    u32::try_from(value).ok().filter(|_| value < limit)
}

fn bytes(from: u64, to: u64) -> Option<u32> {
    let bits = to.checked_sub(from).filter(|bits| bits.is_multiple_of(8))?;
    u32::try_from(bits / 8)
        .ok()
        .filter(|&bytes| bytes < MOST_BYTES)
}

/// The value at bit `at`, relative to `bits`.
fn near(at: u64, read: FixedRead, bits: u64) -> Option<Near> {
    let unsigned = FixedRead {
        signed: false,
        ..read
    };
    let field = BitField::new(unsigned, at % 8)?;
    Some(Near {
        back: bytes(at - at % 8, bits)?,
        field,
    })
}
