//! Trees of random graphs with random stacks, compared with trees that are computed nanosecond by
//! nanosecond.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tracebraid_executions::FrameKind;
use tracebraid_follow::CpuKey;
use tracebraid_graph::{
    ActorId, Graph, Interrupt, Link, NO_OBJECT, Occupant, Occupied, Path, Request, Segment,
    SegmentKind, State, WaitReason, Wake,
};
use tracebraid_kernel_model::{Device, Syscall};

use crate::told::{Sample, Words, actor, tree};

const LENGTH: i64 = 60;
const ACTORS: u32 = 4;
const CPUS: u16 = 2;
const DISK: Device = Device(8 << 20);

/// The stack of a thread at a time: that of the current wait; otherwise that of the next sample, if
/// it is of CPU time; otherwise the common part of the next sample and the previous one.
fn stack_at(samples: &[Sample], time: i64) -> Vec<String> {
    let mut samples = samples.to_vec();
    samples.sort_by_key(|(at, since, _)| (*at, *since));
    let before = samples.iter().rfind(|(at, ..)| *at <= time);
    let Some(next) = samples.iter().find(|(at, ..)| *at > time) else {
        return Vec::new();
    };
    match next.1 {
        Some(since) if since > time => {
            let before = before.map(|sample| sample.2.clone()).unwrap_or_default();
            let pairs = before.into_iter().zip(&next.2);
            pairs
                .take_while(|(one, other)| one == *other)
                .map(|pair| pair.0)
                .collect()
        }
        _ => next.2.clone(),
    }
}

/// Input of the naive algorithm.
struct Told<'t> {
    graph: &'t Graph,
    samples: &'t [Vec<Sample>],
    path: Path,
}

impl Told<'_> {
    fn stack(&self, actor: ActorId, time: i64) -> Words {
        let stack = stack_at(&self.samples[actor.0 as usize], time);
        stack
            .into_iter()
            .map(|name| (FrameKind::Function, name))
            .collect()
    }

    fn thread(&self, actor: ActorId) -> (FrameKind, String) {
        (
            FrameKind::Thread,
            self.graph.actors[actor.0 as usize].name.clone().unwrap(),
        )
    }

    /// The context under which the stacks of a hop's thread are placed.
    fn base(&self, hop: u32) -> Words {
        let hop = &self.path.hops[hop as usize];
        let Some(parent) = hop.parent else {
            return Words::new();
        };
        let waiting = self.path.hops[parent as usize].actor;
        let mut words = self.base(parent);
        words.extend(self.stack(waiting, hop.begin));
        match hop.link {
            Link::Wakes { call, .. } if call != Syscall::OTHER => {
                words.push((FrameKind::Call, call.user_name().to_owned()));
            }
            Link::Issues(_) => words.push((FrameKind::Reason, "block-device".to_owned())),
            _ => {}
        }
        words.push(self.thread(hop.actor));
        words
    }

    /// Adds the contexts of a segment, one for each nanosecond, and shared times.
    fn segment(&self, segment: &Segment, times: &mut BTreeMap<Words, u64>) {
        let hop = &self.path.hops[segment.hop as usize];
        let base = self.base(segment.hop);
        let mut within = base.clone();
        within.extend(self.stack(hop.actor, segment.begin));
        if let SegmentKind::Waiting { call, .. } = segment.kind
            && call != Syscall::OTHER
        {
            within.push((FrameKind::Call, call.user_name().to_owned()));
        }
        let reason = self.graph.reason(&self.path, segment).name();
        within.push((FrameKind::Reason, reason.to_owned()));
        if let SegmentKind::Waiting {
            wake: Wake::Request(place),
            ..
        } = segment.kind
        {
            within.push((FrameKind::Detail, "sda".to_owned()));
            return self.shared(
                segment,
                &within,
                &self.graph.requests[place as usize],
                times,
            );
        }
        for time in segment.begin..segment.end {
            let mut words = within.clone();
            match segment.kind {
                SegmentKind::Running(_) => {
                    words = base.clone();
                    words.extend(self.stack(hop.actor, time));
                }
                SegmentKind::Preempted(Occupant::Thread(by))
                | SegmentKind::Runnable(Occupant::Thread(by)) => {
                    words.push(self.thread(by));
                    words.extend(self.stack(by, time));
                }
                SegmentKind::Preempted(Occupant::Idle) | SegmentKind::Runnable(Occupant::Idle) => {
                    words.push((FrameKind::Detail, "idle CPU".to_owned()));
                }
                SegmentKind::Interrupted(_) => {
                    words.push((FrameKind::Detail, "softirq TIMER".to_owned()))
                }
                _ => {}
            }
            *times.entry(words).or_default() += 1;
        }
    }

    fn shared(
        &self,
        segment: &Segment,
        within: &Words,
        request: &Request,
        times: &mut BTreeMap<Words, u64>,
    ) {
        let waiting = self.path.hops[segment.hop as usize].actor;
        let own = [request.by, Some(waiting)];
        // By thread that the device serves: begin of its first request, and its time in units of
        // 1/PARTS ns, which all sums of weights divide.
        let mut others: BTreeMap<Option<ActorId>, (i64, u64)> = BTreeMap::new();
        for time in segment.begin..segment.end {
            let requests = self.graph.requests.iter();
            let in_service: Vec<&Request> = requests
                .filter(|request| request.issued <= time && time < request.end)
                .collect();
            let all: u64 = in_service.iter().map(|request| weight(request)).sum();
            for request in in_service
                .into_iter()
                .filter(|request| !own.contains(&request.by))
            {
                let (since, share) = others.entry(request.by).or_insert((request.begin, 0));
                *since = request.begin.min(*since);
                *share += weight(request) * PARTS / all;
            }
        }
        let mut rest = segment.duration();
        for (by, (since, share)) in others {
            let mut words = within.clone();
            match by {
                Some(by) => {
                    words.push(self.thread(by));
                    words.extend(self.stack(by, since));
                }
                None => words.push((
                    FrameKind::Detail,
                    "requests of an unknown thread".to_owned(),
                )),
            }
            if share >= PARTS {
                *times.entry(words).or_default() += share / PARTS;
            }
            rest -= share / PARTS;
        }
        if rest > 0 {
            *times.entry(within.clone()).or_default() += rest;
        }
    }
}

/// Requests have a size of 1 or 2 pages.
fn weight(request: &Request) -> u64 {
    u64::from(request.sectors / 8)
}

/// A multiple of all sums of weights: numbers up to twice the number of requests.
const PARTS: u64 = 27_720;

fn wake() -> impl Strategy<Value = Wake> {
    prop_oneof![
        3 => (0..ACTORS).prop_map(|id| Wake::Thread(ActorId(id))),
        1 => Just(Wake::Timer),
        2 => (0u32..6).prop_map(Wake::Request),
        1 => Just(Wake::Unknown),
    ]
}

fn reason(wake: Wake) -> WaitReason {
    match wake {
        Wake::Thread(_) => WaitReason::Thread,
        Wake::Timer => WaitReason::Timer,
        Wake::Request(_) => WaitReason::BlockDevice,
        _ => WaitReason::Unknown,
    }
}

fn state() -> impl Strategy<Value = State> {
    let call = prop_oneof![Just(Syscall::OTHER), Just(Syscall(0)), Just(Syscall(1))];
    prop_oneof![
        3 => (0..CPUS).prop_map(State::Running),
        1 => (0..CPUS).prop_map(|cpu| State::Interrupted(cpu, Interrupt::Softirq(1))),
        1 => (0..CPUS).prop_map(State::Preempted),
        1 => (0..CPUS).prop_map(State::Runnable),
        3 => (call, wake()).prop_map(|(call, wake)| State::Blocked {
            call,
            object: NO_OBJECT,
            wake,
            reason: reason(wake),
            is_idle: false,
        }),
    ]
}

fn line<T: std::fmt::Debug>(
    value: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<(i64, T)>> {
    prop::collection::vec((1i64..12, value), 1..12).prop_map(|steps| {
        let mut at = 0;
        let begun = |(length, value)| {
            let begin = at;
            at += length;
            (begin, value)
        };
        steps.into_iter().map(begun).collect()
    })
}

fn samples() -> impl Strategy<Value = Vec<Sample>> {
    let names = prop::collection::vec(prop::sample::select(vec!["f", "g", "h"]), 0..4);
    let step = (1i64..10, any::<bool>(), names);
    prop::collection::vec(step, 0..10).prop_map(|steps| {
        let mut at = 0;
        let mut samples = Vec::new();
        for (length, waits, names) in steps {
            let since = waits.then_some(at + length / 2);
            at += length;
            samples.push((at, since, names.into_iter().map(str::to_owned).collect()));
        }
        samples
    })
}

fn occupant() -> impl Strategy<Value = Occupant> {
    prop_oneof![
        3 => (0..ACTORS).prop_map(|id| Occupant::Thread(ActorId(id))),
        1 => Just(Occupant::Idle),
        1 => Just(Occupant::Unknown),
    ]
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let by = prop::option::weighted(0.9, (0..ACTORS).prop_map(ActorId));
    let request = (0..LENGTH, 1i64..20, 0i64..10, by, any::<bool>());
    prop::collection::vec(request, 6).prop_map(|requests| {
        let request = |(begin, length, queued, by, is_large): (i64, i64, i64, _, _)| Request {
            begin,
            issued: begin + queued.min(length),
            end: begin + length,
            by,
            trace: 0,
            device: DISK,
            sectors: if is_large { 16 } else { 8 },
        };
        let mut requests: Vec<Request> = requests.into_iter().map(request).collect();
        requests.sort_by_key(|request| request.end);
        requests
    })
}

fn graph() -> impl Strategy<Value = Graph> {
    let actors = prop::collection::vec(line(state()), ACTORS as usize);
    let cpus = prop::collection::vec(line(occupant()), usize::from(CPUS));
    (actors, cpus, requests()).prop_map(|(actors, cpus, requests)| {
        let named =
            |(tid, line): (i32, Vec<(i64, State)>)| actor(tid, &format!("thread {tid}"), &line);
        let of_cpu = |(cpu, line): (u32, Vec<(i64, Occupant)>)| {
            let line = line.into_iter().map(|(begin, by)| Occupied { begin, by });
            (CpuKey { trace: 0, cpu }, line.collect())
        };
        Graph {
            known_from: 0,
            known_until: LENGTH,
            actors: (0..).zip(actors).map(named).collect(),
            cpus: (0..).zip(cpus).map(of_cpu).collect(),
            longest_request: requests
                .iter()
                .map(|request| request.end - request.begin)
                .max()
                .unwrap_or(0),
            requests: requests.into(),
            ..Graph::default()
        }
    })
}

proptest! {
    #[test]
    fn trees_are_those_of_each_nanosecond(
        graph in graph(),
        samples in prop::collection::vec(samples(), ACTORS as usize),
        execution in (0..ACTORS, 0..LENGTH, 0..LENGTH),
    ) {
        let (id, one, other) = execution;
        let (begin, end) = (one.min(other), one.max(other));
        let found = tree(&graph, &samples, (ActorId(id), begin, end));
        let told = Told {
            path: graph.path(ActorId(id), begin, end),
            graph: &graph,
            samples: &samples,
        };
        let mut expected = BTreeMap::new();
        for segment in &told.path.segments {
            told.segment(segment, &mut expected);
        }
        prop_assert_eq!(found, expected);
    }
}
