//! Unwinding: registers, the copy of a stack, and an ELF file with its unwind tables.

use libfuzzer_sys::Corpus;
use tracebraid_unwind::{Code, Module, Registers, StackCopy, Unwinder};

/// Addresses of the stack and of the file's code.
const STACK: u64 = 0x7000_0000;
const CODE: u64 = 0x4000_0000;
const CODE_BYTES: u64 = 1 << 20;
const DEPTH: usize = 64;

/// Input: 17 registers, two bytes for the length of the stack, the stack, the file.
pub(crate) fn unwind(data: &[u8]) -> Corpus {
    let Some((registers, rest)) = data.split_first_chunk::<136>() else {
        return Corpus::Reject;
    };
    let Some((length, rest)) = rest.split_first_chunk::<2>() else {
        return Corpus::Reject;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (stack, file) = rest.split_at(length);
    let Ok(module) = Module::parse(file) else {
        return Corpus::Reject;
    };
    let mut words = registers
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
    let registers = Registers(std::array::from_fn(|_| words.next().unwrap_or_default()));
    let code = |address: u64| match address.checked_sub(CODE) {
        Some(offset) if offset < CODE_BYTES => Code::Module(&module, offset),
        Some(offset) if offset < 2 * CODE_BYTES => Code::Other,
        _ => Code::None,
    };
    let mut unwinder = Unwinder::default();
    let mut frames = [Vec::new(), Vec::new()];
    // With new rules, and with the rules that are cached then.
    for frames in &mut frames {
        unwinder.walk(
            registers,
            &StackCopy::new(STACK, stack),
            DEPTH,
            code,
            frames,
        );
        assert!(frames.len() <= DEPTH);
    }
    assert_eq!(frames[0], frames[1]);
    Corpus::Keep
}
