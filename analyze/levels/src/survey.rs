//! The first pass: reads switches of both levels only, and yields the state at the beginning of
//! each window of the second pass.
//!
//! Each fact is kept with its time and place in the trace, for each window, and only the latest (or
//! the first) counts. So the tables of all workers can be joined in any order.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::stream::Packet;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Record, StreamPlace, StreamRef};
use tracebraid_follow::{InterruptStep, KeyHasher};
use tracebraid_kernel_model::{Body, CpuSource, KernelEvent};

use crate::recent::{Recent, StepPlace};
use crate::sources::{Source, Sources, UserClass, UserStream};
use crate::states::States;
use crate::ult_facts::UltFacts;

pub(crate) type Map<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// A user-level thread: its process and its id.
pub(crate) type UltKey = (i32, u64);

/// Time and place in the trace; places only order records of equal times.
pub(crate) type Moment = (i64, u64);

/// Content of a CPU or an LWP: known, or lost with event records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Known<T> {
    Is(T),
    Lost,
}

/// The first and the last statement about the content of a CPU or an LWP in a window.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Ends<T> {
    /// Content before the first statement.
    pub(crate) first: (Moment, Known<T>),
    /// Content after the last one.
    pub(crate) last: (Moment, Known<T>),
}

/// The last edges of interrupts in a window: whether a hard interrupt or a softirq is active then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Edges {
    pub(crate) hard: Option<(Moment, bool)>,
    pub(crate) soft: Option<(Moment, bool)>,
}

impl Edges {
    pub(crate) fn step(&mut self, moment: Moment, step: InterruptStep) {
        let edge = |active| Some((moment, active));
        match step {
            InterruptStep::Hard(_) => self.hard = edge(true),
            InterruptStep::HardEnd => self.hard = edge(false),
            InterruptStep::Softirq(_) => (self.hard, self.soft) = (edge(false), edge(true)),
            InterruptStep::SoftirqEnd => self.end(moment),
            InterruptStep::Timer(_) | InterruptStep::TimerEnd => {}
        }
    }

    /// Nothing is interrupted, as after a switch.
    pub(crate) fn end(&mut self, moment: Moment) {
        (self.hard, self.soft) = (Some((moment, false)), Some((moment, false)));
    }

    pub(crate) fn join(&mut self, other: Edges) {
        self.hard = self.hard.max(other.hard);
        self.soft = self.soft.max(other.soft);
    }
}

/// Facts about an LWP.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LwpSight {
    /// First moment, process and runtime.
    pub(crate) first: Option<(Moment, i32)>,
    pub(crate) runtime: Option<(Moment, Vec<u8>)>,
}

/// End of the packet before a loss, and begin of the packet after it, each with its window.
type LossEnds = [(i64, u32); 2];

/// Lost records of a stream that several LWPs share, such as LTTng's, which are of a CPU: any LWP of
/// the trace may have recorded them.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SharedLoss {
    ends: LossEnds,
    /// Numbers of the streams of the trace.
    streams: Range<u32>,
}

/// The tables of a worker.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Tables {
    pub(crate) cpus: Map<(u32, u32), Ends<i32>>,
    /// Interrupts at the end of a window, by CPU.
    pub(crate) edges: Map<(u32, u32), Edges>,
    /// By thread id and window: process and user-level thread, 0 for none.
    pub(crate) lwps: Map<(i32, u32), Ends<UltKey>>,
    pub(crate) lwp_sights: Map<i32, LwpSight>,
    /// Lost records of CPUs and of LWPs: from the end of a packet to the begin of the next.
    pub(crate) cpu_losses: Vec<(u32, i64, i64)>,
    pub(crate) lwp_losses: Vec<(i32, i64, i64)>,
    shared_losses: Vec<SharedLoss>,
    /// One for each worker; they are joined when the report is made.
    pub(crate) ults: Vec<UltFacts>,
}

/// The first pass as an analysis of the engine.
pub(crate) struct Survey<'a> {
    pub(crate) sources: &'a Sources,
    /// Beginnings of the windows.
    pub(crate) windows: &'a [Timestamp],
}

/// State of a chunk.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Partial {
    tables: Tables,
    chunk: u64,
    records: u64,
    /// Facts about the latest records, which are not in the tables yet.
    #[serde(skip)]
    recent: Recent,
    /// The window of the latest record: its number, begin and end.
    window: (u32, i64, i64),
    /// Thread of the current packet.
    tid: Option<i32>,
}

impl<T: Copy> Ends<T> {
    pub(crate) fn join(&mut self, other: Ends<T>) {
        if other.first.0 < self.first.0 {
            self.first = other.first;
        }
        if other.last.0 >= self.last.0 {
            self.last = other.last;
        }
    }
}

pub(crate) fn state_of<T: Copy>(moment: Moment, before: Known<T>, after: Known<T>) -> Ends<T> {
    Ends {
        first: (moment, before),
        last: (moment, after),
    }
}

pub(crate) fn join_ends<K: Eq + Hash, T: Copy>(map: &mut Map<K, Ends<T>>, key: K, ends: Ends<T>) {
    map.entry(key)
        .and_modify(|own| own.join(ends))
        .or_insert(ends);
}

impl Tables {
    pub(crate) fn join(&mut self, other: Tables) {
        for (key, ends) in other.cpus {
            join_ends(&mut self.cpus, key, ends);
        }
        for (key, edges) in other.edges {
            self.edges.entry(key).or_default().join(edges);
        }
        for (key, ends) in other.lwps {
            join_ends(&mut self.lwps, key, ends);
        }
        for (tid, sight) in other.lwp_sights {
            self.lwp_sights.entry(tid).or_default().join(sight);
        }
        self.cpu_losses.extend(other.cpu_losses);
        self.lwp_losses.extend(other.lwp_losses);
        self.shared_losses.extend(other.shared_losses);
        self.ults.extend(other.ults);
    }

    /// The facts of this worker about user-level threads.
    #[inline]
    pub(crate) fn ults(&mut self) -> &mut UltFacts {
        if self.ults.is_empty() {
            self.ults.push(UltFacts::default());
        }
        &mut self.ults[0]
    }

    fn lose_cpu(&mut self, cpu: u32, ends: LossEnds) {
        self.cpu_losses.push((cpu, ends[0].0, ends[1].0));
        for (moment, window) in lost_moments(ends) {
            let lost = state_of(moment, Known::Lost, Known::Lost);
            join_ends(&mut self.cpus, (cpu, window), lost);
        }
    }

    fn lose_lwp(&mut self, tid: i32, ends: LossEnds) {
        self.lwp_losses.push((tid, ends[0].0, ends[1].0));
        for (moment, window) in lost_moments(ends) {
            let lost = state_of(moment, Known::Lost, Known::Lost);
            join_ends(&mut self.lwps, (tid, window), lost);
        }
    }

    /// Charges the losses of shared streams to each LWP of their trace, when all LWPs are known.
    pub(crate) fn share_losses(&mut self) {
        let first = |(&tid, sight): (&i32, &LwpSight)| Some((tid, sight.first?.0));
        let lwps: Vec<(i32, Moment)> = self.lwp_sights.iter().filter_map(first).collect();
        for loss in std::mem::take(&mut self.shared_losses) {
            for &(tid, first) in &lwps {
                if loss.streams.contains(&stream_of(first)) {
                    self.lose_lwp(tid, loss.ends);
                }
            }
        }
    }
}

impl LwpSight {
    pub(crate) fn join(&mut self, other: LwpSight) {
        if let Some(other) = other.first
            && self.first.is_none_or(|own| other.0 < own.0)
        {
            self.first = Some(other);
        }
        if let Some(other) = other.runtime
            && self.runtime.as_ref().is_none_or(|own| other.0 < own.0)
        {
            self.runtime = Some(other);
        }
    }
}

impl Partial {
    /// The moment of the next record of this stream.
    fn moment(&mut self, number: u32, time: i64) -> Moment {
        self.records += 1;
        let place =
            u64::from(number) << STREAM_AT | self.chunk << 26 | self.records.min((1 << 26) - 1);
        (time, place)
    }
}

/// The moments around a loss: after all records before it, and before all records after it.
fn lost_moments([end, begin]: LossEnds) -> [(Moment, u32); 2] {
    [((end.0, u64::MAX), end.1), ((begin.0, 0), begin.1)]
}

/// First bit of the number of the stream in the place of a moment.
const STREAM_AT: u32 = 50;

/// Number of the stream in which the record of a moment is.
fn stream_of((_, place): Moment) -> u32 {
    (place >> STREAM_AT) as u32
}

impl Survey<'_> {
    fn window(&self, time: Timestamp) -> u32 {
        window_of(self.windows, time)
    }

    /// The same for records, most of which are in the window of the one before.
    #[inline]
    fn window_of_record(&self, partial: &mut Partial, time: Timestamp) -> u32 {
        let (window, from, until) = partial.window;
        if from <= time.0 && time.0 < until {
            return window;
        }
        let window = self.window(time);
        let bound = |window: u32| self.windows.get(window as usize).map(|begin| begin.0);
        // Times before the first window belong to it.
        let from = bound(window).unwrap_or(time.0).min(time.0);
        partial.window = (window, from, bound(window + 1).unwrap_or(i64::MAX));
        window
    }

    fn kernel(&self, partial: &mut Partial, record: &mut Record<'_>, cpu: CpuSource) -> Option<()> {
        let stream = self.sources.set.traces.get(record.stream.trace as usize)?;
        let class = stream.streams.get(record.stream.stream as usize)?.class;
        let of_trace = self
            .sources
            .model
            .traces
            .get(record.stream.trace as usize)?;
        let model = of_trace.streams.get(class)?.event(record.class)?;
        let moment = partial.moment(record.number, record.time.0);
        let window = self.window_of_record(partial, record.time);
        let mut body = Body::new(record.body, record.slots);
        let cpu = match cpu {
            CpuSource::Packet(cpu) => cpu,
            _ => model.cpu(&mut body),
        };
        match &model.event {
            KernelEvent::Switch(switch) => {
                let prev = switch.prev_tid.get(&mut body)? as i32;
                let next = switch.next_tid.get(&mut body)? as i32;
                let ends = state_of(moment, Known::Is(prev), Known::Is(next));
                let own = partial.recent.cpu(&mut partial.tables, cpu, window);
                own.switched(moment, ends);
            }
            KernelEvent::ThreadExit(tid) => {
                let tid = tid.get(&mut body)? as i32;
                let ends = state_of(moment, Known::Is((0, 0)), Known::Is((0, 0)));
                join_ends(&mut partial.tables.lwps, (tid, window), ends);
            }
            event => {
                let step = InterruptStep::of(event, &mut body)?;
                let own = partial.recent.cpu(&mut partial.tables, cpu, window);
                own.edges.step(moment, step);
            }
        }
        Some(())
    }
}

/// The window that a time belongs to.
pub(crate) fn window_of(windows: &[Timestamp], time: Timestamp) -> u32 {
    windows
        .partition_point(|begin| *begin <= time)
        .saturating_sub(1) as u32
}

/// Thread and process of a record of a user trace.
pub(crate) fn thread_of(
    stream: &UserStream,
    class: &UserClass,
    of_packet: Option<i32>,
    record: &mut Record<'_>,
) -> (Option<i32>, i32) {
    let mut get = |field: &Option<tracebraid_ctf::layout::FieldRef>| {
        let field = field.as_ref()?;
        field
            .integer(record.body, record.slots)
            .ok()
            .map(|value| value as i32)
    };
    let tid = get(&class.tid).or(of_packet);
    let pid = stream.pid.or_else(|| get(&class.pid)).or(tid);
    (tid, pid.unwrap_or(0))
}

/// End of the packet before one, in the same stream.
fn end_before(set: &TraceSet, place: &StreamPlace<'_>) -> Option<Timestamp> {
    let (trace, stream) = place.stream.of(set)?;
    let clock = trace.clock(stream)?;
    let begin = place.begin?;
    let begins = |packet: &Packet| packet.begin.is_some_and(|own| clock.timestamp(own) < begin);
    let before = stream.packets.iter().rposition(begins)?;
    Some(clock.timestamp(stream.packets.get(before)?.end?))
}

/// Thread that the head of a packet contains.
pub(crate) fn thread_of_packet(set: &TraceSet, place: &StreamPlace<'_>) -> Option<i32> {
    let (trace, stream) = place.stream.of(set)?;
    let layout = trace.layout.streams.get(stream.class)?;
    place.head.value(layout, "tid").map(|tid| tid as i32)
}

impl Analysis for Survey<'_> {
    type Partial = Partial;
    type Report = States;

    fn groups(&self, _: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.sources
            .group()
            .into_iter()
            .map(|stream| vec![stream])
            .collect()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let set = &self.sources.set;
        if self.sources.kernel == Some(trace) {
            let of_class = self.sources.model.traces.get(trace);
            let of_class = of_class.and_then(|trace| trace.streams.get(stream_class));
            let event = of_class.and_then(|of_class| of_class.event(class));
            return event.is_some_and(|event| {
                let event = &event.event;
                matches!(event, KernelEvent::Switch(_) | KernelEvent::ThreadExit(_))
                    || InterruptStep::is_told_by(event)
            });
        }
        let Some(trace_of) = set.traces.get(trace) else {
            return false;
        };
        let number = trace_of
            .streams
            .iter()
            .position(|stream| stream.class == stream_class);
        let stream = number.map(|stream| StreamRef {
            trace: trace as u32,
            stream: stream as u32,
        });
        let number = stream.map(|stream| self.sources.number(stream));
        match number.and_then(|number| self.sources.source(number)) {
            Some(Source::User(user)) => user
                .classes
                .get(class)
                .is_some_and(|class| class.step.is_some()),
            _ => false,
        }
    }

    fn begin(&self, chunk: &Chunk) -> Partial {
        Partial {
            chunk: (chunk.index as u64).min((1 << 24) - 1),
            tables: Tables::default(),
            records: 0,
            recent: Recent::default(),
            window: (0, i64::MAX, i64::MIN),
            tid: None,
        }
    }

    fn packet(&self, partial: &mut Partial, place: &StreamPlace<'_>) {
        partial.tid = thread_of_packet(&self.sources.set, place);
        let (true, Some(begin)) = (place.lost_before, place.begin) else {
            return;
        };
        let number = self.sources.number(place.stream);
        // From the end of the packet before, and at the begin of this one, before all its records.
        let end = end_before(&self.sources.set, place)
            .unwrap_or(begin)
            .min(begin);
        let ends = [end, begin].map(|time| (time.0, self.window(time)));
        let tables = &mut partial.tables;
        match (self.sources.source(number), partial.tid) {
            (Some(Source::Kernel(CpuSource::Packet(cpu))), _) => tables.lose_cpu(*cpu, ends),
            (Some(Source::User(_)), Some(tid)) => tables.lose_lwp(tid, ends),
            (Some(Source::User(_)), None) => {
                let streams = self.sources.numbers(place.stream.trace);
                tables.shared_losses.push(SharedLoss { ends, streams });
            }
            _ => {}
        }
    }

    fn exchange(&self, partial: &mut Partial, resident: &mut Partial) {
        std::mem::swap(&mut partial.tables, &mut resident.tables);
    }

    fn event(&self, partial: &mut Partial, record: &mut Record<'_>) {
        match self.sources.source(record.number) {
            Some(Source::Kernel(cpu)) => {
                self.kernel(partial, record, *cpu);
            }
            Some(Source::User(user)) => {
                let Some(class) = user.classes.get(record.class) else {
                    return;
                };
                let Some(step) = &class.step else { return };
                let (Some(tid), pid) = thread_of(user, class, partial.tid, record) else {
                    return;
                };
                let moment = partial.moment(record.number, record.time.0);
                let values = step.values(record.body, record.slots);
                let window = self.window_of_record(partial, record.time);
                let place = StepPlace {
                    moment,
                    window,
                    tid,
                    pid,
                    values,
                };
                partial.recent.step(&mut partial.tables, &place);
            }
            None => {}
        }
    }

    fn end(&self, partial: &mut Partial, _: &Chunk) {
        partial.recent.keep(&mut partial.tables);
    }

    fn merge(&self, earlier: &mut Partial, later: Partial) {
        earlier.tables.join(later.tables);
    }

    fn finish(&self, partial: Partial) -> States {
        States::new(partial.tables)
    }
}
