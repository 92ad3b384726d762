//! The event classes of call stacks, and a pass that reads only their event records, in the order
//! of time.

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::schema::FieldClass;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_ctf::walk::walk;
use tracebraid_engine::{Analysis, Chunk, FoldError, Record, StreamPlace, StreamRef, fold};
use tracebraid_kernel_model::is_switch;

use crate::events::{EventOrigin, EventRole, Weight};
use crate::fields::Fields;
use crate::how::{How, not_cancelled};
use crate::perf::period_of_clock;

/// Event classes of a trace that contribute to stacks, with their roles.
pub(crate) struct Kinds(HashMap<(usize, usize), EventRole>);

impl Kinds {
    pub(crate) fn new(trace: &Trace) -> Kinds {
        let mut kinds = HashMap::new();
        for (class, stream) in trace.layout.streams.iter().enumerate() {
            for (event, layout) in stream.events.iter().enumerate() {
                if let Some(kind) = EventRole::named(&layout.name) {
                    kinds.insert((class, event), kind);
                }
            }
        }
        kinds.extend(call_chains(trace));
        Kinds(kinds)
    }

    pub(crate) fn any(&self, is_wanted: impl Fn(EventRole) -> bool) -> bool {
        self.0.values().any(|&kind| is_wanted(kind))
    }

    /// The classes from which addresses get their names.
    pub(crate) fn without_stacks(&self) -> Kinds {
        self.only(|kind| {
            let is_gos = kind.is_gos() || kind == EventRole::GoFrames;
            !(kind.is_kernels() || kind.is_own() || kind.is_perfs() || is_gos)
        })
    }

    /// The classes with a role that `is_wanted` accepts.
    pub(crate) fn only(&self, is_wanted: impl Fn(EventRole) -> bool) -> Kinds {
        let wanted = self.0.iter().filter(|&(_, &kind)| is_wanted(kind));
        Kinds(wanted.map(|(&class, &kind)| (class, kind)).collect())
    }

    /// The role of an event class, by the indices of its stream class and of itself.
    pub(crate) fn of(&self, class: (usize, usize)) -> Option<EventRole> {
        self.0.get(&class).copied()
    }

    /// Passes all events of these classes to `to`, in the order of time, on the calling thread. The
    /// fold has threads of its own, so that the CPU time of the calling thread is that of `to`.
    ///
    /// # Errors
    /// If the pass is cancelled.
    pub(crate) fn read(
        &self,
        set: &TraceSet,
        trace: &Trace,
        (options, control): How<'_>,
        mut to: impl FnMut(&EventOrigin, EventRole, Fields),
    ) -> Result<(), FoldError> {
        let index = set.traces.iter().position(|of| std::ptr::eq(of, trace));
        let Some(index) = index else {
            return Ok(());
        };
        let (found, events) = sync_channel(WAITING);
        std::thread::scope(|scope| {
            let folding = scope.spawn(move || {
                let finder = Finder {
                    kinds: self,
                    set,
                    index,
                    found,
                };
                // Damage is reported by the pass that reads the whole trace.
                fold(set, &finder, options, control).map(drop)
            });
            let events = events.into_iter().flatten();
            for event in events.take_while(|_| !control.is_cancelled()) {
                to(&event.place, event.kind, event.fields);
            }
            let folded = folding.join();
            folded.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })?;
        not_cancelled(control)
    }
}

/// Selects the event classes with call chains of perf, and their roles. Only the best measure of
/// CPU time is used: samples of clocks, else of cycles, else of the first event that is no
/// tracepoint. The sum of several would count the same time more than once.
fn call_chains(trace: &Trace) -> Vec<((usize, usize), EventRole)> {
    let mut kinds = Vec::new();
    let mut samples: Vec<(Sampled, (usize, usize), Weight)> = Vec::new();
    let sampling = trace
        .layout
        .class
        .env_str("perf_sampling")
        .unwrap_or_default();
    for (class, stream) in trace.layout.class.streams.iter().enumerate() {
        for (event, described) in stream.events.iter().enumerate() {
            let Some(FieldClass::Struct(payload)) = &described.payload else {
                continue;
            };
            let has = |name: &str| payload.members.iter().any(|member| &*member.name == name);
            if !has("perf_callchain") {
                continue;
            }
            match Sampled::of(&described.name) {
                None if is_switch(&described.name) => {
                    kinds.push(((class, event), EventRole::PerfSwitch));
                }
                None => {}
                Some(sampled) => {
                    let weight = sampled.weight(has("perf_period"), &described.name, sampling);
                    samples.push((sampled, (class, event), weight));
                }
            }
        }
    }
    samples.sort_by_key(|(sampled, at, _)| (*sampled, *at));
    let best = samples.first().map(|(sampled, ..)| *sampled);
    let same = samples
        .iter()
        .filter(|(sampled, ..)| Some(*sampled) == best);
    let count = if best == Some(Sampled::Other) {
        1
    } else {
        usize::MAX
    };
    kinds.extend(
        same.take(count)
            .map(|(_, at, weight)| (*at, EventRole::PerfSample(*weight))),
    );
    kinds
}

/// Events that perf sampled, by their quality as a measure of CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sampled {
    Clock,
    Cycles,
    Other,
}

impl Sampled {
    /// From the name of the event; `None` for tracepoints, which are named `SYSTEM:EVENT`.
    /// Modifiers may follow a colon, too.
    fn of(name: &str) -> Option<Sampled> {
        let is_any = |names: &[&str]| name.split([':', '/']).any(|part| names.contains(&part));
        let modifiers = |text: &str| text.chars().all(|letter| "ukhHGIpPSDWeb".contains(letter));
        if is_any(&["cpu-clock", "task-clock", "event_1_0x0", "event_1_0x1"]) {
            return Some(Sampled::Clock);
        }
        if is_any(&["cycles", "cpu-cycles", "event_0_0x0"]) {
            return Some(Sampled::Cycles);
        }
        let is_tracepoint = name.split_once(':').is_some_and(|(system, event)| {
            system != "perf" && !name.contains('/') && !modifiers(event)
        });
        (!is_tracepoint).then_some(Sampled::Other)
    }

    /// The CPU time of a sample; `sampling` is the import's `perf_sampling`.
    fn weight(self, has_period: bool, name: &str, sampling: &str) -> Weight {
        let mut rates = sampling.split(';').filter_map(|rate| rate.rsplit_once('='));
        let rate = rates.find(|(of, _)| *of == name).map(|(_, rate)| rate);
        let hertz = rate.and_then(|rate| rate.strip_suffix("Hz")?.parse::<u64>().ok());
        let each = hertz.and_then(|hertz| 1_000_000_000u64.checked_div(hertz));
        match self {
            Sampled::Clock if has_period => Weight::Period,
            Sampled::Clock => {
                let period = rate.and_then(|rate| rate.parse().ok()).map(period_of_clock);
                period.or(each).map_or(Weight::Unknown, Weight::Fixed)
            }
            Sampled::Cycles => each.map_or(Weight::Unknown, Weight::Fixed),
            Sampled::Other => Weight::Unknown,
        }
    }
}

/// Maximum number of batches of events that wait for the consumer.
const WAITING: usize = 4;

/// An event of one of the classes, with its role.
#[derive(Debug, Serialize, Deserialize)]
struct Found {
    place: EventOrigin,
    /// Number of its stream; it orders events with equal times.
    stream: u32,
    kind: EventRole,
    fields: Fields,
}

/// The analysis that finds the events.
struct Finder<'t> {
    kinds: &'t Kinds,
    set: &'t TraceSet,
    /// Index of the trace whose events are found.
    index: usize,
    found: SyncSender<Vec<Found>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct FinderPartial {
    /// Events that were found and not sent yet.
    found: Vec<Found>,
    /// The CPU and the thread of the packet that is read: a chunk is of one stream.
    #[serde(skip)]
    packet: (Option<u64>, Option<i64>),
}

impl Finder<'_> {
    fn of(&self, stream: StreamRef) -> Option<(usize, &Trace)> {
        let trace = self.set.traces.get(stream.trace as usize)?;
        Some((trace.streams.get(stream.stream as usize)?.class, trace))
    }

    fn see(&self, partial: &mut FinderPartial, record: &mut Record<'_>) -> Option<()> {
        let (class, trace) = self.of(record.stream)?;
        let kind = *self.kinds.0.get(&(class, record.class))?;
        let stream = trace.layout.streams.get(class)?;
        let event = stream.events.get(record.class)?;
        let mut fields = Fields::default();
        let mut cursor = record.body;
        for part in [
            &stream.common_context,
            &event.specific_context,
            &event.payload,
        ] {
            if let Some(root) = part.root() {
                // Only sound event records are handed out.
                let _ = walk(root, &mut cursor, record.slots, &mut fields);
            }
        }
        let (cpu, tid) = partial.packet;
        partial.found.push(Found {
            place: EventOrigin {
                time: record.time,
                cpu,
                tid,
            },
            stream: record.number,
            kind,
            fields,
        });
        Some(())
    }

    /// Sends the events before a time, or or all events without a time.
    fn give(&self, partial: &mut FinderPartial, before: Option<Timestamp>) {
        // Stable: events of one stream with equal times keep their order.
        partial
            .found
            .sort_by_key(|found| (found.place.time, found.stream));
        let count = match before {
            Some(before) => partial
                .found
                .partition_point(|found| found.place.time < before),
            None => partial.found.len(),
        };
        if count > 0 {
            // The consumer ends early only if it is cancelled or panics; `read` reports both.
            let _ = self.found.send(partial.found.drain(..count).collect());
        }
    }
}

impl Analysis for Finder<'_> {
    type Partial = FinderPartial;
    type Report = ();

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let is_read = |stream: &StreamRef| {
            let class = self.of(*stream).map(|(class, _)| class);
            stream.trace as usize == self.index
                && self.kinds.0.keys().any(|(of, _)| Some(*of) == class)
        };
        let streams = StreamRef::all(set).filter(is_read);
        streams.map(|stream| vec![stream]).collect()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        trace == self.index && self.kinds.0.contains_key(&(stream_class, class))
    }

    fn begin(&self, _: &Chunk) -> FinderPartial {
        FinderPartial::default()
    }

    fn packet(&self, partial: &mut FinderPartial, packet: &StreamPlace<'_>) {
        let layout = self.of(packet.stream);
        let layout = layout.and_then(|(class, trace)| trace.layout.streams.get(class));
        let value = |name: &str| packet.head.value(layout?, name);
        let cpu = value("cpu_id").or_else(|| value("begin_cpu_id"));
        let tid = value("tid").map(|tid| tid as i64);
        partial.packet = (cpu, tid);
    }

    fn event(&self, partial: &mut FinderPartial, record: &mut Record<'_>) {
        self.see(partial, record);
    }

    fn end(&self, partial: &mut FinderPartial, _: &Chunk) {
        partial.packet = (None, None);
    }

    fn merge(&self, earlier: &mut FinderPartial, later: FinderPartial) {
        earlier.found.extend(later.found);
    }

    fn settle(&self, partial: &mut FinderPartial, watermark: Timestamp) {
        self.give(partial, Some(watermark));
    }

    fn finish(&self, mut partial: FinderPartial) {
        self.give(&mut partial, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_was_sampled() {
        for (name, sampled) in [
            ("cpu-clock", Some(Sampled::Clock)),
            ("task-clock:u", Some(Sampled::Clock)),
            ("cycles", Some(Sampled::Cycles)),
            ("cycles:ppp", Some(Sampled::Cycles)),
            ("cpu_core/cycles/", Some(Sampled::Cycles)),
            ("cpu_atom/cycles/u", Some(Sampled::Cycles)),
            ("perf:event_0_0x0", Some(Sampled::Cycles)),
            ("perf:event_1_0x0", Some(Sampled::Clock)),
            ("perf:event_0_0x1", Some(Sampled::Other)),
            ("instructions:u", Some(Sampled::Other)),
            ("page-faults", Some(Sampled::Other)),
            ("sched:sched_switch", None),
            ("block:block_rq_issue", None),
        ] {
            assert_eq!(Sampled::of(name), sampled, "{name}");
        }
    }

    #[test]
    fn rates_make_weights() {
        let sampling =
            "cpu/event=0x3c/=4000Hz;cpu-clock=100000;task-clock=250Hz;cycles=1000Hz;cycles:u=99";
        let weight =
            |sampled: Sampled, has_period, name| sampled.weight(has_period, name, sampling);
        assert_eq!(weight(Sampled::Clock, true, "cpu-clock"), Weight::Period);
        assert_eq!(
            weight(Sampled::Clock, false, "cpu-clock"),
            Weight::Fixed(100_000)
        );
        assert_eq!(
            weight(Sampled::Clock, false, "task-clock"),
            Weight::Fixed(4_000_000)
        );
        assert_eq!(weight(Sampled::Clock, false, "another"), Weight::Unknown);
        // A period in cycles is not a time.
        assert_eq!(
            weight(Sampled::Cycles, true, "cycles"),
            Weight::Fixed(1_000_000)
        );
        assert_eq!(weight(Sampled::Cycles, true, "cycles:u"), Weight::Unknown);
        assert_eq!(
            Sampled::Cycles.weight(true, "cycles", "cycles=0Hz"),
            Weight::Unknown
        );
    }
}
