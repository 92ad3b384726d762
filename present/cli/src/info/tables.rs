//! Descriptions of traces as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use jiff::tz::TimeZone;

use tracebraid_follow::not_recorded;

use super::{DamageInfo, Info, StreamInfo, TraceInfo};
use crate::table::{Column, render};
use crate::terminal_text;
use crate::time;
use crate::units::{bytes, duration, grouped};

/// Settings of the text output.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) zone: TimeZone,
    /// Whether headings are bold.
    pub(crate) colours: bool,
}

impl View {
    fn heading(&self, text: &str) -> String {
        if self.colours {
            format!("\x1b[1m{text}\x1b[0m\n")
        } else {
            format!("{text}\n")
        }
    }

    /// A time with its date, or `-`.
    pub(crate) fn time(&self, time: Option<i64>) -> String {
        time.map_or_else(|| "-".to_owned(), |time| time::date(time, &self.zone))
    }

    /// A time for a table. On a narrow terminal it has no date if the trace begins on the same day.
    fn short_time(&self, time: Option<i64>, begin: Option<i64>) -> String {
        let (whole, begin) = (self.time(time), self.time(begin));
        let narrow = terminal_text::terminal_width().is_some_and(|width| width < 100);
        match (whole.split_once(' '), begin.split_once(' ')) {
            (Some((date, short)), Some((day, _)))
                if narrow && date == day && date.contains('-') =>
            {
                short.to_owned()
            }
            _ => whole,
        }
    }

    pub(crate) fn show(&self, info: &Info) -> String {
        let mut text = String::new();
        for trace in &info.traces {
            text += &self.trace(trace);
        }
        if info.traces.len() > 1 {
            text += &self.heading("All traces together");
            text += &facts(&[
                ("Begin", self.time(info.begin)),
                ("End", self.time(info.end)),
                ("Duration", length(info.duration)),
                ("Packets", grouped(info.packets)),
                ("Bytes", size(info.bytes)),
            ]);
            text.push('\n');
        }
        if let Some(events) = info.events {
            text += &facts(&[("Event records", grouped(events))]);
            text.push('\n');
        }
        text += &self.lost(info);
        text += &self.damage(info);
        if !info.notes.is_empty() {
            text += &self.heading("Notes");
            info.notes.iter().for_each(|note| text += &line(note));
        }
        text
    }

    fn trace(&self, trace: &TraceInfo) -> String {
        let mut text = self.heading(&format!("Trace {}", trace.paths.join(", ")));
        let mut known = vec![("Format", trace.format.to_owned())];
        known.extend(trace.uuid.clone().map(|uuid| ("UUID", uuid)));
        known.extend(trace.name.clone().map(|name| ("Name", name)));
        known.extend([
            ("Begin", self.time(trace.begin)),
            ("End", self.time(trace.end)),
            ("Duration", length(trace.duration)),
        ]);
        known.extend(cpus(trace).map(|cpus| ("CPUs", cpus)));
        known.extend([
            ("Streams", grouped(trace.streams.len() as u64)),
            ("Packets", grouped(trace.packets)),
            ("Bytes", size(trace.bytes)),
            ("Metadata", size(trace.metadata_bytes)),
            ("Event classes", grouped(trace.event_classes as u64)),
        ]);
        let end = match (trace.ended, &trace.end_reason, trace.is_growing) {
            (None, ..) => None,
            (Some(true), Some(reason), _) => Some(format!("yes ({})", reason.replace('_', " "))),
            (Some(true), None, _) => Some("yes".to_owned()),
            (Some(false), _, true) => Some("no, the recording is still running".to_owned()),
            (Some(false), _, false) => {
                Some("no, events at the end are missing: see the notes".to_owned())
            }
        };
        known.extend(end.map(|end| ("Ended", end)));
        let triggers = trace.triggers.iter();
        let triggers = triggers.map(|trigger| {
            let time = self.time(Some(trigger.time));
            (
                "Condition",
                format!("{} ({}) at {time}", trigger.condition, trigger.value),
            )
        });
        known.extend(triggers);
        if !trace.not_recorded.is_empty() {
            let recorded: Vec<String> = trace.recorded_cpus.iter().map(u32::to_string).collect();
            known.push(("Recorded CPUs", recorded.join(", ")));
            known.push((
                "Not recorded",
                not_recorded(&trace.not_recorded, trace.start),
            ));
        }
        text += &facts(&known);
        text.push('\n');
        text += &self.environment(trace);
        text += &self.clocks(trace);
        text += &self.streams(trace);
        text += &self.events(trace);
        text
    }

    fn environment(&self, trace: &TraceInfo) -> String {
        if trace.environment.is_empty() {
            return String::new();
        }
        let shown = |value: &serde_json::Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let rows = trace
            .environment
            .iter()
            .map(|(key, value)| vec![key.clone(), shown(value)]);
        let table = render(&[Column::whole("Environment"), Column::text("Value")], rows);
        table + "\n"
    }

    fn clocks(&self, trace: &TraceInfo) -> String {
        if trace.clocks.is_empty() {
            return String::new();
        }
        let columns = [
            Column::text("Clock"),
            Column::number("Hz"),
            Column::number("Offset s"),
            Column::number("Offset cycles"),
            Column::whole("Origin").left_out(2),
            Column::whole("UUID").left_out(1),
        ];
        let rows = trace.clocks.iter().map(|clock| {
            vec![
                clock.name.clone(),
                grouped(clock.frequency),
                clock.offset_seconds.to_string(),
                clock.offset_cycles.to_string(),
                if clock.origin == "1970-01-01T00:00:00Z" {
                    "Unix epoch".to_owned()
                } else {
                    clock.origin.clone()
                },
                clock.uuid.clone().unwrap_or_else(|| "-".to_owned()),
            ]
        });
        render(&columns, rows) + "\n"
    }

    fn streams(&self, trace: &TraceInfo) -> String {
        if trace.streams.is_empty() {
            return "No data streams.\n\n".to_owned();
        }
        let columns = [
            Column::whole("Stream"),
            Column::number("Class").left_out(1),
            Column::number("Id").left_out(2),
            Column::number("CPU"),
            Column::number("Packets"),
            Column::number("Bytes").left_out(3),
            Column::whole("Begin").left_out(4),
            Column::number("Duration"),
        ];
        let optional = |number: Option<u64>| {
            number.map_or_else(|| "-".to_owned(), |number| number.to_string())
        };
        let rows = trace.streams.iter().map(|stream| {
            vec![
                name(stream),
                stream.class.to_string(),
                optional(stream.id),
                optional(stream.cpu),
                grouped(stream.packets),
                grouped(stream.bytes),
                self.short_time(stream.begin, trace.begin),
                length(super::duration(stream.begin, stream.end)),
            ]
        });
        render(&columns, rows) + "\n"
    }

    fn events(&self, trace: &TraceInfo) -> String {
        let Some(events) = &trace.events else {
            return String::new();
        };
        let counted = events.iter().any(|event| event.count.is_some());
        let mut columns = vec![
            Column::text("Event class"),
            Column::number("Stream class"),
            Column::number("Id"),
            Column::number("Fields").left_out(2),
            Column::number("Log level").left_out(1),
        ];
        if counted {
            columns.push(Column::number("Event records"));
        }
        let rows = events.iter().map(|event| {
            let mut row = vec![
                event.name.clone(),
                event.stream_class.to_string(),
                event.id.to_string(),
                event.fields.to_string(),
                event
                    .log_level
                    .map_or_else(|| "-".to_owned(), |level| level.to_string()),
            ];
            row.extend(event.count.map(grouped));
            row
        });
        render(&columns, rows) + "\n"
    }

    fn lost(&self, info: &Info) -> String {
        let streams = || info.traces.iter().flat_map(|trace| &trace.streams);
        let is_lossy = |stream: &&StreamInfo| {
            stream.lost_events + stream.lost_packets + stream.loss_counter_faults > 0
        };
        if !streams().any(|stream| is_lossy(&stream)) {
            return terminal_text::paragraph("The tracer lost no event records.");
        }
        let columns = [
            Column::whole("Lost from"),
            Column::number("Event records"),
            Column::number("Packets"),
            Column::whole("Not before").left_out(1),
            Column::whole("Not after").left_out(1),
        ];
        let rows = streams().filter(is_lossy).map(|stream| {
            let (from, to) = stream.lost_between.unzip();
            vec![
                name(stream),
                grouped(stream.lost_events),
                grouped(stream.lost_packets),
                self.short_time(from, info.begin),
                self.short_time(to, info.begin),
            ]
        });
        let mut text = render(&columns, rows);
        for stream in streams().filter(|stream| stream.loss_counter_faults > 0) {
            text += &terminal_text::paragraph(&format!(
                "  {}: the loss counter runs backwards {}: more may have been lost",
                name(stream),
                crate::loss::times(stream.loss_counter_faults)
            ));
        }
        text
    }

    fn damage(&self, info: &Info) -> String {
        if info.damage.is_empty() && info.not_read.is_empty() {
            return match info.events.is_some() {
                true => "No damage found in the metadata, the packets and all event records.\n",
                false => {
                    "No damage found in metadata and packet headers;\n\
                     --counts also checks all event records.\n"
                }
            }
            .to_owned();
        }
        let mut text = self.heading("Damage");
        for not_read in &info.not_read {
            let _ = writeln!(text, "  {}: not read: {}", not_read.path, not_read.reason);
        }
        info.damage.iter().for_each(|damage| text += &line(damage));
        text
    }
}

/// A line of the sections on damage and notes.
fn line(damage: &DamageInfo) -> String {
    let place = damage
        .offset
        .map_or_else(String::new, |offset| format!(": byte {offset}"));
    let skipped = damage.skipped.filter(|&skipped| skipped > 0);
    let skipped = skipped.map_or_else(String::new, |skipped| format!("; skipped {skipped} bytes"));
    format!("  {}{place}: {}{skipped}\n", damage.path, damage.message)
}

/// Name of a stream's first file, with the number of further files.
fn name(stream: &StreamInfo) -> String {
    let first = stream.files.first().map(String::as_str).unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or(first);
    match stream.files.len() {
        0 | 1 => name.to_owned(),
        count => format!("{name} and {} more", count - 1),
    }
}

/// The number of CPUs with streams of their own; `None` if streams do not belong to CPUs.
fn cpus(trace: &TraceInfo) -> Option<String> {
    let cpus: BTreeSet<u64> = trace.streams.iter().filter_map(|of| of.cpu).collect();
    (!cpus.is_empty()).then(|| grouped(cpus.len() as u64))
}

fn length(nanoseconds: Option<i64>) -> String {
    nanoseconds
        .and_then(|length| u64::try_from(length).ok())
        .map_or_else(|| "-".to_owned(), duration)
}

fn size(number: u64) -> String {
    if number < 1024 {
        bytes(number)
    } else {
        format!("{} ({})", bytes(number), grouped(number))
    }
}

/// Keys and values, one pair per line.
fn facts(facts: &[(&str, String)]) -> String {
    let mut text = String::new();
    for (key, value) in facts {
        let _ = writeln!(text, "  {key:<14} {value}");
    }
    text
}
