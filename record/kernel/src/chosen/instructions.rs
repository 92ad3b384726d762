//! Machine code of a function: the addresses of its instructions and their control flow.
//!
//! A probe replaces a byte of the program. In the middle of an instruction, or in data, it would
//! corrupt the program, so the code is decoded from the beginning of the function. Code that does
//! not decode to its end, or that jumps into the middle of a decoded instruction, contains data and
//! is not trusted.

use std::ops::Range;

use iced_x86::{
    Code as Form, Decoder, DecoderOptions, Instruction as Decoded, Mnemonic, OpKind, Register,
};

use super::argument::{Architecture, Source};

/// The instructions of a range of addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Code {
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) fault: Option<Fault>,
}

/// Why code is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The bytes at this address are not an instruction.
    Undecodable(u64),
    /// A jump leads to this address, which is inside an instruction.
    Overlap(u64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) flow: Flow,
}

/// Where execution continues after an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// At the next instruction.
    Next,
    /// At the next instruction, unless the called function does not return.
    Call,
    /// Nowhere: the instruction raises a trap.
    Trap,
    /// At the next instruction; the instruction itself has no effect.
    Nop,
    Return,
    Jump(u64),
    /// A conditional jump: target and condition code of the instruction set; `None` for conditions
    /// on a register.
    Branch(u64, Option<u8>),
    /// A jump to an address in a register or in memory; `None` if the operand is not known.
    Indirect(Option<Source>),
    /// A jump through a table of the function (`notrack`, which CET requires for such jumps).
    Table,
    /// Far jumps and returns, and the begin of a transaction: not supported.
    Far,
}

impl Code {
    /// Decodes the bytes at an address.
    pub(crate) fn decode(machine: Architecture, address: u64, bytes: &[u8]) -> Code {
        match machine {
            Architecture::X86 => decode_x86(address, bytes),
            Architecture::Arm => decode_arm(address, bytes),
        }
    }

    pub(crate) fn at(&self, address: u64) -> Option<&Instruction> {
        let place = self
            .instructions
            .binary_search_by_key(&address, |found| found.address);
        self.instructions.get(place.ok()?)
    }

    /// Addresses of the nearest instructions at or below an address, and above it.
    pub(crate) fn nearest(&self, address: u64) -> [Option<u64>; 2] {
        let after = self
            .instructions
            .partition_point(|found| found.address <= address);
        let begin = |place: usize| Some(self.instructions.get(place)?.address);
        [after.checked_sub(1).and_then(begin), begin(after)]
    }

    /// Sets the fault if a jump leads into the middle of an instruction.
    fn check_targets(mut self, range: &Range<u64>, bytes: &[u8]) -> Code {
        let end = match self.fault {
            Some(Fault::Undecodable(end)) => end,
            _ => range.end,
        };
        let is_wrong = |target: u64| {
            // A jump may skip a `lock` prefix, as some code does while the program has one thread.
            let is_prefix = |begin: u64| {
                let byte = bytes.get((begin - range.start) as usize);
                self.at(begin).is_some() && byte == Some(&LOCK)
            };
            (range.start..end).contains(&target)
                && self.at(target).is_none()
                && !target.checked_sub(1).is_some_and(is_prefix)
        };
        let mut targets = self
            .instructions
            .iter()
            .filter_map(|found| match found.flow {
                Flow::Jump(target) | Flow::Branch(target, _) => Some(target),
                _ => None,
            });
        if let Some(wrong) = targets.find(|&target| is_wrong(target)) {
            self.fault = Some(Fault::Overlap(wrong));
        }
        self
    }
}

const LOCK: u8 = 0xf0;

fn decode_x86(address: u64, bytes: &[u8]) -> Code {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut code = Code::default();
    let mut decoded = Decoded::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut decoded);
        if decoded.is_invalid() {
            code.fault = Some(Fault::Undecodable(decoded.ip()));
            break;
        }
        code.instructions.push(Instruction {
            address: decoded.ip(),
            bytes: decoded.len() as u64,
            flow: flow(
                &decoded,
                bytes.get((decoded.ip() - address) as usize).copied(),
            ),
        });
    }
    let end = address.saturating_add(bytes.len() as u64);
    code.check_targets(&(address..end), bytes)
}

/// `first` is the first byte of the instruction.
fn flow(decoded: &Decoded, first: Option<u8>) -> Flow {
    const NOTRACK: u8 = 0x3e;
    let is_near = decoded.op0_kind() == OpKind::NearBranch64;
    match decoded.mnemonic() {
        Mnemonic::Ret => Flow::Return,
        Mnemonic::Nop => Flow::Nop,
        Mnemonic::Jmp if is_near => Flow::Jump(decoded.near_branch64()),
        Mnemonic::Jmp if first == Some(NOTRACK) => Flow::Table,
        Mnemonic::Jmp if decoded.code() == Form::Jmp_rm64 => Flow::Indirect(operand(decoded)),
        Mnemonic::Jmp
        | Mnemonic::Retf
        | Mnemonic::Iret
        | Mnemonic::Iretd
        | Mnemonic::Iretq
        | Mnemonic::Sysret
        | Mnemonic::Sysretq
        | Mnemonic::Xbegin => Flow::Far,
        Mnemonic::Call => Flow::Call,
        Mnemonic::Ud2 | Mnemonic::Ud1 | Mnemonic::Ud0 | Mnemonic::Hlt | Mnemonic::Int3 => {
            Flow::Trap
        }
        mnemonic if is_near => Flow::Branch(decoded.near_branch64(), condition(mnemonic)),
        _ => Flow::Next,
    }
}

/// Condition code ("Condition test field" of the instruction set).
fn condition(mnemonic: Mnemonic) -> Option<u8> {
    const CONDITIONS: [Mnemonic; 16] = [
        Mnemonic::Jo,
        Mnemonic::Jno,
        Mnemonic::Jb,
        Mnemonic::Jae,
        Mnemonic::Je,
        Mnemonic::Jne,
        Mnemonic::Jbe,
        Mnemonic::Ja,
        Mnemonic::Js,
        Mnemonic::Jns,
        Mnemonic::Jp,
        Mnemonic::Jnp,
        Mnemonic::Jl,
        Mnemonic::Jge,
        Mnemonic::Jle,
        Mnemonic::Jg,
    ];
    let place = CONDITIONS.iter().position(|known| *known == mnemonic)?;
    Some(place as u8)
}

/// The source of the target of an indirect jump.
fn operand(decoded: &Decoded) -> Option<Source> {
    match decoded.op0_kind() {
        OpKind::Register => register(decoded.op0_register()).map(Source::Register),
        OpKind::Memory if decoded.is_ip_rel_memory_operand() => {
            let address = decoded.ip_rel_memory_address();
            Some(Source::Memory {
                base: Some(Architecture::X86.instruction_pointer()),
                index: None,
                displacement: address.wrapping_sub(decoded.ip()).cast_signed(),
            })
        }
        // The bases of the segments fs and gs are not zero.
        OpKind::Memory if decoded.segment_prefix() == Register::None => {
            let index = match decoded.memory_index() {
                Register::None => None,
                index => Some((
                    register(index)?,
                    decoded.memory_index_scale().trailing_zeros() as u8,
                )),
            };
            let base = match decoded.memory_base() {
                Register::None => None,
                base => Some(register(base)?),
            };
            Some(Source::Memory {
                base,
                index,
                displacement: decoded.memory_displacement64().cast_signed(),
            })
        }
        _ => None,
    }
}

/// Offset in `struct pt_regs` of a 64-bit register.
fn register(register: Register) -> Option<u16> {
    const ORDER: [Register; 15] = [
        Register::R15,
        Register::R14,
        Register::R13,
        Register::R12,
        Register::RBP,
        Register::RBX,
        Register::R11,
        Register::R10,
        Register::R9,
        Register::R8,
        Register::RAX,
        Register::RCX,
        Register::RDX,
        Register::RSI,
        Register::RDI,
    ];
    let place = ORDER.iter().position(|known| *known == register);
    let place = place.or_else(|| (register == Register::RSP).then_some(19))?;
    Some(8 * place as u16)
}

/// All instructions have four bytes. Control flow is not decoded.
fn decode_arm(address: u64, bytes: &[u8]) -> Code {
    const NOP: [u8; 4] = 0xd503_201fu32.to_le_bytes();
    let (words, rest) = bytes.as_chunks::<4>();
    let instruction = |(number, word): (u64, &[u8; 4])| Instruction {
        address: address + 4 * number,
        bytes: 4,
        flow: if *word == NOP { Flow::Nop } else { Flow::Next },
    };
    Code {
        instructions: (0u64..).zip(words).map(instruction).collect(),
        fault: (!rest.is_empty()).then(|| Fault::Undecodable(address + 4 * words.len() as u64)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flows(bytes: &[u8]) -> Vec<Flow> {
        let code = Code::decode(Architecture::X86, 0x1000, bytes);
        assert_eq!(code.fault, None, "{code:?}");
        code.instructions
            .into_iter()
            .map(|found| found.flow)
            .collect()
    }

    #[test]
    fn instructions_lead_where_the_instruction_set_says() {
        assert_eq!(
            flows(&[0xc3, 0xf3, 0xc3, 0xc2, 8, 0]),
            vec![Flow::Return; 3]
        );
        assert_eq!(flows(&[0x90, 0x0f, 0x1f, 0x44, 0, 0]), vec![Flow::Nop; 2]);
        // call; jmp; jne; jrcxz
        assert_eq!(
            flows(&[0xe8, 0, 0, 0, 0, 0xeb, 0x10, 0x75, 0x20, 0xe3, 0x30]),
            [
                Flow::Call,
                Flow::Jump(0x1017),
                Flow::Branch(0x1029, Some(5)),
                Flow::Branch(0x103b, None)
            ]
        );
        // jmp *%rax; notrack jmp *%rax; jmp *8(%rbx,%rcx,4); jmp *0x100(%rip); jmp *%fs:8
        let memory = |base, index, displacement| {
            Flow::Indirect(Some(Source::Memory {
                base,
                index,
                displacement,
            }))
        };
        assert_eq!(
            flows(&[
                0xff, 0xe0, 0x3e, 0xff, 0xe0, 0xff, 0x64, 0x8b, 8, 0xff, 0x25, 0, 1, 0, 0
            ]),
            [
                Flow::Indirect(Some(Source::Register(80))),
                Flow::Table,
                memory(Some(40), Some((88, 2)), 8),
                memory(Some(128), None, 0x106),
            ]
        );
        assert_eq!(
            flows(&[0x64, 0xff, 0x24, 0x25, 8, 0, 0, 0]),
            [Flow::Indirect(None)]
        );
    }

    #[test]
    fn data_among_the_code_is_found() {
        // push %es, which is invalid in 64-bit mode.
        let code = Code::decode(Architecture::X86, 0, &[0x90, 0x06]);
        assert_eq!(
            (code.instructions.len(), code.fault),
            (1, Some(Fault::Undecodable(1)))
        );
        // The last instruction is incomplete.
        assert_eq!(
            Code::decode(Architecture::X86, 0, &[0x90, 0xb8, 1]).fault,
            Some(Fault::Undecodable(1))
        );
        // jmp +1, over a byte that decodes as the beginning of `mov`.
        assert_eq!(
            Code::decode(
                Architecture::X86,
                0,
                &[0xeb, 1, 0xb8, 0x90, 0x90, 0x90, 0x90]
            )
            .fault,
            Some(Fault::Overlap(3))
        );
        // je +1; lock inc (%rax)
        assert_eq!(
            Code::decode(Architecture::X86, 0, &[0x74, 1, 0xf0, 0xff, 0]).fault,
            None
        );
        assert_eq!(
            Code::decode(Architecture::Arm, 0, &[0; 6]).fault,
            Some(Fault::Undecodable(4))
        );
    }

    #[test]
    fn nearest_beginnings_are_below_and_above() {
        let code = Code::decode(Architecture::X86, 8, &[0xb8, 1, 2, 3, 4, 0xc3]);
        assert_eq!(code.nearest(10), [Some(8), Some(13)]);
        assert_eq!(code.nearest(20), [Some(13), None]);
        assert_eq!(code.at(13).map(|found| found.bytes), Some(1));
        assert_eq!(code.at(9), None);
    }

    proptest! {
        #[test]
        fn all_bytes_are_instructions_up_to_the_fault(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            for machine in [Architecture::X86, Architecture::Arm] {
                let code = Code::decode(machine, u64::MAX / 2, &bytes);
                let mut next = u64::MAX / 2;
                for found in &code.instructions {
                    prop_assert_eq!(found.address, next);
                    next += found.bytes;
                }
                if code.fault.is_none() {
                    prop_assert_eq!(next, u64::MAX / 2 + bytes.len() as u64);
                }
            }
        }
    }
}
