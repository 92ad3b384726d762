//! Arguments of a probe: the sources of their values when the probe is hit, and their types in the
//! event.
//!
//! Notes of USDT probes describe them as operands of the assembler (gas), after the size:
//! `-4@%eax`, `8@-16(%rbp)`, `4@$5`; on arm64 `8@[sp, 16]`, `-4@x1`, `4@5`. A negative size denotes
//! a signed integer.

use tracebraid_ctf::schema::build::Fields;

use crate::shared::{self, CHOSEN_ARGUMENT_SIZE};

/// Machines whose operands are supported. Both can be parsed on both, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Architecture {
    X86,
    Arm,
}

impl Architecture {
    pub(crate) const OWN: Architecture = if cfg!(target_arch = "x86_64") {
        Architecture::X86
    } else {
        Architecture::Arm
    };

    /// Offset in `struct pt_regs` of the instruction pointer.
    pub(crate) fn instruction_pointer(self) -> u16 {
        match self {
            Architecture::X86 => 128,
            Architecture::Arm => 256,
        }
    }

    /// Offsets in `struct pt_regs` of the registers of a function's first integer arguments.
    pub(crate) fn argument_registers(self) -> [u16; 6] {
        match self {
            Architecture::X86 => [112, 104, 96, 88, 72, 64],
            Architecture::Arm => [0, 8, 16, 24, 32, 40],
        }
    }

    /// Offset in `struct pt_regs` of the register of a function's result.
    pub(crate) fn result_register(self) -> u16 {
        match self {
            Architecture::X86 => 80,
            Architecture::Arm => 0,
        }
    }

    /// Offset of a register by its full name or the name of its low part.
    fn register(self, name: &str) -> Option<u16> {
        match self {
            Architecture::X86 => x86_register(name),
            Architecture::Arm => arm_register(name),
        }
    }
}

/// General registers in the order of `struct pt_regs` (arch/x86/include/uapi/asm/ptrace.h).
const X86: [&str; 20] = [
    "r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax", "cx", "dx", "si", "di",
    "", "ip", "", "", "sp",
];

fn x86_register(name: &str) -> Option<u16> {
    let is_numbered = name.starts_with('r') && name.ends_with(|last: char| "dwb".contains(last));
    let plain = match name {
        "al" | "bl" | "cl" | "dl" => return x86_register(&format!("{}x", name.get(..1)?)),
        "sil" | "dil" | "bpl" | "spl" => name.get(..2)?,
        _ if is_numbered && name.len() > 2 => name.get(..name.len() - 1)?,
        _ if name.len() == 3 => name.strip_prefix(['r', 'e']).unwrap_or(name),
        _ => name,
    };
    // r10 to r15 also have three letters.
    let find = |name: &str| {
        X86.iter()
            .position(|known| *known == name && !name.is_empty())
    };
    let place = find(name).or_else(|| find(plain))?;
    Some(8 * place as u16)
}

fn arm_register(name: &str) -> Option<u16> {
    if name == "sp" {
        return Some(31 * 8);
    }
    let number: u16 = name.strip_prefix(['x', 'w'])?.parse().ok()?;
    (number < 31).then_some(8 * number)
}

/// Source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Constant(i64),
    /// Offset of a register.
    Register(u16),
    /// The sum of a register and a displacement.
    Address {
        base: u16,
        displacement: i64,
    },
    /// Memory at the sum of a register, an index shifted left, and a displacement.
    Memory {
        base: Option<u16>,
        index: Option<(u16, u8)>,
        displacement: i64,
    },
    /// Memory at a symbol plus a displacement, relative to the instruction pointer.
    Symbol {
        name: String,
        displacement: i64,
    },
    /// Memory reached by two dereferences from a register, with the displacement of each load.
    Chain {
        base: u16,
        displacements: [i32; 3],
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) source: Source,
    pub(crate) class: ValueClass,
}

/// The integer type in the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ValueClass {
    /// 1, 2, 4 or 8.
    pub(crate) bytes: u8,
    pub(crate) signed: bool,
    pub(crate) hex: bool,
}

impl ValueClass {
    pub(crate) const ADDRESS: ValueClass = ValueClass {
        bytes: 8,
        signed: false,
        hex: true,
    };
    pub(crate) const NUMBER: ValueClass = ValueClass {
        bytes: 8,
        signed: false,
        hex: false,
    };

    pub(crate) fn add_to(self, fields: Fields, name: &str) -> Fields {
        let bits = u32::from(self.bytes) * 8;
        match self {
            ValueClass { hex: true, .. } => fields.hex(name, bits),
            ValueClass { signed: true, .. } => fields.int(name, bits),
            _ => fields.uint(name, bits),
        }
    }
}

impl Argument {
    pub(crate) fn register(register: u16, class: ValueClass) -> Argument {
        let source = Source::Register(register);
        Argument { source, class }
    }

    /// Encodes as `struct chosen_argument`; `None` if the address of a symbol is unknown.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) -> Option<()> {
        let none = shared::NO_REGISTER as u16;
        let (mut value, mut more, mut registers, mut shift) = (0, [0; 2], [none; 2], 0);
        let source = match &self.source {
            Source::Constant(constant) => {
                value = *constant;
                shared::SOURCE_CONSTANT
            }
            Source::Register(register) => {
                registers[0] = *register;
                shared::SOURCE_REGISTER
            }
            Source::Address { base, displacement } => {
                value = *displacement;
                registers[0] = *base;
                shared::SOURCE_REGISTER
            }
            Source::Memory {
                base,
                index,
                displacement,
            } => {
                value = *displacement;
                registers = [base.unwrap_or(none), index.map_or(none, |(index, _)| index)];
                shift = index.map_or(0, |(_, shift)| shift);
                shared::SOURCE_MEMORY
            }
            Source::Symbol { .. } => return None,
            Source::Chain {
                base,
                displacements,
            } => {
                registers[0] = *base;
                value = displacements[0].into();
                more = [displacements[1], displacements[2]];
                shared::SOURCE_CHAIN
            }
        };
        let start = to.len();
        to.extend_from_slice(&value.to_le_bytes());
        more.iter()
            .for_each(|more| to.extend_from_slice(&more.to_le_bytes()));
        registers
            .iter()
            .for_each(|register| to.extend_from_slice(&register.to_le_bytes()));
        to.extend_from_slice(&[source as u8, self.class.bytes, shift, 0]);
        debug_assert_eq!(to.len() - start, CHOSEN_ARGUMENT_SIZE);
        Some(())
    }
}

/// The arguments of a note; `None` in place of unsupported operands.
pub(crate) fn parse_all(text: &str, machine: Architecture) -> Vec<Option<Argument>> {
    let mut depth = 0i32;
    let split = |letter: char| {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth <= 0 && letter.is_ascii_whitespace()
    };
    let arguments = text.split(split).filter(|argument| !argument.is_empty());
    arguments.map(|argument| parse(argument, machine)).collect()
}

fn parse(text: &str, machine: Architecture) -> Option<Argument> {
    let (size, operand) = text.split_once('@')?;
    let size: i8 = size.parse().ok()?;
    let bytes = size.unsigned_abs();
    if ![1, 2, 4, 8].contains(&bytes) {
        return None;
    }
    let class = ValueClass {
        bytes,
        signed: size < 0,
        hex: false,
    };
    let source = match machine {
        Architecture::X86 => x86_operand(operand)?,
        Architecture::Arm => arm_operand(operand)?,
    };
    Some(Argument { source, class })
}

fn x86_operand(text: &str) -> Option<Source> {
    if let Some(constant) = text.strip_prefix('$') {
        return number(constant).map(Source::Constant);
    }
    let register = |text: &str| Architecture::X86.register(text.trim().strip_prefix('%')?);
    if text.starts_with('%') {
        return register(text).map(Source::Register);
    }
    let (before, inside) = text.strip_suffix(')')?.split_once('(')?;
    let mut parts = inside.split(',').map(str::trim);
    let base = match parts.next()? {
        "" => None,
        base => Some(register(base)?),
    };
    let index = match parts.next() {
        None => None,
        Some(index) => {
            let index = register(index)?;
            let scale = parts.next().map_or(Some(1), |scale| scale.parse().ok())?;
            let shift = [1u8, 2, 4, 8].iter().position(|known| *known == scale)?;
            Some((index, shift as u8))
        }
    };
    if parts.next().is_some() {
        return None;
    }
    if before.is_empty() {
        return Some(Source::Memory {
            base,
            index,
            displacement: 0,
        });
    }
    if let Some(displacement) = number(before) {
        return Some(Source::Memory {
            base,
            index,
            displacement,
        });
    }
    // A symbol is known only by its distance from the instruction.
    if base != Some(Architecture::X86.instruction_pointer()) || index.is_some() {
        return None;
    }
    let at = before
        .char_indices()
        .skip(1)
        .find(|(_, letter)| "+-".contains(*letter));
    let (name, displacement) = match at {
        None => (before, 0),
        Some((at, _)) => {
            let (first, rest) = before.split_at(at);
            let second = rest.strip_prefix('+').unwrap_or(rest);
            // Compilers write `name+16` as well as `16+name`.
            match (number(first), number(second)) {
                (None, Some(displacement)) => (first, displacement),
                (Some(displacement), None) => (second, displacement),
                _ => return None,
            }
        }
    };
    let is_sound = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c));
    is_sound.then(|| Source::Symbol {
        name: name.to_owned(),
        displacement,
    })
}

fn arm_operand(text: &str) -> Option<Source> {
    let register = |text: &str| Architecture::Arm.register(text.trim());
    let Some(inside) = text.strip_prefix('[') else {
        return match number(text) {
            Some(constant) => Some(Source::Constant(constant)),
            None => register(text).map(Source::Register),
        };
    };
    let mut parts = inside.strip_suffix(']')?.split(',').map(str::trim);
    let base = Some(register(parts.next()?)?);
    let (index, displacement) = match parts.next() {
        None => (None, 0),
        Some(second) => match number(second.trim_start_matches('#')) {
            Some(displacement) => (None, displacement),
            None => (Some((register(second)?, 0)), 0),
        },
    };
    parts.next().is_none().then_some(Source::Memory {
        base,
        index,
        displacement,
    })
}

/// Signed, decimal or hexadecimal; constants above the greatest signed number wrap.
fn number(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    // `parse` would accept a second sign.
    if !digits.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let value = match digits.strip_prefix("0x") {
        Some(digits) if !digits.starts_with(['+', '-']) => u64::from_str_radix(digits, 16).ok()?,
        Some(_) => return None,
        None => digits.parse().ok()?,
    } as i64;
    Some(if is_negative {
        value.wrapping_neg()
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn source(text: &str) -> Option<Source> {
        parse(text, Architecture::X86).map(|argument| argument.source)
    }

    fn memory(base: u16, index: Option<(u16, u8)>, displacement: i64) -> Option<Source> {
        Some(Source::Memory {
            base: Some(base),
            index,
            displacement,
        })
    }

    #[test]
    fn operands_of_x86() {
        assert_eq!(source("-4@%eax"), Some(Source::Register(80)));
        assert_eq!(source("8@%r10"), Some(Source::Register(56)));
        assert_eq!(source("4@%r9d"), Some(Source::Register(64)));
        assert_eq!(source("1@%dil"), Some(Source::Register(112)));
        assert_eq!(source("1@%bl"), Some(Source::Register(40)));
        assert_eq!(source("2@%r15w"), Some(Source::Register(0)));
        assert_eq!(source("2@%cx"), Some(Source::Register(88)));
        assert_eq!(source("8@%rsp"), Some(Source::Register(152)));
        assert_eq!(source("4@$5"), Some(Source::Constant(5)));
        assert_eq!(source("-8@$-0x10"), Some(Source::Constant(-16)));
        assert_eq!(source("8@-16(%rbp)"), memory(32, None, -16));
        assert_eq!(source("8@(%rsp)"), memory(152, None, 0));
        assert_eq!(source("4@8(%rax,%rbx,4)"), memory(80, Some((40, 2)), 8));
        assert_eq!(source("4@(%rax,%rbx)"), memory(80, Some((40, 0)), 0));
        let symbol = |name: &str, displacement| {
            Some(Source::Symbol {
                name: name.to_owned(),
                displacement,
            })
        };
        assert_eq!(source("4@counter(%rip)"), symbol("counter", 0));
        assert_eq!(source("4@table+8(%rip)"), symbol("table", 8));
        assert_eq!(source("4@table-8(%rip)"), symbol("table", -8));
        assert_eq!(source("4@16+table(%rip)"), symbol("table", 16));
        for text in [
            "",
            "4",
            "@%eax",
            "3@%eax",
            "8f@%xmm0",
            "4@%xmm0",
            "1@%ah",
            "4@%fs:16",
            "4@8(%rax",
            "4@8(%rax,%rbx,3)",
            "4@counter(%rax)",
            "4@$x",
            "4@8",
            "16@%rax",
            "4@$+5",
            "4@(%rip,%rax,1,1)",
        ] {
            assert_eq!(source(text), None, "{text}");
        }
    }

    #[test]
    fn operands_of_arm() {
        let source = |text| parse(text, Architecture::Arm).map(|argument| argument.source);
        assert_eq!(source("-4@w1"), Some(Source::Register(8)));
        assert_eq!(source("8@x30"), Some(Source::Register(240)));
        assert_eq!(source("4@-7"), Some(Source::Constant(-7)));
        assert_eq!(source("8@[sp, 16]"), memory(248, None, 16));
        assert_eq!(source("8@[x2]"), memory(16, None, 0));
        assert_eq!(source("8@[x2, x3]"), memory(16, Some((24, 0)), 0));
        assert_eq!(source("8@x31"), None);
        assert_eq!(source("8@[x2, 1, 2]"), None);
    }

    #[test]
    fn arguments_are_separated_outside_brackets() {
        let all = parse_all(" -4@%edi 8@8(%rax, %rbx, 8)\t8f@%xmm0", Architecture::X86);
        assert_eq!(all.len(), 3);
        assert!(
            all[0]
                .as_ref()
                .is_some_and(|argument| argument.class.signed)
        );
        assert_eq!(
            all[1].as_ref().unwrap().source,
            memory(80, Some((40, 3)), 8).unwrap()
        );
        assert_eq!(all[2], None);
        assert_eq!(parse_all("8@[sp, 16] 4@x0", Architecture::Arm).len(), 2);
        assert!(parse_all("", Architecture::X86).is_empty());
    }

    #[test]
    fn the_kernel_gets_each_source() {
        let mut to = Vec::new();
        let argument = parse("4@8(%rax,%rbx,4)", Architecture::X86).unwrap();
        argument.encode(&mut to).unwrap();
        assert_eq!(to.len(), CHOSEN_ARGUMENT_SIZE);
        assert_eq!(to[..8], 8i64.to_le_bytes());
        assert_eq!(
            to[16..],
            [80, 0, 40, 0, shared::SOURCE_MEMORY as u8, 4, 2, 0]
        );
        let symbol = parse("4@a(%rip)", Architecture::X86).unwrap();
        assert_eq!(symbol.encode(&mut to), None);
    }

    proptest! {
        #[test]
        fn memory_operands_come_back(
            place in prop::sample::select(vec![("rax", 80u16), ("rbp", 32), ("r12", 24), ("rdi", 112)]),
            index in prop::option::of((prop::sample::select(vec![("rcx", 88u16), ("r8", 72)]), 0u8..4)),
            displacement in any::<i32>(),
            size in prop::sample::select(vec![-8i8, -4, -2, -1, 1, 2, 4, 8]),
        ) {
            let inner = match index {
                Some(((name, _), shift)) => format!("%{},%{name},{}", place.0, 1 << shift),
                None => format!("%{}", place.0),
            };
            let argument = parse(&format!("{size}@{displacement}({inner})"), Architecture::X86).unwrap();
            prop_assert_eq!(argument.class.bytes, size.unsigned_abs());
            prop_assert_eq!(argument.class.signed, size < 0);
            let index = index.map(|((_, offset), shift)| (offset, shift));
            prop_assert_eq!(Some(argument.source), memory(place.1, index, displacement.into()));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-0-9a-z@%$(),+ \\[\\]]{0,40}", other in ".{0,40}") {
            for machine in [Architecture::X86, Architecture::Arm] {
                parse_all(&text, machine);
                parse_all(&other, machine);
            }
        }
    }
}
