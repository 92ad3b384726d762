//! The common frame of reports on kernel events.
//!
//! An analysis has an [`Input`], which selects streams and event classes, returns typed events, and
//! holds the selection; its report begins with a [`Head`]. [`KernelAnalysis`] and [`KernelReport`]
//! let programs run and show all reports in the same manner.

use std::sync::Arc;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Record, StreamPlace, StreamRef, are_in_order};
use tracebraid_kernel_model::{Body, EventModel, KernelEvent};

use crate::end_mark::{Unended, unended};
use crate::extent::Extent;
use crate::hosts::hosts;
use crate::not_recorded::{NotRecorded, note};
use crate::people::Host;
use crate::recorded::Recorded;
use crate::selection::{Selection, ThreadFilter, Window};
use crate::sources::{CpuKey, Sources};
use crate::time::nanoseconds;

/// An analysis of kernel events that follows each CPU alone.
pub trait KernelAnalysis: Analysis<Report: KernelReport> + Sized {
    /// Options besides the selection: views, patterns, bounds.
    type Options: Clone + Default;

    /// The analysis of a selection with options. Uses `recorded` if given: analyses of a pass share
    /// it.
    fn sharing(
        set: &TraceSet,
        recorded: Option<&Arc<Recorded>>,
        selection: Selection,
        options: Self::Options,
    ) -> Self;

    /// The analysis of a selection with options.
    fn with(set: &TraceSet, selection: Selection, options: Self::Options) -> Self {
        Self::sharing(set, None, selection, options)
    }

    /// The analysis of a selection with default options.
    fn new(set: &TraceSet, selection: Selection) -> Self {
        Self::with(set, selection, Self::Options::default())
    }

    /// The events that the analysis reads, and the selection.
    fn input(&self) -> &Input;

    /// A message for users on the missing events, if the traces contain no event that the report
    /// needs.
    fn lacks(&self) -> Option<&'static str>;

    /// Whether the analysis needs an event.
    fn wants_event(&self, event: &KernelEvent) -> bool;

    /// Folds an event, as [`Analysis::event`] does with its record.
    fn fold_event(&self, partial: &mut Self::Partial, event: &Event<'_>, body: &mut Body<'_, '_>);
}

/// The report of a kernel analysis: a head and lists of rows.
pub trait KernelReport: Serialize {
    /// The head of the report.
    fn head(&self) -> &Head;

    /// True if the selection contains nothing to report.
    fn is_empty(&self) -> bool;

    /// True if the report has rows of threads, but none that the filter selects.
    fn lacks_threads(&self, _: &ThreadFilter) -> bool {
        self.is_empty()
    }

    /// Keeps only the first `rows` rows of lists whose length depends on the number of threads and
    /// the like.
    fn truncate(&mut self, rows: usize);
}

/// Time range, machines and gaps of a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Head {
    /// Start of the range: the first event record, or the requested start.
    #[serde(serialize_with = "nanoseconds", rename = "begin_ns")]
    pub begin: Option<Timestamp>,
    /// End of the range: the last event record, or the requested end.
    #[serde(serialize_with = "nanoseconds", rename = "end_ns")]
    pub end: Option<Timestamp>,
    /// Duration of the range in nanoseconds.
    pub duration_ns: u64,
    /// Machines of the traces.
    pub hosts: Vec<Host>,
    /// CPUs that were not recorded, or not all the time: their events are unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_recorded: Vec<NotRecorded>,
    /// Traces whose recorder was killed, or that were cut, with the time until which they are
    /// recorded.
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
    /// The head of an analysis of any events of the traces (by index) that `reads` selects: it needs
    /// no particular event, so none is missing.
    pub fn of_events(set: &TraceSet, reads: impl Fn(usize) -> bool, window: Window) -> Head {
        let range = Extent::of(set, &reads).map(|extent| extent.within(window));
        Head {
            begin: range.map(|range| range.0),
            end: range.map(|range| range.1),
            duration_ns: range.map_or(0, |(begin, end)| end.0.abs_diff(begin.0)),
            hosts: hosts(set, reads),
            not_recorded: Vec::new(),
            unended: unended(set),
            cpus_by_stream: Vec::new(),
            start: None,
        }
    }

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

    /// A name, followed by the name of its machine if there are several.
    pub fn of_host(&self, trace: u32, name: String) -> String {
        if self.hosts.len() < 2 {
            return name;
        }
        format!("{name} @ {}", self.host(trace))
    }

    /// Name of the machine of a trace.
    pub fn host(&self, trace: u32) -> String {
        let host = self.hosts.iter().find(|host| host.trace == trace);
        let name = host.and_then(|host| host.name.clone());
        name.unwrap_or_else(|| format!("trace {trace}"))
    }
}

/// The events that an analysis reads, and the selection.
#[derive(Debug)]
pub struct Input {
    /// The streams and event classes that are read.
    pub sources: Sources,
    /// Selection of time, CPUs and threads.
    pub selection: Selection,
    /// CPUs that were recorded.
    pub recorded: Arc<Recorded>,
    /// The packets of each stream are in time order.
    pub(crate) is_in_order: bool,
    head: Head,
    /// By trace: time of the last event record.
    ends: Vec<Option<i64>>,
}

/// A kernel event.
#[derive(Clone, Copy, Debug)]
pub struct Event<'m> {
    /// Meaning of the event, and offsets of its fields.
    pub model: &'m EventModel,
    /// Index of the event class among the wanted classes.
    pub class: usize,
    /// CPU of the event.
    pub cpu: CpuKey,
    /// Time, in nanoseconds from the origin.
    pub time: i64,
}

/// The beginning or continuation of a packet of a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// CPU of the packet.
    pub cpu: CpuKey,
    /// Begin time, in nanoseconds from the origin, if recorded.
    pub begin: Option<i64>,
    /// End time, in nanoseconds from the origin, if recorded.
    pub end: Option<i64>,
    /// Events were lost before the packet.
    pub lost_before: bool,
    /// The stream contains switches: a loss of events makes the running thread unknown.
    pub tells_switches: bool,
    /// The stream contains system calls: a loss of events makes the open call unknown.
    pub tells_calls: bool,
}

impl Packet {
    /// A packet that begins at `time` after a loss of events.
    pub fn cut(&self, time: i64) -> Packet {
        Packet {
            begin: Some(time),
            lost_before: true,
            ..*self
        }
    }
}

impl Input {
    /// The wanted events of a selection.
    pub fn new(
        set: &TraceSet,
        selection: Selection,
        wants: impl Fn(&KernelEvent) -> bool,
    ) -> Input {
        Input::sharing(set, None, selection, wants)
    }

    /// The wanted events of a selection. Uses `recorded` if given: analyses of a pass share
    /// it.
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

    /// End of the range as far as a trace was recorded: nothing is known after its last event
    /// record, even if other traces continue.
    pub fn end_of(&self, trace: u32) -> Option<i64> {
        let end = self.head.end?.0;
        let last = self.ends.get(trace as usize).copied().flatten();
        Some(last.map_or(end, |last| last.min(end)))
    }

    /// Time after which nothing is known of any trace.
    pub fn known_until(&self) -> Option<i64> {
        let traces = (0..).take(self.ends.len());
        traces.filter_map(|trace| self.known_until_of(trace)).max()
    }

    /// Time after which nothing is known of a trace.
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

    /// Passes the event of a record and its body to `to`, if the event is wanted.
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
        // Used in place: it is too large to be moved.
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
        // Passed by reference: copying a value whose parts were just written would wait for those
        // parts.
        to(&event, body);
    }

    /// The packet, if its stream contains switches: see [`Input::any_packets`].
    pub fn packets(&self, place: &StreamPlace<'_>) -> impl Iterator<Item = Packet> + '_ {
        self.any_packets(place)
            .filter(|packet| packet.tells_switches)
    }

    /// The packet, whatever its events. Yields one packet for each CPU that shares the stream,
    /// since lost events may belong to any such CPU.
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
