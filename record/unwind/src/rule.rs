//! The rule for stepping from a frame to its caller, packed in one word.
//!
//! In nearly all rows of call frame information the canonical frame address (CFA) is a register
//! plus an offset, the return address lies below it, and the registers that the caller must find
//! again were saved below that. With all of that in 64 bits, a cached frame costs a lookup and a
//! few loads. Rows with more are not packed ([`crate::tables`] evaluates them each time).
//!
//! | bits | |
//! |---|---|
//! | 0..4 | register of the CFA, by DWARF number |
//! | 4 | the CFA is the word at that address, not the address itself |
//! | 5..8 | kind: a usual frame, the outermost one, a signal's, the first of a fiber |
//! | 8..28 | offset of the CFA in words, signed |
//! | 28..64 | six times 6 bits: how many words below the CFA each of [`SAVED`] lies, 0 for unchanged |

use crate::stack::StackCopy;

/// Numbers of registers in DWARF (System V ABI for AMD64, figure 3.36).
pub(crate) const RSP: usize = 7;
pub(crate) const RBP: usize = 6;
pub(crate) const PC: usize = 16;
/// Registers that functions must leave as they were: rbx, rbp, r12 to r15.
pub(crate) const SAVED: [usize; 6] = [3, RBP, 12, 13, 14, 15];

const USUAL: u64 = 1;
const OUTERMOST: u64 = 2;
const SIGNAL: u64 = 3;
const FIBER: u64 = 4;

/// Values of the registers of a frame by their DWARF numbers (System V ABI for AMD64, figure 3.36):
/// rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and the instruction pointer.
#[derive(Clone, Copy, Debug)]
pub struct Registers(pub [u64; 17]);

impl Registers {
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<u64> {
        self.0.get(number).copied()
    }
}

/// Result of a step to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unwound {
    /// The registers are those of the caller.
    Called,
    /// The registers are those of the code that a signal interrupted.
    Interrupted,
    /// The frame has no caller.
    Outermost,
    /// The caller's frame lies beyond the copy of the stack.
    Beyond,
    /// The rule and the stack are inconsistent.
    Lost,
}

/// A packed rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule(pub(crate) u64);

impl Rule {
    /// A frame without a caller.
    pub(crate) const OUTERMOST: Rule = Rule(OUTERMOST << 5);
    /// The frame to which a signal handler returns: above it lies what the kernel saved.
    pub(crate) const SIGNAL: Rule = Rule(SIGNAL << 5);
    /// Like [`Rule::OUTERMOST`], for frames that a return address led to: code at the same address
    /// that runs or was interrupted there has callers.
    pub(crate) const FIBER: Rule = Rule(FIBER << 5);
    /// No rule.
    pub(crate) const NONE: Rule = Rule(0);
    /// A function that has pushed nothing.
    pub(crate) const LEAF: Rule = Rule(RSP as u64 | USUAL << 5 | 1 << 8);
    /// A function that has a frame pointer.
    pub(crate) const FRAME_POINTER: Rule = Rule(RBP as u64 | USUAL << 5 | 2 << 8 | 2 << (28 + 6));

    /// A usual frame; `None` if it does not fit. `saved` are offsets from the CFA in bytes, as many
    /// as [`SAVED`].
    pub(crate) fn usual(
        register: usize,
        offset: i64,
        is_indirect: bool,
        saved: [Option<i64>; 6],
    ) -> Option<Rule> {
        let words = offset / 8;
        let fits = offset % 8 == 0 && register < 16 && (-(1 << 19)..1 << 19).contains(&words);
        fits.then_some(())?;
        let mut rule = register as u64 | u64::from(is_indirect) << 4 | USUAL << 5;
        rule |= (words as u64 & 0xF_FFFF) << 8;
        for (index, offset) in saved.into_iter().enumerate() {
            if let Some(offset) = offset {
                let below = -offset / 8;
                (offset % 8 == 0 && (1..64).contains(&below)).then_some(())?;
                rule |= (below as u64) << (28 + 6 * index);
            }
        }
        Some(Rule(rule))
    }

    /// Goes to the caller's frame.
    #[inline]
    pub(crate) fn step(self, registers: &mut Registers, stack: &StackCopy<'_>) -> Unwound {
        match self.0 >> 5 & 7 {
            USUAL => self.usual_step(registers, stack),
            OUTERMOST | FIBER => Unwound::Outermost,
            SIGNAL => signal_step(registers, stack),
            _ => Unwound::Lost,
        }
    }

    #[inline]
    fn usual_step(self, registers: &mut Registers, stack: &StackCopy<'_>) -> Unwound {
        let offset = (self.0 << 36) as i64 >> 44;
        let Some(base) = registers.get((self.0 & 15) as usize) else {
            return Unwound::Lost;
        };
        let mut cfa = base.wrapping_add_signed(offset * 8);
        if self.0 & 16 != 0 {
            let Some(word) = stack.word(cfa) else {
                return stack.missing(cfa);
            };
            cfa = word;
        }
        // Callers have higher addresses: any other CFA would cause a loop.
        if cfa <= registers.0[RSP] {
            return Unwound::Lost;
        }
        let Some(caller) = stack.word(cfa.wrapping_sub(8)) else {
            return stack.missing(cfa.wrapping_sub(8));
        };
        registers.0[PC] = caller;
        let mut places = self.0 >> 28;
        for number in SAVED {
            let below = places & 63;
            let address = cfa.wrapping_sub(8 * below);
            // Near its end a function has already restored the register.
            if below != 0 && address >= registers.0[RSP] {
                let Some(word) = stack.word(address) else {
                    return stack.missing(address);
                };
                registers.0[number] = word;
            }
            places >>= 6;
        }
        registers.0[RSP] = cfa;
        Unwound::Called
    }
}

/// Offset of the saved registers in `ucontext_t`, and their order there by DWARF number.
const CONTEXT: u64 = 40;
const IN_CONTEXT: [usize; 17] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, RBP, 3, 1, 0, 2, RSP, PC];

/// The stack pointer of the trampoline that a handler returns to is the address of its
/// `ucontext_t`.
#[cold]
fn signal_step(registers: &mut Registers, stack: &StackCopy<'_>) -> Unwound {
    let context = registers.0[RSP].wrapping_add(CONTEXT);
    let mut found = *registers;
    for (place, number) in (0_u64..).zip(IN_CONTEXT) {
        let address = context.wrapping_add(8 * place);
        let (Some(register), Some(word)) = (found.0.get_mut(number), stack.word(address)) else {
            return stack.missing(address);
        };
        *register = word;
    }
    *registers = found;
    Unwound::Interrupted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_rule_does_what_was_packed() {
        // CFA = rsp + 32; rbx at CFA-24, rbp at CFA-16, r15 at CFA-32.
        let saved = [Some(-24), Some(-16), None, None, None, Some(-32)];
        let rule = Rule::usual(RSP, 32, false, saved).unwrap();
        let at = 0x7000;
        let words = [15_u64, 3, 6, 0x1234, at, 0x77]
            .map(u64::to_le_bytes)
            .concat();
        let stack = StackCopy::new(at, &words);
        let mut registers = Registers([7; 17]);
        registers.0[RSP] = at;
        assert_eq!(rule.step(&mut registers, &stack), Unwound::Called);
        assert_eq!(
            [registers.0[3], registers.0[RBP], registers.0[15]],
            [3, 6, 15]
        );
        assert_eq!(
            (registers.0[PC], registers.0[RSP], registers.0[12]),
            (0x1234, at + 32, 7)
        );
        // The same CFA would lead in circles.
        let circle = Rule::usual(RSP, 0, false, [None; 6]).unwrap();
        assert_eq!(circle.step(&mut registers, &stack), Unwound::Lost);
        // The CFA is the word at r10 + 8.
        let words = [at + 16, 0x99, at + 16].map(u64::to_le_bytes).concat();
        let stack = StackCopy::new(at, &words);
        registers.0[RSP] = at;
        registers.0[10] = at + 8;
        let indirect = Rule::usual(10, 8, true, [None; 6]).unwrap();
        assert_eq!(indirect.step(&mut registers, &stack), Unwound::Called);
        assert_eq!((registers.0[PC], registers.0[RSP]), (0x99, at + 16));
    }

    #[test]
    fn a_register_that_was_taken_from_the_stack_again_is_left_alone() {
        // rbx was pushed last; it has been popped, and the stack pointer is at the return address.
        let rule = Rule::usual(RSP, 8, false, [Some(-16), None, None, None, None, None]).unwrap();
        let words = [0x1234_u64, 99].map(u64::to_le_bytes).concat();
        let stack = StackCopy::new(0x7000, &words);
        let mut registers = Registers([7; 17]);
        registers.0[RSP] = 0x7000;
        assert_eq!(rule.step(&mut registers, &stack), Unwound::Called);
        assert_eq!((registers.0[PC], registers.0[3]), (0x1234, 7));
    }

    #[test]
    fn what_does_not_fit_is_not_packed() {
        assert!(Rule::usual(RSP, 12, false, [None; 6]).is_none());
        assert!(Rule::usual(17, 8, false, [None; 6]).is_none());
        assert!(Rule::usual(RSP, 8 << 19, false, [None; 6]).is_none());
        assert!(Rule::usual(RSP, -8 << 19, false, [None; 6]).is_some());
        assert!(Rule::usual(RSP, 8, false, [Some(-512), None, None, None, None, None]).is_none());
        assert!(Rule::usual(RSP, 8, false, [Some(8), None, None, None, None, None]).is_none());
        assert_eq!(
            Rule::FRAME_POINTER,
            Rule::usual(RBP, 16, false, [None, Some(-16), None, None, None, None]).unwrap()
        );
    }
}
