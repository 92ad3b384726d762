//! Shapes: skip programs of the few forms that nearly all event records of variable size have,
//! compiled further so that getting over one takes a handful of instructions.
//!
//! A shape is: bytes, perhaps one string, then a tail: bytes; or an array whose length is in one
//! of the bytes, and a further tail; or a decision by one byte between tails (variants of network
//! headers).

use super::node::Selector;
use super::op::Op;
use super::slots::Slot;
use crate::bits::FixedRead;

/// A compiled shape. All distances are in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes before the string, or before the tail.
    before: usize,
    /// A null-terminated string follows.
    string: bool,
    tail: Tail,
    branches: Vec<Branch>,
    /// Tails behind arrays; their distances are from the array's end.
    behind: Vec<Tail>,
}

/// What comes behind the string, or the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// That many bytes.
    Bytes(u32),
    /// An array: the element count is in so many little-endian bytes at that place.
    Array {
        /// Where the count is.
        at: u32,
        /// Its width: 1 to 4.
        width: u32,
        /// Bytes besides the elements and the tail behind.
        fixed: u32,
        /// Bytes of an element.
        element: u32,
        /// Index of the tail behind it, if more than bytes follow.
        behind: Option<u32>,
    },
    /// Decide by the branch of that index.
    Branch(u32),
    /// No option for this value.
    None,
}

/// The tail by the value of a byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// Where the byte is.
    pub at: u32,
    /// The tails for 0 to 255.
    pub tails: Vec<Tail>,
}

/// More would not be worth the memory.
const MOST_BRANCHES: usize = 32;
/// Arrays at most; this bounds the recursion as well.
const MOST_ARRAYS: usize = 32;

impl Shape {
    /// Finds the shape of a program that starts at a byte boundary, if it has one.
    pub(super) fn new(ops: &[Op]) -> Option<Shape> {
        let string = ops.iter().position(|op| matches!(op, Op::Str(1)));
        let mut finder = Finder {
            ops,
            branches: Vec::new(),
            behind: Vec::new(),
            arrays: 0,
        };
        let (before, string, tail) = match string {
            Some(string) => {
                let mut before = 0;
                for op in ops.get(..string)? {
                    match op {
                        Op::Add(bits) => before = bytes(*bits)?.checked_add(before)?,
                        // What a length or selector behind the string would need is not kept.
                        Op::Save(..) => {}
                        _ => return None,
                    }
                }
                (before, true, finder.tail(string + 1, 0, &mut Vec::new())?)
            }
            None => (0, false, finder.tail(0, 0, &mut Vec::new())?),
        };
        Some(Shape {
            before: before as usize,
            string,
            tail,
            branches: finder.branches,
            behind: finder.behind,
        })
    }

    /// Bytes before the string, or before the tail.
    pub fn before(&self) -> usize {
        self.before
    }

    /// True if a null-terminated string follows these bytes.
    pub fn has_string(&self) -> bool {
        self.string
    }

    /// What comes then.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// The branches that [`Tail::Branch`] refers to.
    pub fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// The tails behind arrays.
    pub fn behind(&self) -> &[Tail] {
        &self.behind
    }
}

fn bytes(bits: u64) -> Option<u32> {
    bits.is_multiple_of(8).then_some(())?;
    u32::try_from(bits / 8).ok().filter(|&bytes| bytes < 1 << 24)
}

struct Finder<'a> {
    ops: &'a [Op],
    branches: Vec<Branch>,
    behind: Vec<Tail>,
    arrays: usize,
}

type Saved = Vec<(Slot, u64, FixedRead)>;

impl Finder<'_> {
    /// Runs the program from an op on without data: `bits` have been passed since the anchor.
    fn tail(&mut self, mut at: usize, mut bits: u64, saved: &mut Saved) -> Option<Tail> {
        let kept = saved.len();
        let tail = loop {
            match self.ops.get(at) {
                None => break Tail::Bytes(bytes(bits)?),
                Some(Op::Add(more)) => bits = bits.checked_add(*more)?,
                Some(Op::Save(read, ahead, slot)) => {
                    saved.push((*slot, bits.saturating_add(u64::from(*ahead)), *read));
                }
                Some(Op::Jump(target)) => {
                    // Jumps lead forward only.
                    at = *target as usize;
                    continue;
                }
                Some(Op::Switch(choice, targets)) => {
                    break self.branch(&choice.selector, targets, bits, saved)?;
                }
                Some(Op::Repeat(slot, element, stride)) if element == stride => {
                    break self.array(at, *slot, *element, bits, saved)?;
                }
                Some(_) => return None,
            }
            at += 1;
        };
        saved.truncate(kept);
        Some(tail)
    }

    /// The array whose op is at `at`, and what follows. Lengths and selectors before the array
    /// cannot be found again behind it: their distance is not constant.
    fn array(&mut self, at: usize, slot: Slot, element: u64, bits: u64, saved: &Saved) -> Option<Tail> {
        let (place, read) = find(saved, slot)?;
        let width = u32::from(read.length) / 8;
        let sound = read.length % 8 == 0 && (1..=4).contains(&width) && !read.big && !read.reversed;
        (sound && self.arrays < MOST_ARRAYS).then_some(())?;
        self.arrays += 1;
        let (more, behind) = match self.tail(at + 1, 0, &mut Vec::new())? {
            Tail::Bytes(more) => (more, None),
            tail => {
                self.behind.push(tail);
                (0, Some(self.behind.len() as u32 - 1))
            }
        };
        Some(Tail::Array {
            at: bytes(place)?,
            width,
            fixed: bytes(bits)?.checked_add(more)?,
            element: bytes(element)?,
            behind,
        })
    }

    fn branch(&mut self, selector: &Selector, targets: &[u32], bits: u64, saved: &mut Saved) -> Option<Tail> {
        let (place, read) = find(saved, selector.slot)?;
        if read.length != 8 || read.signed || read.reversed || self.branches.len() >= MOST_BRANCHES {
            return None;
        }
        let place = bytes(place)?;
        let index = self.branches.len();
        self.branches.push(Branch {
            at: place,
            tails: Vec::new(),
        });
        let options: Vec<Tail> = targets
            .iter()
            .map(|&target| self.tail(target as usize, bits, saved))
            .collect::<Option<_>>()?;
        let option = |value| {
            selector
                .select(value)
                .and_then(|option| options.get(option as usize))
        };
        let tails = (0..256)
            .map(|value| option(value).copied().unwrap_or(Tail::None))
            .collect();
        self.branches.get_mut(index)?.tails = tails;
        Some(Tail::Branch(index as u32))
    }
}

fn find(saved: &Saved, slot: Slot) -> Option<(u64, FixedRead)> {
    saved
        .iter()
        .rev()
        .find(|(kept, ..)| *kept == slot)
        .map(|&(_, place, read)| (place, read))
}
