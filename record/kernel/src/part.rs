//! Memory of a program that is recorded with a system call: what BPF is told of it (`struct part`).

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

/// Bytes of `struct part`.
pub(crate) const PART_SIZE: usize = 4;

impl Part {
    /// As BPF has it.
    pub(crate) fn encode(self, argument: u8) -> [u8; PART_SIZE] {
        match self {
            Part::Text => [1, argument, 7, 1],
            Part::Bytes { count, unit } => {
                let count = match count {
                    Count::Argument(argument) => argument,
                    Count::Result => 6,
                    Count::One => 7,
                    Count::Bits => 8,
                    Count::Pointed => 9,
                };
                [2, argument, count, unit]
            }
        }
    }
}
