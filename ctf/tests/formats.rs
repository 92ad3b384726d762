//! The reader returns the written values: generated traces of both formats, read event record by
//! event record, scanned, and read field by field.
//!
//! `FORMATS_SEEDS` sets the number of seeds for each format.

use crate::formats_support::{
    Shown, expected, expected_fields, read_stream, scan_counts, scan_hits,
};
use tracebraid_ctf::schema::{CtfVersion, TraceClass};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;
use tracebraid_testkit::generate::{Generated, GeneratedEvent, GeneratedStream, Options, generate};

fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("FORMATS_SEEDS")
        .ok()
        .and_then(|count| count.parse().ok());
    0..count.unwrap_or(120)
}

fn shown(class: &TraceClass, stream: usize, event: &GeneratedEvent) -> Shown {
    let schema = &class.streams[stream];
    let values = &event.values;
    let event_class = &schema.events[event.class];
    let mut text = String::new();
    for (value, class) in [
        (&values.header, &schema.event_header),
        (&values.common_context, &schema.common_context),
        (&values.specific_context, &event_class.specific_context),
        (&values.payload, &event_class.payload),
    ] {
        if let (Some(value), Some(class)) = (value, class) {
            expected(value, class, &mut text);
        }
    }
    Shown {
        class: event.class,
        clock: event.time,
        text,
    }
}

/// The opened stream that was written to this file.
fn find<'t>(trace: &'t Trace, written: &GeneratedStream) -> Option<&'t Stream> {
    let is_it = |stream: &&Stream| {
        stream.files.iter().any(|file| {
            file.path
                .file_name()
                .is_some_and(|name| *name == *written.file_name)
        })
    };
    trace.streams.iter().find(is_it)
}

fn check_stream(
    generated: &Generated,
    trace: &Trace,
    written: &GeneratedStream,
) -> Result<(), String> {
    let class = &generated.class;
    let Some(stream) = find(trace, written) else {
        return if written.data.is_empty() {
            Ok(())
        } else {
            Err("not found".to_owned())
        };
    };
    let packets: Vec<_> = stream
        .packets
        .iter()
        .map(|packet| (packet.offset, packet.clock, packet.end))
        .collect();
    let expected_packets: Vec<_> = written
        .packets
        .iter()
        .map(|packet| (packet.offset, packet.begin, packet.end))
        .collect();
    if packets != expected_packets {
        return Err(format!("packets {packets:?}, written {expected_packets:?}"));
    }
    for (packet, written) in stream.packets.iter().zip(&written.packets) {
        let first = written.events.first().and_then(|event| event.time);
        let begin = written.begin.or(first);
        if packet.begin != begin && (written.begin.is_some() || first.is_some()) {
            return Err(format!("{packet:?} does not begin at {begin:?}"));
        }
    }
    let events: Vec<&GeneratedEvent> = written
        .packets
        .iter()
        .flat_map(|packet| &packet.events)
        .collect();
    let wanted: Vec<Shown> = events
        .iter()
        .map(|event| shown(class, written.class, event))
        .collect();
    for window in [64, 1 << 17] {
        let (read, damage) = read_stream(trace, stream, window);
        same(&read, &wanted)
            .map_err(|difference| format!("window {window}: {difference}; damage {damage:?}"))?;
        if !damage.is_empty() {
            return Err(format!("damage: {damage:?}"));
        }
    }
    check_scans(class, trace, stream, written.class, &events)
}

fn same(read: &[Shown], wanted: &[Shown]) -> Result<(), String> {
    for (index, (read, wanted)) in read.iter().zip(wanted).enumerate() {
        if read != wanted {
            return Err(format!(
                "event {index}:\n read  {read:?}\n wrote {wanted:?}"
            ));
        }
    }
    if read.len() == wanted.len() {
        Ok(())
    } else {
        Err(format!("read {} events of {}", read.len(), wanted.len()))
    }
}

fn check_scans(
    class: &TraceClass,
    trace: &Trace,
    stream: &Stream,
    stream_class: usize,
    events: &[&GeneratedEvent],
) -> Result<(), String> {
    let schema = &class.streams[stream_class];
    let mut counts = vec![0u64; schema.events.len()];
    events.iter().for_each(|event| counts[event.class] += 1);
    let (counted, damage) = scan_counts(trace, stream);
    if counted != counts || !damage.is_empty() {
        return Err(format!(
            "counted {counted:?}, wrote {counts:?}; damage {damage:?}"
        ));
    }
    for choice in 0..3 {
        let chosen = |class: usize| match choice {
            0 => true,
            1 => class.is_multiple_of(2),
            _ => class % 3 == 1,
        };
        let hits = scan_hits(trace, stream, chosen);
        let mut wanted = events.iter().filter(|event| chosen(event.class));
        for (index, (hit_class, clock, fields)) in hits.iter().enumerate() {
            let Some(event) = wanted.next() else {
                return Err(format!("{} hits too many", hits.len() - index));
            };
            let event_class = &schema.events[event.class];
            let wanted_fields = expected_fields([
                (&event.values.common_context, &schema.common_context),
                (
                    &event.values.specific_context,
                    &event_class.specific_context,
                ),
                (&event.values.payload, &event_class.payload),
            ]);
            let wanted = (event.class, event.time.unwrap_or(*clock), wanted_fields);
            if (*hit_class, *clock, fields) != (wanted.0, wanted.1, &wanted.2) {
                return Err(format!(
                    "hit {index} of choice {choice}: {hit_class} {clock} {fields:?}, wrote {wanted:?}"
                ));
            }
        }
        if wanted.next().is_some() {
            return Err("hits are missing".to_owned());
        }
    }
    Ok(())
}

fn check(seed: u64, version: CtfVersion, events: u64) -> Result<(), String> {
    let options = Options {
        seed,
        version,
        events,
        ..Options::default()
    };
    let generated = generate(&options).map_err(|error| format!("{error:#}"))?;
    let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
    generated
        .save(directory.path())
        .map_err(|error| error.to_string())?;
    let trace = Trace::open(directory.path()).map_err(|error| error.to_string())?;
    if let Some(damage) = trace.damage.first() {
        return Err(format!("damage: {damage}"));
    }
    for stream in &generated.streams {
        check_stream(&generated, &trace, stream)
            .map_err(|error| format!("{}: {error}", stream.file_name))?;
    }
    Ok(())
}

fn check_all(version: CtfVersion) {
    let failures: Vec<String> = seeds()
        .filter_map(|seed| {
            check(seed, version, 60)
                .err()
                .map(|error| format!("seed {seed}: {error}"))
        })
        .collect();
    let shown: Vec<String> = failures
        .iter()
        .take(5)
        .map(|failure| failure.chars().take(1500).collect())
        .collect();
    assert!(
        failures.is_empty(),
        "{} failures, the first:\n{}",
        failures.len(),
        shown.join("\n\n")
    );
}

#[test]
fn ctf_1_8_is_read_as_written() {
    check_all(CtfVersion::V1_8);
}

#[test]
fn ctf_2_is_read_as_written() {
    check_all(CtfVersion::V2_0);
}
