//! Which CPUs were recorded, and when: events on the others are unknown.
//!
//! A CPU is recorded from the first to the last packet of its streams. It is not recorded
//!
//! - at all, if no stream of it has a packet, or, in a trace of switches, no stream with switches.
//!   Such CPUs are known from wake-ups and migrations to them, which must be followed by a switch
//!   there;
//! - before its first packet, if more than a tenth of the trace comes before, and the packet's
//!   sequence number is above 0: there were packets before it (a ring buffer, a file that is
//!   missing);
//! - after its last packet, if more than a tenth of the trace follows, in which another CPU has
//!   packets, and that last packet goes on after its last event record: where a tracer ends packets
//!   at their last event record, the end shows nothing.
//!
//! Traces whose packets do not contain the CPU are taken as complete.
//!
//! [`Recorded`] is made from the packet table and from the wake-ups and migrations of a few
//! packets, once for all analyses of a pass, and given to the rules before the first chunk
//! (`Rules::knows`). A state machine asks it when a thread moves to a CPU that may be missing, and
//! then drops the thread's state. The answer depends on the time alone, not on the event records
//! read so far, so the law of folding holds. Traces that have all CPUs skip all of this.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_kernel_model::events::sched::WakeStep;
use tracebraid_kernel_model::{
    Body, CpuSource, EventModel, IntField, KernelEvent, KernelModel, MOST_CPUS, StreamModel, TraceModel,
};

use crate::end_mark::{Unended, unended};
use crate::extent::{Extent, last_of_packet};
use crate::sources::CpuKey;

/// The recorded CPUs of all traces.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    traces: Vec<OfTrace>,
    /// Ends of recording of CPUs, ascending, in nanoseconds from the origin.
    ends: Vec<(i64, CpuKey)>,
    unended: Vec<Unended>,
    /// Extent of each trace, read at the first request.
    extents: Vec<OnceLock<Option<Extent>>>,
}

/// The recorded CPUs of one trace.
#[derive(Clone, Debug, Default)]
struct OfTrace {
    /// The streams record their CPUs.
    is_judged: bool,
    /// The streams contain switches.
    tells_switches: bool,
    /// The streams contain no switches, whether they record their CPUs or not.
    lacks_switches: bool,
    /// The streams contain `sched_waking`.
    tells_waking: bool,
    /// In the order of their numbers.
    cpus: Vec<Span>,
    /// CPUs that must have run something, but have no stream.
    named: BTreeSet<u32>,
    /// Every known CPU was recorded all the time.
    is_whole: bool,
    /// As above, of the CPUs by whose streams switches are told. Queried for each event record, so its cost must not grow
    /// with the number of CPUs.
    tells_all: bool,
}

/// Time span in which a CPU was recorded.
#[derive(Clone, Copy, Debug)]
struct Span {
    cpu: u32,
    tells_switches: bool,
    /// Nanoseconds from the origin; the least number if nothing is missing before.
    from: i64,
    /// End of the span; the greatest number if nothing is missing after it.
    until: i64,
}

/// Information in a wake-up about a thread that may have been on CPUs that were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakeTells {
    /// The thread has slept since it was last seen.
    pub slept: bool,
    /// The CPU that the thread waits for is known.
    pub is_placed: bool,
    /// The thread goes to a CPU that was not recorded.
    pub is_gone: bool,
    /// The thread can run from now on.
    is_ready: bool,
    /// All CPUs are recorded: nothing is uncertain.
    is_whole: bool,
    /// The CPU that recorded the wake-up, and the one that it names.
    cpus: (u32, Option<u32>),
}

impl WakeTells {
    /// Wake-up in a trace with all CPUs.
    pub const ALL: WakeTells = WakeTells {
        slept: true,
        is_placed: true,
        is_gone: false,
        is_ready: true,
        is_whole: true,
        cpus: (0, None),
    };

    /// A thread is created on that CPU; its first wake-up follows there.
    pub fn made(cpu: CpuKey) -> WakeTells {
        WakeTells {
            slept: true,
            is_placed: false,
            is_gone: false,
            is_ready: false,
            is_whole: false,
            cpus: (cpu.cpu, None),
        }
    }

    /// True where all CPUs are recorded.
    pub fn is_whole(self) -> bool {
        self.is_whole
    }
}

/// Whether a thread's wait for a CPU was recorded without gaps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// The thread was woken again, or from an unrecorded CPU: it has run on one.
    is_lost: bool,
    /// The CPU that the thread waits for is not known yet.
    is_unplaced: bool,
    /// A wake-up showed that the thread can run.
    is_ready: bool,
    /// The CPU that recorded the wake-up, and the one where the thread had run last.
    waking: Option<(u32, Option<u32>)>,
    /// The CPU that it waits for, if that is known.
    place: Option<u32>,
}

impl Sight {
    /// A wake-up; `waited`: the thread waited for a CPU before.
    pub fn wakes(&mut self, tells: WakeTells, waited: bool) {
        if tells.is_whole {
            return;
        }
        self.is_lost |= match (tells.is_ready, waited) {
            // It may still be running where it ran last.
            (false, waited) => waited || !tells.slept,
            (true, true) => {
                // The same wake-up is recorded by the waker, or by the CPU where the thread ran last, and
                // stays.
                let is_same = |(cpu, target)| cpu == tells.cpus.0 || target == tells.cpus.1;
                self.is_ready || self.waking.map_or(!tells.slept, |waking| !is_same(waking))
            }
            (true, false) => !tells.slept,
        };
        if tells.is_ready {
            self.place = tells.cpus.1;
        } else {
            self.waking = Some(tells.cpus);
        }
        self.is_ready |= tells.is_ready;
        self.is_unplaced = !tells.is_placed;
    }

    /// The thread was taken from its CPU, and waits for that CPU.
    pub fn preempted_on(cpu: u32) -> Sight {
        Sight {
            place: Some(cpu),
            ..Sight::default()
        }
    }

    /// A migration. `is_gone`: the new CPU was not recorded. A thread that waited for another CPU than the
    /// one it comes from has run on an unrecorded one.
    pub fn moves(&mut self, from: u32, to: u32, is_gone: bool) {
        self.is_lost |= is_gone || self.place.is_some_and(|place| place != from);
        if self.place.is_some() {
            self.place = Some(to);
        }
    }

    /// A switch to the thread on that CPU: true if it may have run on an unrecorded CPU.
    pub fn comes_lost(self, cpu: u32) -> bool {
        self.is_lost() || self.place.is_some_and(|place| place != cpu)
    }

    /// True if the thread may have run on an unrecorded CPU.
    pub fn is_lost(self) -> bool {
        self.is_lost || self.is_unplaced
    }
}

/// A CPU that was not recorded, or not all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRecorded {
    /// Index of the trace.
    pub trace: u32,
    /// Number of the CPU.
    pub cpu: u32,
    /// Not recorded before that time, in nanoseconds from the origin. With `after_ns` the CPU was recorded in
    /// between; without either it was not recorded at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_ns: Option<i64>,
    /// Not recorded after that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_ns: Option<i64>,
}

impl NotRecorded {
    /// True if the CPU was not recorded at all.
    pub fn is_never(&self) -> bool {
        self.before_ns.or(self.after_ns).is_none()
    }
}

/// Part of a trace (one over this) below which a gap is ignored.
const PART: i64 = 10;
/// Packets of a stream that are searched for names of CPUs, and wake-ups and migrations that are read of each. Few, as
/// every report of every trace waits for them, ...
const SAMPLES: (usize, usize) = (3, 64);
/// ... unless some CPUs are known to be missing.
const MORE_SAMPLES: (usize, usize) = (64, usize::MAX);

impl Recorded {
    /// The recorded CPUs of all traces. Reads the packet tables, and a few packets of streams with wake-ups.
    pub fn of(set: &TraceSet) -> Recorded {
        Recorded::new(set, &KernelModel::new(set))
    }

    pub(crate) fn new(set: &TraceSet, model: &KernelModel) -> Recorded {
        let traces = set.traces.iter().zip(&model.traces);
        let traces = traces.map(|(trace, model)| OfTrace::new(trace, model)).collect();
        Recorded {
            unended: unended(set),
            ..Recorded::from_traces(traces)
        }
    }

    fn from_traces(traces: Vec<OfTrace>) -> Recorded {
        let judged = (0..).zip(&traces).filter(|(_, of)| of.is_judged);
        let spans = judged.flat_map(|(trace, of)| of.cpus.iter().map(move |span| (trace, span)));
        let ends = spans.filter(|(_, span)| span.until < i64::MAX);
        let mut ends: Vec<(i64, CpuKey)> = ends
            .map(|(trace, span)| {
                let cpu = CpuKey { trace, cpu: span.cpu };
                (span.until, cpu)
            })
            .collect();
        ends.sort_unstable();
        Recorded {
            extents: vec![OnceLock::new(); traces.len()],
            traces,
            ends,
            unended: Vec::new(),
        }
    }

    /// The extent of the trace at an index, read once and shared by all analyses; see [`Extent::of`].
    pub(crate) fn extent(&self, set: &TraceSet, trace: usize) -> Option<Extent> {
        let read = || Extent::of(set, |of| of == trace);
        self.extents
            .get(trace)
            .map_or_else(read, |of| *of.get_or_init(read))
    }

    /// Traces that their recorders did not end: up to when they are recorded.
    pub fn unended(&self) -> &[Unended] {
        &self.unended
    }

    /// CPUs whose recording ends before that of others: time in nanoseconds from the origin, ascending.
    pub fn ends(&self) -> &[(i64, CpuKey)] {
        &self.ends
    }

    fn of_trace(&self, trace: u32) -> Option<&OfTrace> {
        let of = self.traces.get(trace as usize);
        of.filter(|of| of.is_judged)
    }

    /// True if a switch on that CPU at that time would be in the trace.
    #[inline]
    pub fn tells(&self, cpu: CpuKey, time: i64) -> bool {
        let Some(of) = self.of_trace(cpu.trace) else {
            return true;
        };
        let found = of.cpus.binary_search_by_key(&cpu.cpu, |span| span.cpu);
        let span = found.ok().and_then(|at| of.cpus.get(at));
        span.is_some_and(|span| of.is_told(span, time))
    }

    /// True if a thread that migrates between two CPUs of a trace may have run on an unrecorded one: the one it leaves, or
    /// the one it goes to.
    pub fn loses_on_move(&self, trace: u32, (from, to): (u32, u32), time: i64) -> bool {
        [from, to]
            .iter()
            .any(|&cpu| !self.tells(CpuKey { trace, cpu }, time))
    }

    /// True if every known CPU of a trace was recorded at that time.
    #[inline]
    pub fn is_whole_at(&self, trace: u32, time: i64) -> bool {
        self.of_trace(trace).is_none_or(|of| {
            let told = || of.cpus.iter().filter(|span| of.tells(span));
            let is_told = || of.named.is_empty() && told().all(|span| of.is_told(span, time));
            of.tells_all && time < i64::MAX || is_told()
        })
    }

    /// True if every known CPU of a trace was recorded between two times (nanoseconds from the origin). A CPU is recorded in
    /// one span, so the two times decide. `since` is computed only where a CPU is missing.
    #[inline]
    pub fn is_whole_between(&self, trace: u32, since: impl FnOnce() -> i64, time: i64) -> bool {
        self.of_trace(trace).is_none_or(|of| {
            of.tells_all || self.is_whole_at(trace, time) && self.is_whole_at(trace, since())
        })
    }

    /// True if every known CPU of a trace was recorded all the time.
    pub fn is_whole(&self, trace: u32) -> bool {
        self.of_trace(trace).is_none_or(|of| of.is_whole)
    }

    /// Information in a wake-up that names another CPU: where the thread ran last (`sched_waking`, `is_ready`
    /// is false) or will run. `since`: when the thread was last seen.
    #[inline]
    pub fn wake(
        &self,
        (cpu, time): (CpuKey, i64),
        since: impl FnOnce() -> i64,
        is_ready: bool,
        target: Option<u32>,
    ) -> WakeTells {
        let trace = cpu.trace;
        if self.of_trace(trace).is_none_or(|of| of.tells_all) {
            return WakeTells::ALL;
        }
        let since = since();
        if self.is_whole_between(trace, || since, time) {
            return WakeTells::ALL;
        }
        let is_told_at = |time: i64| target.map(|cpu| self.tells(CpuKey { trace, cpu }, time));
        let is_told = is_told_at(time);
        let tells_waking = self.of_trace(trace).is_some_and(|of| of.tells_waking);
        WakeTells {
            slept: is_told == Some(true) && is_told_at(since) == Some(true) && !(is_ready && tells_waking),
            is_placed: is_ready && is_told == Some(true),
            is_gone: is_ready && is_told == Some(false),
            is_ready,
            is_whole: false,
            cpus: (cpu.cpu, target),
        }
    }

    /// True if switches on all known CPUs of all traces were recorded all the time.
    pub fn tells_all_switches(&self) -> bool {
        let mut judged = self.traces.iter().filter(|of| of.is_judged);
        self.ends.is_empty() && judged.all(|of| of.tells_all)
    }

    /// True if no stream of that trace contains switches.
    #[inline]
    pub fn lacks_switches(&self, trace: u32) -> bool {
        self.of_trace(trace).is_some_and(|of| of.lacks_switches)
    }

    /// True if the traces have wake-ups from before threads can run.
    pub fn tells_waking(&self, trace: u32) -> bool {
        self.of_trace(trace).is_some_and(|of| of.tells_waking)
    }

    /// Time after which a CPU was not recorded any more.
    pub fn until(&self, cpu: CpuKey) -> i64 {
        let of = self.of_trace(cpu.trace);
        let span = of.and_then(|of| of.cpus.iter().find(|span| span.cpu == cpu.cpu));
        span.map_or(i64::MAX, |span| span.until)
    }

    /// The CPUs that were recorded, all the time or not.
    pub fn recorded(&self, trace: u32) -> Vec<u32> {
        let of = self.of_trace(trace);
        of.map_or_else(Vec::new, |of| of.cpus.iter().map(|span| span.cpu).collect())
    }

    /// The CPUs that were not recorded, or not all the time.
    pub fn missing(&self) -> Vec<NotRecorded> {
        let traces = (0..).zip(&self.traces).filter(|(_, of)| of.is_judged);
        let mut missing: Vec<NotRecorded> = traces
            .flat_map(|(trace, of)| {
                let never = of.named.iter().map(move |&cpu| NotRecorded {
                    trace,
                    cpu,
                    before_ns: None,
                    after_ns: None,
                });
                let partly = of.cpus.iter().map(move |span| NotRecorded {
                    trace,
                    cpu: span.cpu,
                    before_ns: Some(span.from).filter(|&from| from > i64::MIN),
                    after_ns: Some(span.until).filter(|&until| until < i64::MAX),
                });
                never.chain(partly.filter(|of| of.before_ns.or(of.after_ns).is_some()))
            })
            .collect();
        missing.sort_by_key(|of| (of.trace, of.cpu));
        missing
    }
}

impl OfTrace {
    fn new(trace: &Trace, model: &TraceModel) -> OfTrace {
        let used = trace.streams.iter().filter(|stream| !stream.packets.is_empty());
        let mut events = used.filter_map(|stream| model.streams.get(stream.class));
        let mut of = OfTrace {
            lacks_switches: !events.any(|events| events.events().iter().any(is_switch)),
            ..OfTrace::default()
        };
        let mut spans = Vec::new();
        for stream in trace.streams.iter().filter(|stream| !stream.packets.is_empty()) {
            let (Some(layout), Some(events)) = (
                trace.layout.streams.get(stream.class),
                model.streams.get(stream.class),
            ) else {
                continue;
            };
            if events.events().is_empty() {
                continue;
            }
            let CpuSource::Packet(cpu) = events.cpu_source(layout, &stream.head) else {
                return OfTrace {
                    lacks_switches: of.lacks_switches,
                    ..OfTrace::default()
                };
            };
            let tells_switches = events.events().iter().any(is_switch);
            of.tells_switches |= tells_switches;
            of.tells_waking |= events.events().iter().any(is_waking);
            spans.push((cpu, tells_switches, stream));
        }
        of.is_judged = !spans.is_empty();
        let extent = extent(trace);
        // Where a trace has switches, their streams decide.
        spans.sort_by_key(|(cpu, tells_switches, _)| (*cpu, !tells_switches));
        for (cpu, tells_switches, stream) in spans {
            let (from, until) = bounds(trace, stream, extent);
            match of.cpus.last_mut() {
                Some(last) if last.cpu == cpu && last.tells_switches != tells_switches => {}
                Some(last) if last.cpu == cpu => {
                    (last.from, last.until) = (last.from.min(from), last.until.max(until));
                }
                _ => of.cpus.push(Span {
                    cpu,
                    tells_switches,
                    from,
                    until,
                }),
            }
        }
        if of.is_judged {
            of.named = named(trace, model, &of.cpus, of.tells_switches);
        }
        of.judge();
        of
    }

    /// Computes the values for all CPUs.
    fn judge(&mut self) {
        let is_whole = |span: &Span| span.from == i64::MIN && span.until == i64::MAX;
        self.is_whole = self.named.is_empty() && self.cpus.iter().all(is_whole);
        // A CPU without switches that nothing names has been idle.
        let mut told = self.cpus.iter().filter(|span| self.tells(span));
        self.tells_all = self.named.is_empty() && told.all(is_whole);
    }

    fn is_told(&self, span: &Span, time: i64) -> bool {
        self.tells(span) && span.from <= time && time < span.until
    }

    /// In a trace with switches, only CPUs with streams of switches count.
    fn tells(&self, span: &Span) -> bool {
        span.tells_switches || !self.tells_switches
    }
}

fn is_switch(event: &EventModel) -> bool {
    matches!(event.event, KernelEvent::Switch(_))
}

fn is_waking(event: &EventModel) -> bool {
    matches!(&event.event, KernelEvent::Wakeup(wakeup) if wakeup.step == WakeStep::Waking)
}

/// Time span of all packet heads of a trace.
fn extent(trace: &Trace) -> Option<(i64, i64)> {
    let of = |stream: &Stream| {
        let clock = trace.clock(stream)?;
        let time = |cycles: Option<u64>| cycles.map(|cycles| clock.timestamp(cycles).0);
        Some((
            time(stream.packets.first()?.begin)?,
            time(stream.packets.last()?.end)?,
        ))
    };
    let join = |a: (i64, i64), b: (i64, i64)| (a.0.min(b.0), a.1.max(b.1));
    trace.streams.iter().filter_map(of).reduce(join)
}

/// Time span that a stream covers, if it is less than the trace.
fn bounds(trace: &Trace, stream: &Stream, extent: Option<(i64, i64)>) -> (i64, i64) {
    let whole = (i64::MIN, i64::MAX);
    let (Some(clock), Some((begin, end))) = (trace.clock(stream), extent) else {
        return whole;
    };
    let time = |cycles: Option<u64>| cycles.map(|cycles| clock.timestamp(cycles).0);
    let part = end.saturating_sub(begin) / PART;
    let first = stream.packets.first();
    let first = first.filter(|first| first.sequence.is_some_and(|sequence| sequence > 0));
    let from = first.and_then(|first| time(first.begin));
    let from = from.filter(|from| from.saturating_sub(begin) > part);
    let until = stream.packets.last().and_then(|last| time(last.end));
    let until = until.filter(|&until| end.saturating_sub(until) > part && ends_early(trace, stream, until));
    (from.unwrap_or(whole.0), until.unwrap_or(whole.1))
}

/// True if others go on after the end of a stream's last packet, and that end is not merely the time of its
/// last event record.
fn ends_early(trace: &Trace, stream: &Stream, end: i64) -> bool {
    let last = |stream: &Stream| last_of_packet(trace, stream, stream.packets.len().checked_sub(1)?);
    let goes_on = |other: &Stream| {
        let clock = trace.clock(other);
        let begin = other.packets.last().and_then(|last| last.begin);
        let begin = clock.zip(begin).map(|(clock, begin)| clock.timestamp(begin).0);
        begin.is_some_and(|begin| begin > end) && last(other).is_some()
    };
    trace.streams.iter().any(goes_on) && last(stream).is_none_or(|event| event.0 < end)
}

/// CPUs without a stream that wake-ups and migrations in some packets name: they must have run something.
fn named(trace: &Trace, model: &TraceModel, cpus: &[Span], tells_switches: bool) -> BTreeSet<u32> {
    let mut named = BTreeSet::new();
    for samples in [SAMPLES, MORE_SAMPLES] {
        for stream in &trace.streams {
            if let Some(events) = model.streams.get(stream.class) {
                names_of(trace, stream, (model, events), samples, &mut named);
            }
        }
        named.retain(|cpu| {
            let is_recorded = |span: &Span| span.tells_switches || !tells_switches;
            !cpus.iter().any(|span| span.cpu == *cpu && is_recorded(span))
        });
        if named.is_empty() {
            break;
        }
    }
    named
}

/// The field that names the CPU on which a thread is about to run. `sched_waking` names the CPU where it ran
/// last: a fallback.
fn target<'m>(trace: &TraceModel, event: &'m EventModel) -> Option<&'m IntField> {
    let is_ready = |event: &EventModel| matches!(&event.event, KernelEvent::Wakeup(wakeup) if wakeup.step != WakeStep::Waking);
    match &event.event {
        KernelEvent::Wakeup(wakeup) if wakeup.step != WakeStep::Waking => wakeup.cpu.as_ref(),
        KernelEvent::Wakeup(wakeup) => {
            let events = trace.streams.iter().flat_map(StreamModel::events);
            wakeup.cpu.as_ref().filter(|_| !events.into_iter().any(is_ready))
        }
        KernelEvent::Migrate(migrate) => Some(&migrate.to),
        _ => None,
    }
}

fn names_of(
    trace: &Trace,
    stream: &Stream,
    (model, events): (&TraceModel, &StreamModel),
    (samples, most): (usize, usize),
    named: &mut BTreeSet<u32>,
) {
    let Some(layout) = trace.layout.streams.get(stream.class) else {
        return;
    };
    let fields: Vec<Option<&IntField>> = (0..events.classes())
        .map(|class| target(model, events.event(class)?))
        .collect();
    if fields.iter().all(Option::is_none) {
        return;
    }
    let chosen = |class: usize| fields.get(class).is_some_and(Option::is_some);
    let table = Arc::new(ScanTable::new(layout, chosen));
    let count = stream.packets.len();
    let places: BTreeSet<usize> = match count {
        0 => return,
        _ if count <= samples => (0..count).collect(),
        _ => (0..samples).map(|at| at * (count - 1) / (samples - 1)).collect(),
    };
    for index in places {
        let Some(mut scanner) = Scanner::new(trace, stream, table.clone(), index..index + 1) else {
            return;
        };
        if scanner.next_packet().is_none() {
            continue;
        }
        let mut left = most;
        loop {
            let progress = scanner.scan_up_to(left);
            left -= scanner.hits().len();
            scanner.batch().for_each(|class, _, cursor, slots| {
                let field = fields.get(class).copied().flatten();
                let cpu = field.and_then(|field| field.get(&mut Body::new(cursor, slots)));
                named.extend(
                    // No machine has more: damaged records name no CPUs.
                    cpu.and_then(|cpu| u32::try_from(cpu).ok())
                        .filter(|&cpu| cpu < MOST_CPUS),
                );
            });
            if progress == Progress::PacketEnd || left == 0 {
                break;
            }
        }
    }
}

/// Note for users on missing CPUs; `None` if none is missing. Times count from `begin`.
pub(crate) fn note(
    missing: &[NotRecorded],
    begin: Option<i64>,
    of_host: impl Fn(u32, String) -> String,
) -> Option<String> {
    let parts = parts(missing, begin, of_host);
    (!parts.is_empty()).then(|| {
        format!(
            "not recorded: {}. Waits and requests that may have ended there are left out",
            parts.join("; ")
        )
    })
}

/// CPUs and times, in words: `CPUs 1-3; CPU 5 before +0.500 s`.
pub fn not_recorded(missing: &[NotRecorded], begin: Option<i64>) -> String {
    parts(missing, begin, |_, text| text).join("; ")
}

fn parts(
    missing: &[NotRecorded],
    begin: Option<i64>,
    of_host: impl Fn(u32, String) -> String,
) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = missing;
    while let Some(first) = rest.first() {
        let is_like = |of: &&NotRecorded| of.trace == first.trace && of.is_never() == first.is_never();
        let like = match first.is_never() {
            true => rest.iter().take_while(is_like).count(),
            false => 1,
        };
        let (group, others) = rest.split_at(like);
        rest = others;
        parts.push(of_host(first.trace, part(group, begin)));
    }
    parts
}

/// CPUs that were never recorded, or a single partly recorded CPU.
fn part(group: &[NotRecorded], begin: Option<i64>) -> String {
    if let [one] = group
        && !one.is_never()
    {
        let at = |time: i64| match begin {
            Some(begin) => format!("+{:.3} s", time.saturating_sub(begin) as f64 / 1e9),
            None => format!("{time} ns"),
        };
        let before = one.before_ns.map(|time| format!("before {}", at(time)));
        let after = one.after_ns.map(|time| format!("after {}", at(time)));
        let times: Vec<String> = before.into_iter().chain(after).collect();
        return format!("CPU {} {}", one.cpu, times.join(" and "));
    }
    let cpus = if group.len() == 1 { "CPU" } else { "CPUs" };
    format!("{cpus} {}", ranges(group.iter().map(|of| of.cpu.into())))
}

/// Ascending numbers, with those that follow each other as ranges: `1-3, 7`.
pub fn ranges(numbers: impl IntoIterator<Item = u64>) -> String {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match found.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(number) => *last = number,
            _ => found.push((number, number)),
        }
    }
    let texts = found.iter().map(|&(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never(cpu: u32) -> NotRecorded {
        NotRecorded {
            trace: 0,
            cpu,
            before_ns: None,
            after_ns: None,
        }
    }

    #[test]
    fn the_note_names_cpus_and_times() {
        let text = |missing: &[NotRecorded]| note(missing, Some(1_000_000_000), |_, text| text);
        assert_eq!(text(&[]), None);
        let is = |missing: &[NotRecorded], expected: &str| {
            let text = text(missing).expect("a note");
            assert!(text.starts_with(&format!("not recorded: {expected}. ")), "{text}");
        };
        is(&[never(3)], "CPU 3");
        is(&[1, 2, 3, 7].map(never), "CPUs 1-3, 7");
        let partly = NotRecorded {
            before_ns: Some(1_500_000_000),
            after_ns: Some(3_000_000_000),
            ..never(2)
        };
        is(
            &[never(1), partly, never(4)],
            "CPU 1; CPU 2 before +0.500 s and after +2.000 s; CPU 4",
        );
    }
}
