//! Grown traces: every repetition equals the source at later times.

use std::path::Path;
use tracebraid_testkit::generate::{Options, generate};
use tracebraid_testkit::grow::{GrowReport, Target, grow};
use tracebraid_testkit::reference::{Packet, Reader, Stream};
use tracebraid_testkit::{directory, index};

/// Streams by their files' names.
type Streams = Vec<(String, Stream)>;

fn streams(trace: &Path) -> Streams {
    let class = directory::trace_class(trace).unwrap();
    let reader = Reader::new(&class);
    let read = |file: std::path::PathBuf| {
        let stream = reader.stream(&std::fs::read(&file).unwrap());
        assert_eq!(stream.first_error(), None, "{}", file.display());
        check_index(&file, &stream);
        (
            file.file_name().unwrap().to_string_lossy().into_owned(),
            stream,
        )
    };
    directory::stream_files(trace)
        .unwrap()
        .into_iter()
        .map(read)
        .collect()
}

/// Checks that the index matches the packets.
fn check_index(file: &Path, stream: &Stream) {
    let Ok(content) = std::fs::read(directory::index_path(file)) else {
        return;
    };
    let entries = index::decode(&content).unwrap();
    assert_eq!(entries.len(), stream.packets.len());
    for (entry, packet) in entries.iter().zip(&stream.packets) {
        let head = &packet.head;
        assert_eq!(entry.offset, packet.offset);
        assert_eq!(
            (entry.total_length, entry.content_length),
            (head.total_length, head.content_length)
        );
        assert_eq!((Some(entry.begin), Some(entry.end)), (head.begin, head.end));
        assert_eq!(entry.discarded_events, head.discarded_events.unwrap_or(0));
        assert_eq!(entry.sequence_number, head.sequence_number.unwrap_or(0));
    }
}

/// Checks that `grown` is `source`, `shift` cycles later.
fn check_shifted(source: &Packet, grown: &Packet, shift: u64) {
    assert_eq!(source.head.begin.map(|time| time + shift), grown.head.begin);
    assert_eq!(source.head.end.map(|time| time + shift), grown.head.end);
    assert_eq!(source.head.total_length, grown.head.total_length);
    assert_eq!(source.head.content_length, grown.head.content_length);
    assert_eq!(source.events.len(), grown.events.len());
    for (source, grown) in source.events.iter().zip(&grown.events) {
        assert_eq!(source.time.map(|time| time + shift), grown.time);
        assert_eq!(
            (source.class, source.start, source.end),
            (grown.class, grown.start, grown.end)
        );
        assert_eq!(source.common_context, grown.common_context);
        assert_eq!(source.specific_context, grown.specific_context);
        assert_eq!(source.payload, grown.payload);
    }
}

fn check_counters(stream: &Stream) {
    for pair in stream.packets.windows(2) {
        assert!(pair[0].head.sequence_number <= pair[1].head.sequence_number);
        assert!(pair[0].head.discarded_events <= pair[1].head.discarded_events);
        assert!(pair[0].head.end <= pair[1].head.begin || pair[0].head.end.is_none());
    }
    let numbers: Vec<_> = stream
        .packets
        .iter()
        .filter_map(|packet| packet.head.sequence_number)
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "{numbers:?}"
    );
}

fn grow_generated(seed: u64, target: Target) -> Option<(GrowReport, Streams, Streams)> {
    let generated = generate(&Options {
        seed,
        babeltrace: true,
        events: 200,
        ..Options::default()
    })
    .unwrap();
    if generated
        .class
        .streams
        .iter()
        .any(|stream| stream.default_clock.is_none())
    {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let (source, destination) = (
        directory.path().join("source"),
        directory.path().join("grown"),
    );
    generated.save(&source).unwrap();
    match grow(&source, &destination, target) {
        Ok(report) => Some((report, streams(&source), streams(&destination))),
        Err(error) => {
            let text = format!("{error:#}");
            let refusals = [
                "frequencies differ",
                "range of the clock",
                "without a recorded length",
            ];
            assert!(
                refusals.iter().any(|refusal| text.contains(refusal)),
                "{seed}: {text}"
            );
            None
        }
    }
}

#[test]
fn repetitions_are_the_source_at_later_times() {
    let mut grown_traces = 0;
    for seed in 0..100 {
        let Some((report, source, grown)) = grow_generated(seed, Target::Times(3)) else {
            continue;
        };
        grown_traces += 1;
        assert!(report.shift.is_multiple_of(1 << 32));
        assert_eq!(report.events, 3 * report.source_events);
        assert_eq!(source.len(), grown.len());
        for ((name, source), (grown_name, grown)) in source.iter().zip(&grown) {
            assert_eq!(name, grown_name);
            assert_eq!(grown.packets.len(), 3 * source.packets.len());
            for (number, packet) in grown.packets.iter().enumerate() {
                let (repetition, of_source) =
                    (number / source.packets.len(), number % source.packets.len());
                check_shifted(
                    &source.packets[of_source],
                    packet,
                    repetition as u64 * report.shift,
                );
            }
            check_counters(grown);
        }
    }
    assert!(grown_traces > 50, "only {grown_traces}");
}

#[test]
fn a_number_of_events_ends_within_a_repetition() {
    let mut partial = 0;
    for seed in 0..60 {
        let Some((report, source, grown)) = grow_generated(seed, Target::Events(250)) else {
            continue;
        };
        let events = |streams: &Streams| {
            streams
                .iter()
                .map(|(_, stream)| stream.event_count())
                .sum::<usize>()
        };
        assert_eq!(report.events, events(&grown) as u64);
        assert_eq!(report.source_events, events(&source) as u64);
        assert!(
            (250..=2 * report.source_events).contains(&report.events),
            "{report:?}"
        );
        partial += u64::from(report.events < 2 * report.source_events);
        for ((_, source), (_, grown)) in source.iter().zip(&grown) {
            for (number, packet) in grown.packets.iter().enumerate().skip(source.packets.len()) {
                check_shifted(
                    &source.packets[number - source.packets.len()],
                    packet,
                    report.shift,
                );
            }
        }
    }
    assert!(partial > 10, "only {partial}");
}

#[test]
fn the_destination_must_be_empty() {
    let generated = generate(&Options {
        babeltrace: true,
        ..Options::default()
    })
    .unwrap();
    let directory = tempfile::tempdir().unwrap();
    generated.save(directory.path()).unwrap();
    let error = grow(directory.path(), directory.path(), Target::Times(2)).unwrap_err();
    assert!(format!("{error:#}").contains("is not empty"), "{error:#}");
}
