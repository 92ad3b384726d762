//! The streams that an analysis reads, and the CPU of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::StreamRef;
use tracebraid_kernel_model::{CpuSource, EventModel, KernelEvent, KernelModel, StreamModel};

use crate::seen_cpus::seen_cpus;

/// A CPU of a trace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CpuKey {
    /// Index of the trace.
    pub trace: u32,
    /// Number of the CPU, or of the stream if the trace contains no CPU numbers.
    pub cpu: u32,
}

/// Properties of all streams. Data needed for each event lies in flat arrays, so that lookups take
/// few steps.
#[derive(Debug)]
pub struct Sources {
    pub(crate) model: KernelModel,
    /// The wanted event classes.
    models: Vec<EventModel>,
    /// For each event class of all stream classes: index among the models plus one; 0 if the class
    /// is not wanted.
    places: Vec<u32>,
    /// By trace and stream class: start and number of its event classes in `places`.
    classes: Vec<Vec<(usize, usize)>>,
    /// For the streams of all traces; `None` for streams that are not read.
    streams: Vec<Option<Source>>,
    /// By trace: index of its first stream in `streams`.
    first_streams: Vec<usize>,
    /// By trace: the CPUs of streams whose event records each contain their CPU.
    mixed: Vec<Vec<u32>>,
}

/// A stream that is read.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Start of the stream's event classes in [`Sources::places`].
    base: usize,
    /// CPU of the stream; `None` if each event record contains its CPU.
    pub cpu: Option<u32>,
    /// False if neither packets nor events contain the CPU: `cpu` is the stream's number.
    knows_cpu: bool,
    /// The stream contains switches: a loss of events makes the running thread unknown.
    pub tells_switches: bool,
    /// The stream contains system calls: a loss of events makes the open call unknown.
    pub tells_calls: bool,
}

impl Sources {
    /// All streams that may have a wanted event.
    pub fn new(set: &TraceSet, wants: impl Fn(&KernelEvent) -> bool) -> Sources {
        let mut sources = Sources {
            model: KernelModel::new(set),
            models: Vec::new(),
            places: Vec::new(),
            classes: Vec::new(),
            streams: Vec::new(),
            first_streams: Vec::new(),
            mixed: Vec::new(),
        };
        sources.choose(wants);
        for (index, trace) in set.traces.iter().enumerate() {
            sources.first_streams.push(sources.streams.len());
            for (number, stream) in trace.streams.iter().enumerate() {
                let source = sources.source_of(index, trace, number, stream);
                sources.streams.push(source);
            }
            let first = sources.first_streams.last().copied().unwrap_or(0);
            let mut own = sources.streams.iter().skip(first).flatten();
            let is_mixed = own.any(|source| source.cpu.is_none());
            let cpus = if is_mixed { seen_cpus(set, index) } else { &[] };
            sources.mixed.push(cpus.to_vec());
        }
        sources
    }

    /// Lists the wanted event classes.
    fn choose(&mut self, wants: impl Fn(&KernelEvent) -> bool) {
        for trace in &self.model.traces {
            let mut classes = Vec::new();
            for stream in &trace.streams {
                classes.push((self.places.len(), stream.classes()));
                for class in 0..stream.classes() {
                    let model = stream.event(class).filter(|model| wants(&model.event));
                    self.models.extend(model.cloned());
                    let place = if model.is_some() {
                        self.models.len()
                    } else {
                        0
                    };
                    // Ids of event classes are 32 bits wide at most.
                    self.places.push(place as u32);
                }
            }
            self.classes.push(classes);
        }
    }

    fn source_of(
        &self,
        trace_index: usize,
        trace: &tracebraid_ctf::trace::Trace,
        number: usize,
        stream: &tracebraid_ctf::stream::Stream,
    ) -> Option<Source> {
        let (base, count) = *self.classes.get(trace_index)?.get(stream.class)?;
        let places = self.places.get(base..base + count)?;
        if places.iter().all(|&place| place == 0) {
            return None;
        }
        let model = self
            .model
            .traces
            .get(trace_index)?
            .streams
            .get(stream.class)?;
        let layout = trace.layout.streams.get(stream.class)?;
        let source = model.cpu_source(layout, &stream.head);
        let cpu = match source {
            CpuSource::Packet(cpu) => Some(cpu),
            CpuSource::Event => None,
            CpuSource::Unknown => u32::try_from(number).ok(),
        };
        let switch = |event: &EventModel| matches!(event.event, KernelEvent::Switch(_));
        let call = |event: &EventModel| {
            matches!(event.event, KernelEvent::Entry(_) | KernelEvent::Exit(_))
        };
        Some(Source {
            base,
            cpu,
            knows_cpu: source != CpuSource::Unknown,
            tells_switches: model.events().iter().any(switch),
            tells_calls: model.events().iter().any(call),
        })
    }

    /// Indexes of traces without CPU numbers in any stream.
    pub(crate) fn cpus_by_stream(&self) -> Vec<u32> {
        let mut traces: BTreeMap<u32, bool> = BTreeMap::new();
        for (stream, source) in self.read() {
            *traces.entry(stream.trace).or_default() |= source.knows_cpu;
        }
        // A super-trace has streams beside those of CPUs, for records without one.
        let unknown = traces.into_iter().filter(|(_, knows_cpu)| !knows_cpu);
        unknown.map(|(trace, _)| trace).collect()
    }

    /// The streams of each trace that are read.
    fn read(&self) -> impl Iterator<Item = (StreamRef, &Source)> + '_ {
        let ends = self.first_streams.iter().skip(1).copied();
        let bounds = self
            .first_streams
            .iter()
            .copied()
            .zip(ends.chain([self.streams.len()]));
        bounds.enumerate().flat_map(|(trace, (from, to))| {
            let streams = self.streams.get(from..to).unwrap_or_default();
            streams
                .iter()
                .enumerate()
                .filter_map(move |(stream, source)| {
                    let stream = StreamRef {
                        trace: trace as u32,
                        stream: stream as u32,
                    };
                    Some((stream, source.as_ref()?))
                })
        })
    }

    /// A group for each CPU, in the order of traces and CPUs. If the event records of a stream each
    /// contain their CPU, all streams of the trace are in one group.
    pub fn groups(&self) -> Vec<Vec<StreamRef>> {
        let mixed = self.read().filter(|(_, source)| source.cpu.is_none());
        let mixed: Vec<u32> = mixed.map(|(stream, _)| stream.trace).collect();
        let mut groups: BTreeMap<(u32, Option<u32>), Vec<StreamRef>> = BTreeMap::new();
        for (stream, source) in self.read() {
            // Other streams may contain events of its CPU too.
            let cpu = source.cpu.filter(|_| !mixed.contains(&stream.trace));
            groups.entry((stream.trace, cpu)).or_default().push(stream);
        }
        groups.into_values().collect()
    }

    /// Whether an event class is wanted.
    pub fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let classes = self
            .classes
            .get(trace)
            .and_then(|classes| classes.get(stream_class));
        let place = classes
            .filter(|(_, count)| class < *count)
            .and_then(|(base, _)| self.places.get(base + class));
        place.is_some_and(|&place| place > 0)
    }

    /// A stream that is read.
    #[inline(always)]
    pub fn source(&self, stream: StreamRef) -> Option<&Source> {
        let first = *self.first_streams.get(stream.trace as usize)?;
        self.streams.get(first + stream.stream as usize)?.as_ref()
    }

    /// A stream that is read, by its number among those of all traces.
    #[inline(always)]
    pub fn source_at(&self, number: u32) -> Option<&Source> {
        self.streams.get(number as usize)?.as_ref()
    }

    /// An event class of a stream, if it is wanted, and its index among the wanted classes.
    #[inline(always)]
    pub fn event(&self, source: &Source, class: usize) -> Option<(usize, &EventModel)> {
        let place = (*self.places.get(source.base + class)? as usize).wrapping_sub(1);
        Some((place, self.models.get(place)?))
    }

    /// The wanted event classes.
    pub fn models(&self) -> &[EventModel] {
        &self.models
    }

    /// The CPUs of whole streams, and those of the events in shared streams.
    pub fn cpus(&self) -> impl Iterator<Item = CpuKey> + '_ {
        let whole = self.read().filter_map(|(stream, source)| {
            Some(CpuKey {
                trace: stream.trace,
                cpu: source.cpu?,
            })
        });
        let shared = (0..).zip(&self.mixed).flat_map(|(trace, cpus)| {
            let key = move |&cpu: &u32| CpuKey { trace, cpu };
            cpus.iter().map(key)
        });
        whole.chain(shared)
    }

    /// The CPUs of a stream: its own, or those that share it.
    pub fn cpus_of(&self, stream: StreamRef) -> impl Iterator<Item = u32> + '_ {
        let source = self.source(stream);
        let shared = self.mixed.get(stream.trace as usize);
        let shared = shared.filter(|_| source.is_some_and(|source| source.cpu.is_none()));
        let own = source.and_then(|source| source.cpu);
        own.into_iter().chain(shared.into_iter().flatten().copied())
    }

    /// True if a stream of the trace is read.
    pub fn reads(&self, trace: usize) -> bool {
        self.read()
            .any(|(stream, _)| stream.trace as usize == trace)
    }

    /// True if a stream of the trace that is read contains switches.
    pub fn tells_switches(&self, trace: usize) -> bool {
        self.read()
            .any(|(stream, source)| stream.trace as usize == trace && source.tells_switches)
    }

    /// True if a stream of the trace that is read contains system calls.
    pub fn tells_calls(&self, trace: usize) -> bool {
        self.read()
            .any(|(stream, source)| stream.trace as usize == trace && source.tells_calls)
    }

    /// True if any event of the trace shows the thread that runs on a CPU.
    pub fn tells_threads(&self, trace: usize) -> bool {
        let streams = self
            .model
            .traces
            .get(trace)
            .map(|trace| trace.streams.as_slice())
            .unwrap_or_default();
        let tells = |event: &EventModel| {
            matches!(event.event, KernelEvent::Switch(_)) || event.tells_thread()
        };
        streams.iter().flat_map(StreamModel::events).any(tells)
    }

    /// True if any event class is of this kind.
    pub fn has(&self, kind: impl Fn(&KernelEvent) -> bool) -> bool {
        let streams = self.model.traces.iter().flat_map(|trace| &trace.streams);
        streams
            .flat_map(StreamModel::events)
            .any(|event| kind(&event.event))
    }
}
