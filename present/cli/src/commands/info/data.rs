//! Descriptions of traces as CSV and JSON tables.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_tables::{Section, Unit, Value};

use crate::commands::data_tables::table;
use crate::info::{ClockInfo, DamageInfo, EventInfo, Info, StreamInfo, TraceInfo};

/// The tables of a description, the main table first: the event classes if they were requested.
pub(super) fn tables(info: &Info) -> Vec<Section> {
    let mut tables = vec![
        of_traces(info, "streams", &STREAM, |of| &of.streams, stream),
        traces(info),
        of_traces(info, "clocks", &CLOCK, |of| &of.clocks, clock),
        environment(info),
        damage(info),
    ];
    if info.traces.iter().any(|trace| trace.events.is_some()) {
        tables.insert(0, of_traces(info, "events", &EVENT, events, event));
    }
    tables
}

fn events(trace: &TraceInfo) -> &[EventInfo] {
    trace.events.as_deref().unwrap_or_default()
}

type Columns = [(&'static str, Unit)];

fn path(trace: &TraceInfo) -> Value {
    trace.paths.first().map(String::as_str).into()
}

/// A table whose first column is the trace.
fn of_traces<'i, T: 'i, L: AsRef<[T]> + 'i + ?Sized>(
    info: &'i Info,
    key: &'static str,
    columns: &Columns,
    list: impl Fn(&'i TraceInfo) -> &'i L,
    row: impl Fn(&T) -> Vec<Value>,
) -> Section {
    let columns = [&[("trace", Unit::Path)][..], columns].concat();
    let mut rows = Vec::new();
    for trace in &info.traces {
        let items = list(trace).as_ref().iter();
        rows.extend(items.map(|item| std::iter::once(path(trace)).chain(row(item)).collect()));
    }
    table(key, &columns, rows)
}

const STREAM: [(&str, Unit); 10] = [
    ("file", Unit::Path),
    ("class", Unit::Id),
    ("id", Unit::Id),
    ("cpu", Unit::Cpu),
    ("packets", Unit::Count),
    ("bytes", Unit::Bytes),
    ("begin_ns", Unit::Time),
    ("end_ns", Unit::Time),
    ("lost_events", Unit::Count),
    ("lost_packets", Unit::Count),
];

fn stream(of: &StreamInfo) -> Vec<Value> {
    vec![
        of.files.first().map(String::as_str).into(),
        of.class.into(),
        of.id.into(),
        of.cpu.into(),
        of.packets.into(),
        of.bytes.into(),
        of.begin.map(Timestamp).into(),
        of.end.map(Timestamp).into(),
        of.lost_events.into(),
        of.lost_packets.into(),
    ]
}

const EVENT: [(&str, Unit); 6] = [
    ("name", Unit::Text),
    ("stream_class", Unit::Id),
    ("id", Unit::Id),
    ("fields", Unit::Count),
    ("log_level", Unit::Id),
    ("events", Unit::Count),
];

fn event(of: &EventInfo) -> Vec<Value> {
    vec![
        of.name.as_str().into(),
        of.stream_class.into(),
        of.id.into(),
        (of.fields as u64).into(),
        of.log_level.into(),
        of.count.into(),
    ]
}

const CLOCK: [(&str, Unit); 5] = [
    ("name", Unit::Text),
    ("frequency", Unit::Count),
    ("offset_seconds", Unit::Count),
    ("offset_cycles", Unit::Count),
    ("origin", Unit::Text),
];

fn clock(of: &ClockInfo) -> Vec<Value> {
    vec![
        of.name.as_str().into(),
        of.frequency.into(),
        of.offset_seconds.into(),
        of.offset_cycles.into(),
        of.origin.as_str().into(),
    ]
}

fn traces(info: &Info) -> Section {
    let columns = [
        ("trace", Unit::Path),
        ("name", Unit::Text),
        ("format", Unit::Text),
        ("begin_ns", Unit::Time),
        ("end_ns", Unit::Time),
        ("packets", Unit::Count),
        ("bytes", Unit::Bytes),
        ("event_classes", Unit::Count),
    ];
    let rows = info.traces.iter().map(|of| {
        vec![
            path(of),
            of.name.as_deref().into(),
            of.format.into(),
            of.begin.map(Timestamp).into(),
            of.end.map(Timestamp).into(),
            of.packets.into(),
            of.bytes.into(),
            (of.event_classes as u64).into(),
        ]
    });
    table("traces", &columns, rows.collect())
}

fn environment(info: &Info) -> Section {
    let columns = [
        ("trace", Unit::Path),
        ("key", Unit::Text),
        ("value", Unit::Text),
    ];
    let mut rows = Vec::new();
    for trace in &info.traces {
        for (key, value) in &trace.environment {
            let value = match value.as_str() {
                Some(text) => Value::text(text),
                None => Value::Text(value.to_string()),
            };
            rows.push(vec![path(trace), key.as_str().into(), value]);
        }
    }
    table("environment", &columns, rows)
}

fn damage(info: &Info) -> Section {
    let columns = [
        ("path", Unit::Path),
        ("offset", Unit::Bytes),
        ("message", Unit::Text),
        ("skipped", Unit::Bytes),
    ];
    let row = |of: &DamageInfo| {
        vec![
            of.path.as_str().into(),
            of.offset.into(),
            of.message.as_str().into(),
            of.skipped.into(),
        ]
    };
    table("damage", &columns, info.damage.iter().map(row).collect())
}
