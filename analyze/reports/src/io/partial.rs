//! Partial state of the io analysis.

use crate::io::IoRules;
use std::collections::{HashMap, VecDeque};

use serde::{Deserialize, Serialize};
use tracebraid_descriptors::{Ahead, SliceActs, SlicePart, ThreadAct};
use tracebraid_engine::Slice;
use tracebraid_kernel_model::{Body, Context, EventModel, KernelEvent, Switch};

use crate::garbage::Garbage;
use crate::io::IoAnalysis;
use crate::io::cut::Cut;
use crate::io::item::IoAction;
use crate::io::lane::IoCpu;
use crate::io::machine::{Around, IoMachine};
use crate::io::sink::Sink;
use crate::io::stretch::Edges;
use crate::io::tell;
use crate::io::totals::Totals;
use crate::io::{compose, slice};
use tracebraid_follow::{CpuKey, Event, Packet, People, Table, ThreadKey};

/// State after some chunks.
///
/// Besides items that wait to be played, its size is bounded by the number of CPUs, threads, and
/// descriptors that are open or were changed since the start of the oldest open call; with `--view
/// log` also by that of calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IoPartial {
    /// CPUs in the current chunk.
    #[serde(skip)]
    lanes: Vec<IoCpu>,
    #[serde(skip)]
    lane_of: HashMap<CpuKey, usize>,
    /// Index of the last used lane.
    #[serde(skip)]
    last: usize,
    /// Thread facts from the last contexts, in the current chunk.
    #[serde(skip)]
    told: Table<Told>,
    pub(super) edges: Vec<Edges>,
    pub(super) sink: Sink,
    pub(super) people: People,
    /// Items before this time have been taken.
    until: Option<i64>,
    /// A part of a slice is being played in the order of time and is not composed yet.
    pub(super) is_replaying: bool,
    /// A thread may get a table of its own when its call ends.
    is_unclear: bool,
    machine: IoMachine,
    totals: Totals,
    /// Slices to be played next; empty once all are composed.
    #[serde(skip)]
    next: VecDeque<Next>,
    /// Remains of composed slices.
    #[serde(skip)]
    garbage: Garbage,
}

/// A slice whose acts are known and in the order of time.
#[derive(Clone, Debug)]
struct Next {
    acts: SliceActs,
    cut: Cut,
    begin: i64,
    /// State before this time is not needed.
    since: i64,
}

/// Facts about a thread from a context. In another stretch the id may belong to another thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    pid: i32,
    cpu: CpuKey,
    stretch: u64,
}

impl IoPartial {
    #[inline(always)]
    fn lane(&mut self, analysis: &IoAnalysis, key: CpuKey) -> &mut IoCpu {
        if self.lanes.get(self.last).is_none_or(|lane| lane.key != key) {
            self.last = self.find_lane(analysis, key);
        }
        &mut self.lanes[self.last]
    }

    #[cold]
    fn find_lane(&mut self, analysis: &IoAnalysis, key: CpuKey) -> usize {
        *self.lane_of.entry(key).or_insert_with(|| {
            let rules = &analysis.rules;
            let counts = rules.selection.cpus.contains(key.cpu);
            let limits = rules.options.limits;
            let anonymous = analysis.is_anonymous(key.trace);
            self.lanes.push(IoCpu::new(key, counts, limits, anonymous));
            self.lanes.len() - 1
        })
    }

    pub(super) fn packet(&mut self, analysis: &IoAnalysis, packet: &Packet) {
        let time = packet.begin.unwrap_or(i64::MIN);
        if packet.lost_before && !packet.tells_switches {
            if packet.tells_calls && !analysis.input.selection.window.is_over(time) {
                self.lane(analysis, packet.cpu).loses_calls(time);
            }
        } else if packet.lost_before {
            let anonymous = analysis.is_anonymous(packet.cpu.trace);
            self.lane(analysis, packet.cpu).loss(time, anonymous);
        }
    }

    #[inline(always)]
    pub(super) fn event(
        &mut self,
        analysis: &IoAnalysis,
        event: &Event<'_>,
        body: &mut Body<'_, '_>,
    ) {
        let Event {
            model, cpu, time, ..
        } = *event;
        let window = analysis.input.selection.window;
        if window.is_over(time) {
            return;
        }
        let lane = self.lane(analysis, cpu);
        if let Some(context) = &model.context {
            if let KernelEvent::Entry(_) | KernelEvent::Exit(_) = model.event {
                observe(lane, model, time, body);
            }
            // Before the event itself, whose effect applies to the process that the context
            // contains.
            self.context(model, context, cpu, time, body);
        }
        match &model.event {
            KernelEvent::Entry(entry) => tell::entry(self.lane(analysis, cpu), entry, time, body),
            KernelEvent::Exit(exit) => {
                tell::exit(self.lane(analysis, cpu), exit, window, time, body)
            }
            KernelEvent::Switch(switch) => self.switch(switch, cpu, time, body),
            _ => self.other(model, cpu, time, body),
        }
    }

    fn switch(&mut self, switch: &Switch, cpu: CpuKey, time: i64, body: &mut Body<'_, '_>) {
        let (Some(prev), Some(next)) = (switch.prev_tid.get(body), switch.next_tid.get(body))
        else {
            return;
        };
        let Some(lane) = self.lanes.get_mut(self.last) else {
            return;
        };
        let (prev, next) = (prev as i32, next as i32);
        let runner = lane.runner.filter(|_| lane.tid() == Some(prev));
        lane.switch(time, Some(prev), next);
        let name = |name: &Option<tracebraid_kernel_model::TextField>, body: &mut _| {
            name.as_ref().and_then(|name| name.comm(body))
        };
        let thread = |tid| ThreadKey {
            trace: cpu.trace,
            tid,
        };
        if let Some(name) = name(&switch.prev_name, body).filter(|_| prev != 0) {
            let place = runner.unwrap_or_else(|| self.people.place(thread(prev)));
            if let Some(person) = self.people.at(place) {
                person.learn_name(time, cpu, name);
            }
        }
        if let Some(name) = name(&switch.next_name, body).filter(|_| next != 0) {
            let place = self.people.place(thread(next));
            if let Some(person) = self.people.at(place) {
                person.learn_name(time, cpu, name);
            }
            lane.runner = Some(place);
        }
    }

    /// Processes events other than switches and system calls.
    fn other(&mut self, model: &EventModel, cpu: CpuKey, time: i64, body: &mut Body<'_, '_>) {
        if let Some(lane) = self.lanes.get_mut(self.last) {
            tell::other(lane, &model.event, time, body);
        }
        tracebraid_follow::learn(&mut self.people, model, cpu, time, body);
    }

    /// Processes the thread and the process in an event's context.
    fn context(
        &mut self,
        model: &EventModel,
        context: &Context,
        cpu: CpuKey,
        time: i64,
        body: &mut Body<'_, '_>,
    ) {
        let Some(lane) = self.lanes.get_mut(self.last) else {
            return;
        };
        // A switch's context contains the thread that it switches away from.
        let is_switch = matches!(model.event, KernelEvent::Switch(_));
        let Some(tid) = model.tid(body).or(lane.tid().filter(|_| !is_switch)) else {
            return;
        };
        if tid == 0 || tid == ThreadKey::UNKNOWN {
            return;
        }
        let thread = ThreadKey {
            trace: cpu.trace,
            tid,
        };
        if let Some(pid) = model.pid(body) {
            let told = Told {
                pid,
                cpu,
                stretch: lane.stretches,
            };
            if std::mem::replace(self.told.get(thread), told) != told {
                lane.tell(time, tid, IoAction::Member { pid, table: None });
            }
            self.people.get(thread).learn_pid(time, cpu, pid);
        }
        if let Some(name) = context.name.as_ref().and_then(|name| name.comm(body)) {
            self.people.get(thread).learn_name(time, cpu, name);
        }
    }

    pub(super) fn end_of_chunk(&mut self) {
        for lane in std::mem::take(&mut self.lanes) {
            let edges = lane.end(&mut self.sink);
            self.edges.push(edges);
        }
        self.edges.sort_by_key(|edges| edges.key);
        self.lane_of.clear();
        self.told = Table::default();
    }

    pub(super) fn merge(&mut self, rules: &IoRules, later: IoPartial) {
        self.people.merge(later.people);
        for edges in later.edges {
            match self
                .edges
                .binary_search_by_key(&edges.key, |edges| edges.key)
            {
                Ok(at) => self.edges[at].join(edges, &rules.options.limits, &mut self.sink),
                Err(at) => self.edges.insert(at, edges),
            }
        }
        self.sink.append(later.sink);
        self.totals.merge(later.totals);
    }

    /// Exchanges the sums.
    pub(super) fn exchange(&mut self, resident: &mut IoPartial) {
        std::mem::swap(&mut self.totals, &mut resident.totals);
    }

    /// Takes all items that are before the watermark and do not wait. The slice only sorts the acts
    /// that decide which thread uses which descriptor table; `follow_up` makes the slices that play
    /// the items.
    pub(super) fn slice<'a>(&mut self, watermark: i64) -> Option<Slice<'a, IoPartial>> {
        for edges in &mut self.edges {
            edges.open_beginning(&mut self.sink);
        }
        let waits = self.edges.iter().filter_map(Edges::waits_since).min();
        let until = waits.map_or(watermark, |waits| waits.min(watermark));
        let begin = self.until.replace(until).unwrap_or(i64::MIN);
        let acts = self.sink.cut_acts(until);
        let cut = self.sink.cut(Some(until));
        let since = self.asked_since(until);
        if cut.is_empty() {
            return None;
        }
        let garbage = self.garbage.take();
        Some(Box::new(move |_: &mut IoPartial| {
            drop(garbage);
            let next = Next {
                acts: SliceActs::new(listed(&acts)),
                cut,
                begin,
                since,
            };
            Box::new(move |partial: &mut IoPartial| partial.next.push_back(next))
        }))
    }

    /// Returns the slices to be played next. Must be called after each composition.
    pub(super) fn follow_up<'a>(&mut self, rules: &'a IoRules) -> Vec<Slice<'a, IoPartial>> {
        let mut slices = Vec::new();
        while !self.is_replaying
            && let Some(mut next) = self.next.pop_front()
        {
            let descriptors = &mut self.machine.descriptors;
            match next.acts.next(descriptors, self.is_unclear) {
                SlicePart::Ahead(ahead) => slices.push(sliced(rules, next, ahead)),
                SlicePart::InOrder(until) => {
                    let cut = until.map(|until| next.cut.split(until));
                    next.begin = until.unwrap_or(next.begin);
                    self.is_replaying = true;
                    slices.push(replayed(rules, cut.unwrap_or_else(|| next.cut.take())));
                    self.next.push_front(next);
                }
            }
        }
        slices
    }

    /// Descriptors before this time are no longer needed.
    fn asked_since(&self, until: i64) -> i64 {
        let open = self.edges.iter().filter_map(Edges::open_since);
        open.chain(self.sink.since()).fold(until, i64::min)
    }

    /// Ends the trace.
    pub(super) fn finish(mut self, rules: &IoRules) -> (Totals, People) {
        for edges in std::mem::take(&mut self.edges) {
            edges.close(&mut self.sink);
        }
        let mut around = Around {
            rules,
            totals: &mut self.totals,
        };
        self.garbage.free();
        self.machine.play(&mut around, &self.sink.cut(None));
        self.machine.finish(&mut around);
        (self.totals, self.people)
    }
}

/// Acts of a slice that decide which thread uses which descriptor table, in the order of time.
fn listed(acts: &Cut) -> Vec<ThreadAct> {
    let mut all = Vec::new();
    acts.play(|cpu, item| {
        let (trace, tid) = (cpu.trace, item.tid);
        let is_ignored = tid == ThreadKey::UNKNOWN && matches!(item.what, IoAction::Change(_));
        if let Some(act) = item.what.act().filter(|_| !is_ignored) {
            all.push((ThreadKey { trace, tid }, item.time, act));
        }
    });
    all
}

/// A slice that is played in parallel with others.
fn sliced(rules: &IoRules, next: Next, ahead: Ahead) -> Slice<'_, IoPartial> {
    let since = next.since;
    Box::new(move |resident: &mut IoPartial| {
        let times = (next.begin, since);
        let left = slice::play(rules, &mut resident.totals, &next.cut, ahead, times);
        // Freed here and not while composing, since freeing takes time.
        drop(next);
        Box::new(move |partial: &mut IoPartial| {
            let totals = &mut partial.totals;
            let around = Around { rules, totals };
            let garbage = compose::compose(around, &mut partial.machine, left, since);
            partial.garbage.put(garbage);
        })
    })
}

/// A part of a slice that is played once the state before it is known.
fn replayed(rules: &IoRules, cut: Cut) -> Slice<'_, IoPartial> {
    Box::new(move |_: &mut IoPartial| {
        Box::new(move |partial: &mut IoPartial| {
            let totals = &mut partial.totals;
            partial.machine.play(&mut Around { rules, totals }, &cut);
            partial.garbage.put(cut);
            partial.is_replaying = false;
            partial.is_unclear = partial.machine.is_unclear();
        })
    })
}

/// The thread in an event's context runs now, overriding what is known.
#[inline]
fn observe(lane: &mut IoCpu, model: &EventModel, time: i64, body: &mut Body<'_, '_>) {
    if let Some(tid) = model.tid(body).filter(|&tid| lane.tid() != Some(tid)) {
        lane.switch(time, None, tid);
    }
}
