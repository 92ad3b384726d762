//! Descriptions of traces: gathered once, shown as tables, JSON or CSV.

pub(crate) mod tables;

use std::collections::BTreeMap;

use serde::Serialize;
use tracebraid_ctf::schema::{ClockClass, ClockOrigin, CtfVersion, EnvValue, Uuid};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::{Extent, NotRecorded, Recorded, TraceEnd, TriggerEvent};
use tracebraid_language::head_cpu;

use crate::loss::Loss;
use crate::unfinished::Unfinished;

/// Description of all traces. Times are nanoseconds since the clocks' origin.
#[derive(Debug, Serialize)]
pub(crate) struct Info {
    pub(crate) begin: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) duration: Option<i64>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) lost_events: u64,
    pub(crate) lost_packets: u64,
    /// Number of event records, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<u64>,
    pub(crate) traces: Vec<TraceInfo>,
    /// Traces that could not be opened.
    pub(crate) not_read: Vec<NotRead>,
    pub(crate) damage: Vec<DamageInfo>,
    /// Facts that are worth knowing but are not damage.
    pub(crate) notes: Vec<DamageInfo>,
}

#[derive(Debug, Serialize)]
pub(crate) struct NotRead {
    pub(crate) path: String,
    pub(crate) reason: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct DamageInfo {
    pub(crate) path: String,
    pub(crate) offset: Option<u64>,
    pub(crate) message: String,
    pub(crate) skipped: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct TraceInfo {
    pub(crate) paths: Vec<String>,
    pub(crate) format: &'static str,
    pub(crate) uuid: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) metadata_bytes: u64,
    pub(crate) begin: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) duration: Option<i64>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) environment: BTreeMap<String, serde_json::Value>,
    pub(crate) clocks: Vec<ClockInfo>,
    pub(crate) event_classes: usize,
    /// Whether the recorder has ended the trace; `None` if it does not mark the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<bool>,
    /// Whether the recorder is still writing to the trace.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_growing: bool,
    /// Why the recording ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) end_reason: Option<String>,
    /// Conditions of `record --when` that held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) triggers: Vec<TriggerEvent>,
    pub(crate) streams: Vec<StreamInfo>,
    /// CPUs with packets, in a kernel trace in which other CPUs are missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) recorded_cpus: Vec<u32>,
    /// CPUs that event records name, but that have no packets, or none for part of the time.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) not_recorded: Vec<NotRecorded>,
    /// Zero of relative times: the first event record of all traces, in nanoseconds since the
    /// origin. Set only if CPUs are missing.
    #[serde(skip)]
    pub(crate) start: Option<i64>,
    /// Event classes, if they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) events: Option<Vec<EventInfo>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ClockInfo {
    pub(crate) name: String,
    pub(crate) uuid: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) frequency: u64,
    pub(crate) offset_seconds: i64,
    pub(crate) offset_cycles: i64,
    pub(crate) precision: Option<u64>,
    pub(crate) origin: String,
}

#[derive(Debug, Serialize)]
pub(crate) struct StreamInfo {
    pub(crate) class: u64,
    pub(crate) id: Option<u64>,
    pub(crate) cpu: Option<u64>,
    pub(crate) files: Vec<String>,
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) begin: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) lost_events: u64,
    pub(crate) lost_packets: u64,
    /// Interval that contains all losses.
    pub(crate) lost_between: Option<(i64, i64)>,
    /// Number of times that a loss counter ran backwards.
    pub(crate) loss_counter_faults: u64,
}

#[derive(Debug, Serialize)]
pub(crate) struct EventInfo {
    pub(crate) stream_class: u64,
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) log_level: Option<i64>,
    pub(crate) fields: usize,
    /// Number of event records of that name, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<u64>,
}

/// Optional parts of a description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'c> {
    /// Include the event classes.
    pub(crate) events: bool,
    /// Number of event records by name, if they were counted.
    pub(crate) counts: Option<&'c BTreeMap<String, u64>>,
}

impl Info {
    pub(crate) fn of(set: &TraceSet, wanted: Wanted<'_>) -> Info {
        let traces: Vec<_> = set
            .traces
            .iter()
            .map(|trace| TraceInfo::of(trace, wanted))
            .collect();
        let traces = with_cpus(set, traces);
        let begin = traces.iter().filter_map(|trace| trace.begin).min();
        let end = traces.iter().filter_map(|trace| trace.end).max();
        let streams = || traces.iter().flat_map(|trace| &trace.streams);
        Info {
            begin,
            end,
            duration: duration(begin, end),
            packets: traces.iter().map(|trace| trace.packets).sum(),
            bytes: traces.iter().map(|trace| trace.bytes).sum(),
            lost_events: streams().map(|stream| stream.lost_events).sum(),
            lost_packets: streams().map(|stream| stream.lost_packets).sum(),
            events: wanted.counts.map(|counts| counts.values().sum()),
            not_read: set.failed.iter().map(NotRead::of).collect(),
            damage: set.damage().map(DamageInfo::of).collect(),
            notes: crate::options::notes(set)
                .map(DamageInfo::of)
                .chain(
                    crate::unfinished::all(set)
                        .iter()
                        .map(DamageInfo::of_unfinished),
                )
                .collect(),
            traces,
        }
    }
}

/// Adds the CPUs that were not recorded.
fn with_cpus(set: &TraceSet, mut traces: Vec<TraceInfo>) -> Vec<TraceInfo> {
    let recorded = Recorded::of(set);
    let missing = recorded.missing();
    let start = (!missing.is_empty()).then(|| Extent::start(set)).flatten();
    for missing in missing {
        if let Some(trace) = traces.get_mut(missing.trace as usize) {
            trace.recorded_cpus = recorded.recorded(missing.trace);
            trace.not_recorded.push(missing);
            trace.start = start.map(|start| start.0);
        }
    }
    traces
}

impl NotRead {
    fn of((path, reason): &(std::path::PathBuf, String)) -> NotRead {
        NotRead {
            path: crate::origins::shown(path),
            reason: crate::origins::named(reason),
        }
    }
}

impl DamageInfo {
    fn of_unfinished(unfinished: &Unfinished) -> DamageInfo {
        DamageInfo {
            path: crate::origins::shown(&unfinished.path),
            offset: None,
            message: unfinished.message.clone(),
            skipped: None,
        }
    }

    fn of(damage: &tracebraid_ctf::damage::Damage) -> DamageInfo {
        DamageInfo {
            path: crate::origins::shown(&damage.path),
            offset: damage.offset,
            message: crate::origins::named(&damage.message),
            skipped: damage.skipped,
        }
    }
}

fn duration(begin: Option<i64>, end: Option<i64>) -> Option<i64> {
    Some(end?.saturating_sub(begin?))
}

/// The canonical text of a UUID.
pub(crate) fn uuid_text(uuid: Uuid) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let part = |range| hex.get(range).unwrap_or_default();
    [
        part(0..8),
        part(8..12),
        part(12..16),
        part(16..20),
        part(20..32),
    ]
    .join("-")
}

impl TraceInfo {
    fn of(trace: &Trace, wanted: Wanted<'_>) -> TraceInfo {
        let class = &trace.layout.class;
        let streams: Vec<_> = trace
            .streams
            .iter()
            .map(|stream| StreamInfo::of(trace, stream))
            .collect();
        let begin = streams.iter().filter_map(|stream| stream.begin).min();
        let end = streams.iter().filter_map(|stream| stream.end).max();
        let trace_end = crate::unfinished::end_of(trace);
        let value = |value: &EnvValue| match value {
            EnvValue::Str(text) => text.as_str().into(),
            EnvValue::Int(number) => match i64::try_from(*number) {
                Ok(number) => number.into(),
                Err(_) => {
                    u64::try_from(*number).map_or_else(|_| number.to_string().into(), Into::into)
                }
            },
        };
        TraceInfo {
            paths: trace
                .paths
                .iter()
                .map(|path| crate::origins::shown(path))
                .collect(),
            format: match class.version {
                CtfVersion::V1_8 => "CTF 1.8",
                CtfVersion::V2_0 => "CTF 2",
            },
            uuid: class.uuid.map(uuid_text),
            name: class.name.clone(),
            metadata_bytes: trace.metadata_bytes,
            begin,
            end,
            duration: duration(begin, end),
            packets: streams.iter().map(|stream| stream.packets).sum(),
            bytes: streams.iter().map(|stream| stream.bytes).sum(),
            environment: class
                .environment
                .iter()
                .map(|(key, own)| (key.clone(), value(own)))
                .collect(),
            clocks: class.clocks.iter().map(ClockInfo::of).collect(),
            event_classes: class.streams.iter().map(|stream| stream.events.len()).sum(),
            ended: trace_end
                .as_ref()
                .map(|end| matches!(end, TraceEnd::Ended(_))),
            is_growing: trace_end == Some(TraceEnd::Growing),
            end_reason: match trace_end {
                Some(TraceEnd::Ended(reason)) => reason,
                _ => None,
            },
            triggers: TriggerEvent::all(trace),
            streams,
            recorded_cpus: Vec::new(),
            not_recorded: Vec::new(),
            start: None,
            events: wanted.events.then(|| event_classes(trace, wanted)),
        }
    }
}

fn event_classes(trace: &Trace, wanted: Wanted<'_>) -> Vec<EventInfo> {
    let fields = |class: &Option<tracebraid_ctf::schema::FieldClass>| match class {
        Some(tracebraid_ctf::schema::FieldClass::Struct(class)) => class.members.len(),
        _ => 0,
    };
    let streams = trace.layout.class.streams.iter();
    let classes = streams.flat_map(|stream| stream.events.iter().map(move |event| (stream, event)));
    classes
        .map(|(stream, event)| EventInfo {
            stream_class: stream.id,
            id: event.id,
            name: event.name.to_string(),
            log_level: event.log_level,
            fields: fields(&event.specific_context) + fields(&event.payload),
            count: wanted
                .counts
                .map(|counts| counts.get(&*event.name).copied().unwrap_or(0)),
        })
        .collect()
}

impl ClockInfo {
    fn of(clock: &ClockClass) -> ClockInfo {
        ClockInfo {
            name: clock.name.clone().unwrap_or_else(|| clock.id.clone()),
            uuid: clock.uuid.map(uuid_text).or_else(|| clock.uid.clone()),
            description: clock.description.clone(),
            frequency: clock.frequency,
            offset_seconds: clock.offset_seconds,
            offset_cycles: clock.offset_cycles,
            precision: clock.precision,
            origin: match &clock.origin {
                ClockOrigin::UnixEpoch => "1970-01-01T00:00:00Z".to_owned(),
                ClockOrigin::Unknown => "unknown".to_owned(),
                ClockOrigin::Custom { name, uid, .. } => format!("{name} ({uid})"),
            },
        }
    }
}

impl StreamInfo {
    fn of(trace: &Trace, stream: &Stream) -> StreamInfo {
        let covered = Extent::covered(trace, stream);
        let layout = trace.layout.streams.get(stream.class);
        let loss = Loss::of(trace, stream);
        StreamInfo {
            class: layout.map_or(0, |layout| layout.id),
            id: stream.id,
            cpu: layout.and_then(|layout| head_cpu(layout, &stream.head)),
            files: stream
                .files
                .iter()
                .map(|file| crate::origins::shown(&file.path))
                .collect(),
            packets: stream.packets.len() as u64,
            bytes: stream.bytes(),
            begin: covered.map(|covered| covered.first.0),
            end: covered.map(|covered| covered.last.0),
            lost_events: loss.events,
            lost_packets: loss.packets,
            lost_between: loss.range,
            loss_counter_faults: loss.backwards,
        }
    }
}
