//! From a module's unwind tables to the rule of an address.
//!
//! The table in `.eh_frame_hdr` is searched here; what it points to is parsed by gimli, without allocation.
//!
//! Safety: the tables lie in the module's segments, which stay mapped while it is in the list
//! that the caller holds (see [`crate::modules`]).

#![allow(unsafe_code)]

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, Register, RegisterRule,
    UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow, X86_64,
};

use crate::elf::Tables;
use crate::expression;
use crate::memory::Stack;
use crate::rule::{PC, RSP, Registers, Rule, SAVED, Step};

/// What the tables say about an address.
pub(crate) enum Found {
    /// A rule that can be kept.
    Rule(Rule),
    /// Something rarer, which has been carried out.
    Done(Step),
    /// Nothing.
    Nothing,
}

struct Fixed;

impl UnwindContextStorage<usize> for Fixed {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Fixed>; 4];
}

type Section = EhFrame<EndianSlice<'static, LittleEndian>>;
type Row = UnwindTableRow<usize, Fixed>;

/// Looks an address up; `registers` are those of its frame.
#[cold]
#[inline(never)]
pub(crate) fn find(tables: &Tables, address: u64, registers: &mut Registers, stack: &mut Stack<'_>) -> Found {
    try_find(tables, address, registers, stack).unwrap_or(Found::Nothing)
}

fn try_find(
    tables: &Tables,
    address: u64,
    registers: &mut Registers,
    stack: &mut Stack<'_>,
) -> Option<Found> {
    let offset = search(tables, address)?;
    let [frames, end] = tables.frames;
    // SAFETY: see the module's text.
    let bytes =
        unsafe { core::slice::from_raw_parts(frames as *const u8, end.checked_sub(frames)? as usize) };
    let mut section: Section = EhFrame::new(bytes, LittleEndian);
    section.set_address_size(8);
    let bases = BaseAddresses::default()
        .set_eh_frame(frames)
        .set_eh_frame_hdr(tables.header);
    let entry = section
        .fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset)
        .ok()?;
    if entry.is_signal_trampoline() {
        return Some(Found::Rule(Rule::SIGNAL));
    }
    let mut context = UnwindContext::<usize, Fixed>::new_in();
    let row = entry
        .unwind_info_for_address(&section, &bases, &mut context, address)
        .ok()?;
    if matches!(row.register(X86_64::RA), None | Some(RegisterRule::Undefined)) {
        return Some(Found::Rule(Rule::OUTERMOST));
    }
    Some(match pack(&section, row) {
        Some(rule) => Found::Rule(rule),
        None => Found::Done(carry_out(&section, row, registers, stack).unwrap_or(Step::Lost)),
    })
}

/// Offset in `.eh_frame` of the last entry that begins at or before the address.
fn search(tables: &Tables, address: u64) -> Option<usize> {
    let wanted = i32::try_from(address.wrapping_sub(tables.header) as i64).ok()?;
    // SAFETY: the table was found to lie in its segment.
    let entry = |index: u32| unsafe {
        let at = (tables.header + 12 + u64::from(index) * 8) as *const i32;
        (at.read(), at.add(1).read())
    };
    let (mut low, mut high) = (0, tables.entries);
    while low < high {
        let middle = low + (high - low) / 2;
        if entry(middle).0 <= wanted {
            low = middle + 1
        } else {
            high = middle
        }
    }
    let (_, at) = entry(low.checked_sub(1)?);
    let address = tables.header.wrapping_add_signed(at.into());
    (address < tables.frames[1]).then_some(())?;
    usize::try_from(address.checked_sub(tables.frames[0])?).ok()
}

fn number(register: Register) -> usize {
    register.0.into()
}

/// The row as one word, if it fits.
fn pack(section: &Section, row: &Row) -> Option<Rule> {
    let (register, offset, is_indirect) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => (number(*register), *offset, false),
        CfaRule::Expression(expression) => {
            let code = expression.get(section).ok()?.0;
            let (register, offset) = expression::indirect(code.slice())?;
            (register, offset, true)
        }
    };
    (row.register(X86_64::RA)? == RegisterRule::Offset(-8)).then_some(())?;
    let mut saved = [None; SAVED.len()];
    for (place, register) in saved.iter_mut().zip(SAVED) {
        *place = match row.register(Register(register as u16)) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => None,
            Some(RegisterRule::Offset(offset)) => Some(offset),
            Some(_) => return None,
        };
    }
    Rule::usual(register, offset, is_indirect, saved)
}

/// Goes to the caller's frame as the row says.
fn carry_out(section: &Section, row: &Row, registers: &mut Registers, stack: &mut Stack<'_>) -> Option<Step> {
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            registers.get(number(*register))?.wrapping_add_signed(*offset)
        }
        CfaRule::Expression(expression) => {
            expression::evaluate(expression.get(section).ok()?.0.slice(), None, registers, stack)?
        }
    };
    if cfa <= registers.0[RSP] {
        return None;
    }
    let mut caller = *registers;
    for register in SAVED.into_iter().chain([PC]) {
        let place = caller.0.get_mut(register)?;
        *place = match row.register(Register(register as u16)) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => *place,
            Some(RegisterRule::Offset(offset)) => stack.word(cfa.wrapping_add_signed(offset))?,
            Some(RegisterRule::ValOffset(offset)) => cfa.wrapping_add_signed(offset),
            Some(RegisterRule::Register(other)) => registers.get(number(other))?,
            Some(RegisterRule::Expression(code)) => {
                let code = code.get(section).ok()?.0;
                let address = expression::evaluate(code.slice(), Some(cfa), registers, stack)?;
                stack.word(address)?
            }
            Some(RegisterRule::ValExpression(code)) => {
                let code = code.get(section).ok()?.0;
                expression::evaluate(code.slice(), Some(cfa), registers, stack)?
            }
            Some(_) => return None,
        };
    }
    caller.0[RSP] = cfa;
    *registers = caller;
    Some(Step::Called)
}
