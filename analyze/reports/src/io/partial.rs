//! Partial state of the io analysis.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tracebraid_fold::StreamPlace;
use tracebraid_kernel_model::{Body, EventModel, FdType, KernelEvent, SyscallEntry, SyscallExit};

use crate::io::IoAnalysis;
use crate::io::call::{Exit, NONE, Open};
use crate::io::group::Arenas;
use crate::io::lane::Lane;
use crate::io::settle::{Scope, Settled};
use crate::io::stretch::{Edges, Sink, What};
use crate::kernel::{CpuKey, People, Source, Table, ThreadKey};

/// What is known after some chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IoPartial {
    /// Index of the chunk that is being read.
    #[serde(skip)]
    chunk: u64,
    /// CPUs in the chunk that is being read.
    #[serde(skip)]
    lanes: Vec<Lane>,
    #[serde(skip)]
    lane_of: HashMap<CpuKey, usize>,
    /// The lane that was used last.
    #[serde(skip)]
    last: usize,
    /// What contexts told last, in the chunk that is being read.
    #[serde(skip)]
    told: Table<Told>,
    edges: Vec<Edges>,
    sink: Sink,
    arenas: Arenas,
    pub(super) people: People,
    settled: Settled,
}

/// What a context told of a thread. In another stretch it may be another thread of that id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    pid: i32,
    cpu: CpuKey,
    stretch: u64,
}

impl IoPartial {
    /// The state before a chunk.
    pub(super) fn new(chunk: usize) -> Self {
        IoPartial {
            chunk: chunk as u64,
            ..IoPartial::default()
        }
    }

    #[inline]
    fn lane(&mut self, key: CpuKey, anonymous: bool) -> &mut Lane {
        let at = match self.lanes.get(self.last) {
            Some(lane) if lane.key == key => self.last,
            _ => self.find_lane(key, anonymous),
        };
        self.last = at;
        &mut self.lanes[at]
    }

    fn find_lane(&mut self, key: CpuKey, anonymous: bool) -> usize {
        *self.lane_of.entry(key).or_insert_with(|| {
            let arena = (self.chunk << 16) + self.lanes.len() as u64;
            self.lanes.push(Lane::new(key, anonymous, arena));
            self.lanes.len() - 1
        })
    }

    pub(super) fn packet(&mut self, analysis: &IoAnalysis, packet: &StreamPlace<'_>) {
        let Some(source) = analysis
            .sources
            .source(packet.stream)
            .filter(|source| source.tells_switches)
        else {
            return;
        };
        // Where events of several CPUs share a stream, losses show by switches that do not fit.
        let (Some(cpu), true) = (source.cpu, packet.lost_before) else {
            return;
        };
        let time = packet.begin.map_or(i64::MIN, |begin| begin.0);
        let key = CpuKey {
            trace: packet.stream.trace,
            cpu,
        };
        let anonymous = analysis.is_anonymous(key.trace);
        self.lane(key, anonymous).loss(time, anonymous);
    }

    #[inline]
    pub(super) fn event(
        &mut self,
        analysis: &IoAnalysis,
        source: &Source,
        model: &EventModel,
        trace: u32,
        time: i64,
        body: &mut Body<'_, '_>,
    ) {
        if analysis.options.window.to.is_some_and(|to| to.0 <= time) {
            return;
        }
        let cpu = match source.cpu {
            Some(cpu) => cpu,
            None => model.cpu(body),
        };
        let key = CpuKey { trace, cpu };
        let lane = self.lane(key, analysis.is_anonymous(trace));
        if model.context.is_some() {
            if let KernelEvent::Entry(_) | KernelEvent::Exit(_) = model.event {
                observe(lane, model, time, body);
            }
            // Before the event itself: what a thread does it does to what its process has.
            self.context(model, key, time, body);
        }
        let lane = &mut self.lanes[self.last];
        match &model.event {
            KernelEvent::Switch(switch) => {
                let (Some(prev), Some(next)) = (switch.prev_tid.get(body), switch.next_tid.get(body)) else {
                    return;
                };
                lane.switch(time, Some(prev as i32), next as i32);
                for (tid, name) in [(prev, &switch.prev_name), (next, &switch.next_name)] {
                    let name = name.as_ref().filter(|_| tid != 0);
                    if let Some(name) = name.and_then(|name| name.comm(body)) {
                        let tid = tid as i32;
                        self.people
                            .get(ThreadKey { trace, tid })
                            .learn_name(time, key, name);
                    }
                }
            }
            KernelEvent::Entry(entry) => {
                if let Some(open) = open(entry, time, body) {
                    lane.entry(open);
                }
            }
            KernelEvent::Exit(exit) => {
                let counts = analysis.scope().counts(time, key);
                if let Some(exit) = exit_of(exit, time, counts, body) {
                    lane.exit(exit);
                }
            }
            event => {
                tell(lane, event, time, body);
                crate::kernel::learn(&mut self.people, model, key, time, body);
            }
        }
    }

    /// Who a context says made the event.
    fn context(&mut self, model: &EventModel, key: CpuKey, time: i64, body: &mut Body<'_, '_>) {
        let lane = &mut self.lanes[self.last];
        // A switch's context is the thread before it.
        let is_switch = matches!(model.event, KernelEvent::Switch(_));
        let Some(tid) = model.tid(body).or(lane.tid().filter(|_| !is_switch)) else {
            return;
        };
        if tid == 0 || tid == ThreadKey::UNKNOWN {
            return;
        }
        let thread = ThreadKey {
            trace: key.trace,
            tid,
        };
        if let Some(pid) = model.pid(body) {
            let told = Told {
                pid,
                cpu: key,
                stretch: lane.stretches,
            };
            if std::mem::replace(self.told.get(thread), told) != told {
                lane.tell(time, tid, What::Member { pid, table: None });
            }
            self.people.get(thread).learn_pid(time, key, pid);
        }
        if let Some(name) = model.name(body) {
            self.people.get(thread).learn_name(time, key, name);
        }
    }

    pub(super) fn end_of_chunk(&mut self) {
        for lane in std::mem::take(&mut self.lanes) {
            let edges = lane.end(&mut self.sink, &mut self.arenas);
            self.edges.push(edges);
        }
        self.edges.sort_by_key(|edges| edges.key);
        self.lane_of.clear();
        self.told = Table::default();
    }

    pub(super) fn merge(&mut self, later: IoPartial) {
        self.people.merge(later.people);
        self.arenas.merge(later.arenas);
        for edges in later.edges {
            match self.edges.binary_search_by_key(&edges.key, |edges| edges.key) {
                Ok(at) => self.edges[at].join(edges, &mut self.sink),
                Err(at) => self.edges.insert(at, edges),
            }
        }
        self.sink.items.extend(later.sink.items);
        self.sink.groups.extend(later.sink.groups);
    }

    /// Puts together all that is before the watermark and waits for nothing else.
    pub(super) fn settle(&mut self, scope: Scope<'_>, watermark: i64) {
        for edges in &mut self.edges {
            edges.open_beginning(&mut self.sink);
        }
        let waits = self.edges.iter().filter_map(Edges::waits_since).min();
        let until = waits.map_or(watermark, |waits| waits.min(watermark));
        let mut items = Vec::new();
        self.sink.items.retain(|item| {
            let wait = item.time >= until;
            if !wait {
                items.push(*item);
            }
            wait
        });
        items.sort_by_key(|item| (item.time, item.cpu));
        self.settled
            .settle(scope, &items, &mut self.sink.groups, &mut self.arenas, until);
        self.settled.forget(self.asked_since(until));
    }

    /// Nobody will ask for descriptors before this time.
    fn asked_since(&self, until: i64) -> i64 {
        let groups = self.sink.groups.iter().map(|group| group.first);
        let parked = self.sink.items.iter().filter_map(|item| match item.what {
            What::Park(open) => Some(open.time),
            _ => None,
        });
        groups
            .chain(parked)
            .chain(self.edges.iter().filter_map(Edges::open_since))
            .fold(until, i64::min)
    }

    /// Nothing follows.
    pub(super) fn finish(mut self, scope: Scope<'_>) -> (Settled, People) {
        for edges in std::mem::take(&mut self.edges) {
            edges.close(&mut self.sink);
        }
        let mut items = std::mem::take(&mut self.sink.items);
        items.sort_by_key(|item| (item.time, item.cpu));
        self.settled
            .settle(scope, &items, &mut self.sink.groups, &mut self.arenas, i64::MAX);
        // Whatever began at the end of time.
        let rest = std::mem::take(&mut self.sink.groups);
        rest.iter()
            .for_each(|group| self.settled.group(group, &mut self.arenas));
        self.settled.finish(scope);
        (self.settled, self.people)
    }
}

/// A thread that an event's context names runs now, whatever was known.
#[inline]
fn observe(lane: &mut Lane, model: &EventModel, time: i64, body: &mut Body<'_, '_>) {
    if let Some(tid) = model.tid(body).filter(|&tid| lane.tid() != Some(tid)) {
        lane.switch(time, None, tid);
    }
}

#[inline]
fn open(entry: &SyscallEntry, time: i64, body: &mut Body<'_, '_>) -> Option<Open> {
    let call = entry.call(body);
    let mut arguments = [NONE; 3];
    for (place, argument) in arguments.iter_mut().enumerate().take(call.arguments()) {
        *argument = entry.argument(call, place, body).unwrap_or(NONE);
    }
    Some(Open {
        call,
        time,
        arguments,
    })
}

#[inline]
fn exit_of(exit: &SyscallExit, time: i64, counts: bool, body: &mut Body<'_, '_>) -> Option<Exit> {
    let result = exit.result.get(body)?;
    let call = exit.call(body);
    let pair = exit
        .pair
        .as_ref()
        .and_then(|pair| Some((pair.0.get(body)? as i32, pair.1.get(body)? as i32)));
    let family = exit.family.as_ref().and_then(|family| family.get(body));
    Some(Exit {
        call,
        time,
        result,
        pair,
        family,
        counts,
    })
}

/// What an event tells of descriptors besides system calls.
fn tell(lane: &mut Lane, event: &KernelEvent, time: i64, body: &mut Body<'_, '_>) {
    let mut get =
        |field: &Option<tracebraid_kernel_model::IntField>| field.as_ref().and_then(|field| field.get(body));
    match event {
        KernelEvent::Fork(fork) => {
            let parent = get(&fork.parent_tid).map(|tid| tid as i32).or(lane.tid());
            let parent_pid = get(&fork.parent_pid).map(|pid| pid as i32);
            let child_pid = get(&fork.child_pid).map(|pid| pid as i32);
            if let (Some(parent), Some(child)) = (parent, fork.child_tid.get(body)) {
                lane.tell(
                    time,
                    parent,
                    What::Fork {
                        child: child as i32,
                        child_pid,
                        parent_pid,
                    },
                );
            }
        }
        KernelEvent::Exec(exec) => {
            let tid = get(&exec.tid).map(|tid| tid as i32);
            let old = get(&exec.old_tid).map(|tid| tid as i32);
            if let (Some(old), Some(tid)) = (old, tid)
                && old != tid
            {
                lane.switch(time, Some(old), tid);
            }
            if let Some(tid) = tid.or(lane.tid()) {
                lane.tell(time, tid, What::Exec);
            }
        }
        KernelEvent::ThreadExit(tid) => {
            if let Some(tid) = tid.get(body) {
                lane.tell(time, tid as i32, What::End);
            }
        }
        KernelEvent::ProcessState(state) => {
            let table = get(&state.table);
            if let (Some(tid), Some(pid)) = (state.tid.get(body), state.pid.get(body)) {
                lane.tell(
                    time,
                    tid as i32,
                    What::Member {
                        pid: pid as i32,
                        table,
                    },
                );
            }
        }
        KernelEvent::StateFd(state) => {
            let (pid, table, flags) = (
                get(&state.pid).map(|pid| pid as i32),
                get(&state.table),
                get(&state.flags),
            );
            let Some(fd) = state.fd.get(body) else { return };
            let path = state
                .path
                .as_ref()
                .and_then(|path| path.bytes(body))
                .unwrap_or_default();
            let (kind, cloexec) = (
                FdType::of_path(path),
                flags.is_some_and(|flags| flags & 0o2_000_000 != 0),
            );
            // Of no thread in particular.
            lane.tell(
                time,
                0,
                What::Holds {
                    pid,
                    table,
                    fd: fd as i32,
                    kind,
                    cloexec,
                },
            );
        }
        _ => {}
    }
}
