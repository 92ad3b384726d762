//! Which streams an analysis reads, and of which CPU each is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::StreamRef;
use tracebraid_kernel_model::{CpuSource, EventModel, KernelEvent, KernelModel, StreamModel};

use crate::seen_cpus::seen_cpus;

/// A CPU of one of the traces.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct CpuKey {
    /// Index of the trace.
    pub trace: u32,
    /// Number of the CPU; of the stream, where a trace does not tell CPUs.
    pub cpu: u32,
}

/// What is known of the streams. What each event asks for lies flat: few steps lead to it.
#[derive(Debug)]
pub struct Sources {
    pub(crate) model: KernelModel,
    /// The event classes that are wanted.
    models: Vec<EventModel>,
    /// By event class of all stream classes: one more than its place among the models; 0 if it is
    /// not wanted.
    places: Vec<u32>,
    /// By trace and stream class: where in `places` its event classes begin, and how many they are.
    classes: Vec<Vec<(usize, usize)>>,
    /// Of all traces; `None` for streams that are not read.
    streams: Vec<Option<Source>>,
    /// By trace: where in `streams` its streams begin.
    first_streams: Vec<usize>,
    /// By trace: the CPUs of streams whose events record their CPU one by one.
    mixed: Vec<Vec<u32>>,
}

/// A stream that is read.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Where in [`Sources::places`] its event classes begin.
    base: usize,
    /// Its CPU; `None` if each event tells.
    pub cpu: Option<u32>,
    /// False if neither packets nor events contain the CPU: `cpu` is the stream's number.
    knows_cpu: bool,
    /// True if it tells who runs: then lost events make that unknown.
    pub tells_switches: bool,
    /// True if it tells of system calls: then lost events make unknown which call is open.
    pub tells_calls: bool,
}

impl Sources {
    /// All streams that may have an event that is wanted.
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

    /// Lists the event classes that are wanted.
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
                    // Their ids are 32 bits wide at most.
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

    /// Indexes of traces without CPU numbers.
    pub(crate) fn cpus_by_stream(&self) -> Vec<u32> {
        let unknown = self.read().filter(|(_, source)| !source.knows_cpu);
        let mut traces: Vec<u32> = unknown.map(|(stream, _)| stream.trace).collect();
        traces.dedup();
        traces
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

    /// One group for each CPU, in the order of traces and CPUs; where events of some stream
    /// tell the CPU one by one, all streams of the trace are in one group.
    pub fn groups(&self) -> Vec<Vec<StreamRef>> {
        let mixed = self.read().filter(|(_, source)| source.cpu.is_none());
        let mixed: Vec<u32> = mixed.map(|(stream, _)| stream.trace).collect();
        let mut groups: BTreeMap<(u32, Option<u32>), Vec<StreamRef>> = BTreeMap::new();
        for (stream, source) in self.read() {
            // Events of its CPU may be in others, too.
            let cpu = source.cpu.filter(|_| !mixed.contains(&stream.trace));
            groups.entry((stream.trace, cpu)).or_default().push(stream);
        }
        groups.into_values().collect()
    }

    /// Whether that event class is wanted.
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

    /// An event class of a stream, if it is wanted, and its place among those that are.
    #[inline(always)]
    pub fn event(&self, source: &Source, class: usize) -> Option<(usize, &EventModel)> {
        let place = (*self.places.get(source.base + class)? as usize).wrapping_sub(1);
        Some((place, self.models.get(place)?))
    }

    /// The event classes that are wanted.
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

    /// The CPUs of a stream: one, or those that share it.
    pub fn cpus_of(&self, stream: StreamRef) -> impl Iterator<Item = u32> + '_ {
        let source = self.source(stream);
        let shared = self.mixed.get(stream.trace as usize);
        let shared = shared.filter(|_| source.is_some_and(|source| source.cpu.is_none()));
        let own = source.and_then(|source| source.cpu);
        own.into_iter().chain(shared.into_iter().flatten().copied())
    }

    /// True for traces that are read.
    pub fn reads(&self, trace: usize) -> bool {
        self.read()
            .any(|(stream, _)| stream.trace as usize == trace)
    }

    /// True if a stream of that trace that is read tells who runs.
    pub fn tells_switches(&self, trace: usize) -> bool {
        self.read()
            .any(|(stream, source)| stream.trace as usize == trace && source.tells_switches)
    }

    /// True if a selected stream of that trace contains system calls.
    pub fn tells_calls(&self, trace: usize) -> bool {
        self.read()
            .any(|(stream, source)| stream.trace as usize == trace && source.tells_calls)
    }

    /// True if anything in that trace tells which thread runs on a CPU.
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

    /// True if any event class is of that kind.
    pub fn has(&self, kind: impl Fn(&KernelEvent) -> bool) -> bool {
        let streams = self.model.traces.iter().flat_map(|trace| &trace.streams);
        streams
            .flat_map(StreamModel::events)
            .any(|event| kind(&event.event))
    }
}
