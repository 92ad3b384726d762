//! Which streams an analysis reads, and of which CPU each is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::ClockConversion;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::StreamRef;
use tracebraid_kernel_model::{CpuSource, EventModel, KernelEvent, KernelModel, StreamModel};

/// A CPU of one of the traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CpuKey {
    /// Index of the trace.
    pub trace: u32,
    /// Number of the CPU; of the stream, where a trace does not tell CPUs.
    pub cpu: u32,
}

/// What is known of the streams.
#[derive(Debug)]
pub(crate) struct Sources {
    model: KernelModel,
    wanted: Vec<Vec<Vec<bool>>>,
    /// By trace and stream; `None` for streams that are not read.
    streams: Vec<Vec<Option<Source>>>,
}

/// A stream that is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// Index of its class.
    pub(crate) class: usize,
    /// Its CPU; `None` if each event tells.
    pub(crate) cpu: Option<u32>,
    /// Its clock.
    clock: Option<ClockConversion>,
    /// True if it tells who runs: then lost events make that unknown.
    pub(crate) tells_switches: bool,
}

impl Source {
    /// The time of a clock value, in nanoseconds.
    pub(crate) fn time(&self, cycles: Option<u64>) -> Option<i64> {
        self.clock
            .zip(cycles)
            .map(|(clock, cycles)| clock.timestamp(cycles).0)
    }
}

impl Sources {
    /// All streams that may have an event that is wanted.
    pub(crate) fn new(set: &TraceSet, wants: impl Fn(&KernelEvent) -> bool) -> Sources {
        let model = KernelModel::new(set);
        let wanted_in = |stream: &StreamModel| {
            let wanted = |class| stream.event(class).is_some_and(|event| wants(&event.event));
            (0..stream.classes()).map(wanted).collect()
        };
        let wanted: Vec<Vec<Vec<bool>>> = model
            .traces
            .iter()
            .map(|trace| trace.streams.iter().map(wanted_in).collect())
            .collect();
        let mut sources = Sources {
            model,
            wanted,
            streams: Vec::new(),
        };
        let streams = set.traces.iter().enumerate().map(|(trace_index, trace)| {
            let source = |(index, stream): (usize, &tracebraid_ctf::stream::Stream)| {
                let class = stream.class;
                if !sources.wanted.get(trace_index)?.get(class)?.contains(&true) {
                    return None;
                }
                let model = sources.model.traces.get(trace_index)?.streams.get(class)?;
                let layout = trace.layout.streams.get(class)?;
                let cpu = match model.cpu_source(layout, &stream.head) {
                    CpuSource::Packet(cpu) => Some(cpu),
                    CpuSource::Event => None,
                    CpuSource::Unknown => u32::try_from(index).ok(),
                };
                let switch = |event: &EventModel| matches!(event.event, KernelEvent::Switch(_));
                let tells_switches = model.events().iter().any(switch);
                Some(Source {
                    class,
                    cpu,
                    clock: trace.clock(stream),
                    tells_switches,
                })
            };
            trace.streams.iter().enumerate().map(source).collect()
        });
        let streams = streams.collect();
        sources.streams = streams;
        sources
    }

    /// One group for each CPU, in the order of traces and CPUs; streams whose events tell the CPU
    /// one by one are in a group for each trace.
    pub(crate) fn groups(&self) -> Vec<Vec<StreamRef>> {
        let mut groups: BTreeMap<(usize, Option<u32>), Vec<StreamRef>> = BTreeMap::new();
        for (trace, streams) in self.streams.iter().enumerate() {
            for (stream, source) in streams.iter().enumerate() {
                if let Some(source) = source {
                    let stream = StreamRef {
                        trace: trace as u32,
                        stream: stream as u32,
                    };
                    groups.entry((trace, source.cpu)).or_default().push(stream);
                }
            }
        }
        groups.into_values().collect()
    }

    /// Whether that event class is wanted.
    pub(crate) fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        let stream = self
            .wanted
            .get(trace)
            .and_then(|streams| streams.get(stream_class));
        stream
            .and_then(|classes| classes.get(class))
            .copied()
            .unwrap_or(false)
    }

    /// A stream that is read.
    #[inline(always)]
    pub(crate) fn source(&self, stream: StreamRef) -> Option<&Source> {
        self.streams
            .get(stream.trace as usize)?
            .get(stream.stream as usize)?
            .as_ref()
    }

    /// An event class of a stream.
    #[inline(always)]
    pub(crate) fn event(&self, stream: StreamRef, source: &Source, class: usize) -> Option<&EventModel> {
        self.model
            .traces
            .get(stream.trace as usize)?
            .streams
            .get(source.class)?
            .event(class)
    }

    /// All CPUs that streams belong to as a whole.
    pub(crate) fn cpus(&self) -> impl Iterator<Item = CpuKey> + '_ {
        self.streams.iter().enumerate().flat_map(|(trace, streams)| {
            let key = move |source: &Source| {
                source.cpu.map(|cpu| CpuKey {
                    trace: trace as u32,
                    cpu,
                })
            };
            streams.iter().flatten().filter_map(key)
        })
    }

    /// True for traces that are read.
    pub(crate) fn reads(&self, trace: usize) -> bool {
        self.streams
            .get(trace)
            .is_some_and(|streams| streams.iter().any(Option::is_some))
    }

    /// True if anything in that trace tells which thread runs on a CPU.
    pub(crate) fn tells_threads(&self, trace: usize) -> bool {
        let streams = self
            .model
            .traces
            .get(trace)
            .map(|trace| trace.streams.as_slice())
            .unwrap_or_default();
        let tells =
            |event: &EventModel| matches!(event.event, KernelEvent::Switch(_)) || event.tells_thread();
        streams.iter().flat_map(StreamModel::events).any(tells)
    }

    /// True if any event class is of that kind.
    pub(crate) fn has(&self, kind: impl Fn(&KernelEvent) -> bool) -> bool {
        let streams = self.model.traces.iter().flat_map(|trace| &trace.streams);
        streams
            .flat_map(StreamModel::events)
            .any(|event| kind(&event.event))
    }

    /// Names of the machines by trace.
    pub(crate) fn hosts(&self) -> Vec<Option<String>> {
        self.model.traces.iter().map(|trace| trace.host.clone()).collect()
    }
}
