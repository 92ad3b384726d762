//! A graph that is queried while it grows, and drops parts that no later query needs.
//!
//! Items before a time are played as the analysis itself plays them. Most parts of a path are final
//! then: all activity of a thread before its last change of state. [`Growing::question`] reports
//! the others.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::GraphAnalysis;
use crate::cause::{ActorId, Interrupt, Wake};
use crate::device_times::DeviceTimes;
use crate::graph::{Graph, Occupant, Queue};
use crate::graph_machine::GraphMachine;
use crate::handover::Passed;
use crate::path::{Hop, Link, Path, Segment, SegmentKind};
use crate::slice::{PlayedPart, RetiredSlices};
use crate::sorted::Sorted;
use tracebraid_follow::KernelAnalysis;
use tracebraid_threads::CallClass;

/// A graph that is queried while it grows.
#[derive(Debug)]
pub struct Growing {
    machine: GraphMachine,
    /// Contains the data of `machine` while it is lent: always, except while items are played or
    /// dropped.
    graph: Graph,
    is_lent: bool,
    /// All earlier items are in the graph, in nanoseconds from the origin.
    until: i64,
    /// Traces that end before others do, with these times, the next one last. Traces that have
    /// ended are removed.
    ends: Vec<(u32, i64)>,
    happened: Happened,
    /// Number of stretches after the last drop.
    kept: usize,
    /// Number of activities since the last drop.
    since: u64,
}

/// The condition under which a part of a path may still change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Final once that thread changes its state at or after that time.
    Line(ActorId, i64),
    /// No such condition is known.
    Open,
}

/// Number of activities over time.
#[derive(Clone, Debug, Default)]
struct Happened {
    count: u64,
    /// The time of every `MARK`th activity.
    marks: VecDeque<i64>,
}

/// Number of activities between two marks.
const MARK: u64 = 1024;

impl Happened {
    #[inline]
    fn add(&mut self, time: i64) {
        self.count += 1;
        if self.count.is_multiple_of(MARK) {
            self.marks.push_back(time);
        }
    }

    fn between(&self, begin: i64, end: i64) -> u64 {
        let before = |time: i64| self.marks.partition_point(|mark| *mark <= time);
        MARK * before(end).saturating_sub(before(begin)) as u64
    }

    fn drop_before(&mut self, cut: i64) {
        let count = self.marks.partition_point(|mark| *mark <= cut);
        self.marks.drain(..count);
    }
}

impl Growing {
    /// An empty graph for an analysis, with the commands of devices in all of the traces.
    pub fn new(analysis: &GraphAnalysis, devices: Arc<DeviceTimes>) -> Growing {
        let mut ends = crate::finish::ends(analysis.input());
        let graph = Graph {
            head: analysis.input().head(),
            known_from: analysis.rules().from,
            known_until: analysis.input().known_until().unwrap_or(i64::MIN),
            ends: ends.clone(),
            devices,
            ..Graph::default()
        };
        ends.sort_unstable_by_key(|end| (std::cmp::Reverse(end.1), end.0));
        let mut growing = Growing {
            machine: GraphMachine::default(),
            graph,
            is_lent: false,
            until: i64::MIN,
            ends,
            happened: Happened::default(),
            kept: 0,
            since: 0,
        };
        growing.lend();
        growing
    }

    /// Times at which traces end before others do: items after such a time must be composed
    /// separately from those up to it.
    pub fn ends(&self) -> impl Iterator<Item = i64> {
        self.ends.iter().map(|(_, end)| *end)
    }

    /// Adds the items before `until`, or all remaining ones if that is `None`; `played` is `None`
    /// if there are no items.
    pub fn compose(
        &mut self,
        analysis: &GraphAnalysis,
        played: Option<PlayedPart>,
        until: Option<i64>,
    ) {
        self.take_back();
        let before = self.happened.count;
        if let Some(played) = played {
            let happened = &mut self.happened;
            played.compose(analysis.rules(), &mut self.machine, |time| {
                happened.add(time)
            });
            self.machine.catch_up(&analysis.rules().classes);
        }
        self.since += self.happened.count - before;
        self.until = self.until.max(until.unwrap_or(i64::MAX));
        let recorded = &analysis.input().recorded;
        while let Some(&(trace, end)) = self.ends.last()
            && until.is_none_or(|until| end < until)
        {
            self.machine.ends_waiting(recorded, Some(trace), end);
            self.machine.ends_knowing(trace, end);
            self.ends.pop();
        }
        if until.is_none() {
            let end = self.graph.known_until;
            self.machine.ends_waiting(recorded, None, end);
        }
        self.lend();
    }

    /// Slices composed since the last call, if any. Freeing them takes long: leave it to another
    /// thread.
    pub fn take_retired(&mut self) -> Option<RetiredSlices> {
        let retired = std::mem::take(&mut self.machine.retired);
        (!retired.is_empty()).then_some(retired)
    }

    /// All earlier items are in the graph, in nanoseconds from the origin.
    pub fn until(&self) -> i64 {
        self.until
    }

    /// Approximate number of switches, wake-ups and interrupts between two times. It depends on the
    /// traces only.
    pub fn between(&self, begin: i64, end: i64) -> u64 {
        self.happened.between(begin, end)
    }

    /// The graph as far as it has grown.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Number of stretches of all time lines.
    pub fn stretches(&self) -> usize {
        self.graph.actors.iter().map(|actor| actor.line.len()).sum()
    }

    /// Lends the lists of the machine to the graph. Lists are moved, not copied, which is fast.
    fn lend(&mut self) {
        if std::mem::replace(&mut self.is_lent, true) {
            return;
        }
        let (graph, machine) = (&mut self.graph, &mut self.machine);
        std::mem::swap(&mut graph.actors, &mut machine.lines);
        graph.cpus = std::mem::take(&mut machine.cpus).into_iter().collect();
        std::mem::swap(&mut graph.requests, &mut machine.requests.done);
        std::mem::swap(&mut graph.packets, &mut machine.packets.packets);
        std::mem::swap(&mut graph.ring_requests, &mut machine.rings.done);
        graph.longest_request = machine.requests.longest;
        graph.irqs = std::mem::take(&mut machine.names.irqs).into_entries();
        graph.disks = std::mem::take(&mut machine.names.disks).into_entries();
        graph.queues = std::mem::take(&mut machine.names.queues).into_entries();
        graph.user_threads = std::mem::take(&mut machine.names.threads).into_entries();
        // Unused packets are left out only when a graph is built from a whole trace (`finish`).
        machine.packets.unused.clear();
        let held = machine.held.drain(..);
        held.for_each(|held| graph.by_key.add(held));
    }

    fn take_back(&mut self) {
        if !std::mem::replace(&mut self.is_lent, false) {
            return;
        }
        let (graph, machine) = (&mut self.graph, &mut self.machine);
        std::mem::swap(&mut graph.actors, &mut machine.lines);
        machine.cpus = std::mem::take(&mut graph.cpus).into_iter().collect();
        std::mem::swap(&mut graph.requests, &mut machine.requests.done);
        std::mem::swap(&mut graph.packets, &mut machine.packets.packets);
        std::mem::swap(&mut graph.ring_requests, &mut machine.rings.done);
        machine.names.irqs = Sorted::from_entries(std::mem::take(&mut graph.irqs));
        machine.names.disks = Sorted::from_entries(std::mem::take(&mut graph.disks));
        machine.names.queues = Sorted::from_entries(std::mem::take(&mut graph.queues));
        machine.names.threads = Sorted::from_entries(std::mem::take(&mut graph.user_threads));
    }

    /// The condition under which the path, or the name of a part of it, may still change; `None` if
    /// it is final. The path must end before `until`.
    pub fn question(&self, path: &Path) -> Option<Question> {
        let is_open = path.hops.iter().any(|hop| self.is_hop_open(hop))
            || path
                .segments
                .iter()
                .any(|segment| self.is_open(path, segment));
        // The work of io_uring worker threads is attributed later.
        if is_open || path.hops.len() > 1 && self.machine.rings.are_used {
            return Some(Question::Open);
        }
        path.hops
            .iter()
            .find_map(|hop| self.goes_on(hop.actor, hop.end))
    }

    /// As [`Growing::question`] for the hand-over of an execution, including segments that are not
    /// on the path.
    pub fn question_of_passed(&self, passed: &Passed) -> Option<Question> {
        let (packets, waits) = passed.doubts(&self.graph);
        let is_pending = packets.into_iter().any(|place| self.is_packet_open(place));
        if is_pending || self.machine.rings.are_used {
            return Some(Question::Open);
        }
        // An apparent wait may turn out not to be a wait.
        self.goes_on(passed.first, waits?.saturating_add(1))
    }

    /// The condition under which the thread's state before a time may still change.
    pub fn goes_on(&self, actor: ActorId, time: i64) -> Option<Question> {
        let last = self.graph.actor(actor)?.line.last()?;
        (last.begin < time).then_some(Question::Line(actor, time))
    }

    fn is_nameless(&self, actor: ActorId) -> bool {
        let actor = self.graph.actor(actor);
        actor.is_some_and(|actor| actor.names.is_empty())
    }

    fn is_hop_open(&self, hop: &Hop) -> bool {
        let of_link = match hop.link {
            Link::Sends(place) => self.is_packet_open(place),
            Link::Submits(_) => true,
            _ => false,
        };
        of_link || self.is_nameless(hop.actor)
    }

    fn is_packet_open(&self, place: u32) -> bool {
        let packet = self.graph.packets.get(place as usize);
        packet.is_some_and(|packet| self.machine.packets.is_pending(packet.connection, place))
    }

    fn is_open(&self, path: &Path, segment: &Segment) -> bool {
        let trace = self.graph.trace_of(path, segment);
        let is_nameless = |interrupt: Interrupt| match interrupt {
            Interrupt::Irq(number) => self.graph.irq(trace, number).is_none(),
            _ => false,
        };
        match segment.kind {
            SegmentKind::Preempted(Occupant::Thread(by))
            | SegmentKind::Runnable(Occupant::Thread(by)) => self.is_nameless(by),
            SegmentKind::Interrupted(by) => is_nameless(by),
            SegmentKind::Queued(queue @ Queue::Kernel(number)) => {
                number != 0 && self.graph.queue(queue).is_none()
            }
            SegmentKind::Waiting { call, .. } if CallClass::of(call) == CallClass::Ring => {
                self.machine.rings.are_used
            }
            SegmentKind::Waiting { wake, .. } => match wake {
                Wake::Interrupt(by) => is_nameless(by),
                Wake::Packet(place) => self.is_packet_open(place),
                Wake::Request(place) => self.is_request_open(place, segment),
                _ => false,
            },
            _ => false,
        }
    }

    /// Requests of other threads to the device are recorded only at their completion.
    fn is_request_open(&self, place: u32, segment: &Segment) -> bool {
        let Some(request) = self.graph.requests.get(place as usize) else {
            return false;
        };
        let (trace, device) = (request.trace, request.device);
        let mut users = self
            .graph
            .requests(trace, device, (segment.begin, segment.end));
        !self.graph.has_disk(trace, device)
            || self.machine.requests.is_used(trace, device, segment.end)
            || users.any(|request| request.by.is_some_and(|by| self.is_nameless(by)))
    }

    /// The earliest start of the requests that were in progress at a time; the time itself without
    /// such requests.
    pub fn requests_since(&self, time: i64) -> i64 {
        let done = self.graph.requests.recent();
        let from = done.partition_point(|request| request.end <= time);
        let done = done.get(from..).unwrap_or_default().iter();
        let begins = done
            .map(|request| request.begin)
            .chain(self.machine.requests.begins());
        begins.min().unwrap_or(time).min(time)
    }

    /// True if enough activity has been added since the last drop to pay for the next one; `others`
    /// is the number of elements that the caller visits for a drop.
    pub fn is_due(&self, others: usize) -> bool {
        let places = others + self.kept + self.graph.actors.len() + self.machine.lines.len();
        2 * self.since >= LEAST.max(places as u64)
    }

    /// Number of stretches of each thread that are kept although they ended before the time of
    /// [`Growing::drop_before`]: callers that know a time only approximately look a little earlier.
    pub const KEPT_BEFORE: usize = 3;

    /// Drops stretches that ended before a time, except for [`Growing::KEPT_BEFORE`] of each
    /// thread.
    pub fn drop_before(&mut self, cut: i64) {
        let actors = &self.graph.actors;
        let begin = |id: ActorId| actors.get(id.0 as usize)?.begin();
        self.graph.by_key.drop_before(cut, begin);
        self.take_back();
        self.kept = self.machine.drop_before(cut);
        self.happened.drop_before(cut);
        self.since = 0;
        self.lend();
    }
}

/// Fewer activities are not worth a drop.
const LEAST: u64 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_is_counted_by_time() {
        let mut happened = Happened::default();
        (0..10 * MARK as i64).for_each(|time| happened.add(time));
        let marks = MARK as i64;
        assert_eq!(happened.between(0, 10 * marks), 10 * MARK);
        assert_eq!(happened.between(2 * marks, 5 * marks), 3 * MARK);
        happened.drop_before(2 * marks);
        assert_eq!(happened.between(2 * marks, 5 * marks), 3 * MARK);
        assert_eq!(happened.between(5 * marks, 5 * marks), 0);
    }
}
