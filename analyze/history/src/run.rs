//! A run: the consecutive changes of one attribute within a block.
//!
//! The first change is stored separately (in the block's directory), so that it can be dropped if
//! it turns out to have no effect. Each later change is a number with the time since the previous
//! one in its upper bits and the code of the value in its lowest four; codes that do not fit follow
//! as another number.

use crate::varint::{self, Numbers};

const SMALL_BITS: u32 = 4;
/// Marks a code that follows as another number.
const LARGE: u64 = (1 << SMALL_BITS) - 1;
/// Maximum time between changes, in grids: 9 years at 1 ns.
const MOST_STEP: u64 = 1 << 58;

/// A change: its time, and the code of the value from then on.
pub(crate) type Change = (i64, u64);

/// The changes of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first change.
    pub(crate) first: Change,
    /// The code of the last change.
    pub(crate) last: u64,
    /// Number of changes after the first.
    pub(crate) more: u64,
    /// The changes after the first, encoded.
    pub(crate) bytes: Vec<u8>,
}

impl Run {
    /// A run of one change.
    pub(crate) fn new(first: Change) -> Run {
        Run {
            first,
            last: first.1,
            more: 0,
            bytes: Vec::new(),
        }
    }

    /// Approximate size in a block, in bytes.
    pub(crate) fn size(&self) -> u64 {
        const HEAD: u64 = 8;
        HEAD + self.bytes.len() as u64
    }

    /// Adds a change, `step` later than the previous one.
    #[inline]
    pub(crate) fn push(&mut self, step: u64, code: u64) {
        let step = step.min(MOST_STEP) << SMALL_BITS;
        if code < LARGE {
            varint::put(&mut self.bytes, step | code);
        } else {
            varint::put(&mut self.bytes, step | LARGE);
            varint::put(&mut self.bytes, code - LARGE);
        }
        self.last = code;
        self.more += 1;
    }

    /// Replaces the code of the first change; drops later changes that have no effect then.
    pub(crate) fn with_first_code(self, code: u64) -> Run {
        let mut run = Run::new((self.first.0, code));
        let mut before = self.first.0;
        for (time, code) in Steps::new(self.first.0, &self.bytes) {
            if code != run.last {
                run.push(time.abs_diff(before), code);
                before = time;
            }
        }
        run
    }

    /// Drops the first change; `None` if it is the only one.
    pub(crate) fn without_first(mut self) -> Option<Run> {
        let mut steps = Steps::new(self.first.0, &self.bytes);
        let first = steps.next()?;
        let taken = self.bytes.len() - steps.numbers.rest().len();
        self.bytes.drain(..taken);
        self.first = first;
        self.more -= 1;
        Some(self)
    }
}

/// Iterates over the changes after the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps<'b> {
    time: i64,
    numbers: Numbers<'b>,
}

impl<'b> Steps<'b> {
    pub(crate) fn new(first: i64, bytes: &'b [u8]) -> Self {
        let numbers = Numbers::new(bytes);
        Steps {
            time: first,
            numbers,
        }
    }
}

impl Iterator for Steps<'_> {
    type Item = Change;

    #[inline]
    fn next(&mut self) -> Option<Change> {
        let number = self.numbers.next()?;
        let code = match number & LARGE {
            LARGE => self.numbers.next()?.checked_add(LARGE)?,
            small => small,
        };
        self.time = self.time.saturating_add((number >> SMALL_BITS) as i64);
        Some((self.time, code))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn changes_come_as_they_were_pushed(
            changes in prop::collection::vec((0u64..1 << 40, 0u64..1 << 60), 1..30),
            first in -1000i64..1000,
        ) {
            let mut time = first;
            let mut run = Run::new((first, 3));
            let mut expected = vec![];
            for (step, code) in changes {
                run.push(step, code);
                time += step as i64;
                expected.push((time, code));
            }
            let found: Vec<Change> = Steps::new(first, &run.bytes).collect();
            prop_assert_eq!(&found, &expected);
            let last = run.last;
            let rest = run.without_first().unwrap();
            prop_assert_eq!(rest.first, expected[0]);
            prop_assert_eq!(rest.last, last);
            prop_assert_eq!(Steps::new(rest.first.0, &rest.bytes).collect::<Vec<_>>(), &expected[1..]);
        }
    }
}
