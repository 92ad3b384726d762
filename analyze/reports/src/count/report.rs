//! What the count report says.

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
    /// Event records in all.
    pub events: u64,
    /// Event records by the names of their classes; classes without any are left out.
    pub by_name: BTreeMap<String, u64>,
    /// Event records by CPU, where packets or event records contain one.
    pub by_cpu: BTreeMap<u32, u64>,
    /// Each stream.
    pub streams: Vec<StreamRow>,
    /// Time of the first event record, in nanoseconds from the origin.
    pub first: Option<i64>,
    /// Time of the last one.
    pub last: Option<i64>,
    /// How many there are over time.
    pub rate: Rate,
    /// Event records that the tracer says it discarded, as far as it counted them.
    pub discarded_events: u64,
    /// Packets that the tracer says it discarded.
    pub discarded_packets: u64,
    /// Each loss.
    pub losses: Vec<LossRow>,
    /// A guessed end of a stream was wrong, and so is the range of the columns: see
    /// [`Count::with_guessed_ends`](super::Count::with_guessed_ends).
    #[serde(skip)]
    pub has_wrong_guess: bool,
}

/// A stream's part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StreamRow {
    /// Index of its trace.
    pub trace: u32,
    /// Its first file.
    pub file: String,
    /// Number of the CPU; `None` if packets of the stream are of several.
    pub cpu: Option<u32>,
    /// Event records.
    pub events: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of the packets.
    pub bytes: u64,
    /// Time of the first event record.
    pub first: Option<i64>,
    /// Time of the last one.
    pub last: Option<i64>,
}

/// Event records over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rate {
    /// When the first part begins, in nanoseconds from the origin.
    pub from: i64,
    /// When the last part ends.
    pub to: i64,
    /// Event records in each part of equal length. Those outside of the time that the packets say
    /// they cover are in the first and in the last.
    pub counts: Vec<u64>,
}

/// A loss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossRow {
    /// `events` or `packets`.
    pub kind: &'static str,
    /// How many, if it is known.
    pub count: Option<u64>,
    /// The stream's first file.
    pub file: String,
    /// Nothing of it was lost before this time.
    pub from: Option<i64>,
    /// Nothing of it was lost after this time.
    pub to: Option<i64>,
}

/// The CPU of a stream, if all of its packets agree.
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

/// Number of event records by name, added up over the event classes with that name.
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
