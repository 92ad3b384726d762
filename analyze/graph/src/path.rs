//! Critical paths: what a thread did in a window of time, and, while it waited, what whoever it
//! waited for did.
//!
//! A wait that another thread ended is replaced by what that thread did in the meantime, within the
//! window of the wait and never before it; its own waits in that window are replaced in turn.
//! Windows only shrink on the way, a thread that stands on the way already is not followed again,
//! and the way has a greatest length: so it ends. After Trace Compass's bounded algorithm and
//! section 3.3.1 of Doray and Dagenais, "Diagnosing performance variations by comparing multi-level
//! execution traces" (2016).

use serde::Serialize;
use tracebraid_follow::CpuKey;
use tracebraid_kernel_model::Syscall;
use tracebraid_threads::{ThreadState, WaitReason};

use crate::cause::{ActorId, Interrupt, Wake};
use crate::cuts::Before;
use crate::graph::{Actor, Graph, NO_OBJECT, Occupant, Queue, State};

/// A part of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Its beginning, in nanoseconds from the origin.
    pub begin: i64,
    /// Its end: the beginning of the next one.
    pub end: i64,
    /// Whose time it is: its place among [`Path::hops`].
    pub hop: u32,
    /// What happens.
    pub kind: SegmentKind,
}

impl Segment {
    /// Its duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }
}

/// What happens in a part of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SegmentKind {
    /// That is not known.
    Unknown,
    /// The thread runs.
    Running(u16),
    /// Something has interrupted it.
    Interrupted(Interrupt),
    /// It was taken from its CPU, where that one runs.
    Preempted(Occupant),
    /// It was woken, and waits for a CPU, where that one runs.
    Runnable(Occupant),
    /// It waits for what is no thread, or for one that cannot be followed.
    Waiting {
        /// The call that it waits in.
        call: Syscall,
        /// What the call is about; see [`State::Blocked`].
        object: u32,
        /// What ends the wait.
        wake: Wake,
        /// What the thread waits for, if that is not followed.
        reason: WaitReason,
    },
    /// Its work waits in a queue for a thread that does it.
    Queued(Queue),
}

/// A thread on the way, from when to when the path is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The thread.
    pub actor: ActorId,
    /// The hop that waits for it; none for the first one.
    pub parent: Option<u32>,
    /// In nanoseconds from the origin.
    pub begin: i64,
    /// Where the waiting one goes on.
    pub end: i64,
    /// What the one before waited for.
    pub link: Link,
    /// The one before did other things in the meantime, which do not matter: it was only handed
    /// what this one did.
    pub replaces: bool,
    /// Work that the time of the hop is for.
    pub role: Role,
}

/// Work that the time of a hop is for: that of the path's execution, or other work that delays it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Role {
    /// Work of the path's execution.
    #[default]
    Own,
    /// Other work of the receiving thread while the execution is queued.
    Busy,
    /// Activity of a thread around or within an unrecorded hand-over: for this execution or for
    /// others.
    Unseen,
}

/// How a path goes over to another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Link {
    /// It begins there.
    Start,
    /// That thread wakes the one before, which waits in that call about that object.
    Wakes {
        /// The call.
        call: Syscall,
        /// See [`State::Blocked`].
        object: u32,
    },
    /// It sends the segment that the one before waits for: its place among the graph's packets.
    Sends(u32),
    /// It issues the request that the one before waits for: its place among the graph's.
    Issues(u32),
    /// It submits the request to an io_uring that the one before waits for: its place among the
    /// graph's.
    Submits(u32),
    /// It queues the work that the one before does.
    Queues(Queue),
    /// It makes the one before.
    Makes,
    /// The thread hands the execution to the previous hop's thread without leaving an event.
    Passes,
    /// The previous hop's thread, doing other work while the execution waits for it.
    Busy,
    /// The previous hop's thread, which may or may not have received the execution yet.
    Unseen,
}

/// A critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Its parts, without gaps from its beginning to its end.
    pub segments: Vec<Segment>,
    /// The threads on the way; the first is the one that was asked for. Each stands behind its
    /// parent.
    pub hops: Vec<Hop>,
}

/// How many threads may wait for each other on the way. No lock or protocol nests that deep; it
/// bounds the time.
const MOST_HOPS: usize = 64;

impl Graph {
    /// The critical path of a thread from one time to another, in nanoseconds from the origin.
    pub fn path(&self, actor: ActorId, begin: i64, end: i64) -> Path {
        let end = end.max(begin);
        let [from, until] =
            [self.known_from, self.known_until].map(|known| known.clamp(begin, end));
        let mut walk = Walk::new(self);
        let hop = walk.root(actor, (begin, end));
        let from = from.min(until);
        walk.put(hop, (begin, from), SegmentKind::Unknown);
        walk.follow(hop, (from, until));
        walk.put(hop, (until, end), SegmentKind::Unknown);
        walk.into_path(begin, end)
    }
}

impl Path {
    /// True if its parts follow each other from a time to another one, none of them empty.
    pub fn tiles(&self, begin: i64, end: i64) -> bool {
        let mut at = begin;
        for segment in &self.segments {
            if segment.begin != at || segment.end <= at {
                return false;
            }
            at = segment.end;
        }
        at == end
    }

    /// Role of a part's time in the path.
    pub fn role(&self, segment: &Segment) -> Role {
        let hop = self.hops.get(segment.hop as usize);
        hop.map_or(Role::Own, |hop| hop.role)
    }

    /// The hop of a segment, and all that wait for it, up to the thread that was asked for.
    pub fn way(&self, hop: u32) -> impl Iterator<Item = &Hop> {
        let mut next = self.hops.get(hop as usize);
        std::iter::from_fn(move || {
            let hop = next?;
            next = hop.parent.and_then(|parent| self.hops.get(parent as usize));
            Some(hop)
        })
    }
}

/// A window of time: from when to when.
pub(crate) type Window = (i64, i64);

/// A path that is being made.
pub(crate) struct Walk<'g> {
    pub(crate) graph: &'g Graph,
    path: Path,
}

impl<'g> Walk<'g> {
    pub(crate) fn new(graph: &'g Graph) -> Self {
        Walk {
            graph,
            path: Path {
                segments: Vec::new(),
                hops: Vec::new(),
            },
        }
    }

    /// The path, from one time to another one.
    pub(crate) fn into_path(self, begin: i64, end: i64) -> Path {
        debug_assert!(self.path.tiles(begin, end));
        self.path
    }
}

impl Walk<'_> {
    pub(crate) fn hop(&mut self, hop: Hop) -> u32 {
        self.path.hops.push(hop);
        self.path.hops.len() as u32 - 1
    }

    /// The first hop: the thread that the path is asked of.
    pub(crate) fn root(&mut self, actor: ActorId, (begin, end): Window) -> u32 {
        self.hop(Hop {
            actor,
            parent: None,
            begin,
            end,
            link: Link::Start,
            replaces: false,
            role: Role::Own,
        })
    }

    /// A part of the path; nothing if it is empty, and one with the part before if it goes on.
    pub(crate) fn put(&mut self, hop: u32, (begin, end): Window, kind: SegmentKind) {
        if begin >= end {
            return;
        }
        if let Some(last) = self.path.segments.last_mut()
            && (last.hop, last.kind, last.end) == (hop, kind, begin)
        {
            last.end = end;
            return;
        }
        self.path.segments.push(Segment {
            begin,
            end,
            hop,
            kind,
        });
    }

    /// True if the path can go over to that thread: not to one that waits, further up on the way.
    pub(crate) fn can_follow(&self, from: u32, to: ActorId, replaces: bool) -> bool {
        let mut waits = !replaces;
        let mut depth = 0;
        for hop in self.path.way(from) {
            // Nobody is handed something by itself.
            if hop.actor == to && (waits || depth == 0) {
                return false;
            }
            waits = !hop.replaces;
            depth += 1;
        }
        depth < MOST_HOPS && self.graph.actor(to).is_some()
    }

    /// True if that is what the thread of a hop does.
    pub(crate) fn is_of(&self, hop: u32, wake: Wake) -> bool {
        let own = self.path.hops.get(hop as usize).map(|hop| hop.actor);
        matches!(wake, Wake::Thread(by) if Some(by) == own)
    }

    /// Goes over to another thread for that window, if it can be followed; false if not.
    fn goes_over(
        &mut self,
        from: u32,
        to: ActorId,
        (begin, end): Window,
        link: Link,
        replaces: bool,
    ) -> bool {
        if !self.can_follow(from, to, replaces) {
            return false;
        }
        if begin < end {
            let role = self.path.hops.get(from as usize).map(|hop| hop.role);
            let hop = self.hop(Hop {
                actor: to,
                parent: Some(from),
                begin,
                end,
                link,
                replaces,
                role: role.unwrap_or_default(),
            });
            self.follow(hop, (begin, end));
        }
        true
    }

    /// All activity of a hop's thread in a window, for whatever work.
    pub(crate) fn follow_alone(&mut self, hop: u32, (begin, end): Window) {
        let graph = self.graph;
        let actor = self
            .path
            .hops
            .get(hop as usize)
            .and_then(|hop| graph.actor(hop.actor));
        let born = actor
            .and_then(Actor::begin)
            .unwrap_or(end)
            .clamp(begin, end);
        self.put(hop, (begin, born), SegmentKind::Unknown);
        if let Some(actor) = actor {
            self.own(hop, actor, (born, end));
        }
    }

    /// Everything that the thread of a hop did in a window.
    pub(crate) fn follow(&mut self, hop: u32, (begin, end): Window) {
        let graph = self.graph;
        let of_hop = self.path.hops.get(hop as usize).copied();
        let Some(actor) = of_hop.and_then(|hop| graph.actor(hop.actor)) else {
            return self.put(hop, (begin, end), SegmentKind::Unknown);
        };
        let born = actor.begin().unwrap_or(end).clamp(begin, end);
        let is_made = actor
            .creator
            .is_some_and(|creator| self.goes_over(hop, creator, (begin, born), Link::Makes, false));
        if !is_made {
            self.put(hop, (begin, born), SegmentKind::Unknown);
        }
        let cuts = match of_hop.and_then(|hop| hop.parent) {
            Some(_) => self.cuts(hop, actor, (born, end)),
            None => Vec::new(),
        };
        let mut at = born;
        for cut in cuts.iter().rev() {
            let window = (at, cut.begin);
            match cut.before {
                Before::Of(by, link) if self.goes_over(hop, by, window, link, true) => {}
                Before::Of(..) | Before::Own => self.own(hop, actor, window),
                Before::Wait(wake) => {
                    let reason = self.graph.reason_of_cause(actor.key.trace, wake);
                    self.waits(hop, window, (Syscall::OTHER, NO_OBJECT, wake), reason);
                }
            }
            match cut.kind {
                SegmentKind::Queued(_) => self.queued(hop, actor, (cut.begin, cut.end), cut.kind),
                kind => self.put(hop, (cut.begin, cut.end), kind),
            }
            at = cut.end;
        }
        self.own(hop, actor, (at, end));
    }

    /// What a thread did itself in a window.
    fn own(&mut self, hop: u32, actor: &Actor, (begin, end): Window) {
        let first = actor.place(begin).unwrap_or(0);
        let stretches = actor.line.get(first..).unwrap_or_default();
        for (place, stretch) in stretches.iter().enumerate() {
            if stretch.begin >= end {
                break;
            }
            let next = stretches
                .get(place + 1)
                .map_or(end, |next| next.begin.min(end));
            let window = (stretch.begin.max(begin), next);
            self.does(hop, actor.key.trace, window, stretch.state);
        }
    }

    /// Its work waits for it; that it waits for a CPU itself is told.
    fn queued(&mut self, hop: u32, actor: &Actor, (begin, end): Window, kind: SegmentKind) {
        let first = actor.place(begin).unwrap_or(0);
        let stretches = actor.line.get(first..).unwrap_or_default();
        let mut at = begin;
        for (place, stretch) in stretches.iter().enumerate() {
            if stretch.begin >= end {
                break;
            }
            if let State::Preempted(_) | State::Runnable(_) = stretch.state {
                let from = stretch.begin.max(begin);
                let next = stretches
                    .get(place + 1)
                    .map_or(end, |next| next.begin.min(end));
                self.put(hop, (at, from), kind);
                self.does(hop, actor.key.trace, (from, next), stretch.state);
                at = next;
            }
        }
        self.put(hop, (at, end), kind);
    }

    /// What the thread of a hop does in a window, in which it does the same all the time.
    fn does(&mut self, hop: u32, trace: u32, window: Window, state: State) {
        match state {
            State::Unknown | State::Ended => self.put(hop, window, SegmentKind::Unknown),
            State::Running(cpu) => self.put(hop, window, SegmentKind::Running(cpu)),
            State::Interrupted(_, by) => self.put(hop, window, SegmentKind::Interrupted(by)),
            State::Preempted(cpu) => {
                self.lacks_cpu(hop, (trace, cpu), window, SegmentKind::Preempted)
            }
            State::Runnable(cpu) => {
                self.lacks_cpu(hop, (trace, cpu), window, SegmentKind::Runnable)
            }
            State::Blocked {
                call,
                object,
                wake,
                reason,
                ..
            } => self.waits(hop, window, (call, object, wake), reason),
        }
    }

    /// It waits for a CPU: by who ran there.
    fn lacks_cpu(
        &mut self,
        hop: u32,
        (trace, cpu): (u32, u16),
        (begin, end): Window,
        kind: impl Fn(Occupant) -> SegmentKind,
    ) {
        let mut at = begin;
        if cpu != ThreadState::NO_CPU {
            let cpu = u32::from(cpu);
            let line = self.graph.occupied(CpuKey { trace, cpu }, begin);
            for (place, occupied) in line.iter().enumerate() {
                if occupied.begin >= end {
                    break;
                }
                let next = line.get(place + 1).map_or(end, |next| next.begin.min(end));
                self.put(hop, (at, occupied.begin.max(at)), kind(Occupant::Unknown));
                let from = occupied.begin.max(begin);
                self.put(hop, (from, next), kind(occupied.by));
                at = next.max(at);
            }
        }
        self.put(hop, (at, end), kind(Occupant::Unknown));
    }

    /// It waits: for another thread, or for something that a thread began, or for what is none.
    fn waits(
        &mut self,
        hop: u32,
        (begin, end): Window,
        wait: (Syscall, u32, Wake),
        reason: WaitReason,
    ) {
        let (call, object, wake) = wait;
        let own = self.path.hops.get(hop as usize).map(|hop| hop.actor);
        let origin = own.and_then(|own| self.graph.origin(own, wait));
        let until = origin
            .and_then(|origin| origin.at)
            .unwrap_or(end)
            .clamp(begin, end);
        let is_followed = origin.is_some_and(|origin| {
            self.goes_over(hop, origin.by, (begin, until), origin.link, false)
        });
        let rest = if is_followed { until } else { begin };
        let kind = SegmentKind::Waiting {
            call,
            object,
            wake,
            reason,
        };
        self.put(hop, (rest, end), kind);
    }
}
