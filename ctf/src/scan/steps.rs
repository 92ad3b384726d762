//! Shapes in the form that the hot loops follow: a single list of steps for all event classes of a
//! table.

use crate::bits::find_null;
use crate::layout::header::BitField;
use crate::layout::shape::{
    Exit, MOST_ELEMENT_BITS, MOST_ELEMENTS, Near, Part, REGISTERS, Shape, Source, To,
};

/// The step at which the fast path stops. The general path finds the fault or decodes the record.
pub(super) const STOP: u32 = 0;
/// Not a step: the event record ends.
const END: u32 = u32::MAX;

/// A step. Unused fields are 0.
#[derive(Clone, Copy, Debug)]
struct ScanStep {
    kind: ScanOp,
    /// Location of the value: `back` bytes earlier, with this shift and mask, or in the register.
    register: u8,
    shift: u8,
    back: u32,
    mask: u64,
    /// Size of an element or an alignment in bytes; for elements of bits, see [`ELEMENT_BITS`]; for
    /// a branch, its number.
    unit: u32,
    transition: Transition,
}

/// Skips `bytes` bytes, rounds up to a multiple of `align + 1` bytes, skips `more` bytes, and leads
/// to the next step.
///
/// A separate step for an alignment would cost a jump that is hard to predict.
#[derive(Clone, Copy, Debug)]
struct Transition {
    bytes: u32,
    align: u32,
    more: u32,
    step: u32,
}

impl Transition {
    const fn to(step: u32) -> Self {
        Transition {
            bytes: 0,
            align: 0,
            more: 0,
            step,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanOp {
    Stop,
    Text,
    Array,
    Bits,
    Branch,
    KeptArray,
    KeptBits,
    KeptBranch,
    Keep,
    VarInt,
    Align,
}

const STOPPED: ScanStep = ScanStep {
    kind: ScanOp::Stop,
    register: 0,
    shift: 0,
    back: 0,
    mask: 0,
    unit: 0,
    transition: Transition::to(STOP),
};

/// The bytes that steps read.
pub(super) trait Bytes: Copy {
    /// Eight bytes at an offset. `None` if they are not available; the record then takes the
    /// general path.
    fn eight(self, at: usize) -> Option<[u8; 8]>;

    /// The offset past the first null byte at or after an offset.
    fn past_null(self, at: usize) -> Option<usize>;

    /// Distance from the packet's start to offset 0.
    fn origin(self) -> usize;
}

/// Bytes of a packet, from an offset on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content<'a> {
    pub(super) data: &'a [u8],
    /// Packet-relative byte offset of the first byte.
    pub(super) base: u64,
}

impl Bytes for Content<'_> {
    #[inline(always)]
    fn eight(self, at: usize) -> Option<[u8; 8]> {
        self.data.get(at..)?.first_chunk::<8>().copied()
    }

    #[inline(always)]
    fn past_null(self, at: usize) -> Option<usize> {
        Some(at + find_null(self.data.get(at..)?)? + 1)
    }

    #[inline(always)]
    fn origin(self) -> usize {
        self.base as usize
    }
}

/// The steps of all shapes.
#[derive(Debug)]
pub(super) struct Steps {
    steps: Vec<ScanStep>,
    /// 256 transitions for each branch, by value.
    branches: Vec<Transition>,
    big: bool,
}

impl Steps {
    /// An empty list; values are read as big endian or little endian.
    pub(super) fn new(big: bool) -> Self {
        Steps {
            steps: vec![STOPPED],
            branches: Vec::new(),
            big,
        }
    }

    /// Adds a shape. Returns the index of its first step, or `None` if the shape ends with its
    /// first exit. `Err` if a value has the other byte order.
    pub(super) fn add(&mut self, shape: &Shape) -> Result<Option<u32>, OtherOrder> {
        let first = self.steps.len() as u32;
        for part in &shape.parts {
            let step = self.step(part, shape, first)?;
            self.steps.push(step);
        }
        // The table of entries only contains the bytes before the first step, so a leading
        // alignment stays a step.
        let step = transition(shape.first, &[], first).step;
        Ok((step != END).then_some(step))
    }

    fn step(&mut self, part: &Part, shape: &Shape, first: u32) -> Result<ScanStep, OtherOrder> {
        let parts = shape.parts.as_slice();
        let plain = |kind, then: &Exit| ScanStep {
            kind,
            transition: transition(*then, parts, first),
            ..STOPPED
        };
        Ok(match part {
            Part::Text(then) => plain(ScanOp::Text, then),
            Part::VarInt(then) => plain(ScanOp::VarInt, then),
            Part::Align(unit, then) => ScanStep {
                unit: *unit,
                ..plain(ScanOp::Align, then)
            },
            Part::Keep(near, register, then) => ScanStep {
                register: *register,
                ..self.near(plain(ScanOp::Keep, then), *near)?
            },
            Part::Array(source, unit, then) => ScanStep {
                unit: *unit,
                ..self.source(plain(ScanOp::Array, then), *source, ScanOp::KeptArray)?
            },
            Part::Bits(source, (element, more), then) => ScanStep {
                unit: more << ELEMENT_BITS | element,
                ..self.source(plain(ScanOp::Bits, then), *source, ScanOp::KeptBits)?
            },
            Part::Branch(source, exits) => {
                let unit = (self.branches.len() / 256) as u32;
                let transitions = exits.iter().map(|exit| transition(*exit, parts, first));
                self.branches.extend(transitions);
                let step = ScanStep {
                    kind: ScanOp::Branch,
                    unit,
                    ..STOPPED
                };
                self.source(step, *source, ScanOp::KeptBranch)?
            }
        })
    }

    fn source(&self, step: ScanStep, source: Source, kept: ScanOp) -> Result<ScanStep, OtherOrder> {
        match source {
            Source::Near(near) => self.near(step, near),
            Source::Kept(register) => Ok(ScanStep {
                kind: kept,
                register,
                ..step
            }),
        }
    }

    fn near(&self, step: ScanStep, near: Near) -> Result<ScanStep, OtherOrder> {
        let field = Some(near.field).filter(|field| field.big == self.big);
        let BitField { shift, mask, .. } =
            field.or_else(|| near.field.swapped()).ok_or(OtherOrder)?;
        Ok(ScanStep {
            back: near.back,
            shift: shift as u8,
            mask,
            ..step
        })
    }

    /// The offset past an event record of variable size. Values are big endian if `big`; fields may
    /// be aligned to more than a byte if `is_aligned`. `at` is the offset of the part of variable
    /// size, `first` its first step. `None` if the available bytes are invalid or do not contain
    /// the whole record.
    #[inline(always)]
    pub(super) fn follow(
        &self,
        (big, is_aligned): (bool, bool),
        data: impl Bytes,
        mut at: usize,
        first: u32,
    ) -> Option<usize> {
        let mut step = self.steps.get(first as usize)?;
        let mut kept = [0u64; REGISTERS];
        let near = |step: &ScanStep, at: usize| {
            let bytes = data.eight(at.wrapping_sub(step.back as usize))?;
            let word = if big {
                u64::from_be_bytes(bytes)
            } else {
                u64::from_le_bytes(bytes)
            };
            Some(word >> step.shift & step.mask)
        };
        loop {
            let mut transition = step.transition;
            match step.kind {
                ScanOp::Text => at = data.past_null(at)?,
                ScanOp::Array => at = array(at, near(step, at)?, step.unit)?,
                ScanOp::Bits => at = bit_array(at, near(step, at)?, step.unit)?,
                ScanOp::Branch => transition = self.branch(step, near(step, at)?)?,
                ScanOp::KeptArray => {
                    at = array(at, *kept.get(usize::from(step.register))?, step.unit)?
                }
                ScanOp::KeptBits => {
                    at = bit_array(at, *kept.get(usize::from(step.register))?, step.unit)?
                }
                ScanOp::KeptBranch => {
                    transition = self.branch(step, *kept.get(usize::from(step.register))?)?
                }
                ScanOp::Keep => *kept.get_mut(usize::from(step.register))? = near(step, at)?,
                ScanOp::VarInt => {
                    let ends = !u64::from_le_bytes(data.eight(at)?) & 0x8080_8080_8080_8080;
                    if ends == 0 {
                        return None;
                    }
                    at += (ends.trailing_zeros() >> 3) as usize + 1;
                }
                ScanOp::Align => {
                    let (unit, origin) = (step.unit as usize, data.origin());
                    at = (at + origin).checked_next_multiple_of(unit)? - origin;
                }
                ScanOp::Stop => return None,
            }
            at += transition.bytes as usize;
            if is_aligned {
                let (mask, origin) = (transition.align as usize, data.origin());
                at = ((at + origin + mask) & !mask) - origin + transition.more as usize;
            }
            if transition.step == END {
                return Some(at);
            }
            step = self.steps.get(transition.step as usize)?;
        }
    }

    #[inline(always)]
    fn branch(&self, step: &ScanStep, value: u64) -> Option<Transition> {
        let table = self
            .branches
            .get(step.unit as usize * 256..)?
            .first_chunk::<256>()?;
        table.get(usize::try_from(value).ok()?).copied()
    }
}

/// A value spans several bytes of the other byte order.
#[derive(Debug)]
pub(super) struct OtherOrder;

/// The transition of an exit, given the shape's parts and the step of the first part. An alignment
/// in `parts` is merged into the result.
fn transition(exit: Exit, parts: &[Part], first: u32) -> Transition {
    let step = |to| match to {
        To::End => END,
        To::Part(part) => first + part,
        To::Nowhere => STOP,
    };
    let plain = Transition {
        bytes: exit.bytes,
        ..Transition::to(step(exit.to))
    };
    let To::Part(part) = exit.to else {
        return plain;
    };
    match parts.get(part as usize) {
        Some(Part::Align(unit, then)) => Transition {
            align: unit.saturating_sub(1),
            more: then.bytes,
            step: step(then.to),
            ..plain
        },
        _ => plain,
    }
}

/// Number of low bits of [`ScanStep::unit`] that hold the size of an element in bits. The high bits
/// hold the number of bits after the elements.
const ELEMENT_BITS: u32 = MOST_ELEMENT_BITS.trailing_zeros();

/// The offset past elements of bits and the bits after them, rounded up to a byte.
#[inline(always)]
fn bit_array(at: usize, count: u64, unit: u32) -> Option<usize> {
    if count >= MOST_ELEMENTS {
        return None;
    }
    let (element, more) = (unit & ((1 << ELEMENT_BITS) - 1), unit >> ELEMENT_BITS);
    let bits = (count as usize).checked_mul(element as usize)? + more as usize;
    at.checked_add(bits.div_ceil(8))
}

#[inline(always)]
fn array(at: usize, count: u64, unit: u32) -> Option<usize> {
    if count >= MOST_ELEMENTS {
        return None;
    }
    (count as usize).checked_mul(unit as usize)?.checked_add(at)
}
