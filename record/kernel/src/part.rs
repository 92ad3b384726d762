//! Memory of a program that is recorded with a system call, as described to BPF (`struct part`).

use crate::shared::{self, PART_DESCRIPTION};

/// Memory to which an argument points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Up to the terminating null.
    Text,
    /// `count` elements of `unit` bytes.
    Bytes { count: Count, unit: u8 },
}

/// Source of the number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    One,
    Argument(u8),
    /// The return value of the call.
    Result,
    /// The first argument is a number of bits, in whole words.
    Bits,
    /// The next argument points to the number.
    Pointed,
}

impl Part {
    /// Encodes as `struct part`.
    pub(crate) fn encode(self, argument: u8) -> [u8; PART_DESCRIPTION] {
        match self {
            Part::Text => [
                shared::PART_TEXT as u8,
                argument,
                shared::COUNT_ONE as u8,
                1,
            ],
            Part::Bytes { count, unit } => {
                let count = match count {
                    Count::Argument(argument) => argument,
                    Count::Result => shared::COUNT_RESULT as u8,
                    Count::One => shared::COUNT_ONE as u8,
                    Count::Bits => shared::COUNT_BITS as u8,
                    Count::Pointed => shared::COUNT_POINTED as u8,
                };
                [shared::PART_BYTES as u8, argument, count, unit]
            }
        }
    }
}
