//! From the registers of a thread to the return addresses on its stack.
//!
//! Addresses are as they lie on the stack: the first is where the thread runs, the others are where
//! calls return to, one past the call, so a function is looked up at the address less one. (After the
//! frame of a signal comes the interrupted instruction itself.)

use crate::cache::{Cache, Site};
use crate::module::Module;
use crate::rule::{PC, RBP, RSP, Registers, Rule, Step};
use crate::stack::StackCopy;
use crate::tables::Found;

/// How a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With the outermost function of the thread.
    Complete,
    /// It goes on: the wanted number of frames has been found.
    Depth,
    /// It goes on beyond the copied bytes.
    Copy,
    /// Unknown: there are no unwind tables, or they do not fit the stack.
    Lost,
}

/// The memory that an address of a process belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Code<'m> {
    /// Code of a file, at that offset.
    Module(&'m Module, u64),
    /// Executable memory of no file, or of one that cannot be read.
    Other,
    /// Memory that is not executable, or none.
    None,
}

/// Follows stacks and remembers the rules of call sites.
#[derive(Debug)]
pub struct Unwinder {
    cache: Cache,
}

impl Default for Unwinder {
    fn default() -> Self {
        Unwinder { cache: Cache::new() }
    }
}

impl Unwinder {
    /// Appends the addresses of a stack to `frames`, innermost first, `depth` of them at most. `code` finds the
    /// memory of an address.
    pub fn walk<'m>(
        &mut self,
        mut registers: Registers,
        stack: &StackCopy<'_>,
        depth: usize,
        mut code: impl FnMut(u64) -> Code<'m>,
        frames: &mut Vec<u64>,
    ) -> End {
        let mut is_exact = true;
        for count in 0..depth {
            let pc = registers.0[PC];
            let address = if is_exact { pc } else { pc.wrapping_sub(1) };
            let memory = code(address);
            if matches!(memory, Code::None) {
                return End::Lost;
            }
            frames.push(pc);
            match self.step(memory, count == 0, &mut registers, stack, &mut code) {
                Step::Called => is_exact = false,
                Step::Interrupted => is_exact = true,
                Step::Outermost => return End::Complete,
                Step::Beyond => return End::Copy,
                Step::Lost => return End::Lost,
            }
            if registers.0[PC] == 0 {
                return End::Complete;
            }
        }
        End::Depth
    }

    #[inline]
    fn step<'m>(
        &mut self,
        memory: Code<'m>,
        is_first: bool,
        registers: &mut Registers,
        stack: &StackCopy<'_>,
        code: impl FnMut(u64) -> Code<'m>,
    ) -> Step {
        let Code::Module(module, offset) = memory else {
            return by_frame_pointer(is_first, registers, stack, code);
        };
        // An offset outside of the file's code has an address that no table contains.
        let site = Site {
            module: module.id(),
            address: module.address(offset).unwrap_or(u64::MAX),
        };
        if let Some(rule) = self.cache.get(site) {
            return rule.step(registers, stack);
        }
        let found = module
            .tables()
            .map(|tables| tables.find(site.address, registers, stack));
        match found {
            Some(Found::Rule(rule)) => {
                self.cache.put(site, rule);
                rule.step(registers, stack)
            }
            Some(Found::Done(step)) => step,
            Some(Found::Nothing) | None => by_frame_pointer(is_first, registers, stack, code),
        }
    }
}

/// Without tables: a function with a frame pointer, or a leaf function that has pushed nothing, if the
/// address that this leads to is executable.
fn by_frame_pointer<'m>(
    is_first: bool,
    registers: &mut Registers,
    stack: &StackCopy<'_>,
    mut code: impl FnMut(u64) -> Code<'m>,
) -> Step {
    let frame = registers.0[RBP];
    let mut is_code = |address: Option<u64>| {
        address.is_some_and(|address| !matches!(code(address.wrapping_sub(1)), Code::None))
    };
    let is_frame = frame >= registers.0[RSP] && frame & 7 == 0;
    if is_frame && is_code(stack.word(frame.wrapping_add(8))) {
        return Rule::FRAME_POINTER.step(registers, stack);
    }
    if is_first && is_code(stack.word(registers.0[RSP])) {
        return Rule::LEAF.step(registers, stack);
    }
    // The loader and runtimes begin their stacks with a frame pointer of 0.
    if frame == 0 {
        return Step::Outermost;
    }
    let is_beyond = is_frame && stack.is_beyond(frame.wrapping_add(8));
    if is_beyond { Step::Beyond } else { Step::Lost }
}
