//! A run: the changes of one attribute within a block, one behind the other.
//!
//! The first change stands apart (in the block's directory), so that it can be left out when it
//! turns out to change nothing. Each later one is a number with the time since the one before, in
//! its upper bits, and the code of the value in its lowest four; codes that do not fit follow as a
//! number of their own.

use crate::varint::{self, Numbers};

const SMALL_BITS: u32 = 4;
/// The code follows.
const LARGE: u64 = (1 << SMALL_BITS) - 1;
/// Times between changes are shorter than that: 9 years.
const MOST_STEP: u64 = 1 << 58;

/// A change: when, and the code of the value from then on.
pub(crate) type Change = (i64, u64);

/// The changes of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The first one.
    pub(crate) first: Change,
    /// The code of the last one.
    pub(crate) last: u64,
    /// How many follow the first.
    pub(crate) more: u64,
    /// These.
    pub(crate) bytes: Vec<u8>,
}

impl Run {
    /// With one change.
    pub(crate) fn new(first: Change) -> Run {
        Run {
            first,
            last: first.1,
            more: 0,
            bytes: Vec::new(),
        }
    }

    /// Bytes that it takes in a block, about.
    pub(crate) fn size(&self) -> u64 {
        const HEAD: u64 = 8;
        HEAD + self.bytes.len() as u64
    }

    /// Adds a change, so much later than the one before.
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

    /// The same with another code in its first change; later ones that change nothing then are left
    /// out.
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

    /// The same without its first change; `None` if there is no other.
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

/// The changes that follow the first one.
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
