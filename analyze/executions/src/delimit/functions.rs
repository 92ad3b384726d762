//! Functions of programs from entry to exit, by thread, including the functions that they call.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tracebraid_follow::Pairs;
use tracebraid_language::Datum;
use tracebraid_periods::Bound;

use crate::delimit::fitting;
use crate::delimit::log::{Log, bound};
use crate::delimit::user::{Told, User, UserEdge};

/// Entered functions by thread.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Functions {
    /// By trace and thread; by trace and process if the trace does not record threads.
    stacks: Pairs<(u32, bool, i64), Stack>,
    /// Matching definitions by function name.
    #[serde(skip)]
    fits: HashMap<Box<[u8]>, Vec<usize>>,
    pub(crate) log: Log,
}

/// The entered functions of a thread, the innermost last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Stack {
    frames: Vec<Frame>,
    /// Number of frames above the limit, which are not stored.
    above: u64,
    /// Execution numbers of the requested functions.
    numbers: Vec<u64>,
}

/// An entered function.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Frame {
    /// Address or name.
    function: Datum,
    /// Execution of a requested function.
    asked: Option<Box<Asked>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Asked {
    kinds: Vec<usize>,
    begin: Bound,
}

/// Maximum depth of nested calls; few stacks have room for more.
const MOST_FRAMES: usize = 1 << 16;
/// Maximum number of enclosing executions that are recorded for an execution.
const MOST_AROUND: usize = 64;
/// Maximum number of names in the cache.
const MOST_NAMES: usize = 1 << 16;

impl Functions {
    /// Begins of the open requested functions: the outermost of each thread.
    pub(crate) fn open(&self) -> impl Iterator<Item = i64> + '_ {
        let first = |(_, stack): (_, &Stack)| {
            stack
                .frames
                .iter()
                .find_map(|frame| Some(frame.asked.as_ref()?.begin.time))
        };
        self.stacks.open().filter_map(first)
    }

    /// Applies the entry or exit of a function.
    pub(crate) fn step(&mut self, user: &User, told: &Told<'_>) {
        let thread = match told.tid {
            Some(tid) => (told.trace, true, tid),
            None => (told.trace, false, told.process),
        };
        let mut stack = self.stacks.end(thread).unwrap_or_default();
        match told.kind {
            UserEdge::Exit => self.exit(&mut stack, told),
            _ => self.enter(user, &mut stack, told),
        }
        if !stack.frames.is_empty() {
            self.stacks.begin(thread, stack);
        }
    }

    fn enter(&mut self, user: &User, stack: &mut Stack, told: &Told<'_>) {
        let name = match told.of {
            Datum::Integer(address) => user
                .names
                .name(told.trace, told.pid, *address)
                .map(str::as_bytes),
            name => name.bytes(),
        };
        let kinds = name.map_or_else(Vec::new, |name| self.kinds(user, name));
        if stack.frames.len() >= MOST_FRAMES {
            stack.above += 1;
            self.log.refused += u64::from(!kinds.is_empty());
            return;
        }
        let mut asked = None;
        if !kinds.is_empty() {
            kinds.iter().for_each(|&kind| self.log.begins(kind));
            stack.numbers.push(self.log.number());
            let name = Datum::text(name.unwrap_or_default());
            let begin = bound(told.time, (told.trace, told.cpu), told.tid, vec![name]);
            asked = Some(Box::new(Asked { kinds, begin }));
        }
        stack.frames.push(Frame {
            function: told.of.clone(),
            asked,
        });
    }

    /// Definitions that match a function name.
    fn kinds(&mut self, user: &User, name: &[u8]) -> Vec<usize> {
        if let Some(kinds) = self.fits.get(name) {
            return kinds.clone();
        }
        let kinds = fitting(&user.functions, name);
        if self.fits.len() < MOST_NAMES {
            self.fits.insert(name.into(), kinds.clone());
        }
        kinds
    }

    /// An exit without a function ends the innermost function. Otherwise the exits of the functions
    /// above are missing, as after a jump.
    fn exit(&mut self, stack: &mut Stack, told: &Told<'_>) {
        if stack.above > 0 {
            stack.above -= 1;
            return;
        }
        let is_it = |frame: &Frame| told.of.is_missing() || frame.function == *told.of;
        let depth = stack.frames.iter().rev().take(MOST_SKIPPED).position(is_it);
        let Some(depth) = depth else { return };
        for above in (0..=depth).rev() {
            let frame = stack.frames.pop();
            let Some(asked) = frame.and_then(|frame| frame.asked) else {
                continue;
            };
            let first = stack.numbers.len().saturating_sub(MOST_AROUND);
            let numbers = stack.numbers.get(first..).unwrap_or_default().to_vec();
            stack.numbers.pop();
            if above > 0 {
                continue;
            }
            for kind in asked.kinds {
                let end = bound(told.time, (told.trace, told.cpu), told.tid, Vec::new());
                self.log
                    .ends(kind, numbers.clone(), [asked.begin.clone(), end]);
            }
        }
    }
}

/// Maximum number of exits that may be missing at once. If more frames lie above, the entry of the
/// function is considered lost.
const MOST_SKIPPED: usize = 256;
