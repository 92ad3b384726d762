//! Bounds of functions and the state of their stack, from the unwind tables.

use gimli::{CfaRule, EhFrame, EhFrameOffset, RegisterRule, UnwindContext, UnwindSection, X86_64};

use crate::module::Module;
use crate::rule::RSP;
use crate::tables::{Fixed, Tables};

/// The entry of the unwind tables that contains an address. Addresses are those of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The first address of the function or of a part of it.
    pub begin: u64,
    /// The address after its last instruction.
    pub end: u64,
    /// Whether the stack pointer points at the return address at the looked-up address, as it does
    /// where a function begins, returns or makes a tail call. `None` if the tables compute the CFA.
    pub is_at_return_address: Option<bool>,
    /// The function has code that runs when an exception or a cancellation passes through it
    /// (LSDA).
    pub has_handlers: bool,
}

impl Module {
    /// The entry that contains an address of the file.
    pub fn frame(&self, address: u64) -> Option<Frame> {
        self.tables()?.frame(address)
    }
}

impl Tables {
    fn frame(&self, address: u64) -> Option<Frame> {
        let offset = self.entry(address)?;
        let (section, bases) = self.section();
        let entry = section
            .fde_from_offset(&bases, EhFrameOffset(offset), EhFrame::cie_from_offset)
            .ok()?;
        let begin = entry.initial_address();
        let end = begin.checked_add(entry.len())?;
        if !(begin..end).contains(&address) {
            return None;
        }
        let mut context = UnwindContext::<usize, Fixed>::new_in();
        let row = entry.unwind_info_for_address(&section, &bases, &mut context, address);
        let is_at_return_address = row.ok().and_then(|row| match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset }
                if row.register(X86_64::RA) == Some(RegisterRule::Offset(-8)) =>
            {
                Some((usize::from(register.0), *offset) == (RSP, 8))
            }
            _ => None,
        });
        Some(Frame {
            begin,
            end,
            is_at_return_address,
            has_handlers: entry.lsda().is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn a_function_begins_at_its_return_address() {
        let module = Module::read(File::open("/proc/self/exe").unwrap()).unwrap();
        let own = a_function_begins_at_its_return_address as fn() as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let base = maps.split('-').next().unwrap();
        let base = u64::from_str_radix(base, 16).unwrap();
        let frame = module.frame(own - base).unwrap();
        assert_eq!(frame.begin, own - base);
        assert_eq!(frame.is_at_return_address, Some(true));
        let inside = module.frame(frame.end - 1).unwrap();
        assert_eq!((inside.begin, inside.end), (frame.begin, frame.end));
        assert_eq!(module.frame(0), None);
    }
}
