//! The instructions at which a function ends.
//!
//! The kernel's return probes replace the return address on the stack with an address that belongs
//! to no function, which breaks every stack walk through the function: C++ exceptions and
//! `pthread_cancel` abort the program, the Go runtime stops it when it moves the stack, and
//! recorded stacks end there. Probes at the instructions that end the function leave the stack
//! unchanged.
//!
//! A function ends at each `ret`, and at each jump to another function (a tail call). Jumps to
//! parts of the function that the compiler has moved elsewhere (`f.cold`) do not end it. If an
//! indirect jump may be a jump through the table of a `switch` or a tail call, BPF checks the
//! target.

use std::ops::Range;

use super::argument::Source;
use super::instructions::{Code, Fault, Flow, Instruction};
use super::text::Text;
use crate::shared::MOST_EXIT_PARTS;

/// An instruction at which a function ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) address: u64,
    pub(crate) kind: ExitKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ExitKind {
    Return,
    /// A jump to another function.
    Jump(u64),
    /// A conditional jump to another function: target and condition code.
    Branch(u64, u8),
    /// A jump that ends the function if its target is outside all parts.
    Indirect(Source),
}

/// All exits of a function, and the ranges of its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exits {
    pub(crate) exits: Vec<Exit>,
    pub(crate) parts: Vec<Range<u64>>,
}

/// The target of a jump that leaves the known parts.
enum Target {
    Part(Range<u64>),
    Function,
}

impl Exits {
    /// Finds the exits of the function that begins at an address.
    ///
    /// # Errors
    /// The reason why not all exits are known.
    pub(crate) fn find(text: &Text<'_>, begin: u64) -> Result<Exits, String> {
        let range = text.extent(begin).filter(|range| range.start == begin);
        let range = range.ok_or("its size is unknown")?;
        let mut search = Search {
            text,
            begin,
            names: text.names(begin),
            parts: Vec::new(),
        };
        search.add(range)?;
        search.add_cold()?;
        search.follow()?;
        Ok(Exits {
            exits: search.exits()?,
            parts: search.parts.into_iter().map(|(range, _)| range).collect(),
        })
    }
}

struct Search<'t> {
    text: &'t Text<'t>,
    begin: u64,
    names: Vec<&'t str>,
    parts: Vec<(Range<u64>, Code)>,
}

impl Search<'_> {
    fn add(&mut self, range: Range<u64>) -> Result<(), String> {
        let code = self.text.code(&range);
        let code =
            code.ok_or_else(|| format!("its code at {:#x} is not in the file", range.start))?;
        if let Some(Fault::Undecodable(fault) | Fault::Overlap(fault)) = code.fault {
            return Err(format!("its code contains data at {fault:#x}"));
        }
        let mut last = code.instructions.iter().rev();
        let last = last.find(|found| found.flow != Flow::Nop);
        if last.is_none_or(|last| matches!(last.flow, Flow::Next | Flow::Branch(..))) {
            return Err(format!("its code continues after {:#x}", range.end));
        }
        self.parts.push((range, code));
        Ok(())
    }

    /// Adds the cold part, which may be reachable only through the table of a `switch`.
    fn add_cold(&mut self) -> Result<(), String> {
        for name in self.names.clone() {
            let cold = format!("{name}.cold");
            let mut parts = self.text.named(&cold);
            // Static functions of several files may have the same name; `follow` finds their parts
            // by jumps.
            if let (Some(part), None, 1) =
                (parts.next(), parts.next(), self.text.named(name).count())
                && !self.contains(part.address)
            {
                self.add(part.range())?;
            }
        }
        Ok(())
    }

    /// Adds the parts that jumps lead to.
    fn follow(&mut self) -> Result<(), String> {
        let mut place = 0;
        while let Some((_, code)) = self.parts.get(place) {
            let jumps: Vec<(u64, u64)> = code.instructions.iter().filter_map(jump).collect();
            for (from, target) in jumps {
                if !self.contains(target)
                    && let Target::Part(range) = self.target(from, target)?
                {
                    self.add(range)?;
                }
            }
            place += 1;
        }
        Ok(())
    }

    fn contains(&self, address: u64) -> bool {
        self.parts.iter().any(|(range, _)| range.contains(&address))
    }

    fn target(&self, from: u64, target: u64) -> Result<Target, String> {
        let text = self.text;
        let jumps = |to: &str| Err(format!("it jumps at {from:#x} to {to}"));
        let is_at_end = text
            .frame(from)
            .and_then(|frame| frame.is_at_return_address);
        if let Some(symbol) = text.symbol(target) {
            return match symbol.address == target {
                _ if self.is_part(&symbol.name) => Ok(Target::Part(symbol.range())),
                true if is_at_end != Some(false) => Ok(Target::Function),
                _ => jumps(&format!("the middle of {}", symbol.name)),
            };
        }
        if text.is_stub(target) {
            return Ok(Target::Function);
        }
        // Files without local symbols.
        let Some(frame) = text.frame(target) else {
            return match text.extent(target) {
                Some(range) if range.start == target => Ok(Target::Function),
                _ => jumps(&format!("{target:#x}, which is in no known function")),
            };
        };
        let range = frame.begin..frame.end;
        if is_at_end == Some(false) || self.jumps_back(&range) {
            return Ok(Target::Part(range));
        }
        match frame.begin == target {
            true => Ok(Target::Function),
            false => jumps(&format!("the middle of the function at {:#x}", frame.begin)),
        }
    }

    /// True if a symbol is named like a part of the function by GCC or LLVM.
    fn is_part(&self, symbol: &str) -> bool {
        let is_part = |name: &&str| {
            let rest = symbol.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(".cold") || rest.starts_with(".__part."))
        };
        self.names.iter().any(is_part)
    }

    /// True if code jumps into the middle of the known parts, which only parts of the function do.
    fn jumps_back(&self, range: &Range<u64>) -> bool {
        let code = self.text.code(range).unwrap_or_default();
        let mut jumps = code.instructions.iter().filter_map(jump);
        jumps.any(|(_, target)| target != self.begin && self.contains(target))
    }

    fn exits(&self) -> Result<Vec<Exit>, String> {
        let mut exits = Vec::new();
        for instruction in self.parts.iter().flat_map(|(_, code)| &code.instructions) {
            if let Some(kind) = self.exit(instruction)? {
                let address = instruction.address;
                exits.push(Exit { address, kind });
            }
        }
        Ok(exits)
    }

    fn exit(&self, instruction: &Instruction) -> Result<Option<ExitKind>, String> {
        let address = instruction.address;
        Ok(match &instruction.flow {
            Flow::Return => Some(ExitKind::Return),
            Flow::Jump(target) if !self.contains(*target) => Some(ExitKind::Jump(*target)),
            Flow::Branch(target, condition) if !self.contains(*target) => {
                let unknown =
                    || format!("it ends with a conditional jump on a register at {address:#x}");
                Some(ExitKind::Branch(*target, condition.ok_or_else(unknown)?))
            }
            Flow::Indirect(source) => self.indirect(address, source.as_ref())?,
            Flow::Far => {
                return Err(format!(
                    "it has an unsupported jump or return at {address:#x}"
                ));
            }
            Flow::Next
            | Flow::Nop
            | Flow::Call
            | Flow::Trap
            | Flow::Table
            | Flow::Jump(_)
            | Flow::Branch(..) => None,
        })
    }

    fn indirect(&self, address: u64, source: Option<&Source>) -> Result<Option<ExitKind>, String> {
        // A function cannot end before it has restored the stack pointer.
        let frame = self.text.frame(address);
        if frame.and_then(|frame| frame.is_at_return_address) == Some(false) {
            return Ok(None);
        }
        match source {
            Some(source) if self.parts.len() <= MOST_EXIT_PARTS => {
                Ok(Some(ExitKind::Indirect(source.clone())))
            }
            _ => Err(format!("the target of its jump at {address:#x} is unknown")),
        }
    }
}

/// Addresses of a jump and of its target, if the target is constant.
fn jump(instruction: &Instruction) -> Option<(u64, u64)> {
    match instruction.flow {
        Flow::Jump(target) | Flow::Branch(target, _) => Some((instruction.address, target)),
        _ => None,
    }
}
