//! Stacks by numbers that hold for the whole trace: each generation has numbers of its own.
//!
//! The upper half of a number is the process id: traces of several processes may become one
//! (`analyze/levels`).

use std::collections::HashMap;

use super::generation::Generation;

/// Limit for all stacks together, in bytes.
const MOST_BYTES: usize = 64 << 20;

/// The stacks seen so far.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    pid: u32,
    numbers: HashMap<String, u64>,
    bytes: usize,
    /// Numbers in the current generation.
    of_generation: HashMap<u64, Option<u64>>,
}

/// The number of a stack, with its functions if it is new.
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) frames: Option<String>,
}

impl Stacks {
    /// The stacks of a process.
    pub(super) fn of_process(pid: u32) -> Stacks {
        Stacks {
            pid,
            ..Stacks::default()
        }
    }

    /// Forgets the numbers of the last generation.
    pub(super) fn begin(&mut self) {
        self.of_generation.clear();
    }

    /// `None` for a stack without frames, or beyond the limit.
    pub(super) fn number(&mut self, generation: &Generation, stack: u64) -> Option<Numbered> {
        if let Some(&known) = self.of_generation.get(&stack) {
            let frames = None;
            return known.map(|number| Numbered { number, frames });
        }
        let functions: Vec<&str> = generation.functions(stack).rev().collect();
        let frames = functions.join(";");
        let numbered = self.of_frames(frames);
        let number = numbered.as_ref().map(|numbered| numbered.number);
        self.of_generation.insert(stack, number);
        numbered
    }

    fn of_frames(&mut self, frames: String) -> Option<Numbered> {
        if let Some(&number) = self.numbers.get(&frames) {
            let frames = None;
            return Some(Numbered { number, frames });
        }
        if frames.is_empty() || self.bytes + frames.len() > MOST_BYTES {
            return None;
        }
        self.bytes += frames.len();
        let number = u64::from(self.pid) << 32 | (self.numbers.len() as u64 + 1);
        self.numbers.insert(frames.clone(), number);
        let frames = Some(frames);
        Some(Numbered { number, frames })
    }
}
