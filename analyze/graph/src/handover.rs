//! Paths of executions that begin in one thread and end in another.
//!
//! Such an execution is handed over between its start and its end. Until then the last thread works
//! on other executions, so the path leaves its time line there. Three cases, from the most to the
//! least certain:
//!
//! - **Seen**: a chain of events leads from the first thread to the last one: wake-ups, sent
//!   segments, issued or submitted requests, created threads. The path consists of the threads of
//!   the chain, each from the time at which it received the execution.
//! - **Queued**: no such chain, but in the meantime the last thread ended another execution that
//!   had begun elsewhere: the thread takes work from a queue that is not empty, and neither waits
//!   nor is woken. Up to that end the execution was queued.
//! - **Unseen**: neither. The unknown part is marked as such.
//!
//! A wake-up between the two threads need not be a hand-over: both may contend for the lock of the
//! queue. Two bounds separate most cases. The last thread cannot have begun the execution before it
//! ended the previous one (`busy_until`), unless it works on several at once: then it waits for the
//! next event of any execution, in a call such as epoll_wait. And the first thread has handed the
//! execution over before it begins the next one of the kind (`next`).

use std::collections::{BTreeMap, VecDeque};

use crate::cause::{ActorId, Wake};
use crate::graph::{Actor, Graph, State, Stretch};
use crate::path::{Hop, Link, Path, Role, SegmentKind, Walk};
use tracebraid_threads::CallClass;

/// An execution that begins in one thread and ends in another. Times are nanoseconds from the
/// origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The thread in which the execution begins.
    pub first: ActorId,
    /// The thread in which the execution ends.
    pub last: ActorId,
    /// Start of the execution.
    pub begin: i64,
    /// End of the execution.
    pub end: i64,
    /// Last time within this execution at which the last thread ended an execution that had begun
    /// elsewhere.
    pub busy_until: Option<i64>,
    /// Time within this execution at which the first thread began the next one of the kind.
    pub next: Option<i64>,
    /// True if the last thread had ended an execution before this one began: it does no other work
    /// since then.
    pub was_free: bool,
    /// True if the first thread wrote the record that starts the execution. Otherwise, without a
    /// recorded hand-over, the path is that of the last thread alone.
    pub is_sure: bool,
}

/// A step of a chain from the last thread back to the first.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The thread that hands the execution over.
    by: ActorId,
    /// When that thread does so.
    at: i64,
    /// When the receiving thread has the execution.
    woken: i64,
    /// Activity of the receiving thread in between, and whether it waited when the execution began.
    kind: SegmentKind,
    link: Link,
    waited_all_along: bool,
}

/// Maximum number of stretches that are searched for a chain: a window of seconds on a busy machine
/// may hold any number.
const MOST_LOOKED_AT: usize = 1 << 14;

/// Maximum number of threads in a chain.
const MOST_STEPS: usize = 8;

/// Number of waits of the last thread from which indirect chains are searched: it may wait for the
/// lock of the queue before it waits for the queue.
const FIRST_WAITS: usize = 3;

/// Looks for the chain by which an execution was handed over.
pub(crate) struct Search<'g> {
    graph: &'g Graph,
    passed: Passed,
    looked_at: usize,
    /// Indexes of the segments that were visited: their senders may not be known yet.
    pub(crate) packets: Vec<u32>,
}

/// A thread that was reached backwards, by which step, and the latest time at which it may have
/// received the execution.
struct Reached {
    actor: ActorId,
    until: i64,
    edge: Edge,
    /// The receiver: its index among the threads reached.
    next: Option<usize>,
    depth: usize,
}

impl<'g> Search<'g> {
    pub(crate) fn new(graph: &'g Graph, passed: Passed) -> Self {
        Search {
            graph,
            passed,
            looked_at: 0,
            packets: Vec::new(),
        }
    }

    /// True if the first thread handed the execution over while it had it.
    fn is_of_first(&self, edge: &Edge) -> bool {
        let until = self.passed.next.unwrap_or(self.passed.end);
        edge.by == self.passed.first && (self.passed.begin..=until).contains(&edge.at)
    }

    /// The chain, from the last thread to the first one.
    fn chain(&mut self) -> Option<Vec<Edge>> {
        let Passed {
            last, begin, end, ..
        } = self.passed;
        let waits = self.edges(last, (begin, end));
        let busy_until = self.passed.busy_until.unwrap_or(begin);
        let is_late = |edge: &Edge| edge.woken >= busy_until;
        let direct = waits
            .iter()
            .find(|edge| self.is_of_first(edge) && (is_late(edge) || waits_for_any(edge.kind)));
        if let Some(edge) = direct {
            return Some(vec![*edge]);
        }
        let first = waits.into_iter().filter(is_late).take(FIRST_WAITS);
        self.indirect(first.collect())
    }

    /// The shortest chain through other threads, starting with these edges of the last thread.
    fn indirect(&mut self, edges: Vec<Edge>) -> Option<Vec<Edge>> {
        let begin = self.passed.begin;
        let mut reached: Vec<Reached> = Vec::new();
        let mut known: BTreeMap<ActorId, i64> = BTreeMap::new();
        let mut next: VecDeque<usize> = VecDeque::new();
        let mut new: Vec<(Edge, Option<usize>, usize)> =
            edges.into_iter().map(|edge| (edge, None, 1)).collect();
        loop {
            for (edge, of, depth) in new.drain(..) {
                let is_new = known.get(&edge.by).is_none_or(|until| *until < edge.at);
                if edge.by == self.passed.last || edge.at < begin || !is_new || depth >= MOST_STEPS
                {
                    continue;
                }
                known.insert(edge.by, edge.at);
                next.push_back(reached.len());
                reached.push(Reached {
                    actor: edge.by,
                    until: edge.at,
                    edge,
                    next: of,
                    depth,
                });
            }
            let place = next.pop_front()?;
            let of = reached.get(place)?;
            let (actor, until, depth) = (of.actor, of.until, of.depth);
            let edges = self.edges(actor, (begin, until));
            if let Some(edge) = edges.iter().find(|edge| self.is_of_first(edge)) {
                let mut chain = vec![*edge];
                let mut at = Some(place);
                while let Some(of) = at.and_then(|at| reached.get(at)) {
                    chain.push(of.edge);
                    at = of.next;
                }
                chain.reverse();
                return Some(chain);
            }
            if self.looked_at >= MOST_LOOKED_AT {
                return None;
            }
            new.extend(edges.into_iter().map(|edge| (edge, Some(place), depth + 1)));
        }
    }

    /// Edges by which a thread may have received an execution in a window, in the order of time.
    fn edges(&mut self, id: ActorId, (begin, end): (i64, i64)) -> Vec<Edge> {
        let mut edges = Vec::new();
        let Some(actor) = self.graph.actor(id) else {
            return edges;
        };
        if let (Some(by), Some(born)) = (actor.creator, actor.begin())
            && (begin..=end).contains(&born)
        {
            edges.push(Edge {
                by,
                at: born,
                woken: born,
                kind: SegmentKind::Unknown,
                link: Link::Makes,
                waited_all_along: true,
            });
        }
        for (stretch, next) in ended(actor, begin) {
            if next > end || self.looked_at >= MOST_LOOKED_AT {
                break;
            }
            self.looked_at += 1;
            edges.extend(self.edge(id, stretch, next).filter(|edge| edge.at >= begin));
        }
        // A wake-up of a thread by itself is not a hand-over.
        edges.retain(|edge| edge.by != id);
        edges
    }

    fn edge(&mut self, id: ActorId, stretch: Stretch, woken: i64) -> Option<Edge> {
        let State::Blocked {
            call,
            object,
            wake,
            reason,
            ..
        } = stretch.state
        else {
            return None;
        };
        if let Wake::Packet(place) = wake {
            self.packets.push(place);
        }
        let origin = self.graph.origin(id, (call, object, wake))?;
        Some(Edge {
            by: origin.by,
            at: origin.at.unwrap_or(woken).min(woken),
            woken,
            kind: SegmentKind::Waiting {
                call,
                object,
                wake,
                reason,
            },
            link: origin.link,
            waited_all_along: stretch.begin <= self.passed.begin,
        })
    }
}

/// True for waits of threads that work on several executions at once: they wait for any that can
/// continue.
fn waits_for_any(kind: SegmentKind) -> bool {
    match kind {
        SegmentKind::Waiting { call, .. } => CallClass::of(call).awaits_any(),
        _ => false,
    }
}

/// The stretches of a thread that end at or after a time, with their ends.
fn ended(actor: &Actor, from: i64) -> impl Iterator<Item = (Stretch, i64)> + '_ {
    let line = actor
        .line
        .get(actor.place(from).unwrap_or(0)..)
        .unwrap_or_default();
    line.windows(2).filter_map(move |pair| match pair {
        [stretch, next] if next.begin >= from => Some((*stretch, next.begin)),
        _ => None,
    })
}

/// True for waits and for the end of a thread.
fn is_away(state: State) -> bool {
    matches!(state, State::Blocked { .. } | State::Ended)
}

impl Actor {
    /// When the thread begins a wait, or ends, at or after a time.
    fn waits_from(&self, time: i64) -> Option<i64> {
        let line = self
            .line
            .get(self.place(time).unwrap_or(0)..)
            .unwrap_or_default();
        let away = line.iter().find(|stretch| is_away(stretch.state));
        away.map(|stretch| stretch.begin.max(time))
    }

    fn state_at(&self, time: i64) -> Option<State> {
        self.line
            .get(self.place(time)?)
            .map(|stretch| stretch.state)
    }
}

/// The hand-over of an execution without a chain from its first thread to its last.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// When the first thread had done its part.
    handed: i64,
    /// When the last thread began the execution.
    taken: i64,
    link: Link,
}

impl Passed {
    /// True if the first thread hands the execution over itself: the record that starts it is of an
    /// action of that thread only, unlike a switch to or from the last thread.
    fn is_of_first(&self, graph: &Graph) -> bool {
        let state = graph
            .actor(self.first)
            .and_then(|first| first.state_at(self.begin));
        let last = graph.actor(self.last);
        let changes = last.and_then(|last| last.line.get(last.place(self.begin)?));
        !matches!(state, None | Some(State::Interrupted(..)))
            && changes.is_none_or(|stretch| stretch.begin != self.begin)
    }

    /// Segments whose senders affect the result, and, if there is no chain, the first wait of the
    /// first thread.
    pub(crate) fn doubts(&self, graph: &Graph) -> (Vec<u32>, Option<i64>) {
        let mut search = Search::new(graph, *self);
        let is_found = search.chain().is_some();
        let first = graph.actor(self.first).filter(|_| !is_found);
        let waits = first.and_then(|first| first.waits_from(self.begin));
        (search.packets, waits.filter(|waits| *waits <= self.end))
    }

    fn gap(&self, graph: &Graph) -> Gap {
        let Passed { begin, end, .. } = *self;
        let waits_from = |id, time| {
            graph
                .actor(id)
                .and_then(|actor| actor.waits_from(time))
                .unwrap_or(end)
        };
        let first_waits = waits_from(self.first, begin).min(self.next.unwrap_or(end));
        if let Some(taken) = self.busy_until {
            return Gap {
                handed: first_waits.min(taken),
                taken,
                link: Link::Busy,
            };
        }
        // The last thread cannot have received the execution while it waited, nor later.
        let last_waits = waits_from(self.last, begin);
        let ends: Vec<i64> = match graph.actor(self.last) {
            Some(last) => {
                let waits = ended(last, begin).filter(|(stretch, _)| is_away(stretch.state));
                waits
                    .map(|(_, next)| next)
                    .take_while(|next| *next <= end)
                    .collect()
            }
            None => Vec::new(),
        };
        let is_waiting = last_waits <= begin;
        let handed = match is_waiting {
            true => first_waits.min(ends.first().copied().unwrap_or(end)),
            false => first_waits.min(last_waits),
        };
        let taken = match (self.was_free, is_waiting) {
            (true, true) => ends.first().copied(),
            (true, false) => None,
            // The activity of the last thread in the meantime is unknown.
            (false, _) => ends.last().copied(),
        };
        Gap {
            handed: handed.min(end),
            taken: taken.unwrap_or(handed).clamp(handed.min(end), end),
            link: Link::Unseen,
        }
    }
}

impl Graph {
    /// The critical path of an execution that begins in one thread and ends in another. The first
    /// hop belongs to the last thread.
    pub fn passed_path(&self, passed: &Passed) -> Path {
        let Passed {
            last, begin, end, ..
        } = *passed;
        let end = end.max(begin);
        if passed.first == last || !passed.is_of_first(self) {
            return self.path(last, begin, end);
        }
        let [from, until] =
            [self.known_from, self.known_until].map(|known| known.clamp(begin, end));
        let from = from.min(until);
        let mut walk = Walk::new(self);
        let root = walk.root(last, (begin, end));
        walk.put(root, (begin, from), SegmentKind::Unknown);
        let known = Passed {
            begin: from,
            end: until,
            busy_until: passed.busy_until.map(|time| time.clamp(from, until)),
            next: passed.next.map(|time| time.clamp(from, until)),
            ..*passed
        };
        match Search::new(self, known).chain() {
            Some(chain) => walk.chain(root, &known, &chain),
            None if passed.is_sure => walk.gap(root, &known, known.gap(self)),
            None => walk.follow(root, (from, until)),
        }
        walk.put(root, (until, end), SegmentKind::Unknown);
        walk.into_path(begin, end)
    }
}

impl Walk<'_> {
    /// Puts the parts of a chain: the first thread, those in between, and the last.
    fn chain(&mut self, root: u32, passed: &Passed, chain: &[Edge]) {
        let mut hops = vec![root];
        for edge in chain {
            let hop = Hop {
                actor: edge.by,
                parent: hops.last().copied(),
                begin: passed.begin,
                end: edge.at,
                link: edge.link,
                replaces: !edge.waited_all_along,
                role: Role::Own,
            };
            hops.push(self.hop(hop));
        }
        let mut at = passed.begin;
        // The sender is charged up to the hand-over; the receiver waits for the execution to
        // arrive.
        for (place, edge) in chain.iter().enumerate().rev() {
            if let (Some(by), Some(to)) = (hops.get(place + 1), hops.get(place)) {
                let handed = edge.at.max(at);
                self.follow(*by, (at, handed));
                self.put(*to, (handed, edge.woken), edge.kind);
                at = edge.woken.max(handed);
            }
        }
        self.follow(root, (at, passed.end));
    }

    /// Puts the part of the first thread, the gap, and the part of the last thread.
    fn gap(&mut self, root: u32, passed: &Passed, gap: Gap) {
        let hop = |actor, (begin, end), link, role| Hop {
            actor,
            parent: Some(root),
            begin,
            end,
            link,
            replaces: true,
            role,
        };
        let parts = [(passed.begin, gap.handed), (gap.handed, gap.taken)];
        if parts[0].0 < parts[0].1 {
            let first = self.hop(hop(passed.first, parts[0], Link::Passes, Role::Own));
            self.follow(first, parts[0]);
        }
        if parts[1].0 < parts[1].1 {
            let role = match gap.link {
                Link::Busy => Role::Busy,
                _ => Role::Unseen,
            };
            let other = self.hop(hop(passed.last, parts[1], gap.link, role));
            self.follow_alone(other, parts[1]);
        }
        self.follow(root, (gap.taken, passed.end));
    }
}
