//! The values of the count report.

use std::collections::BTreeMap;

use serde::Serialize;
use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::losses::LossKind;
use tracebraid_ctf::packet::PacketHead;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::StreamRef;
use tracebraid_kernel_model::head_cpu;

use super::CountPartial;

/// The count report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CountReport {
    /// Number of event records.
    pub events: u64,
    /// Event records by class name; names without event records are left out.
    pub by_name: BTreeMap<String, u64>,
    /// Event records by CPU, where packets or event records contain a CPU.
    pub by_cpu: BTreeMap<u32, u64>,
    /// One row for each stream.
    pub streams: Vec<StreamRow>,
    /// Time of the first event record, in nanoseconds from the origin.
    pub first: Option<i64>,
    /// Time of the last event record, in nanoseconds from the origin.
    pub last: Option<i64>,
    /// Event records over time.
    pub rate: Rate,
    /// Event records that the tracer reports as discarded, as far as it counted them.
    pub discarded_events: u64,
    /// Packets that the tracer reports as discarded.
    pub discarded_packets: u64,
    /// One row for each loss.
    pub losses: Vec<LossRow>,
    /// A guessed end of a stream was wrong, and so is the range of the columns: see
    /// [`Count::with_guessed_ends`](super::Count::with_guessed_ends).
    #[serde(skip)]
    pub has_wrong_guess: bool,
}

/// Counts of one stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamRow {
    /// Index of its trace.
    pub trace: u32,
    /// Path of its first file.
    pub file: String,
    /// Number of the CPU; `None` if the packets of the stream are from several.
    pub cpu: Option<u32>,
    /// Number of event records.
    pub events: u64,
    /// Number of packets.
    pub packets: u64,
    /// Size of the packets in bytes.
    pub bytes: u64,
    /// Time of the first event record.
    pub first: Option<i64>,
    /// Time of the last event record.
    pub last: Option<i64>,
}

/// Event records over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// Start of the first column, in nanoseconds from the origin.
    pub from: i64,
    /// End of the last column.
    pub to: i64,
    /// Event records by column, all of equal length. Event records outside the time that the packet
    /// headers cover count in the first or the last column.
    pub counts: Vec<u64>,
}

/// One loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossRow {
    /// `events` or `packets`.
    pub kind: &'static str,
    /// Number lost, if known.
    pub count: Option<u64>,
    /// Path of the stream's first file.
    pub file: String,
    /// No loss before this time.
    pub from: Option<i64>,
    /// No loss after this time.
    pub to: Option<i64>,
}

/// The CPU of a stream, if all its packets agree.
pub(super) fn cpu_of(set: &TraceSet, stream: StreamRef) -> Option<u32> {
    let (trace, content) = stream.of(set)?;
    let layout = trace.layout.streams.get(content.class)?;
    packet_cpu(layout, &content.head).filter(|_| !content.is_mixed)
}

/// The CPU of a packet.
pub(super) fn packet_cpu(layout: &StreamLayout, head: &PacketHead) -> Option<u32> {
    u32::try_from(head_cpu(layout, head)?).ok()
}

pub(super) fn make(
    set: &TraceSet,
    bounds: &[i64],
    partial: CountPartial,
    losses: Vec<LossRow>,
) -> CountReport {
    let (by_name, streams) = (by_name(set, &partial), stream_rows(set, &partial));
    let lost = |kind| {
        losses
            .iter()
            .filter(|loss| loss.kind == kind)
            .filter_map(|loss| loss.count)
            .sum()
    };
    let mut counts = partial.rate;
    counts.resize(bounds.len().saturating_sub(1).max(counts.len()), 0);
    CountReport {
        events: streams.iter().map(|stream| stream.events).sum(),
        by_name,
        by_cpu: partial.by_cpu,
        first: streams.iter().filter_map(|stream| stream.first).min(),
        last: streams.iter().filter_map(|stream| stream.last).max(),
        rate: Rate {
            from: bounds.first().copied().unwrap_or(0),
            to: bounds.last().copied().unwrap_or(0),
            counts,
        },
        discarded_events: lost("events"),
        discarded_packets: lost("packets"),
        losses,
        streams,
        has_wrong_guess: false,
    }
}

/// Event records by name, summed over the event classes with the same name.
fn by_name(set: &TraceSet, partial: &CountPartial) -> BTreeMap<String, u64> {
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for ((trace, class), counts) in &partial.classes {
        let layout = set
            .traces
            .get(*trace as usize)
            .and_then(|trace| trace.layout.streams.get(*class as usize));
        for (event, &count) in layout
            .into_iter()
            .flat_map(|layout| &layout.events)
            .zip(counts)
        {
            if count > 0 {
                *by_name.entry(event.name.to_string()).or_default() += count;
            }
        }
    }
    by_name
}

fn stream_rows(set: &TraceSet, partial: &CountPartial) -> Vec<StreamRow> {
    partial
        .streams
        .iter()
        .filter_map(|(&stream, count)| {
            let (_, content) = stream.of(set)?;
            Some(StreamRow {
                trace: stream.trace,
                file: file_of(set, stream),
                cpu: cpu_of(set, stream),
                events: count.events,
                packets: content.packets.len() as u64,
                bytes: content.bytes(),
                first: count.times.map(|times| times.0),
                last: count.times.map(|times| times.1),
            })
        })
        .collect()
}

fn file_of(set: &TraceSet, stream: StreamRef) -> String {
    let file = stream
        .of(set)
        .and_then(|(_, content)| content.files.first());
    file.map(|file| file.path.display().to_string())
        .unwrap_or_default()
}

/// Losses of a stream.
pub(super) fn losses(set: &TraceSet, stream: StreamRef) -> Vec<LossRow> {
    let Some((trace, content)) = stream.of(set) else {
        return Vec::new();
    };
    let clock = trace.clock(content);
    let time = |cycles: Option<u64>| {
        clock
            .zip(cycles)
            .map(|(clock, cycles)| clock.timestamp(cycles).0)
    };
    let row = |loss: &tracebraid_ctf::losses::Loss| LossRow {
        kind: match loss.kind {
            LossKind::Events => "events",
            LossKind::Packets => "packets",
        },
        count: loss.count,
        file: file_of(set, stream),
        from: time(loss.from),
        to: time(loss.to),
    };
    content.losses().iter().map(row).collect()
}
