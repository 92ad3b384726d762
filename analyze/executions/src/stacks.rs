//! The call stack of each thread at any time, as far as samples tell.
//!
//! A stack of a wait holds for that wait. Between two waits each stack of CPU time holds for the
//! time before it, up to the sample before; behind the last one, and where there is none, what the
//! stacks on both sides have in common does: functions that called both of what is known are most
//! probably still there. So nothing is told that no sample tells.

use std::collections::HashMap;

use crate::names::NameId;

/// A call stack: its place among [`Stacks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(u32);

/// Call stacks, each kept once, as a tree: the innermost function, and the stack around it.
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
    /// The stack without functions: nothing is known.
    pub const EMPTY: StackId = StackId(0);

    /// A stack, given its functions, the outermost first.
    pub fn of(&mut self, functions: impl IntoIterator<Item = NameId>) -> StackId {
        let mut stack = Stacks::EMPTY;
        for function in functions {
            stack = self.calls(stack, function);
        }
        stack
    }

    /// The stack in which the innermost function of another one calls that function.
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

    /// The stack around a stack's innermost function, and that function; none of the empty stack.
    pub fn parts(&self, stack: StackId) -> Option<(StackId, NameId)> {
        let node = self.node(stack);
        (node.depth > 0).then_some((node.around, node.function))
    }

    /// What two stacks have in common from the outermost function on.
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

/// A stack that was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sample {
    /// In nanoseconds from the origin.
    pub(crate) time: i64,
    /// When the wait began, if it is of one that has ended then.
    pub(crate) since: Option<i64>,
    pub(crate) stack: StackId,
}

/// The stacks of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadStacks {
    samples: Vec<Sample>,
    /// From when each stack holds, in order; without two the same one behind the other.
    line: Vec<(i64, StackId)>,
    /// The last sample's, and up to when the line is made: behind that nothing is known.
    last: StackId,
    until: Option<i64>,
}

impl ThreadStacks {
    /// A stack of CPU time, taken then (in nanoseconds from the origin).
    pub fn ran(&mut self, time: i64, stack: StackId) {
        self.samples.push(Sample {
            time,
            since: None,
            stack,
        });
    }

    /// A stack of a wait from one time to another.
    pub fn waited(&mut self, since: i64, time: i64, stack: StackId) {
        self.samples.push(Sample {
            time,
            since: Some(since.min(time)),
            stack,
        });
    }

    /// Works out which stack holds when. What was told is complete.
    pub fn settle(&mut self, stacks: &Stacks) {
        self.samples.sort_unstable();
        for sample in std::mem::take(&mut self.samples) {
            self.go_on(stacks, sample);
        }
    }

    /// Works out which stack holds up to the next sample.
    pub(crate) fn go_on(&mut self, stacks: &Stacks, sample: Sample) {
        let Sample { time, since, stack } = sample;
        let until = self.until.unwrap_or(i64::MIN);
        // This takes the place of what says that nothing is known from then on.
        match since {
            Some(since) => {
                put(&mut self.line, until, stacks.common(self.last, stack));
                put(&mut self.line, since.max(until), stack);
            }
            None => put(&mut self.line, until, stack),
        }
        let until = time.max(until);
        (self.last, self.until) = (stack, Some(until));
        put(&mut self.line, until, Stacks::EMPTY);
    }

    /// Up to when stacks are known.
    pub(crate) fn until(&self) -> Option<i64> {
        self.until
    }

    /// Nobody will ask for what was before that time.
    pub(crate) fn drop_before(&mut self, cut: i64) {
        let before = self.line.partition_point(|(begin, _)| *begin <= cut);
        self.line.drain(..before.saturating_sub(1));
    }

    /// The stack at a time.
    pub fn at(&self, time: i64) -> StackId {
        let after = self.line.partition_point(|(begin, _)| *begin <= time);
        let holds = after.checked_sub(1).and_then(|at| self.line.get(at));
        holds.map_or(Stacks::EMPTY, |(_, stack)| *stack)
    }

    /// The stacks of a window, in order: until when each holds. The last one ends with the window.
    pub fn within(&self, begin: i64, end: i64) -> impl Iterator<Item = (i64, StackId)> {
        let after = self.line.partition_point(|(from, _)| *from <= begin);
        let rest = self.line.get(after..).unwrap_or_default();
        let changes = rest.iter().take_while(move |(from, _)| *from < end);
        let ends = changes.clone().map(|(from, _)| *from).chain([end]);
        let stacks = [self.at(begin)]
            .into_iter()
            .chain(changes.map(|(_, stack)| *stack));
        ends.zip(stacks).filter(move |_| begin < end)
    }
}

/// From that time on another stack holds; what lasted no time is left out.
fn put(line: &mut Vec<(i64, StackId)>, time: i64, stack: StackId) {
    if line.last().is_some_and(|last| last.0 == time) {
        line.pop();
    }
    if line.last().is_none_or(|last| last.1 != stack) {
        line.push((time, stack));
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
        let mut thread = ThreadStacks::default();
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
        let parts: Vec<_> = thread.within(210, 310).collect();
        assert_eq!(parts, [(230, hash), (300, sort), (310, write)]);
        assert_eq!(thread.within(210, 210).count(), 0);
        assert_eq!(
            thread.within(0, 20).collect::<Vec<_>>(),
            [(20, Stacks::EMPTY)]
        );
        // Nothing was sampled between these: what called both goes on.
        let mut waits = ThreadStacks::default();
        waits.waited(0, 10, read);
        waits.waited(20, 30, hash);
        waits.settle(&stacks);
        assert_eq!(waits.at(15), common[0]);
    }
}
