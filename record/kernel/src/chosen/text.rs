//! The code of an executable: functions by address, and their instructions.

use std::fs::File;
use std::ops::Range;

use tracebraid_unwind::{Frame, Module};

use super::argument::Architecture;
use super::executable::{Executable, Symbol};
use super::go;
use super::instructions::{Code, Fault, Flow};

/// Largest size of a function in bytes; compilers generate a few megabytes at most.
const MOST_BYTES: u64 = 64 << 20;

/// Functions of an executable by address.
pub(crate) struct Text<'e> {
    pub(super) program: &'e Executable,
    /// Functions with a size, in the order of addresses.
    functions: Vec<&'e Symbol>,
    /// Unwind tables, which stripped files also contain.
    tables: Option<Module>,
}

impl<'e> Text<'e> {
    pub(crate) fn new(program: &'e Executable) -> Text<'e> {
        let is_sized = |symbol: &&Symbol| symbol.is_function() && symbol.bytes > 0;
        let mut functions: Vec<&Symbol> = program.symbols.iter().filter(is_sized).collect();
        functions.sort_by_key(|symbol| (symbol.address, symbol.bytes));
        let file = File::open(&program.path).ok();
        Text {
            program,
            functions,
            tables: file.and_then(|file| Module::read(file).ok()),
        }
    }

    /// The entry of the unwind tables that contains an address.
    pub(crate) fn frame(&self, address: u64) -> Option<Frame> {
        self.tables.as_ref()?.frame(address)
    }

    /// The function that contains an address; if several symbols do, the one with the highest
    /// address.
    pub(crate) fn symbol(&self, address: u64) -> Option<&'e Symbol> {
        let after = self
            .functions
            .partition_point(|symbol| symbol.address <= address);
        let before = self.functions.get(..after)?.iter().rev();
        // Symbols may be nested, but not deeply.
        before
            .take(64)
            .find(|symbol| symbol.range().contains(&address))
            .copied()
    }

    /// All functions with a name.
    pub(crate) fn named<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'e Symbol> + 's {
        let is_named = move |symbol: &&&Symbol| symbol.name == name;
        self.functions.iter().filter(is_named).copied()
    }

    /// Names of the functions that begin at an address.
    pub(crate) fn names(&self, address: u64) -> Vec<&'e str> {
        let first = self
            .functions
            .partition_point(|symbol| symbol.address < address);
        let functions = self.functions.get(first..).unwrap_or_default().iter();
        let functions = functions.take_while(|symbol| symbol.address == address);
        functions.map(|symbol| symbol.name.as_str()).collect()
    }

    /// Bounds of the function that contains an address: from its symbol, the unwind tables, or Go's
    /// table.
    pub(crate) fn extent(&self, address: u64) -> Option<Range<u64>> {
        let symbol = || self.symbol(address).map(Symbol::range);
        let frame = || self.frame(address).map(|frame| frame.begin..frame.end);
        symbol()
            .or_else(frame)
            .or_else(|| go::extent(self.program, address))
    }

    /// True if an address lies in the PLT.
    pub(crate) fn is_stub(&self, address: u64) -> bool {
        self.program
            .stubs
            .iter()
            .any(|stubs| stubs.contains(&address))
    }

    /// Instructions of a range of addresses; `None` if the file does not contain it as code.
    pub(crate) fn code(&self, range: &Range<u64>) -> Option<Code> {
        let bytes = range.end.checked_sub(range.start)?;
        let bytes = usize::try_from(bytes)
            .ok()
            .filter(|_| bytes <= MOST_BYTES)?;
        self.program.code_offset(range.start)?;
        let content = self.program.bytes(range.start, bytes)?;
        Some(Code::decode(Architecture::OWN, range.start, &content))
    }

    /// Checks that an instruction begins at an address; `name` describes the address in messages.
    ///
    /// # Errors
    /// If no instruction begins there, or the instruction boundaries are unknown.
    pub(crate) fn check(&self, name: &str, address: u64) -> Result<(), String> {
        let shown = self.program.path.display();
        let Some(offset) = self.program.code_offset(address) else {
            return Err(format!(
                "{shown}: {name} (address {address:#x}) is not in executable memory: a probe there would change \
                 data of the program"
            ));
        };
        let unknown = || {
            format!(
                "{shown}: {name} (offset {offset:#x} of the file): its instruction boundaries are unknown, since neither \
                 a symbol with a size nor .eh_frame contains it; name the function without an offset, or use the file \
                 with symbols"
            )
        };
        let range = self.extent(address).ok_or_else(unknown)?;
        let function = self.function_name(&range);
        let code = self.code(&range).ok_or_else(unknown)?;
        let fault = match code.fault {
            Some(Fault::Undecodable(fault)) => Some(fault).filter(|fault| address >= *fault),
            Some(Fault::Overlap(fault)) => Some(fault),
            None => None,
        };
        if let Some(fault) = fault {
            let fault = fault - range.start;
            return Err(format!(
                "{shown}: {name} (offset {offset:#x} of the file): the instruction boundaries of {function} are \
                 unknown, since it contains data at {function}+{fault:#x}; name a function without an offset"
            ));
        }
        if code.at(address).is_some() {
            return Ok(());
        }
        let nearest = code.nearest(address).into_iter().flatten();
        let nearest: Vec<String> = nearest
            .map(|begin| format!("{function}+{:#x}", begin - range.start))
            .collect();
        Err(format!(
            "{shown}: {name} (offset {offset:#x} of the file) is inside an instruction of {function}: a probe there would \
             corrupt the program; the nearest instructions begin at {}",
            nearest.join(" and ")
        ))
    }

    fn function_name(&self, range: &Range<u64>) -> String {
        match self.names(range.start).first() {
            Some(name) => (*name).to_owned(),
            None => format!("the function at {:#x}", range.start),
        }
    }

    /// True if the instruction at an address is a `nop`, as at USDT probes.
    pub(crate) fn is_nop(program: &Executable, address: u64) -> bool {
        const LONGEST: usize = 15;
        let bytes = (1..=LONGEST)
            .rev()
            .find_map(|bytes| program.bytes(address, bytes));
        let code = Code::decode(Architecture::OWN, address, &bytes.unwrap_or_default());
        program.code_offset(address).is_some()
            && code
                .at(address)
                .is_some_and(|found| found.flow == Flow::Nop)
    }
}
