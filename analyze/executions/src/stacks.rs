//! The call stack of each thread over time, as far as samples show it.
//!
//! The stack of a wait is valid for that wait. Between two waits, each stack of CPU time is valid
//! for the time before it, back to the previous sample. After the last such stack, or without one,
//! the common part of the stacks on both sides is valid: the functions that called both are most
//! probably still active. Where waits are recorded with their stacks, it is also that of waits
//! without one, which were short: the next stack of CPU time may be of another system call. No
//! function is shown that is not in a sample.

use std::collections::HashMap;

use crate::names::NameId;

/// A call stack: its index in [`Stacks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(u32);

/// Distinct call stacks as a tree: each is its innermost function and the stack around it.
#[derive(Clone, Debug)]
pub struct Stacks {
    nodes: Vec<Node>,
    index: HashMap<(StackId, NameId), StackId>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    around: StackId,
    function: NameId,
    depth: u32,
}

impl Default for Stacks {
    fn default() -> Stacks {
        let empty = Node {
            around: Stacks::EMPTY,
            function: NameId::default(),
            depth: 0,
        };
        Stacks {
            nodes: vec![empty],
            index: HashMap::new(),
        }
    }
}

impl Stacks {
    /// The stack without functions: the stack is unknown.
    pub const EMPTY: StackId = StackId(0);

    /// The stack of the given functions, the outermost first.
    pub fn of(&mut self, functions: impl IntoIterator<Item = NameId>) -> StackId {
        let mut stack = Stacks::EMPTY;
        for function in functions {
            stack = self.calls(stack, function);
        }
        stack
    }

    /// The stack in which the innermost function of `around` calls `function`.
    pub fn calls(&mut self, around: StackId, function: NameId) -> StackId {
        if let Some(&known) = self.index.get(&(around, function)) {
            return known;
        }
        let depth = self.node(around).depth + 1;
        let stack = StackId(self.nodes.len() as u32);
        self.nodes.push(Node {
            around,
            function,
            depth,
        });
        self.index.insert((around, function), stack);
        stack
    }

    /// The stack around a stack's innermost function, and that function; `None` for the empty
    /// stack.
    pub fn parts(&self, stack: StackId) -> Option<(StackId, NameId)> {
        let node = self.node(stack);
        (node.depth > 0).then_some((node.around, node.function))
    }

    /// The common part of two stacks, from the outermost function inwards.
    pub fn common(&self, mut one: StackId, mut other: StackId) -> StackId {
        while one != other {
            let (left, right) = (self.node(one), self.node(other));
            if left.depth >= right.depth {
                one = left.around;
            }
            if right.depth >= left.depth {
                other = right.around;
            }
        }
        one
    }

    fn node(&self, stack: StackId) -> Node {
        self.nodes.get(stack.0 as usize).copied().unwrap_or(Node {
            around: Stacks::EMPTY,
            function: NameId::default(),
            depth: 0,
        })
    }
}

/// A sampled stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    /// Nanoseconds from the origin.
    pub(crate) time: i64,
    /// Begin of the wait, if the sample is of a wait, which ends at `time`.
    pub(crate) since: Option<i64>,
    pub(crate) stack: StackId,
}

/// The stacks of a thread in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Held {
    running: StackId,
    waiting: StackId,
}

impl Held {
    fn both(stack: StackId) -> Held {
        Held {
            running: stack,
            waiting: stack,
        }
    }
}

/// The stacks of a thread over time.
#[derive(Clone, Debug, Default)]
pub struct ThreadStacks {
    samples: Vec<Sample>,
    /// Begin of each stretch, ascending; the stacks of consecutive stretches differ.
    line: Vec<(i64, Held)>,
    /// Stack of the last sample, and the end of `line`; after it the stack is unknown.
    last: StackId,
    until: Option<i64>,
    waits_have_stacks: bool,
}

impl ThreadStacks {
    /// Stacks of a recording that has a stack for each wait that is long enough.
    pub(crate) fn with_waits(waits_have_stacks: bool) -> ThreadStacks {
        ThreadStacks {
            waits_have_stacks,
            ..ThreadStacks::default()
        }
    }

    /// Adds a stack of CPU time, taken at `time` (nanoseconds from the origin).
    pub fn ran(&mut self, time: i64, stack: StackId) {
        self.samples.push(Sample {
            time,
            since: None,
            stack,
        });
    }

    /// Adds the stack of a wait from `since` to `time`.
    pub fn waited(&mut self, since: i64, time: i64, stack: StackId) {
        self.samples.push(Sample {
            time,
            since: Some(since.min(time)),
            stack,
        });
    }

    /// Determines the stack at each time from the samples, which must be complete.
    pub fn settle(&mut self, stacks: &Stacks) {
        self.samples.sort_unstable();
        for sample in std::mem::take(&mut self.samples) {
            self.go_on(stacks, sample);
        }
    }

    /// Extends the stacks to the next sample.
    pub(crate) fn go_on(&mut self, stacks: &Stacks, sample: Sample) {
        let Sample { time, since, stack } = sample;
        let until = self.until.unwrap_or(i64::MIN);
        // Replaces the unknown stack after the previous sample.
        let common = stacks.common(self.last, stack);
        match since {
            Some(since) => {
                put(&mut self.line, until, Held::both(common));
                put(&mut self.line, since.max(until), Held::both(stack));
            }
            None => {
                let held = Held {
                    running: stack,
                    waiting: match self.waits_have_stacks {
                        true => common,
                        false => stack,
                    },
                };
                put(&mut self.line, until, held);
            }
        }
        let until = time.max(until);
        (self.last, self.until) = (stack, Some(until));
        put(&mut self.line, until, Held::default());
    }

    /// End of the known stacks.
    pub(crate) fn until(&self) -> Option<i64> {
        self.until
    }

    /// Drops stacks from before a time that is not queried again.
    pub(crate) fn drop_before(&mut self, cut: i64) {
        let before = self.line.partition_point(|(begin, _)| *begin <= cut);
        self.line.drain(..before.saturating_sub(1));
    }

    /// The stack at a time at which the thread runs, or could.
    pub fn at(&self, time: i64) -> StackId {
        self.held(time).running
    }

    /// The stack at a time at which the thread waits.
    pub fn waiting_at(&self, time: i64) -> StackId {
        self.held(time).waiting
    }

    fn held(&self, time: i64) -> Held {
        let after = self.line.partition_point(|(begin, _)| *begin <= time);
        let holds = after.checked_sub(1).and_then(|at| self.line.get(at));
        holds.map_or(Held::default(), |(_, held)| *held)
    }

    /// The stacks of a window in which the thread runs, in order, each with its end. The last one
    /// ends with the window.
    pub fn within(&self, begin: i64, end: i64) -> impl Iterator<Item = (i64, StackId)> {
        let after = self.line.partition_point(|(from, _)| *from <= begin);
        let rest = self.line.get(after..).unwrap_or_default();
        let changes = rest.iter().take_while(move |(from, _)| *from < end);
        let ends = changes.clone().map(|(from, _)| *from).chain([end]);
        let stacks = [self.at(begin)]
            .into_iter()
            .chain(changes.map(|(_, held)| held.running));
        ends.zip(stacks).filter(move |_| begin < end)
    }
}

/// Begins a stretch at a time; stretches without duration are removed.
fn put(line: &mut Vec<(i64, Held)>, time: i64, held: Held) {
    if line.last().is_some_and(|last| last.0 == time) {
        line.pop();
    }
    if line.last().is_none_or(|last| last.1 != held) {
        line.push((time, held));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(stacks: &mut Stacks, functions: &[u32]) -> StackId {
        stacks.of(functions.iter().map(|&function| NameId(function)))
    }

    #[test]
    fn stacks_have_in_common_what_calls_both() {
        let mut stacks = Stacks::default();
        let (long, short) = (
            stack(&mut stacks, &[1, 2, 3, 4]),
            stack(&mut stacks, &[1, 2, 5]),
        );
        assert_eq!(stacks.common(long, short), stack(&mut stacks, &[1, 2]));
        assert_eq!(stacks.common(short, short), short);
        let (caller, other) = (stack(&mut stacks, &[1, 2]), stack(&mut stacks, &[7]));
        assert_eq!(stacks.common(long, caller), caller);
        assert_eq!(stacks.common(long, other), Stacks::EMPTY);
    }

    #[test]
    fn samples_hold_before_them_and_waits_as_long_as_they_last() {
        let mut stacks = Stacks::default();
        let [read, hash, sort, write] = [&[1, 2, 3][..], &[1, 2, 4], &[1, 5], &[1, 5, 6]]
            .map(|functions| stack(&mut stacks, functions));
        let common = [&[1, 2][..], &[1, 5]].map(|functions| stack(&mut stacks, functions));
        let mut thread = ThreadStacks::with_waits(true);
        thread.waited(100, 200, read);
        thread.ran(230, hash);
        thread.ran(260, sort);
        thread.waited(300, 350, write);
        thread.settle(&stacks);
        let found = [50, 150, 210, 240, 280, 320, 350].map(|time| thread.at(time));
        assert_eq!(
            found,
            [
                Stacks::EMPTY,
                read,
                hash,
                sort,
                common[1],
                write,
                Stacks::EMPTY
            ]
        );
        // Waits without a stack: between a read and a hash, and between a hash and a sort.
        let waiting = [150, 210, 240].map(|time| thread.waiting_at(time));
        assert_eq!(waiting, [read, common[0], stack(&mut stacks, &[1])]);
        let parts: Vec<_> = thread.within(210, 310).collect();
        assert_eq!(parts, [(230, hash), (260, sort), (300, sort), (310, write)]);
        assert_eq!(thread.within(210, 210).count(), 0);
        assert_eq!(
            thread.within(0, 20).collect::<Vec<_>>(),
            [(20, Stacks::EMPTY)]
        );
        // No sample lies between the waits: the common callers continue.
        let mut waits = ThreadStacks::default();
        waits.waited(0, 10, read);
        waits.waited(20, 30, hash);
        waits.settle(&stacks);
        assert_eq!(waits.at(15), common[0]);
    }
}
