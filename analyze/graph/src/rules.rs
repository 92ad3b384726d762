//! Folds event records into a graph: each CPU alone, then the items of all CPUs in the order of
//! time.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_engine::Slice;
use tracebraid_follow::{
    ByCpu, CallNames, ChosenCalls, CpuKey, Event, Input, Items, Lane, Packet, People, Recorded,
    Rules, Selection, ThreadKey, Views,
};
use tracebraid_kernel_model::events::network::PacketStep;
use tracebraid_kernel_model::events::work::WorkStep;
use tracebraid_kernel_model::{Body, KernelEvent, Syscall};
use tracebraid_threads::{
    CallClass, CallClasses, Handlers, LeftAs, MigrateEvent, ThreadDirectory, ThreadNews, WakeEvent,
    exit_of,
};

use crate::calls::{LongCall, Longest, Wanted};
use crate::cpu_stretch::CpuStretch;
use crate::finish;
use crate::futexes::Futexes;
use crate::graph::{Graph, NO_OBJECT};
use crate::graph_events;
use crate::graph_machine::{GraphMachine, Player};
use crate::graph_step::{Act, CpuStep, GraphItem};
use crate::lacks::lacks;
use crate::names::{Names, Told};
use crate::slice::PlayedPart;

/// Requests besides a part of the traces.
#[derive(Clone, Debug, Default)]
pub struct GraphOptions {
    /// System calls of which the longest that begin in the window are found; without patterns, none
    /// are.
    pub longest: CallNames,
    /// Number of longest calls.
    pub rows: usize,
    /// Only calls of this thread are among the longest.
    pub tid: Option<i32>,
}

impl From<Views> for GraphOptions {
    fn from(views: Views) -> GraphOptions {
        GraphOptions {
            rows: views.rows,
            ..GraphOptions::default()
        }
    }
}

/// The rules of the analysis.
///
/// From a [`Selection`] the rules take the end of the window and the time to read past it, which
/// contains the causes of waits that are in progress at the end.
#[derive(Debug)]
pub struct GraphRules {
    pub(crate) selection: Selection,
    /// Paths begin at this time or later; earlier states do not affect them.
    pub(crate) from: i64,
    /// Items at this time or later are ignored.
    until: i64,
    pub(crate) classes: CallClasses,
    chosen: ChosenCalls,
    /// Number of longest calls, and the bound on their duration.
    pub(crate) wanted: Wanted,
    /// CPUs and times that were recorded.
    pub(crate) recorded: Arc<Recorded>,
}

/// State after some chunks.
///
/// The state of one chunk grows with its event records. Once slices are composed, the size is
/// bounded by the numbers of CPUs, threads, connections, futexes and names in the traces, and of
/// requests and work in progress (tested in `bounds`). An exception is the graph in `machine`,
/// which is the result: time lines, finished requests, segments that ended waits, and the threads
/// that had each CPU and each id.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct GraphPartial {
    pub(crate) people: People,
    pub(crate) lanes: ByCpu<Lane<CpuStretch, CpuStep>>,
    pub(crate) items: Items<GraphItem>,
    pub(crate) names: Names,
    pub(crate) calls: Longest,
    /// The state of all items that were played.
    pub(crate) machine: GraphMachine,
    /// Threads that slices must know to make calls.
    pub(crate) news: ThreadNews,
    pub(crate) directory: ThreadDirectory,
    /// Earlier items were taken out, in nanoseconds from the origin.
    pub(crate) begin: Option<i64>,
    /// Time of the first io_uring event, or an earlier time.
    pub(crate) rings: Option<i64>,
    /// True if the part begins with the trace.
    is_first: bool,
    /// Index in `people` of the thread that was last switched to.
    #[serde(skip)]
    pub(crate) near: usize,
    /// Classes of the interrupt handlers found so far.
    #[serde(skip)]
    handlers: Handlers,
}

impl Rules for GraphRules {
    type Partial = GraphPartial;
    type Report = Graph;

    type Options = GraphOptions;

    fn new(selection: &Selection, options: &GraphOptions) -> Self {
        GraphRules {
            classes: CallClasses::default(),
            chosen: options.longest.chosen(),
            wanted: Wanted::new(
                match options.longest.0.is_empty() {
                    true => 0,
                    false => options.rows,
                },
                options.tid,
            ),
            from: selection.window.from.map_or(i64::MIN, |from| from.0),
            until: selection.read_until().map_or(i64::MAX, |until| until.0),
            selection: selection.clone(),
            recorded: Arc::default(),
        }
    }

    fn knows(&mut self, recorded: &Arc<Recorded>) {
        self.recorded = recorded.clone();
    }

    fn wants(&self, event: &KernelEvent) -> bool {
        graph_events::wants(event)
    }

    fn lacks(&self, has: &dyn Fn(&dyn Fn(&KernelEvent) -> bool) -> bool) -> Option<&'static str> {
        lacks(has)
    }

    fn first(&self) -> GraphPartial {
        GraphPartial {
            is_first: true,
            ..GraphPartial::default()
        }
    }

    fn packet(&self, partial: &mut GraphPartial, packet: &Packet) {
        let time = packet.begin.unwrap_or(i64::MIN);
        if !packet.lost_before || self.is_over(time) {
            return;
        }
        if packet.tells_switches {
            self.begins(partial, packet.cpu, time, CpuStretch::default());
            partial.push(packet.cpu, time, GraphItem::Lose);
        } else {
            let of_calls = packet.tells_calls;
            let (tid, act) = (None, Act::Lose { of_calls });
            self.step(partial, packet.cpu, time, CpuStep { tid, act });
        }
    }

    #[inline(always)]
    fn event(&self, partial: &mut GraphPartial, event: &Event<'_>, body: &mut Body<'_, '_>) {
        use KernelEvent::*;
        let Event {
            model, cpu, time, ..
        } = *event;
        let act = match &model.event {
            // Records after the end are not read in all cases, so they must not have an effect.
            _ if self.is_over(time) => return,
            // Without switches, a thread may leave the CPU unnoticed between two calls.
            Entry(_) | Exit(_) if self.recorded.lacks_switches(cpu.trace) => return,
            Entry(entry) | UserWait(entry) => Some(Act::Enter(graph_events::enters(
                &self.classes,
                entry,
                time,
                body,
            ))),
            Exit(exit) | UserWaitEnd(exit) => {
                let (call, result) = exit_of(exit, body);
                Some(Act::Exit(call, result))
            }
            Switch(switch) => return self.switch(partial, event, switch, body),
            Wakeup(wakeup) => WakeEvent::of(wakeup, body).map(Act::Wake),
            // Where all CPUs are recorded, switches show the CPU of a thread.
            Migrate(migrate) if !self.recorded.is_whole(cpu.trace) => {
                if let Some(moves) = MigrateEvent::of(migrate, body) {
                    let (tid, act) = (None, Act::Tell(GraphItem::Migrate(moves)));
                    self.step(partial, cpu, time, CpuStep { tid, act });
                }
                return;
            }
            Migrate(_) => return,
            Fork(_) | Exec(_) | Rename(..) | ProcessState(_) | ThreadExit(_) => {
                return self.task(partial, event, body);
            }
            StateDevice(state) => {
                let told = partial.names.disk(cpu.trace, state, body);
                return tell(partial, cpu, time, told);
            }
            StateInterrupt(state) => {
                let told = partial.names.interrupt(cpu.trace, state, body);
                return tell(partial, cpu, time, told);
            }
            UserLevel(step) => {
                let told = partial.names.user_thread(cpu.trace, step, body);
                return tell(partial, cpu, time, told);
            }
            Packet(packet) => {
                let headers = packet
                    .headers
                    .as_ref()
                    .and_then(|headers| headers.get(body));
                let segment = headers.and_then(|headers| partial.names.segment(&headers));
                segment.map(|segment| match packet.step {
                    PacketStep::Queue => Act::Send(segment),
                    _ => Act::Receive(segment),
                })
            }
            Work(work) => {
                let address = work.work.get(body);
                address.map(|address| match work.step {
                    WorkStep::Queue => {
                        let name = work.queue.as_ref();
                        let queue = name.and_then(|name| partial.names.queue(name, body));
                        let (queue, told) = queue.unwrap_or((0, None));
                        tell(partial, cpu, time, told);
                        Act::Queue(address, queue)
                    }
                    _ => Act::Execute(address),
                })
            }
            other => {
                if let IrqEntry(entry) = other
                    && let Some(number) =
                        entry.irq.get(body).and_then(|irq| u16::try_from(irq).ok())
                {
                    let told = partial
                        .names
                        .irq(cpu.trace, number, entry.name.as_ref(), body);
                    tell(partial, cpu, time, told);
                }
                graph_events::interrupts(&mut partial.handlers, other, body)
            }
        };
        if let Some(act) = act {
            let tid = model.tid(body);
            self.step(partial, cpu, time, CpuStep { tid, act });
        }
    }

    fn exchange(&self, partial: &mut GraphPartial, resident: &mut GraphPartial) {
        std::mem::swap(&mut partial.calls, &mut resident.calls);
        std::mem::swap(
            &mut partial.names.connections,
            &mut resident.names.connections,
        );
    }

    fn merge(&self, earlier: &mut GraphPartial, later: GraphPartial) {
        earlier.people.merge(later.people);
        let step = |earlier: &mut _, cpu, time, step| self.step(earlier, cpu, time, step);
        let begin = |earlier: &mut _, cpu, time, active| self.begins(earlier, cpu, time, active);
        later.lanes.join(earlier, step, begin);
        earlier.news.append(later.news, &earlier.items);
        earlier.items.append(later.items);
        earlier.names.merge(later.names);
        earlier.calls.merge(later.calls, &self.wanted);
        earlier.rings = earlier.rings.into_iter().chain(later.rings).min();
    }

    fn slices<'a>(
        &'a self,
        partial: &mut GraphPartial,
        watermark: i64,
    ) -> Vec<Slice<'a, GraphPartial>> {
        let Some(cut) = self.cut(partial, watermark) else {
            return Vec::new();
        };
        vec![Box::new(move |_| {
            let played = cut.play(self);
            Box::new(move |partial| self.compose(&mut partial.machine, played, watermark))
        })]
    }

    fn resolve(&self, partial: &mut GraphPartial, watermark: i64) -> bool {
        let Some(cut) = self.cut(partial, watermark) else {
            return true;
        };
        self.compose(&mut partial.machine, cut.unplayed(), watermark);
        true
    }

    fn finish(&self, input: &Input, mut partial: GraphPartial) -> Graph {
        for (cpu, lane) in std::mem::take(&mut partial.lanes) {
            if let Some(active) = lane.into_now() {
                self.parks(&mut partial, cpu, i64::MAX, &active);
            }
        }
        let GraphPartial {
            items,
            machine,
            rings,
            ..
        } = &mut partial;
        if rings.is_some() {
            // Playing io_uring items reads time lines.
            machine.catch_up(&self.classes);
        }
        self.play(items, machine, |_| {});
        finish::graph(self, input, partial)
    }
}

/// Adds a name, which all CPUs need in the order of time.
#[inline(always)]
fn tell(partial: &mut GraphPartial, cpu: CpuKey, time: i64, told: Option<Told>) {
    if let Some(told) = told {
        partial.push(cpu, time, GraphItem::Tells(Box::new(told)));
    }
}

impl GraphRules {
    /// True if calls of this kind are requested and the call begins in the window.
    #[inline(always)]
    fn asks_for(&self, call: Syscall, begin: i64) -> bool {
        self.wanted.most > 0 && self.chosen.contain(call) && self.selection.window.contains(begin)
    }

    /// Keeps a call among the longest, if it is requested.
    #[inline(always)]
    pub(crate) fn keep_call(&self, calls: &mut Longest, call: LongCall) {
        if self.asks_for(call.call, call.begin) {
            calls.add(call, &self.wanted);
        }
    }

    /// The object of the call in which a thread leaves its CPU: the number of a futex that it waits
    /// for, else the descriptor.
    #[inline]
    pub(crate) fn object(
        &self,
        futexes: &mut Futexes,
        left: LeftAs,
        (call, argument): (Syscall, i64),
    ) -> u32 {
        match self.classes.of(call) {
            CallClass::Futex if left.waits() => futexes.place(argument),
            _ => u32::try_from(argument).unwrap_or(NO_OBJECT),
        }
    }

    /// Adds a part before `until` (nanoseconds from the origin) to the graph, and drops parts that
    /// no path needs.
    fn compose(&self, machine: &mut GraphMachine, played: PlayedPart, until: i64) {
        let added = played.compose(self, machine, |_| {});
        machine.forget(&self.classes, self.from, (added, until));
    }

    /// True for times after the end of the selection.
    #[inline(always)]
    fn is_over(&self, time: i64) -> bool {
        self.until <= time && self.until < i64::MAX
    }

    /// True if the part begins with the trace.
    pub(crate) fn is_first(partial: &GraphPartial) -> bool {
        partial.is_first
    }

    /// Plays items on the graph in the order of time, and passes the times of activity to
    /// `happens`.
    pub(crate) fn play(
        &self,
        items: &mut Items<GraphItem>,
        machine: &mut GraphMachine,
        mut happens: impl FnMut(i64),
    ) {
        let rules = self;
        let mut player = Player { rules, machine };
        items.play(None, |cpu, time, item| {
            if item.is_activity() {
                happens(time);
            }
            player.play(cpu, time, item);
        });
    }
}

impl GraphPartial {
    /// Adds an item for all CPUs.
    #[inline(always)]
    pub(crate) fn push(&mut self, cpu: CpuKey, time: i64, item: GraphItem) {
        let trace = cpu.trace;
        let mut is_active = |tid: i32| self.news.is_active(ThreadKey { trace, tid });
        match item {
            GraphItem::Enter(tid) | GraphItem::Arrive(tid, ..) | GraphItem::Die(tid) => {
                is_active(tid)
            }
            GraphItem::Park(parked) if parked.has_called() => is_active(parked.tid),
            GraphItem::TakeOver(tid, old) => {
                is_active(tid);
                is_active(old);
            }
            GraphItem::Ring(..) => self.rings = self.rings.into_iter().chain([time]).min(),
            _ => {}
        }
        self.items.push(cpu, time, item);
    }
}
