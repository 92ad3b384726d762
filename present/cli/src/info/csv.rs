//! Descriptions of traces as one table: a row for each stream, or for each event class.

use super::{Info, TraceInfo};
use crate::csv::Rows;

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn path(trace: &TraceInfo) -> String {
    trace.paths.first().cloned().unwrap_or_default()
}

/// A row for each stream.
pub(crate) fn streams(info: &Info) -> String {
    let mut rows = Rows::new(&[
        "trace",
        "file",
        "class",
        "id",
        "cpu",
        "packets",
        "bytes",
        "begin_ns",
        "end_ns",
        "lost_events",
        "lost_packets",
    ]);
    for trace in &info.traces {
        for stream in &trace.streams {
            rows.add([
                path(trace),
                stream.files.first().cloned().unwrap_or_default(),
                stream.class.to_string(),
                optional(stream.id),
                optional(stream.cpu),
                stream.packets.to_string(),
                stream.bytes.to_string(),
                optional(stream.begin),
                optional(stream.end),
                stream.lost_events.to_string(),
                stream.lost_packets.to_string(),
            ]);
        }
    }
    rows.finish()
}

/// A row for each event class.
pub(crate) fn events(info: &Info) -> String {
    let mut rows = Rows::new(&[
        "trace",
        "name",
        "stream_class",
        "id",
        "fields",
        "log_level",
        "events",
    ]);
    for trace in &info.traces {
        for event in trace.events.iter().flatten() {
            rows.add([
                path(trace),
                event.name.clone(),
                event.stream_class.to_string(),
                event.id.to_string(),
                event.fields.to_string(),
                optional(event.log_level),
                optional(event.count),
            ]);
        }
    }
    rows.finish()
}
