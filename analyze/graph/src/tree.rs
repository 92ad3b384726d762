//! A path as a tree: what a thread did, what it waited for, and what that one waited for.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::graph::Graph;
use crate::path::{Hop, Path};
use tracebraid_threads::WaitReason;

/// A thread on the way of a path, with all that it waited for. Threads that were waited for in the same way
/// several times stand there once. Durations are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The thread, and what was waited for, in words; see [`Graph::link`].
    pub name: String,
    /// What the thread before waited in, in words; nothing for the first one.
    pub link: String,
    /// Time of the path from this one on.
    pub duration_ns: u64,
    /// How often it was waited for.
    pub times: u64,
    /// Its own time: the greatest first.
    pub parts: Vec<Part>,
    /// What it waited for: the longest first.
    pub waits: Vec<Node>,
}

/// Time of a thread that went into one thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// What.
    pub reason: WaitReason,
    /// Exactly; see [`Graph::detail`].
    pub detail: String,
    /// How long.
    pub duration_ns: u64,
    /// How often.
    pub times: u64,
}

/// Parts and waits of a node that are large enough to be shown separately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LargeParts<'n> {
    /// Own time, in the order of [`Node::parts`].
    pub parts: Vec<&'n Part>,
    /// In the order of [`Node::waits`].
    pub waits: Vec<&'n Node>,
    /// Total of the smaller parts and waits, in nanoseconds.
    pub rest_ns: u64,
}

impl Node {
    /// Parts and waits that take at least a 500th of `whole_ns`.
    pub fn large_parts(&self, whole_ns: u64) -> LargeParts<'_> {
        const SHARE: u64 = 500;
        let is_large = |duration_ns: u64| duration_ns.saturating_mul(SHARE) >= whole_ns;
        let (parts, small_parts): (Vec<&Part>, Vec<&Part>) =
            self.parts.iter().partition(|part| is_large(part.duration_ns));
        let (waits, small_waits): (Vec<&Node>, Vec<&Node>) =
            self.waits.iter().partition(|wait| is_large(wait.duration_ns));
        let rest = small_parts.iter().map(|part| part.duration_ns);
        let rest = rest.chain(small_waits.iter().map(|wait| wait.duration_ns));
        LargeParts {
            parts,
            waits,
            rest_ns: rest.sum(),
        }
    }
}

/// A node that is being made.
#[derive(Default)]
struct Sums {
    duration: u64,
    times: u64,
    parts: BTreeMap<(WaitReason, String), (u64, u64)>,
    waits: BTreeMap<(String, String), Sums>,
}

impl Graph {
    /// The path as a tree.
    pub fn tree(&self, path: &Path) -> Node {
        let mut root = Sums::default();
        for hop in 0..path.hops.len() as u32 {
            let sums = self.sums(path, hop, &mut root, 0);
            sums.times += 1;
        }
        for segment in &path.segments {
            let duration = segment.duration();
            let key = (self.reason(path, segment), self.summed_detail(path, segment));
            let sums = self.sums(path, segment.hop, &mut root, duration);
            let part = sums.parts.entry(key).or_default();
            *part = (part.0 + duration, part.1 + 1);
        }
        let first = path.hops.first().map(|hop| self.key(hop)).unwrap_or_default();
        let found = root.waits.remove(&first).unwrap_or_default();
        found.into_node(first)
    }

    fn key(&self, hop: &Hop) -> (String, String) {
        (self.name(hop.actor), self.link(hop.link))
    }

    /// The sums of a hop, with time added to all on the way.
    fn sums<'s>(&self, path: &Path, hop: u32, root: &'s mut Sums, duration: u64) -> &'s mut Sums {
        let mut way: Vec<&Hop> = path.way(hop).collect();
        way.reverse();
        let mut sums = root;
        for hop in way {
            sums = sums.waits.entry(self.key(hop)).or_default();
            sums.duration += duration;
        }
        sums
    }
}

impl Sums {
    fn into_node(self, (name, link): (String, String)) -> Node {
        let part = |((reason, detail), (duration_ns, times))| Part {
            reason,
            detail,
            duration_ns,
            times,
        };
        let mut parts: Vec<Part> = self.parts.into_iter().map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.duration_ns));
        let waits = self.waits.into_iter();
        let mut waits: Vec<Node> = waits.map(|(key, sums)| sums.into_node(key)).collect();
        waits.sort_by_key(|node| std::cmp::Reverse(node.duration_ns));
        Node {
            name,
            link,
            duration_ns: self.duration,
            times: self.times,
            parts,
            waits,
        }
    }
}

impl Node {
    /// The stacks of the tree with the time that ends in each: threads and what they waited in, from the thread
    /// that was asked for on; at last what the time went into.
    pub fn stacks(&self) -> Vec<(Vec<String>, u64)> {
        let mut stacks = Vec::new();
        self.add_stacks(&mut Vec::new(), &mut stacks);
        stacks
    }

    fn add_stacks(&self, frames: &mut Vec<String>, stacks: &mut Vec<(Vec<String>, u64)>) {
        let depth = frames.len();
        if !self.link.is_empty() {
            frames.push(format!("[{}]", self.link));
        }
        frames.push(self.name.clone());
        for part in &self.parts {
            let mut stack = frames.clone();
            stack.push(match part.detail.as_str() {
                "" => format!("[{}]", part.reason.name()),
                detail => format!("[{}: {detail}]", part.reason.name()),
            });
            stacks.push((stack, part.duration_ns));
        }
        self.waits.iter().for_each(|node| node.add_stacks(frames, stacks));
        frames.truncate(depth);
    }
}
