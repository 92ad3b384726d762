//! Memory of a program that is recorded with a system call: what BPF is told of it (`struct part`).

use crate::shared::{self, PART_DESCRIPTION};

/// Memory that an argument points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Up to a null.
    Text,
    /// So many elements of so many bytes.
    Bytes { count: Count, unit: u8 },
}

/// What says how many elements there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    One,
    Argument(u8),
    /// What the call gave.
    Result,
    /// The first argument is a number of bits, in whole words.
    Bits,
    /// The argument behind it points at the number.
    Pointed,
}

impl Part {
    /// As BPF has it.
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
