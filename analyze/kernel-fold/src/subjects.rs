//! What is known of event records of any traces besides their fields, whether they are of a kernel or not.

use tracebraid_ctf::layout::node::NodeId;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_filter::Subject;
use tracebraid_fold::{Record, StreamPlace, StreamRef};

/// The streams of traces.
#[derive(Debug)]
pub struct Subjects {
    /// By trace: its streams.
    streams: Vec<Vec<Source>>,
}

/// A stream.
#[derive(Debug)]
struct Source {
    class: usize,
    /// The packets' member that tells the CPU.
    cpu: Option<NodeId>,
}

/// By place among the streams of all traces: what a stream's packet says.
#[derive(Clone, Debug, Default)]
pub struct Packets(Vec<Packet>);

#[derive(Clone, Debug, Default)]
struct Packet {
    cpu: Option<u64>,
    values: Vec<(NodeId, u64)>,
}

impl Subjects {
    /// Those of a trace set.
    pub fn new(set: &TraceSet) -> Subjects {
        Subjects {
            streams: set.traces.iter().map(sources).collect(),
        }
    }

    /// The class of a stream, by index.
    #[inline]
    pub fn class(&self, stream: StreamRef) -> Option<usize> {
        self.source(stream).map(|source| source.class)
    }

    #[inline]
    fn source(&self, stream: StreamRef) -> Option<&Source> {
        self.streams
            .get(stream.trace as usize)?
            .get(stream.stream as usize)
    }

    /// Place of a stream among those of all traces.
    fn place(&self, stream: StreamRef) -> u32 {
        let before = self.streams.iter().take(stream.trace as usize);
        before.map(Vec::len).sum::<usize>() as u32 + stream.stream
    }

    /// A packet begins, or goes on.
    pub fn packet(&self, packets: &mut Packets, place: &StreamPlace<'_>) {
        let Some(source) = self.source(place.stream) else {
            return;
        };
        let stream = self.place(place.stream);
        let stream = stream as usize;
        if stream >= packets.0.len() {
            packets.0.resize_with(stream + 1, Packet::default);
        }
        let own = &mut packets.0[stream];
        let values = &place.head.values;
        own.values.clone_from(values);
        let cpu = source
            .cpu
            .and_then(|cpu| values.iter().find(|(node, _)| *node == cpu));
        own.cpu = cpu.map(|(_, value)| *value);
    }
}

impl Packets {
    /// What is known of an event record.
    #[inline]
    pub fn subject(&self, record: &Record<'_>) -> Subject<'_> {
        let packet = self.0.get(record.number as usize);
        Subject {
            time: record.time.0,
            cpu: packet.and_then(|packet| packet.cpu),
            packet: packet.map_or(&[], |packet| &packet.values),
            ..Subject::default()
        }
    }
}

fn sources(trace: &Trace) -> Vec<Source> {
    let source = |stream: &tracebraid_ctf::stream::Stream| {
        let layout = trace.layout.streams.get(stream.class);
        Source {
            class: stream.class,
            cpu: layout.and_then(|layout| layout.packet_context_member("cpu_id")),
        }
    };
    trace.streams.iter().map(source).collect()
}
