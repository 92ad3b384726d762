//! From the unwind tables of a file to the rule of an address.
//!
//! The sorted table in `.eh_frame_hdr` leads to the entry; gimli parses the entry. Files without
//! that table get one of the same form when they are read.

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow, X86_64,
};

use crate::expression;
use crate::rule::{PC, RSP, Registers, Rule, SAVED, Unwound};
use crate::stack::StackCopy;

/// `.eh_frame` of a file and its entries in the order of addresses.
#[derive(Debug)]
pub(crate) struct Tables {
    address: u64,
    frames: Vec<u8>,
    index: Index,
}

/// Begins of functions and the offsets of their entries in `.eh_frame`.
#[derive(Debug)]
enum Index {
    /// `.eh_frame_hdr` and its address.
    Header {
        address: u64,
        table: Vec<u8>,
    },
    Built(Vec<(u64, usize)>),
}

/// Result of a lookup.
pub(crate) enum Found {
    /// A rule that can be kept.
    Rule(Rule),
    /// Rarer rules, which have been followed.
    Done(Unwound),
    /// The tables do not contain the address.
    Nothing,
}

pub(crate) struct Fixed;

impl UnwindContextStorage<usize> for Fixed {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [UnwindTableRow<usize, Fixed>; 4];
}

pub(crate) type Section<'t> = EhFrame<EndianSlice<'t, LittleEndian>>;
type Row = UnwindTableRow<usize, Fixed>;

impl Tables {
    /// Tables of `.eh_frame` at that address, with `.eh_frame_hdr` and its address if there is one.
    pub(crate) fn new(address: u64, frames: Vec<u8>, header: Option<(u64, Vec<u8>)>) -> Tables {
        let index = header.and_then(|(address, header)| Index::of_header(address, header));
        let mut tables = Tables {
            address,
            frames,
            index: Index::Built(Vec::new()),
        };
        tables.index = index.unwrap_or_else(|| Index::Built(tables.build()));
        tables
    }

    pub(crate) fn section(&self) -> (Section<'_>, BaseAddresses) {
        let mut section = EhFrame::new(&self.frames, LittleEndian);
        section.set_address_size(8);
        let mut bases = BaseAddresses::default().set_eh_frame(self.address);
        if let Index::Header { address, .. } = self.index {
            bases = bases.set_eh_frame_hdr(address);
        }
        (section, bases)
    }

    /// Offset in `.eh_frame` of the last entry that begins at or before the address.
    pub(crate) fn entry(&self, address: u64) -> Option<usize> {
        self.index.find(address, self.address)
    }

    /// All entries in the order of addresses, up to the first one that cannot be parsed.
    fn build(&self) -> Vec<(u64, usize)> {
        let (section, bases) = self.section();
        let mut entries = section.entries(&bases);
        let mut index = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(partial) = entry
                && let Ok(entry) = partial.parse(EhFrame::cie_from_offset)
            {
                index.push((entry.initial_address(), entry.offset()));
            }
        }
        index.sort_unstable();
        index
    }

    /// Whether a function begins at an address.
    pub(crate) fn has_function_at(&self, address: u64) -> bool {
        self.index.begins_at(address)
    }

    /// Looks up an address of the file; `registers` are those of its frame.
    #[cold]
    #[inline(never)]
    pub(crate) fn find(
        &self,
        address: u64,
        registers: &mut Registers,
        stack: &StackCopy<'_>,
    ) -> Found {
        self.try_find(address, registers, stack)
            .unwrap_or(Found::Nothing)
    }

    fn try_find(
        &self,
        address: u64,
        registers: &mut Registers,
        stack: &StackCopy<'_>,
    ) -> Option<Found> {
        let offset = self.entry(address)?;
        let (section, bases) = self.section();
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
        if matches!(
            row.register(X86_64::RA),
            None | Some(RegisterRule::Undefined)
        ) {
            return Some(Found::Rule(Rule::OUTERMOST));
        }
        Some(match pack(&section, row) {
            Some(rule) => Found::Rule(rule),
            None => Found::Done(follow(&section, row, registers, stack).unwrap_or(Unwound::Lost)),
        })
    }
}

/// Bytes before the table in `.eh_frame_hdr`: four of encodings, the address of `.eh_frame`, the
/// number of entries.
const HEADER: usize = 12;

impl Index {
    /// The table of `.eh_frame_hdr`, if it has the form that linkers write.
    fn of_header(address: u64, table: Vec<u8>) -> Option<Index> {
        // Version 1; `.eh_frame` relative to here, count as it is, table relative to the header.
        table.starts_with(&[1, 0x1B, 0x03, 0x3B]).then_some(())?;
        let count = u32::from_le_bytes(*table.get(8..)?.first_chunk()?) as usize;
        (count > 0 && table.len() >= HEADER.checked_add(count.checked_mul(8)?)?).then_some(())?;
        let mut table = table;
        table.truncate(HEADER + count * 8);
        Some(Index::Header { address, table })
    }

    /// Whether an entry begins at the address.
    fn begins_at(&self, address: u64) -> bool {
        match self {
            Index::Built(entries) => entries
                .binary_search_by_key(&address, |&(begin, _)| begin)
                .is_ok(),
            Index::Header {
                address: base,
                table,
            } => {
                let (Ok(wanted), Some(entries)) = (
                    i32::try_from(address.wrapping_sub(*base) as i64),
                    table.get(HEADER..),
                ) else {
                    return false;
                };
                let begin = |[a, b, c, d, ..]: &[u8; 8]| i32::from_le_bytes([*a, *b, *c, *d]);
                entries
                    .as_chunks::<8>()
                    .0
                    .binary_search_by_key(&wanted, begin)
                    .is_ok()
            }
        }
    }

    /// Offset in `.eh_frame` of the last entry that begins at or before the address.
    fn find(&self, address: u64, frames: u64) -> Option<usize> {
        match self {
            Index::Built(entries) => {
                let after = entries.partition_point(|&(begin, _)| begin <= address);
                Some(entries.get(after.checked_sub(1)?)?.1)
            }
            Index::Header {
                address: base,
                table,
            } => {
                let wanted = i32::try_from(address.wrapping_sub(*base) as i64).ok()?;
                let (entries, _) = table.get(HEADER..)?.as_chunks::<8>();
                let begin = |[a, b, c, d, ..]: &[u8; 8]| i32::from_le_bytes([*a, *b, *c, *d]);
                let after = entries.partition_point(|entry| begin(entry) <= wanted);
                let [.., a, b, c, d] = *entries.get(after.checked_sub(1)?)?;
                let entry = base.wrapping_add_signed(i32::from_le_bytes([a, b, c, d]).into());
                usize::try_from(entry.checked_sub(frames)?).ok()
            }
        }
    }
}

fn number(register: Register) -> usize {
    register.0.into()
}

/// The row as one word, if it fits.
fn pack(section: &Section<'_>, row: &Row) -> Option<Rule> {
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

/// Goes to the caller's frame by a row that does not fit in one word.
fn follow(
    section: &Section<'_>,
    row: &Row,
    registers: &mut Registers,
    stack: &StackCopy<'_>,
) -> Option<Unwound> {
    let evaluate = |code: gimli::UnwindExpression<usize>, initial| {
        let code = code.get(section).ok()?.0;
        expression::evaluate(code.slice(), initial, registers, stack)
    };
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => registers
            .get(number(*register))?
            .wrapping_add_signed(*offset),
        CfaRule::Expression(code) => evaluate(*code, None)?,
    };
    // Callers lie above, except for a function that has popped its return address: `vfork` keeps it
    // in a register, since its child uses the same stack. A chain of only such frames ends at the
    // maximum depth.
    let is_in_register = matches!(row.register(X86_64::RA), Some(RegisterRule::Register(_)));
    if cfa < registers.0[RSP] || cfa == registers.0[RSP] && !is_in_register {
        return None;
    }
    let mut caller = *registers;
    for register in SAVED.into_iter().chain([PC]) {
        let place = caller.0.get_mut(register)?;
        *place = match row.register(Register(register as u16)) {
            None | Some(RegisterRule::SameValue | RegisterRule::Undefined) => *place,
            // Near its end a function has already restored the register.
            Some(RegisterRule::Offset(offset))
                if cfa.wrapping_add_signed(offset) < registers.0[RSP] =>
            {
                *place
            }
            Some(RegisterRule::Offset(offset)) => {
                let address = cfa.wrapping_add_signed(offset);
                match stack.word(address) {
                    Some(word) => word,
                    None => return Some(stack.missing(address)),
                }
            }
            Some(RegisterRule::ValOffset(offset)) => cfa.wrapping_add_signed(offset),
            Some(RegisterRule::Register(other)) => registers.get(number(other))?,
            Some(RegisterRule::Expression(code)) => stack.word(evaluate(code, Some(cfa))?)?,
            Some(RegisterRule::ValExpression(code)) => evaluate(code, Some(cfa))?,
            Some(_) => return None,
        };
    }
    caller.0[RSP] = cfa;
    *registers = caller;
    Some(Unwound::Called)
}
