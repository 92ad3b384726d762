//! Critical paths: the activity of a thread in a window of time and, while it waited, that of the
//! threads that it waited for.
//!
//! A wait that another thread ended is replaced by the activity of that thread within the window of
//! the wait and never before it; the waits of that thread are replaced in turn. Paths end: windows
//! only shrink, a thread that waits on the path is not followed again, and the depth is bounded.
//! After Trace Compass's bounded algorithm and section 3.3.1 of Doray and Dagenais, "Diagnosing
//! performance variations by comparing multi-level execution traces" (2016).

use serde::Serialize;
use tracebraid_follow::{CpuKey, ThreadKey};
use tracebraid_kernel_model::Syscall;
use tracebraid_threads::{ThreadState, WaitReason};

use crate::cause::{ActorId, Interrupt, Wake};
use crate::cuts::Before;
use crate::device_times::DeviceActivity;
use crate::graph::{Actor, Graph, NO_OBJECT, Occupant, Queue, State};

/// A part of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// Start in nanoseconds from the origin.
    pub begin: i64,
    /// End, which is the start of the next segment.
    pub end: i64,
    /// Index in [`Path::hops`] of the hop whose time it is.
    pub hop: u32,
    /// Activity of the hop's thread.
    pub kind: SegmentKind,
}

impl Segment {
    /// Duration in nanoseconds.
    pub fn duration(&self) -> u64 {
        self.begin.abs_diff(self.end)
    }
}

/// Activity in a segment of a critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SegmentKind {
    /// Not recorded.
    Unknown,
    /// Runs on that CPU.
    Running(u16),
    /// Interrupted by that interrupt.
    Interrupted(Interrupt),
    /// Preempted on a CPU that is now occupied by the occupant.
    Preempted(Occupant),
    /// Woken, and waits for a CPU that is occupied by the occupant.
    Runnable(Occupant),
    /// A user-level thread that could run, and waits for an LWP whose use is unknown.
    Ready,
    /// Waits for an event that no thread causes, or for a thread that cannot be followed.
    Waiting {
        /// Call that contains the wait.
        call: Syscall,
        /// Object of the call; see [`State::Blocked`].
        object: u32,
        /// Cause that ends the wait.
        wake: Wake,
        /// Reason of the wait.
        reason: WaitReason,
    },
    /// Queued work, which waits for a thread.
    Queued(Queue),
    /// The command of the path waits for a device, or executes.
    OnDevice(DeviceActivity),
}

/// A thread on a path, with the window in which the path may follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// The thread in the graph.
    pub actor: ActorId,
    /// The hop that waits for this one; `None` for the first.
    pub parent: Option<u32>,
    /// Start of the window, in nanoseconds from the origin.
    pub begin: i64,
    /// End of the window, where the waiting hop continues.
    pub end: i64,
    /// The relation to the waiting hop.
    pub link: Link,
    /// True if the waiting hop did unrelated work in the meantime: it only received the result of
    /// this one.
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
    /// Use of an LWP for which the execution's user-level thread waits.
    Lwp,
}

/// The relation of a hop to the hop that waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Link {
    /// The first hop of a path.
    Start,
    /// Wakes the waiting thread, which waits in that call for that object.
    Wakes {
        /// The system call.
        call: Syscall,
        /// See [`State::Blocked`].
        object: u32,
    },
    /// Sends the segment that the waiting thread waits for; index in [`Graph::packets`].
    Sends(u32),
    /// Issues the block request that the waiting thread waits for; index in [`Graph::requests`].
    Issues(u32),
    /// Submits the io_uring request that the waiting thread waits for; index in
    /// [`Graph::ring_requests`].
    Submits(u32),
    /// Queues the work that the waiting thread does.
    Queues(Queue),
    /// Creates the waiting thread.
    Makes,
    /// The thread hands the execution to the previous hop's thread without leaving an event.
    Passes,
    /// The previous hop's thread, doing other work while the execution waits for it.
    Busy,
    /// The previous hop's thread, which may or may not have received the execution yet.
    Unseen,
    /// Uses the LWP for which the waiting user-level thread, which is ready, waits.
    Lwp,
}

/// A critical path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Path {
    /// Segments without gaps, from the start of the path to its end.
    pub segments: Vec<Segment>,
    /// Threads on the path; the first is the one whose path was requested. Each hop comes after its
    /// parent.
    pub hops: Vec<Hop>,
}

/// Maximum depth of threads that wait for each other. No lock or protocol nests that deep; the
/// limit bounds the time.
const MOST_HOPS: usize = 64;

impl Graph {
    /// The critical path of a thread from one time to another, in nanoseconds from the origin.
    pub fn path(&self, actor: ActorId, begin: i64, end: i64) -> Path {
        let end = end.max(begin);
        let mut walk = Walk::new(self);
        walk.thread(actor, (begin, end));
        walk.into_path(begin, end)
    }

    /// The critical path of a command of a device, from the call that enqueued it to its
    /// completion; `place` is its index in [`DeviceTimes::commands`](crate::DeviceTimes::commands).
    /// Up to the enqueuing it is that of the thread, if that is known.
    pub fn command_path(&self, thread: Option<ActorId>, place: u32) -> Option<Path> {
        let command = self.devices.commands().get(place as usize)?;
        let end = command.ended;
        let begin = command.called?.min(end);
        // The relation of the clocks has an error.
        let queued = command.queued.clamp(begin, end);
        let mut walk = Walk::new(self);
        let hop = match thread {
            Some(thread) => walk.thread(thread, (begin, queued)),
            None => {
                walk.put(NO_HOP, (begin, queued), SegmentKind::Unknown);
                NO_HOP
            }
        };
        self.devices
            .activities(place, (queued, end), |window, activity| {
                walk.put(hop, window, SegmentKind::OnDevice(activity));
            });
        Some(walk.into_path(begin, end))
    }
}

impl Path {
    /// True if the segments cover the interval without gaps, and none is empty.
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

    /// The role of a segment's time in the path.
    pub fn role(&self, segment: &Segment) -> Role {
        let hop = self.hops.get(segment.hop as usize);
        hop.map_or(Role::Own, |hop| hop.role)
    }

    /// A hop and all that wait for it, up to the thread whose path was requested.
    pub fn way(&self, hop: u32) -> impl Iterator<Item = &Hop> {
        let mut next = self.hops.get(hop as usize);
        std::iter::from_fn(move || {
            let hop = next?;
            next = hop.parent.and_then(|parent| self.hops.get(parent as usize));
            Some(hop)
        })
    }
}

/// Hop of a path without threads.
const NO_HOP: u32 = 0;

/// A window of time: start and end.
pub(crate) type Window = (i64, i64);

/// A path under construction.
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

    /// Adds the first hop: the thread whose path is requested.
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

    /// Appends the activity of the thread whose path is requested; returns its hop.
    fn thread(&mut self, actor: ActorId, (begin, end): Window) -> u32 {
        let graph = self.graph;
        let [from, until] =
            [graph.known_from, graph.known_until].map(|known| known.clamp(begin, end));
        let hop = self.root(actor, (begin, end));
        let from = from.min(until);
        self.put(hop, (begin, from), SegmentKind::Unknown);
        self.follow(hop, (from, until));
        self.put(hop, (until, end), SegmentKind::Unknown);
        hop
    }

    /// Appends a segment, unless it is empty; extends the last one if that is equal.
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

    /// True if the path can continue in that thread: not if it waits on this path already.
    pub(crate) fn can_follow(&self, from: u32, to: ActorId, replaces: bool) -> bool {
        let mut waits = !replaces;
        let mut depth = 0;
        for hop in self.path.way(from) {
            // A hand-over by a thread to itself is not possible.
            if hop.actor == to && (waits || depth == 0) {
                return false;
            }
            waits = !hop.replaces;
            depth += 1;
        }
        depth < MOST_HOPS && self.graph.actor(to).is_some()
    }

    /// True if the cause is the thread of a hop.
    pub(crate) fn is_of(&self, hop: u32, wake: Wake) -> bool {
        let own = self.path.hops.get(hop as usize).map(|hop| hop.actor);
        matches!(wake, Wake::Thread(by) if Some(by) == own)
    }

    /// Continues in another thread for a window. Returns false if that thread cannot be followed.
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

    /// Appends all activity of a hop's thread in a window, whichever work it is for.
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

    /// Appends the activity of a hop's thread in a window, following its waits and its work.
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

    /// Appends the stretches of a thread in a window.
    pub(crate) fn own(&mut self, hop: u32, actor: &Actor, (begin, end): Window) {
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
            self.does(hop, actor, window, stretch.state);
        }
    }

    /// Appends time for which work was queued; times at which the thread itself waits for a CPU
    /// remain visible.
    fn queued(&mut self, hop: u32, actor: &Actor, (begin, end): Window, kind: SegmentKind) {
        let first = actor.place(begin).unwrap_or(0);
        let stretches = actor.line.get(first..).unwrap_or_default();
        let mut at = begin;
        for (place, stretch) in stretches.iter().enumerate() {
            if stretch.begin >= end {
                break;
            }
            if let State::Preempted(_) | State::Runnable(_) | State::Ready = stretch.state {
                let from = stretch.begin.max(begin);
                let next = stretches
                    .get(place + 1)
                    .map_or(end, |next| next.begin.min(end));
                self.put(hop, (at, from), kind);
                self.does(hop, actor, (from, next), stretch.state);
                at = next;
            }
        }
        self.put(hop, (at, end), kind);
    }

    /// Appends a window in which the thread of a hop has one state.
    fn does(&mut self, hop: u32, actor: &Actor, window: Window, state: State) {
        let key = actor.key;
        let trace = key.trace;
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
            State::Ready => self.lacks_lwp(hop, actor, window),
            State::Blocked {
                call,
                object,
                wake,
                reason,
                ..
            } => self.blocked((hop, key), window, (call, object, wake), reason),
        }
    }

    /// Appends a wait of a thread; while it waits for a device, by the activity of the device.
    fn blocked(
        &mut self,
        (hop, key): (u32, ThreadKey),
        (begin, end): Window,
        wait: (Syscall, u32, Wake),
        reason: WaitReason,
    ) {
        let graph = self.graph;
        let (call, object, _) = wait;
        let mut at = begin;
        for of in graph.devices.waits(key, (begin, end)) {
            let from = of.begin.max(at);
            if at < from {
                self.waits(hop, (at, from), wait, reason);
            }
            at = from;
            let window = (from, of.end.min(end));
            graph
                .devices
                .activities(of.command, window, |window, activity| {
                    let kind = SegmentKind::Waiting {
                        call,
                        object,
                        wake: Wake::Command(activity),
                        reason: WaitReason::Device,
                    };
                    self.put(hop, window, kind);
                    at = window.1;
                });
        }
        if at < end {
            self.waits(hop, (at, end), wait, reason);
        }
    }

    /// Appends a wait for a CPU, divided by the occupants of the CPU.
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

    /// Appends a wait: by the thread that caused its end, if there is one and it can be followed.
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
