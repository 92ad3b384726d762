//! Properties of event records besides their fields, for traces of any tracer, kernel or not.

use tracebraid_ctf::layout::node::NodeId;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{Record, StreamPlace, StreamRef};
use tracebraid_kernel_model::Cpus;
use tracebraid_language::Subject;

/// The streams of traces.
#[derive(Debug)]
pub struct Subjects {
    /// By trace: the classes of its streams.
    streams: Vec<Vec<usize>>,
    /// By trace.
    cpus: Vec<Cpus>,
}

/// Values in the current packet head of each stream, by number among the streams of all traces.
#[derive(Clone, Debug, Default)]
pub struct Packets(Vec<Packet>);

#[derive(Clone, Debug, Default)]
struct Packet {
    cpu: Option<u64>,
    values: Vec<(NodeId, u64)>,
}

impl Subjects {
    /// The streams of a trace set.
    pub fn new(set: &TraceSet) -> Subjects {
        Subjects {
            streams: set.traces.iter().map(classes).collect(),
            cpus: set.traces.iter().map(Cpus::new).collect(),
        }
    }

    /// Index of the class of a stream.
    #[inline]
    pub fn class(&self, stream: StreamRef) -> Option<usize> {
        let streams = self.streams.get(stream.trace as usize)?;
        streams.get(stream.stream as usize).copied()
    }

    /// Number of a stream among those of all traces.
    fn place(&self, stream: StreamRef) -> u32 {
        let before = self.streams.iter().take(stream.trace as usize);
        before.map(Vec::len).sum::<usize>() as u32 + stream.stream
    }

    /// Handles the beginning or continuation of a packet.
    pub fn packet(&self, packets: &mut Packets, place: &StreamPlace<'_>) {
        let Some(class) = self.class(place.stream) else {
            return;
        };
        let stream = self.place(place.stream);
        let stream = stream as usize;
        if stream >= packets.0.len() {
            packets.0.resize_with(stream + 1, Packet::default);
        }
        let own = &mut packets.0[stream];
        own.values.clone_from(&place.head.values);
        let cpus = self.cpus.get(place.stream.trace as usize);
        own.cpu = cpus.and_then(|cpus| cpus.of_packet(class, place.head));
    }

    /// Time, CPU and packet values of an event record.
    #[inline]
    pub fn subject<'p>(&self, packets: &'p Packets, record: &mut Record<'_>) -> Subject<'p> {
        let packet = packets.0.get(record.number as usize);
        let cpu = packet.and_then(|packet| packet.cpu);
        Subject {
            time: record.time.0,
            cpu: cpu.or_else(|| self.cpu_of(record)),
            packet: packet.map_or(&[], |packet| &packet.values),
            ..Subject::default()
        }
    }

    /// CPU of an event record, for streams whose packets do not contain it.
    fn cpu_of(&self, record: &mut Record<'_>) -> Option<u64> {
        let cpus = self.cpus.get(record.stream.trace as usize)?;
        let class = self
            .class(record.stream)
            .filter(|&class| cpus.are_mixed(class))?;
        cpus.of_event((class, record.class), record.body, record.slots)
    }
}

fn classes(trace: &Trace) -> Vec<usize> {
    trace.streams.iter().map(|stream| stream.class).collect()
}
