//! The common frame of reports on kernel events.
//!
//! An analysis has an [`Input`], which chooses streams and event classes, gives typed events, and
//! knows what is asked for; its report begins with a [`Head`]. By [`KernelAnalysis`] and
//! [`KernelReport`] whoever runs and shows reports treats all of them alike.

use std::sync::Arc;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Record, StreamPlace, StreamRef, are_in_order};
use tracebraid_kernel_model::{Body, EventModel, KernelEvent};

use crate::end_mark::Unended;
use crate::extent::Extent;
use crate::hosts::hosts;
use crate::not_recorded::{NotRecorded, note};
use crate::people::Host;
use crate::recorded::Recorded;
use crate::selection::{Selection, ThreadFilter};
use crate::sources::{CpuKey, Sources};
use crate::time::nanoseconds;

/// An analysis of kernel events, which follows each CPU alone.
pub trait KernelAnalysis: Analysis<Report: KernelReport> + Sized {
    /// Options besides the part of the traces: views, patterns, bounds.
    type Options: Clone + Default;

    /// Of that part of those traces, whose recorded CPUs are known, with those options.
    fn sharing(
        set: &TraceSet,
        recorded: Option<&Arc<Recorded>>,
        selection: Selection,
        options: Self::Options,
    ) -> Self;

    /// Of that part of those traces, with those options.
    fn with(set: &TraceSet, selection: Selection, options: Self::Options) -> Self {
        Self::sharing(set, None, selection, options)
    }

    /// The same with usual options.
    fn new(set: &TraceSet, selection: Selection) -> Self {
        Self::with(set, selection, Self::Options::default())
    }

    /// The events that it reads, and the part of them that is asked for.
    fn input(&self) -> &Input;

    /// Says, for people, what was not recorded, if nothing in the traces can tell what the report
    /// is about.
    fn lacks(&self) -> Option<&'static str>;

    /// Which events it needs.
    fn wants_event(&self, event: &KernelEvent) -> bool;

    /// Folds an event; what [`Analysis::event`] does with the record of it.
    fn fold_event(&self, partial: &mut Self::Partial, event: &Event<'_>, body: &mut Body<'_, '_>);
}

/// The report of such an analysis: lists of rows behind a head.
pub trait KernelReport: Serialize {
    /// Its head.
    fn head(&self) -> &Head;

    /// True if nothing of what was asked for happened.
    fn is_empty(&self) -> bool;

    /// True if it has rows of threads, but none of what was asked for.
    fn lacks_threads(&self, _: &ThreadFilter) -> bool {
        self.is_empty()
    }

    /// Keeps only the first rows of lists that are as long as there are threads and the like.
    fn truncate(&mut self, rows: usize);
}

/// Range, machines and gaps of what a report is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Head {
    /// Beginning of the range: the first event record, or the beginning that was asked for.
    #[serde(serialize_with = "nanoseconds", rename = "begin_ns")]
    pub begin: Option<Timestamp>,
    /// End of the range: the last event record, or the end that was asked for.
    #[serde(serialize_with = "nanoseconds", rename = "end_ns")]
    pub end: Option<Timestamp>,
    /// From begin to end.
    pub duration_ns: u64,
    /// The machines.
    pub hosts: Vec<Host>,
    /// CPUs that were not recorded, or not all the time: events there are unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<NotRecorded>,
    /// Traces whose recorder was killed, or that were cut: up to when they are recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unended: Vec<Unended>,
    /// Indexes of traces without CPU numbers: each of their streams counts as a CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpus_by_stream: Vec<u32>,
    /// Zero of relative times: the first event record of all traces. Set only if CPUs are missing.
    #[serde(skip)]
    pub start: Option<Timestamp>,
}

/// The unrecorded CPUs of a range.
fn missing(recorded: &Recorded, range: Option<(Timestamp, Timestamp)>) -> Vec<NotRecorded> {
    let mut missing = recorded.missing();
    if let Some((begin, end)) = range {
        missing.retain_mut(|of| {
            if of.is_never() {
                return true;
            }
            of.before_ns = of.before_ns.filter(|&before| begin.0 < before);
            of.after_ns = of.after_ns.filter(|&after| after < end.0);
            // A CPU recorded throughout the range has neither time.
            !of.is_never()
        });
    }
    missing
}

impl Head {
    /// Note on unrecorded CPUs and on traces without CPU numbers; `None` if there are neither.
    pub fn note(&self) -> Option<String> {
        let begin = self.start.map(|start| start.0);
        let missing = note(&self.not_recorded, begin, |trace, text| {
            self.of_host(trace, text)
        });
        let by_stream = |trace: &u32| {
            let text =
                "events do not contain a CPU number: each stream of the trace counts as a CPU";
            self.of_host(*trace, text.to_owned())
        };
        let notes: Vec<String> = missing
            .into_iter()
            .chain(self.cpus_by_stream.iter().map(by_stream))
            .collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// A name of something of one of the machines, with the machine where there are several.
    pub fn of_host(&self, trace: u32, name: String) -> String {
        if self.hosts.len() < 2 {
            return name;
        }
        format!("{name} @ {}", self.host(trace))
    }

    /// The name of the machine of a trace.
    pub fn host(&self, trace: u32) -> String {
        let host = self.hosts.iter().find(|host| host.trace == trace);
        let name = host.and_then(|host| host.name.clone());
        name.unwrap_or_else(|| format!("trace {trace}"))
    }
}

/// The events that an analysis reads, and the part of them that is asked for.
#[derive(Debug)]
pub struct Input {
    /// The streams and event classes that are read.
    pub sources: Sources,
    /// The part that is asked for.
    pub selection: Selection,
    /// Which CPUs were recorded.
    pub recorded: Arc<Recorded>,
    /// The packets of each stream are in the order of time.
    pub(crate) is_in_order: bool,
    head: Head,
    /// By trace: its last event record.
    ends: Vec<Option<i64>>,
}

/// A kernel event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'m> {
    /// Its meaning, and the offsets of its fields.
    pub model: &'m EventModel,
    /// Place of its class among those that are wanted.
    pub class: usize,
    /// Where it happened.
    pub cpu: CpuKey,
    /// In nanoseconds from the origin.
    pub time: i64,
}

/// A packet of a CPU begins, or goes on.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// The CPU.
    pub cpu: CpuKey,
    /// When it begins, in nanoseconds from the origin, if it says so.
    pub begin: Option<i64>,
    /// When it ends, if it says so.
    pub end: Option<i64>,
    /// Events were lost before it.
    pub lost_before: bool,
    /// Its stream tells who runs: lost events make that unknown.
    pub tells_switches: bool,
    /// It tells of system calls: lost events make unknown which call is open.
    pub tells_calls: bool,
}

impl Packet {
    /// Events were lost from that time on, as if the packet began anew behind them.
    pub fn cut(&self, time: i64) -> Packet {
        Packet {
            begin: Some(time),
            lost_before: true,
            ..*self
        }
    }
}

impl Input {
    /// The events that are wanted, of that part of those traces.
    pub fn new(
        set: &TraceSet,
        selection: Selection,
        wants: impl Fn(&KernelEvent) -> bool,
    ) -> Input {
        Input::sharing(set, None, selection, wants)
    }

    /// The same with the recorded CPUs, where they are known: analyses in one pass share them.
    pub fn sharing(
        set: &TraceSet,
        recorded: Option<&Arc<Recorded>>,
        selection: Selection,
        wants: impl Fn(&KernelEvent) -> bool,
    ) -> Input {
        let sources = Sources::new(set, wants);
        let recorded = recorded.cloned();
        let recorded = recorded.unwrap_or_else(|| Arc::new(Recorded::new(set, &sources.model)));
        let extent = |trace| recorded.extent(set, trace);
        let extents = (0..set.traces.len())
            .map(|trace| sources.reads(trace).then(|| extent(trace)).flatten());
        let extents: Vec<Option<Extent>> = extents.collect();
        let extent = extents.iter().flatten().copied().reduce(Extent::join);
        let range = extent.map(|extent| extent.within(selection.window));
        let hosts = hosts(set, |trace| sources.reads(trace));
        let not_recorded = missing(&recorded, range);
        let start = (!not_recorded.is_empty())
            .then(|| Extent::start(set))
            .flatten();
        let is_read = |of: &Unended| sources.reads(of.trace as usize);
        let head = Head {
            begin: range.map(|range| range.0),
            end: range.map(|range| range.1),
            duration_ns: range.map_or(0, |(begin, end)| end.0.abs_diff(begin.0)),
            hosts,
            not_recorded,
            unended: recorded.unended().iter().copied().filter(is_read).collect(),
            cpus_by_stream: sources.cpus_by_stream(),
            start,
        };
        let ends = extents
            .iter()
            .map(|extent| Some(extent.as_ref()?.last.0))
            .collect();
        Input {
            is_in_order: are_in_order(set, &sources.groups()),
            sources,
            selection,
            recorded,
            head,
            ends,
        }
    }

    /// The end of the range as far as a trace tells of it: behind its last event record nothing is
    /// known, however long others go on.
    pub fn end_of(&self, trace: u32) -> Option<i64> {
        let end = self.head.end?.0;
        let last = self.ends.get(trace as usize).copied().flatten();
        Some(last.map_or(end, |last| last.min(end)))
    }

    /// Behind this time nothing is known of any trace.
    pub fn known_until(&self) -> Option<i64> {
        let traces = (0..).take(self.ends.len());
        traces.filter_map(|trace| self.known_until_of(trace)).max()
    }

    /// Behind this time nothing is known of a trace.
    pub fn known_until_of(&self, trace: u32) -> Option<i64> {
        let last = self.ends.get(trace as usize).copied().flatten()?;
        let until = self.selection.read_until();
        Some(until.map_or(last, |until| last.min(until.0)))
    }

    /// The head of the report.
    pub fn head(&self) -> Head {
        self.head.clone()
    }

    /// Packets that begin at or after this time need not be read.
    pub fn until(&self) -> Option<Timestamp> {
        self.selection.read_until()
    }

    /// See [`Analysis::groups`]: one for each CPU.
    pub fn groups(&self) -> Vec<Vec<StreamRef>> {
        self.sources.groups()
    }

    /// See [`Analysis::wants`].
    pub fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.sources.wants(trace, stream_class, class)
    }

    /// Gives the event that a record is, if it is wanted, and its body.
    #[inline(always)]
    pub fn event<'m>(
        &'m self,
        record: &mut Record<'_>,
        to: impl FnOnce(&Event<'m>, &mut Body<'_, '_>),
    ) {
        let Some(source) = self.sources.source_at(record.number) else {
            return;
        };
        let Some((class, model)) = self.sources.event(source, record.class) else {
            return;
        };
        let trace = record.stream.trace;
        let time = record.time.0;
        // It stays where it is made: it is too large to be handed on.
        let body = &mut Body::new(record.body, record.slots);
        let cpu = match source.cpu {
            Some(cpu) => cpu,
            None => model.cpu(body),
        };
        let cpu = CpuKey { trace, cpu };
        let event = Event {
            model,
            class,
            cpu,
            time,
        };
        // Handed on by reference: copying at once what was just written in parts would wait for the
        // parts.
        to(&event, body);
    }

    /// The packet, if it tells who runs: see [`Input::any_packets`].
    pub fn packets(&self, place: &StreamPlace<'_>) -> impl Iterator<Item = Packet> + '_ {
        self.any_packets(place)
            .filter(|packet| packet.tells_switches)
    }

    /// The packet, of whatever events; one for each CPU where several share its stream: what was
    /// lost before it may have been any's.
    pub fn any_packets(&self, place: &StreamPlace<'_>) -> impl Iterator<Item = Packet> + '_ {
        let source = self.sources.source(place.stream);
        let of = |packet: Packet| {
            self.sources.cpus_of(place.stream).map(move |cpu| Packet {
                cpu: CpuKey { cpu, ..packet.cpu },
                ..packet
            })
        };
        let packet = source.map(|source| Packet {
            cpu: CpuKey {
                trace: place.stream.trace,
                cpu: 0,
            },
            begin: place.begin.map(|begin| begin.0),
            end: place.end.map(|end| end.0),
            lost_before: place.lost_before,
            tells_switches: source.tells_switches,
            tells_calls: source.tells_calls,
        });
        packet.map(of).into_iter().flatten()
    }
}
