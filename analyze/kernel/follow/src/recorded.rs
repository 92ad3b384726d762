//! The CPUs that were recorded, and their times: events on other CPUs are unknown.
//!
//! A CPU is recorded from the first to the last packet of its streams. It is not recorded
//!
//! - at all, if none of its streams has a packet, or, in a trace with switches, none of its streams
//!   with switches. Such CPUs are known from wake-ups and migrations to them, which must be
//!   followed by a switch there;
//! - before its first packet, if that packet comes after more than a tenth of the trace, and the
//!   packet's sequence number is above 0: there were earlier packets (a ring buffer, a missing
//!   file);
//! - after its last packet, if more than a tenth of the trace follows, in which another CPU has
//!   packets, and that last packet extends beyond its last event record: if a tracer ends packets
//!   at their last event record, the end shows nothing.
//!
//! Traces whose packets do not contain the CPU are considered complete.
//!
//! [`Recorded`] is made from the packet table and from the wake-ups and migrations of a few
//! packets, once for all analyses of a pass, and passed to the rules before the first chunk
//! (`Rules::knows`). A state machine looks it up when a thread moves to a CPU that may be missing,
//! and then drops the thread's state. The answer depends on the time alone, not on the event
//! records read so far, so the law of folding holds. Traces that have all CPUs skip all of this.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_kernel_model::events::sched::WakeStep;
use tracebraid_kernel_model::{CpuSource, EventModel, KernelEvent, KernelModel, TraceModel};

use crate::end_mark::{Unended, unended};
use crate::extent::{Extent, last_of_packet};
use crate::named_cpus::named_cpus;
use crate::not_recorded::NotRecorded;
use crate::sight::WakeTells;
use crate::sources::CpuKey;

/// The recorded CPUs of all traces.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    traces: Vec<OfTrace>,
    /// Times at which recording of a CPU ends, ascending, in nanoseconds from the origin.
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
    has_switches: bool,
    /// The streams contain `sched_waking`.
    has_waking: bool,
    /// Ordered by CPU number.
    cpus: Vec<Span>,
    /// CPUs that must have run a thread, but have no stream.
    named: BTreeSet<u32>,
    /// Every known CPU was recorded all the time.
    is_whole: bool,
    /// Like `is_whole`, for the CPUs whose streams record switches. Read for each event record, so
    /// its cost must not depend on the number of CPUs.
    tells_all: bool,
}

/// Time span in which a CPU was recorded.
#[derive(Clone, Copy, Debug)]
struct Span {
    cpu: u32,
    has_switches: bool,
    /// Nanoseconds from the origin; the least number if nothing is missing before.
    from: i64,
    /// End of the span; the greatest number if nothing is missing after it.
    until: i64,
}

/// A gap shorter than the trace divided by this is ignored.
const PART: i64 = 10;
impl Recorded {
    /// The recorded CPUs of all traces. Reads the packet tables, and a few packets of streams with
    /// wake-ups.
    pub fn of(set: &TraceSet) -> Recorded {
        Recorded::new(set, &KernelModel::new(set))
    }

    pub(crate) fn new(set: &TraceSet, model: &KernelModel) -> Recorded {
        let traces = set.traces.iter().zip(&model.traces);
        let traces = traces
            .map(|(trace, model)| OfTrace::new(trace, model))
            .collect();
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
                let cpu = CpuKey {
                    trace,
                    cpu: span.cpu,
                };
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

    /// The extent of the trace at an index, read once and shared by all analyses; see
    /// [`Extent::of`].
    pub(crate) fn extent(&self, set: &TraceSet, trace: usize) -> Option<Extent> {
        let read = || Extent::of(set, |of| of == trace);
        self.extents
            .get(trace)
            .map_or_else(read, |of| *of.get_or_init(read))
    }

    /// Traces that their recorders did not end, with the time until which they are recorded.
    pub fn unended(&self) -> &[Unended] {
        &self.unended
    }

    /// CPUs whose recording ends before that of others, with the time in nanoseconds from the
    /// origin, ascending.
    pub fn ends(&self) -> &[(i64, CpuKey)] {
        &self.ends
    }

    fn of_trace(&self, trace: u32) -> Option<&OfTrace> {
        let of = self.traces.get(trace as usize);
        of.filter(|of| of.is_judged)
    }

    /// True if a switch on `cpu` at `time` would be in the trace.
    #[inline]
    pub fn tells(&self, cpu: CpuKey, time: i64) -> bool {
        let Some(of) = self.of_trace(cpu.trace) else {
            return true;
        };
        let found = of.cpus.binary_search_by_key(&cpu.cpu, |span| span.cpu);
        let span = found.ok().and_then(|at| of.cpus.get(at));
        span.is_some_and(|span| of.is_told(span, time))
    }

    /// True if a thread that migrates between two CPUs of a trace may have run on an unrecorded
    /// CPU: the CPU it leaves, or the CPU it goes to.
    pub fn loses_on_move(&self, trace: u32, (from, to): (u32, u32), time: i64) -> bool {
        [from, to]
            .iter()
            .any(|&cpu| !self.tells(CpuKey { trace, cpu }, time))
    }

    /// True if every known CPU of a trace was recorded at `time`.
    #[inline]
    pub fn is_whole_at(&self, trace: u32, time: i64) -> bool {
        self.of_trace(trace).is_none_or(|of| {
            let told = || of.cpus.iter().filter(|span| of.tells(span));
            let is_told = || of.named.is_empty() && told().all(|span| of.is_told(span, time));
            of.tells_all && time < i64::MAX || is_told()
        })
    }

    /// True if every known CPU of a trace was recorded between two times (nanoseconds from the
    /// origin). A CPU is recorded in one span, so the two times decide. `since` is computed only if
    /// a CPU is missing.
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

    /// Information in a wake-up that names another CPU: where the thread last ran (`sched_waking`,
    /// `is_ready` is false) or will run. `since`: time at which the thread was last seen.
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
        let has_waking = self.of_trace(trace).is_some_and(|of| of.has_waking);
        WakeTells {
            slept: is_told == Some(true)
                && is_told_at(since) == Some(true)
                && !(is_ready && has_waking),
            is_placed: is_ready && is_told == Some(true),
            is_gone: is_ready && is_told == Some(false),
            is_ready,
            is_whole: false,
            cpus: (cpu.cpu, target),
        }
    }

    /// True if switches on all known CPUs of all traces were recorded all the time.
    pub fn has_all_switches(&self) -> bool {
        let mut judged = self.traces.iter().filter(|of| of.is_judged);
        self.ends.is_empty() && judged.all(|of| of.tells_all)
    }

    /// True if no stream of the trace contains switches; false if its streams do not record their
    /// CPUs.
    ///
    /// Not the opposite of `Sources::tells_switches`, which covers the streams that one analysis
    /// reads, with or without recorded CPUs.
    #[inline]
    pub fn lacks_switches(&self, trace: u32) -> bool {
        self.of_trace(trace).is_some_and(|of| !of.has_switches)
    }

    /// True if no stream of any trace contains switches; false if one does not record its CPUs.
    pub fn lacks_all_switches(&self) -> bool {
        let lacks = |of: &OfTrace| of.is_judged && !of.has_switches;
        !self.traces.is_empty() && self.traces.iter().all(lacks)
    }

    /// True if the trace contains `sched_waking`, which precedes the time at which a thread can
    /// run.
    pub fn has_waking(&self, trace: u32) -> bool {
        self.of_trace(trace).is_some_and(|of| of.has_waking)
    }

    /// Time after which a CPU was no longer recorded.
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
        let mut of = OfTrace::default();
        let mut spans = Vec::new();
        for stream in trace
            .streams
            .iter()
            .filter(|stream| !stream.packets.is_empty())
        {
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
                return OfTrace::default();
            };
            let has_switches = events.events().iter().any(is_switch);
            of.has_switches |= has_switches;
            of.has_waking |= events.events().iter().any(is_waking);
            spans.push((cpu, has_switches, stream));
        }
        of.is_judged = !spans.is_empty();
        let extent = extent(trace);
        // If a trace has switches, their streams decide.
        spans.sort_by_key(|(cpu, has_switches, _)| (*cpu, !has_switches));
        for (cpu, has_switches, stream) in spans {
            let (from, until) = bounds(trace, stream, extent);
            match of.cpus.last_mut() {
                Some(last) if last.cpu == cpu && last.has_switches != has_switches => {}
                Some(last) if last.cpu == cpu => {
                    (last.from, last.until) = (last.from.min(from), last.until.max(until));
                }
                _ => of.cpus.push(Span {
                    cpu,
                    has_switches,
                    from,
                    until,
                }),
            }
        }
        if of.is_judged {
            // In a trace with switches, a stream without switches does not record its CPU.
            let is_recorded =
                |cpu: u32| of.cpus.iter().any(|span| span.cpu == cpu && of.tells(span));
            of.named = named_cpus(trace, model, is_recorded);
        }
        of.judge();
        of
    }

    /// Computes the summary flags over all CPUs.
    fn judge(&mut self) {
        let is_whole = |span: &Span| span.from == i64::MIN && span.until == i64::MAX;
        self.is_whole = self.named.is_empty() && self.cpus.iter().all(is_whole);
        // A CPU without switches that no event names has been idle.
        let mut told = self.cpus.iter().filter(|span| self.tells(span));
        self.tells_all = self.named.is_empty() && told.all(is_whole);
    }

    fn is_told(&self, span: &Span, time: i64) -> bool {
        self.tells(span) && span.from <= time && time < span.until
    }

    /// In a trace with switches, only CPUs with streams of switches count.
    fn tells(&self, span: &Span) -> bool {
        span.has_switches || !self.has_switches
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
    let until =
        until.filter(|&until| end.saturating_sub(until) > part && ends_early(trace, stream, until));
    (from.unwrap_or(whole.0), until.unwrap_or(whole.1))
}

/// True if other streams continue after the end of a stream's last packet, and that end is not
/// merely the time of its last event record.
fn ends_early(trace: &Trace, stream: &Stream, end: i64) -> bool {
    let last =
        |stream: &Stream| last_of_packet(trace, stream, stream.packets.len().checked_sub(1)?);
    let goes_on = |other: &Stream| {
        let clock = trace.clock(other);
        let begin = other.packets.last().and_then(|last| last.begin);
        let begin = clock
            .zip(begin)
            .map(|(clock, begin)| clock.timestamp(begin).0);
        begin.is_some_and(|begin| begin > end) && last(other).is_some()
    };
    trace.streams.iter().any(goes_on) && last(stream).is_none_or(|event| event.0 < end)
}
