//! From the registers of an interrupted thread to the return addresses on its stack.
//!
//! Addresses are as they lie on the stack: the first one is where the thread runs, the others are where calls return to,
//! one past the call; so a symbol is looked up at the address less one, except for the first. (Behind a signal's frame
//! comes the instruction that was interrupted; less one, that is in the same function nearly always.)

use crate::cache::Cache;
use crate::cfi::{self, Found};
use crate::memory::Stack;
use crate::modules::Reader;
use crate::rule::{PC, RBP, RSP, Registers, Rule, Step};

static CACHE: Cache = Cache::new();

/// How a stack ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    /// With the thread's first function.
    Complete = 0,
    /// It goes on: as many frames as were asked for have been found.
    Cut = 1,
    /// Nobody knows: there are no unwind tables, or they do not fit the stack.
    Lost = 2,
}

/// Writes the addresses into the buffer, innermost first; how many there are, at least 1 if the buffer has room.
pub(crate) fn walk(
    reader: &mut Reader,
    mut registers: Registers,
    known: &mut [u64; 2],
    frames: &mut [u64],
) -> (usize, End) {
    let mut stack = Stack::at(registers.0[RSP], known);
    let mut is_exact = true;
    for (index, frame) in frames.iter_mut().enumerate() {
        let pc = registers.0[PC];
        *frame = pc;
        let address = if is_exact { pc } else { pc.wrapping_sub(1) };
        match step(reader, address, index == 0, &mut registers, &mut stack) {
            Step::Called => is_exact = false,
            Step::Interrupted => is_exact = true,
            Step::Outermost => return (index + 1, End::Complete),
            Step::Lost => return (index + 1, End::Lost),
        }
        if registers.0[PC] == 0 {
            return (index + 1, End::Complete);
        }
    }
    (frames.len(), End::Cut)
}

#[inline]
fn step(
    reader: &mut Reader,
    address: u64,
    is_first: bool,
    registers: &mut Registers,
    stack: &mut Stack<'_>,
) -> Step {
    let generation = reader.list().map_or(0, |list| list.generation);
    match CACHE.get(address, generation) {
        Some(rule) => rule.step(registers, stack),
        None => new_step(reader, address, is_first, registers, stack),
    }
}

#[cold]
#[inline(never)]
fn new_step(
    reader: &mut Reader,
    address: u64,
    is_first: bool,
    registers: &mut Registers,
    stack: &mut Stack<'_>,
) -> Step {
    if !reader.may_parse() {
        return Step::Lost;
    }
    let is_known = reader.list().is_some_and(|list| list.find(address).is_some());
    if !is_known {
        reader.look_for(address);
    }
    let Some(list) = reader.list() else {
        return Step::Lost;
    };
    let found = list
        .find(address)
        .map(|module| cfi::find(&module.tables, address, registers, stack));
    match found {
        Some(Found::Rule(rule)) => {
            CACHE.put(address, list.generation, rule);
            rule.step(registers, stack)
        }
        Some(Found::Done(step)) => step,
        Some(Found::Nothing) | None => guess(reader, is_first, registers, stack),
    }
}

/// Without tables: a leaf function that has pushed nothing, or one with a frame pointer, if what that leads to looks
/// like code.
fn guess(reader: &Reader, is_first: bool, registers: &mut Registers, stack: &mut Stack<'_>) -> Step {
    let Some(list) = reader.list() else {
        return Step::Lost;
    };
    let is_code =
        |address: Option<u64>| address.is_some_and(|address| list.find(address.wrapping_sub(1)).is_some());
    let frame = registers.0[RBP];
    let is_frame = frame > registers.0[RSP] && frame & 7 == 0;
    if is_frame && is_code(stack.word(frame.wrapping_add(8))) {
        return Rule::FRAME_POINTER.step(registers, stack);
    }
    if is_first && is_code(stack.word(registers.0[RSP])) {
        let leaf = Rule::usual(RSP, 8, false, [None; 6]);
        return leaf.map_or(Step::Lost, |rule| rule.step(registers, stack));
    }
    // Code made at run time calls its own kind; its frames form a chain that leads upwards.
    let next = if is_frame { stack.word(frame) } else { None };
    if next.is_some_and(|next| next > frame && next & 7 == 0) {
        return Rule::FRAME_POINTER.step(registers, stack);
    }
    Step::Lost
}

/// Forgets all rules.
pub(crate) fn forget() {
    CACHE.clear();
}
