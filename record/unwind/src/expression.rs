//! DWARF expressions of call frame information, as far as compilers and the C library use them
//! there: constants, registers, arithmetic, memory. No branches, no stack deeper than eight words.

use crate::rule::Registers;
use crate::stack::StackCopy;

const MOST_VALUES: usize = 8;

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    /// A LEB128 number and its width in bits.
    fn leb(&mut self) -> Option<(u64, u32)> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some((value, shift));
            }
        }
    }

    fn unsigned(&mut self) -> Option<u64> {
        self.leb().map(|(value, _)| value)
    }

    fn signed(&mut self) -> Option<i64> {
        let (value, bits) = self.leb()?;
        let rest = 64_u32.saturating_sub(bits);
        Some((value << rest) as i64 >> rest)
    }
}

struct Values {
    values: [u64; MOST_VALUES],
    count: usize,
}

impl Values {
    fn push(&mut self, value: u64) -> Option<()> {
        *self.values.get_mut(self.count)? = value;
        self.count += 1;
        Some(())
    }

    fn pop(&mut self) -> Option<u64> {
        self.count = self.count.checked_sub(1)?;
        self.values.get(self.count).copied()
    }

    fn two(&mut self, compute: impl FnOnce(u64, u64) -> u64) -> Option<()> {
        let (right, left) = (self.pop()?, self.pop()?);
        self.push(compute(left, right))
    }
}

/// The register and offset of an expression that only loads the word at register + offset.
pub(crate) fn indirect(code: &[u8]) -> Option<(usize, i64)> {
    let mut reader = Reader(code);
    let operation = reader
        .byte()
        .filter(|operation| (0x70..=0x8F).contains(operation))?;
    let offset = reader.signed()?;
    (reader.0 == [0x06]).then_some((usize::from(operation - 0x70), offset))
}

/// The expression's value; its stack begins with `initial`.
pub(crate) fn evaluate(
    code: &[u8],
    initial: Option<u64>,
    registers: &Registers,
    stack: &StackCopy<'_>,
) -> Option<u64> {
    let mut reader = Reader(code);
    let mut values = Values {
        values: [0; MOST_VALUES],
        count: 0,
    };
    if let Some(value) = initial {
        values.push(value)?;
    }
    while let Some(operation) = reader.byte() {
        match operation {
            0x06 => {
                let address = values.pop()?;
                values.push(stack.word(address)?)?;
            }
            0x08..=0x11 => values.push(constant(operation, &mut reader)?)?,
            0x12 => {
                let value = values.pop()?;
                values.push(value)?;
                values.push(value)?;
            }
            0x13 => drop(values.pop()?),
            0x23 => {
                let value = values.pop()?.wrapping_add(reader.unsigned()?);
                values.push(value)?;
            }
            0x30..=0x4F => values.push(u64::from(operation - 0x30))?,
            0x70..=0x8F => {
                let register = registers.get(usize::from(operation - 0x70))?;
                values.push(register.wrapping_add_signed(reader.signed()?))?;
            }
            _ => values.two(binary(operation)?)?,
        }
    }
    values.pop()
}

fn constant(operation: u8, reader: &mut Reader<'_>) -> Option<u64> {
    Some(match operation {
        0x08 => reader.byte()?.into(),
        0x09 => reader.byte()? as i8 as u64,
        0x0A => u16::from_le_bytes(reader.bytes()?).into(),
        0x0B => i16::from_le_bytes(reader.bytes()?) as u64,
        0x0C => u32::from_le_bytes(reader.bytes()?).into(),
        0x0D => i32::from_le_bytes(reader.bytes()?) as u64,
        0x0E | 0x0F => u64::from_le_bytes(reader.bytes()?),
        0x10 => reader.unsigned()?,
        _ => reader.signed()? as u64,
    })
}

fn binary(operation: u8) -> Option<fn(u64, u64) -> u64> {
    Some(match operation {
        0x1A => |left, right| left & right,
        0x1C => u64::wrapping_sub,
        0x1E => u64::wrapping_mul,
        0x21 => |left, right| left | right,
        0x22 => u64::wrapping_add,
        0x24 => |left, right| left.checked_shl(right as u32).unwrap_or(0),
        0x25 => |left, right| left.checked_shr(right as u32).unwrap_or(0),
        0x29 => |left, right| u64::from(left == right),
        0x2A => |left, right| u64::from(left as i64 >= right as i64),
        0x2B => |left, right| u64::from(left as i64 > right as i64),
        0x2C => |left, right| u64::from(left as i64 <= right as i64),
        0x2D => |left, right| u64::from((left as i64) < right as i64),
        0x2E => |left, right| u64::from(left != right),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{PC, RSP};

    fn value(code: &[u8], pc: u64) -> Option<u64> {
        let words = [41_u64, 42].map(u64::to_le_bytes).concat();
        let mut registers = Registers([0; 17]);
        registers.0[RSP] = 0x7000;
        registers.0[PC] = pc;
        let stack = StackCopy::new(0x7000, &words);
        evaluate(code, None, &registers, &stack).map(|value| {
            value.wrapping_sub(if code.contains(&6) || pc == 0 {
                0
            } else {
                registers.0[RSP]
            })
        })
    }

    #[test]
    fn computes_what_a_procedure_linkage_table_says() {
        // CFA = rsp + 8 + ((pc & 15) >= 11) << 3, as linkers write it for .plt.
        let plt = [0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22];
        assert_eq!(value(&plt, 0x1006), Some(8));
        assert_eq!(value(&plt, 0x100B), Some(16));
    }

    #[test]
    fn reads_memory_and_refuses_what_it_does_not_know() {
        assert_eq!(value(&[0x77, 8, 0x06], 1), Some(42));
        assert_eq!(indirect(&[0x77, 8, 0x06]), Some((RSP, 8)));
        assert_eq!(indirect(&[0x76, 0x78, 0x06]), Some((6, -8)));
        assert_eq!(indirect(&[0x76, 0x78, 0x06, 0x23, 1]), None);
        assert_eq!(value(&[0x22], 0), None);
        assert_eq!(value(&[0x30; 9], 0), None);
        assert_eq!(value(&[0xF0], 0), None);
        assert_eq!(value(&[0x10, 0xFF], 0), None);
        assert_eq!(value(&[0x0B, 0xFE, 0xFF, 0x08, 5, 0x22], 0), Some(3));
    }
}
