//! A path as a tree of the threads on it and their waits.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::cause::ActorId;
use crate::graph::Graph;
use crate::path::{Hop, Link, Path};
use tracebraid_threads::WaitReason;

/// A thread on a path with its waits. Equal waits for the same thread share a node. Durations are
/// nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Name of the thread; see [`Graph::name`].
    pub name: String,
    /// The relation to the waiting thread, as text; empty for the first thread. See
    /// [`Graph::link`].
    pub link: String,
    /// Time of the path in this node and its waits.
    pub duration_ns: u64,
    /// Number of waits.
    pub times: u64,
    /// The thread's own time, the largest part first.
    pub parts: Vec<Part>,
    /// Waits, the longest first.
    pub waits: Vec<Node>,
}

/// Time of a thread for one reason and detail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Reason of the time.
    pub reason: WaitReason,
    /// Details; see [`Graph::detail`].
    pub detail: String,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Number of segments.
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
        let (parts, small_parts): (Vec<&Part>, Vec<&Part>) = self
            .parts
            .iter()
            .partition(|part| is_large(part.duration_ns));
        let (waits, small_waits): (Vec<&Node>, Vec<&Node>) = self
            .waits
            .iter()
            .partition(|wait| is_large(wait.duration_ns));
        let rest = small_parts.iter().map(|part| part.duration_ns);
        let rest = rest.chain(small_waits.iter().map(|wait| wait.duration_ns));
        LargeParts {
            parts,
            waits,
            rest_ns: rest.sum(),
        }
    }
}

/// A [`Node`] under construction.
#[derive(Default)]
struct NodeBuilder {
    /// Name and link.
    key: (String, String),
    /// Index of the node that waited for this one; of node 0, its own.
    parent: usize,
    /// Nanoseconds. Includes the nodes in `waits` only after [`TreeBuilder::add_up`].
    duration: u64,
    times: u64,
    parts: BTreeMap<(WaitReason, String), (u64, u64)>,
    /// Indexes of the nodes that this one waited for, by key.
    waits: BTreeMap<(String, String), usize>,
}

/// A tree under construction. A path may have millions of hops but few different ones, so each hop
/// is looked up once, and its name and link are formatted only if no equal hop was found in the
/// same node before.
struct TreeBuilder<'g> {
    graph: &'g Graph,
    /// Each node comes after the node that waited for it. Node 0 contains the nodes of hops without
    /// a parent.
    nodes: Vec<NodeBuilder>,
    /// Index of a node, by the index of the node that waited for it, its thread and its link.
    known: HashMap<(usize, ActorId, Link), usize>,
}

impl Graph {
    /// The path as a tree.
    pub fn tree(&self, path: &Path) -> Node {
        let mut tree = TreeBuilder {
            graph: self,
            nodes: vec![NodeBuilder::default()],
            known: HashMap::new(),
        };
        // Index of the node of each hop.
        let mut of_hops: Vec<usize> = Vec::with_capacity(path.hops.len());
        for hop in &path.hops {
            let parent = hop.parent.and_then(|parent| of_hops.get(parent as usize));
            let node = tree.child(parent.copied().unwrap_or(0), hop);
            tree.nodes[node].times += 1;
            of_hops.push(node);
        }
        for segment in &path.segments {
            let duration = segment.duration();
            let key = (
                self.reason(path, segment),
                self.summed_detail(path, segment),
            );
            let node = of_hops.get(segment.hop as usize).copied().unwrap_or(0);
            let node = &mut tree.nodes[node];
            node.duration += duration;
            let part = node.parts.entry(key).or_default();
            *part = (part.0 + duration, part.1 + 1);
        }
        tree.add_up();
        let first = path
            .hops
            .first()
            .map(|hop| self.key(hop))
            .unwrap_or_default();
        let found = tree
            .nodes
            .first()
            .and_then(|root| root.waits.get(&first).copied());
        found.map(|found| tree.build(found)).unwrap_or_default()
    }

    fn key(&self, hop: &Hop) -> (String, String) {
        (self.name(hop.actor), self.link(hop.link))
    }
}

impl TreeBuilder<'_> {
    /// Index of the node of a hop that the node at index `parent` waited for.
    fn child(&mut self, parent: usize, hop: &Hop) -> usize {
        let met = (parent, hop.actor, hop.link);
        if let Some(node) = self.known.get(&met) {
            return *node;
        }
        let key = self.graph.key(hop);
        let next = self.nodes.len();
        let waits = &mut self.nodes[parent].waits;
        let node = *waits.entry(key.clone()).or_insert(next);
        if node == next {
            self.nodes.push(NodeBuilder {
                key,
                parent,
                ..NodeBuilder::default()
            });
        }
        self.known.insert(met, node);
        node
    }

    /// Adds the duration of each node to that of the node that waited for it, and so on up to node
    /// 0.
    fn add_up(&mut self) {
        for node in (1..self.nodes.len()).rev() {
            let NodeBuilder {
                parent, duration, ..
            } = self.nodes[node];
            self.nodes[parent].duration += duration;
        }
    }

    /// Builds the node at an index, with all nodes that it waited for. Call it once for each node.
    fn build(&mut self, node: usize) -> Node {
        let node = std::mem::take(&mut self.nodes[node]);
        let part = |((reason, detail), (duration_ns, times))| Part {
            reason,
            detail,
            duration_ns,
            times,
        };
        let mut parts: Vec<Part> = node.parts.into_iter().map(part).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.duration_ns));
        let waits = node.waits.into_values();
        let mut waits: Vec<Node> = waits.map(|node| self.build(node)).collect();
        waits.sort_by_key(|node| std::cmp::Reverse(node.duration_ns));
        let (name, link) = node.key;
        Node {
            name,
            link,
            duration_ns: node.duration,
            times: node.times,
            parts,
            waits,
        }
    }
}

impl Node {
    /// The stacks of the tree with the time that ends in each: threads and relations from the
    /// requested thread on, and the reason as the last frame.
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
        self.waits
            .iter()
            .for_each(|node| node.add_stacks(frames, stacks));
        frames.truncate(depth);
    }
}

#[cfg(test)]
mod tests {
    use tracebraid_follow::ThreadKey;

    use super::*;
    use crate::graph::{Actor, NO_OBJECT, Occupant, Queue};
    use crate::path::{Role, Segment, SegmentKind};
    use tracebraid_kernel_model::Syscall;

    /// Some threads have the same name and id, like threads whose ids are reused.
    fn graph() -> Graph {
        let actor = |(tid, name): (i32, &str)| Actor {
            key: ThreadKey { trace: 0, tid },
            name: Some(name.to_owned()),
            ..Actor::default()
        };
        let actors = [(1, "a"), (2, "b"), (2, "b"), (3, "c"), (1, "a")];
        Graph {
            actors: actors.map(actor).to_vec(),
            ..Graph::default()
        }
    }

    fn path(random: &mut impl FnMut(u32) -> u32) -> Path {
        let mut path = Path {
            segments: Vec::new(),
            hops: Vec::new(),
        };
        for at in 0..60 {
            let link = match random(4) {
                0 => Link::Makes,
                1 => Link::Wakes {
                    call: Syscall::OTHER,
                    object: NO_OBJECT,
                },
                queue => Link::Queues(Queue::Kernel(queue)),
            };
            path.hops.push(Hop {
                actor: ActorId(random(5)),
                parent: (at > 0).then(|| random(at)),
                begin: 0,
                end: 0,
                link: if at == 0 { Link::Start } else { link },
                replaces: false,
                role: Role::Own,
            });
        }
        for at in 0..500 {
            let kind = match random(3) {
                0 => SegmentKind::Running(random(4) as u16),
                1 => SegmentKind::Preempted(Occupant::Thread(ActorId(random(5)))),
                _ => SegmentKind::Unknown,
            };
            path.segments.push(Segment {
                begin: at * 1000,
                end: at * 1000 + i64::from(random(1000)),
                hop: random(60),
                kind,
            });
        }
        path
    }

    /// Names and links of the nodes from the root to a node.
    type Way = Vec<(String, String)>;

    /// Nanoseconds and number of occurrences of each node, and of each of its parts.
    type Flat = (
        BTreeMap<Way, (u64, u64)>,
        BTreeMap<(Way, WaitReason, String), (u64, u64)>,
    );

    fn flat_of_tree(node: &Node, way: &mut Way, flat: &mut Flat) {
        way.push((node.name.clone(), node.link.clone()));
        flat.0.insert(way.clone(), (node.duration_ns, node.times));
        for part in &node.parts {
            let key = (way.clone(), part.reason, part.detail.clone());
            flat.1.insert(key, (part.duration_ns, part.times));
        }
        node.waits
            .iter()
            .for_each(|node| flat_of_tree(node, way, flat));
        way.pop();
    }

    fn flat_of_path(graph: &Graph, path: &Path) -> Flat {
        let way = |hop: u32| -> Way {
            let mut way: Way = path.way(hop).map(|hop| graph.key(hop)).collect();
            way.reverse();
            way
        };
        let mut flat = Flat::default();
        for hop in 0..path.hops.len() as u32 {
            flat.0.entry(way(hop)).or_default().1 += 1;
        }
        for segment in &path.segments {
            let way = way(segment.hop);
            for depth in 1..=way.len() {
                flat.0.entry(way[..depth].to_vec()).or_default().0 += segment.duration();
            }
            let key = (
                way,
                graph.reason(path, segment),
                graph.summed_detail(path, segment),
            );
            let part = flat.1.entry(key).or_default();
            *part = (part.0 + segment.duration(), part.1 + 1);
        }
        flat
    }

    #[test]
    fn a_tree_has_the_sums_of_the_ways_of_all_parts() {
        let graph = graph();
        for seed in 0..20u64 {
            let mut state = seed;
            // Linear congruential generator with the constants of Knuth's MMIX.
            let mut random = |bound: u32| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as u32 % bound
            };
            let path = path(&mut random);
            let mut found = Flat::default();
            flat_of_tree(&graph.tree(&path), &mut Vec::new(), &mut found);
            assert_eq!(found, flat_of_path(&graph, &path), "{seed}");
            assert!(found.0.values().any(|(_, times)| *times > 1));
        }
        assert_eq!(
            graph.tree(&Path {
                segments: Vec::new(),
                hops: Vec::new()
            }),
            Node::default()
        );
    }
}
