//! Makes the tree of processes from the lives of threads.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::processes::life::{Life, Parent, Sums};
use tracebraid_engine::parallel;
use tracebraid_follow::ThreadKey;

/// A process: the id of its first thread, and the number of the life under that id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ProcessKey {
    pub(super) trace: u32,
    pub(super) id: i32,
    life: usize,
}

/// Facts and sums of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Node<'p> {
    /// The life of its first thread, if that has events.
    pub(super) first: Option<&'p Life>,
    /// True if the trace records that this is a process and not a thread of one.
    pub(super) is_process: bool,
    /// True if its first thread has the last life under its id.
    pub(super) is_last: bool,
    /// Number of threads.
    pub(super) threads: u64,
    /// Sums without descendants.
    pub(super) own: Sums,
    /// Time of the end of its last thread; `None` if a thread did not end.
    pub(super) end: Option<i64>,
    /// Process id of its creator; 0 is the kernel.
    pub(super) parent_pid: Option<i32>,
    parent: Option<ProcessKey>,
}

impl<'p> Node<'p> {
    /// Merges facts from other threads of the process.
    fn join(&mut self, other: Node<'p>) {
        if self.threads == 0 {
            *self = other;
            return;
        }
        let ends = self.end.zip(other.end);
        self.end = ends.map(|(end, other)| end.max(other));
        self.threads += other.threads;
        self.own.add(&other.own);
        self.is_process |= other.is_process;
        if other.first.is_some() {
            self.first = other.first;
            self.is_last = other.is_last;
            (self.parent_pid, self.parent) = (other.parent_pid, other.parent);
        }
    }
}

/// A process in the tree.
#[derive(Clone, Debug)]
pub(super) struct TreePosition {
    pub(super) key: ProcessKey,
    /// Index of the creator in the list.
    pub(super) parent: Option<usize>,
    pub(super) depth: u32,
    /// Sums of the process and all its descendants.
    pub(super) whole: Sums,
}

/// The lives of all threads, sorted by thread.
#[derive(Debug, Default)]
pub(super) struct Threads<'p>(Vec<(ThreadKey, Vec<Known<'p>>)>);

/// A life and its process.
#[derive(Debug)]
pub(super) struct Known<'p> {
    life: &'p Life,
    pid: Option<i32>,
}

/// The lives of a thread, in order; `pid` is the process id of the last one from other sources.
pub(super) fn known<'p>(lives: impl Iterator<Item = &'p Life>, pid: Option<i32>) -> Vec<Known<'p>> {
    let mut known: Vec<_> = lives
        .map(|life| Known {
            life,
            pid: life.pid,
        })
        .collect();
    if let Some(last) = known.last_mut() {
        last.pid = last.pid.or(pid);
    }
    known
}

impl<'p> Threads<'p> {
    /// Sorts `threads`, which contains each thread once.
    pub(super) fn new(mut threads: Vec<(ThreadKey, Vec<Known<'p>>)>) -> Threads<'p> {
        threads.sort_unstable_by_key(|(key, _)| *key);
        Threads(threads)
    }

    fn lives(&self, key: ThreadKey) -> &[Known<'p>] {
        let at = self.0.binary_search_by_key(&key, |(thread, _)| *thread);
        at.map_or(&[], |at| self.0[at].1.as_slice())
    }

    /// Number of the life of a thread at a time; 0 if none had begun.
    fn at(&self, key: ThreadKey, time: Option<i64>) -> usize {
        let lives = self.lives(key).iter();
        let begun = lives.filter(|known| known.life.begin <= time).count();
        begun.saturating_sub(1)
    }

    fn process(&self, trace: u32, id: i32, time: Option<i64>) -> ProcessKey {
        let life = self.at(ThreadKey { trace, tid: id }, time);
        ProcessKey { trace, id, life }
    }

    /// The process of a life.
    fn process_of(&self, key: ThreadKey, number: usize) -> ProcessKey {
        let ThreadKey { trace, tid } = key;
        let known = self.lives(key).get(number);
        match known.and_then(|known| Some((known, known.pid?))) {
            Some((known, pid)) if pid != tid => self.process(trace, pid, known.life.begin),
            _ => ProcessKey {
                trace,
                id: tid,
                life: number,
            },
        }
    }

    /// The creator of a process, and its process id.
    fn parent(&self, trace: u32, parent: Parent) -> (Option<i32>, Option<ProcessKey>) {
        let time = Some(parent.time);
        let key = match (parent.pid, parent.tid) {
            (Some(pid), _) => self.process(trace, pid, time),
            (None, Some(tid)) => {
                let key = ThreadKey { trace, tid };
                self.process_of(key, self.at(key, time))
            }
            (None, None) => return (None, None),
        };
        (Some(key.id), Some(key))
    }

    /// All processes.
    pub(super) fn processes(&self) -> BTreeMap<ProcessKey, Node<'p>> {
        let of_piece = |threads: &[(ThreadKey, Vec<Known<'p>>)]| {
            let mut nodes: BTreeMap<ProcessKey, Node<'p>> = BTreeMap::new();
            for (key, lives) in threads {
                for number in 0..lives.len() {
                    let process = self.process_of(*key, number);
                    self.add(nodes.entry(process).or_default(), *key, number, process);
                }
            }
            nodes
        };
        let join = |mut nodes: BTreeMap<ProcessKey, Node<'p>>, others| {
            for (process, other) in others {
                nodes.entry(process).or_default().join(other);
            }
            nodes
        };
        let pieces = parallel::map_pieces(&self.0, of_piece).into_iter();
        pieces.reduce(join).unwrap_or_default()
    }

    /// Adds a life to its process.
    fn add(&self, node: &mut Node<'p>, key: ThreadKey, number: usize, process: ProcessKey) {
        let lives = self.lives(key);
        let Some(known) = lives.get(number) else {
            return;
        };
        let ends = node.threads == 0 || node.end.is_some();
        let end = known.life.end.filter(|_| ends);
        node.end = end.max(node.end.filter(|_| known.life.end.is_some()));
        node.threads += 1;
        node.own.add(&known.life.sums);
        node.is_process |= known.pid.is_some();
        if process.id == key.tid {
            node.first = Some(known.life);
            node.is_last = number + 1 == lives.len();
            let parent = known
                .life
                .parent
                .map(|parent| self.parent(key.trace, parent));
            (node.parent_pid, node.parent) = parent.unwrap_or_default();
        }
    }
}

/// The processes as a tree: each before its children. Siblings are sorted by the CPU time of their
/// subtrees, greatest first.
pub(super) fn tree(nodes: &BTreeMap<ProcessKey, Node<'_>>) -> Vec<TreePosition> {
    let keys: Vec<ProcessKey> = nodes.keys().copied().collect();
    let at = |key: ProcessKey| keys.binary_search(&key).ok();
    let parents: Vec<Option<usize>> = (nodes.iter())
        .map(|(key, node)| node.parent.filter(|parent| parent != key).and_then(at))
        .collect();
    let mut children = vec![Vec::new(); keys.len()];
    for (at, parent) in parents.iter().enumerate() {
        if let Some(list) = parent.and_then(|parent| children.get_mut(parent)) {
            list.push(at);
        }
    }
    let tops: Vec<usize> = (0..keys.len())
        .filter(|&at| parents[at].is_none())
        .collect();
    let order = walk(&children, &tops);
    let mut whole: Vec<Sums> = nodes.values().map(|node| node.own).collect();
    for &(at, parent, _) in order.iter().rev() {
        let own = whole[at];
        if let Some(parent) = parent {
            whole[parent].add(&own);
        }
    }
    // Processes that no root leads to come last; `walk` makes roots of them.
    let begins: Vec<Option<i64>> = nodes.values().map(|node| node.first?.begin).collect();
    let rank = |&at: &usize| (Reverse(whole[at].active), begins[at], keys[at]);
    children.iter_mut().for_each(|list| list.sort_by_key(rank));
    let mut tops: Vec<usize> = order
        .iter()
        .filter(|(_, parent, _)| parent.is_none())
        .map(|place| place.0)
        .collect();
    tops.sort_by_key(rank);
    let order = walk(&children, &tops);
    let mut placed = vec![0; keys.len()];
    for (place, &(at, ..)) in order.iter().enumerate() {
        placed[at] = place;
    }
    let place = |&(at, parent, depth): &(usize, Option<usize>, u32)| TreePosition {
        key: keys[at],
        parent: parent.map(|parent| placed[parent]),
        depth,
        whole: whole[at],
    };
    order.iter().map(place).collect()
}

/// A depth-first walk from the roots: index, parent, depth. Processes out of reach, which a damaged
/// trace made their own ancestors, become roots, too.
fn walk(children: &[Vec<usize>], tops: &[usize]) -> Vec<(usize, Option<usize>, u32)> {
    let mut seen = vec![false; children.len()];
    let mut order = Vec::with_capacity(children.len());
    for top in tops.iter().copied().chain(0..children.len()) {
        let mut open = vec![(top, None, 0)];
        while let Some((at, parent, depth)) = open.pop() {
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            order.push((at, parent, depth));
            let below = children[at].iter().rev();
            open.extend(below.map(|&child| (child, Some(at), depth + 1)));
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::walk;

    #[test]
    fn a_ring_is_cut() {
        // 0 is the parent of 1; 2, 3 and 4 form a ring.
        let children = [vec![1], vec![], vec![3], vec![4], vec![2]];
        let order = walk(&children, &[0]);
        assert_eq!(
            order,
            [
                (0, None, 0),
                (1, Some(0), 1),
                (2, None, 0),
                (3, Some(2), 1),
                (4, Some(3), 2)
            ]
        );
    }
}
