//! Writes random events to streams and reads them back: the reader must return the written values
//! event by event, for any schema, packet size and version of the format, and for all methods of
//! passing values.

use std::path::Path;

use crate::formats_support::{Shown, expected, read_stream, scan_counts};
use tracebraid_ctf::schema::{CtfVersion, FieldClass, Roles, TraceClass};
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_ctf::write::WriteError;
use tracebraid_ctf::write::stream::PacketSize;
use tracebraid_ctf::write::trace::{Options, Session};
use tracebraid_testkit::generate::{Generated, GeneratedEvent, Options as Random, generate};
use tracebraid_testkit::recorded;
use tracebraid_testkit::rewrite::{body, copy, write};

const SEEDS: u64 = 500;

/// True if the headers of the stream contain a timestamp. Otherwise its events have the time of
/// their packet.
fn has_times(class: &TraceClass, stream: usize) -> bool {
    let header = class.streams[stream]
        .event_header
        .iter()
        .flat_map(FieldClass::all);
    let mut ints = header.filter_map(|class| match class {
        FieldClass::Int(int) => Some(int.roles),
        _ => None,
    });
    ints.any(|roles| roles.contains(Roles::CLOCK_TIMESTAMP))
}

fn shown(
    class: &TraceClass,
    stream: usize,
    event: &GeneratedEvent,
) -> (usize, Option<u64>, String) {
    let mut text = String::new();
    for (class, value) in body(class, stream, event) {
        expected(value, class, &mut text);
    }
    let time = event.time.filter(|_| has_times(class, stream));
    (event.class, time, text)
}

/// The rendered event without its header, whose form is up to the writer.
fn without_header(shown: Shown, class: &TraceClass, stream: usize) -> (usize, Option<u64>, String) {
    let mut text = shown.text.as_str();
    if class.streams[stream].event_header.is_some() {
        let mut depth = 0;
        let mut end = 0;
        for word in text.split_inclusive(' ') {
            end += word.len();
            match word.trim() {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
        text = &text[end..];
    }
    let time = shown.clock.filter(|_| has_times(class, stream));
    (shown.class, time, text.to_owned())
}

fn check(generated: &Generated, directory: &Path, what: &str) {
    let class = &generated.class;
    let trace = Trace::open(&directory.join("some/where")).unwrap();
    assert!(trace.damage.is_empty(), "{what}: {:?}", trace.damage);
    for written in &generated.streams {
        // There may be no packets at all.
        if event_count(written) == 0 {
            continue;
        }
        let is_it = |path: &Path| {
            path.file_name()
                .is_some_and(|name| *name == *written.file_name)
        };
        let stream = trace
            .streams
            .iter()
            .find(|stream| stream.files.iter().any(|file| is_it(&file.path)))
            .unwrap_or_else(|| panic!("{what}: {} is missing", written.file_name));
        let (counts, damage) = scan_counts(&trace, stream);
        assert_eq!(
            (counts.iter().sum(), damage),
            (event_count(written), vec![]),
            "{what}"
        );
        let events: Vec<_> = written
            .packets
            .iter()
            .flat_map(|packet| &packet.events)
            .collect();
        let wanted: Vec<_> = events
            .iter()
            .map(|event| shown(class, written.class, event))
            .collect();
        let (read, damage) = read_stream(&trace, stream, 1 << 17);
        let read: Vec<_> = read
            .into_iter()
            .map(|event| without_header(event, class, written.class))
            .collect();
        assert_eq!(read, wanted, "{what}");
        assert!(damage.is_empty(), "{what}: {damage:?}");
        check_packets(stream, what);
    }
}

fn event_count(stream: &tracebraid_testkit::generate::GeneratedStream) -> u64 {
    stream
        .packets
        .iter()
        .map(|packet| packet.events.len() as u64)
        .sum()
}

/// Checks that packets follow each other in time and contain the number of discarded events.
fn check_packets(stream: &tracebraid_ctf::stream::Stream, what: &str) {
    let mut last = 0;
    for (number, packet) in stream.packets.iter().enumerate() {
        let (begin, end) = (
            packet.begin.unwrap_or(last),
            packet.end.or(packet.begin).unwrap_or(last),
        );
        assert!(last <= begin && begin <= end, "{what}");
        last = end;
        assert!(
            packet
                .sequence
                .is_none_or(|sequence| sequence == number as u64),
            "{what}"
        );
    }
    let discarded = stream.packets.last().and_then(|packet| packet.discarded);
    assert!(
        discarded.is_none_or(|discarded| discarded == stream.class as u64 * 3),
        "{what}"
    );
}

const SIZES: [PacketSize; 4] = [
    PacketSize::UpTo(1 << 16),
    PacketSize::Fixed(4096),
    PacketSize::UpTo(600),
    PacketSize::Fixed(1024),
];

fn random_traces(version: CtfVersion, seeds: u64) {
    let (mut written, mut unsupported) = (0, 0);
    for seed in 0..seeds {
        let generated = generate(&Random {
            seed,
            version,
            ..Random::default()
        })
        .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let options = Options {
            version,
            packet_size: SIZES[seed as usize % SIZES.len()],
            metadata_packets: seed % 3 == 0,
            index: seed % 5 != 0,
        };
        let session = match seed % 2 {
            0 => Session::create(&path),
            _ => Session::create_live(&path),
        };
        let what = format!("seed {seed}, {version:?}");
        match write(&generated, session.unwrap(), "some/where", options) {
            Ok(()) => {
                written += 1;
                check(&generated, &path, &what);
            }
            Err(WriteError::Unsupported { .. } | WriteError::EventTooLarge { .. }) => {
                unsupported += 1
            }
            // Generated heads may fill a small packet completely.
            Err(WriteError::Misuse(message)) if message.contains("packets of") => unsupported += 1,
            Err(other) => panic!("{what}: {other}"),
        }
    }
    println!("{written} written, {unsupported} not supported");
    assert!(
        written > 100,
        "{written} written, {unsupported} not supported"
    );
}

#[test]
fn random_traces_of_ctf_1_8() {
    random_traces(CtfVersion::V1_8, SEEDS);
}

#[test]
fn random_traces_of_ctf_2() {
    random_traces(CtfVersion::V2_0, 3 * SEEDS);
}

/// CTF 1.8's schemas, written as CTF 2.
#[test]
fn random_traces_of_ctf_1_8_as_ctf_2() {
    let mut written = 0;
    for seed in 0..SEEDS {
        let generated = generate(&Random {
            seed,
            babeltrace: true,
            ..Random::default()
        })
        .unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("trace");
        let options = Options {
            version: CtfVersion::V2_0,
            ..Options::default()
        };
        match write(
            &generated,
            Session::create(&path).unwrap(),
            "some/where",
            options,
        ) {
            Ok(()) => {
                written += 1;
                let class = &Trace::open(&path.join("some/where")).unwrap().layout.class;
                assert_eq!(class.version, CtfVersion::V2_0);
                check(&generated, &path, &format!("seed {seed}"));
            }
            Err(WriteError::Unsupported { .. } | WriteError::Inexpressible { .. }) => {}
            Err(other) => panic!("seed {seed}: {other}"),
        }
    }
    assert!(written > SEEDS / 6, "{written} written");
}

/// All event records of a trace, by stream.
fn all_events(path: &Path) -> Vec<Vec<(usize, Option<u64>, String)>> {
    let set = TraceSet::open(&[path]).unwrap();
    assert_eq!(set.damage().count(), 0);
    let mut streams = Vec::new();
    for trace in &set.traces {
        for stream in &trace.streams {
            let (read, damage) = read_stream(trace, stream, 1 << 17);
            assert!(damage.is_empty(), "{damage:?}");
            let class = &trace.layout.class;
            let read = read
                .into_iter()
                .map(|event| without_header(event, class, stream.class));
            streams.push(read.collect());
        }
    }
    streams
}

#[test]
fn copies_of_recorded_traces_have_the_same_events() {
    let unpacked = tempfile::tempdir().unwrap();
    for (archive, least) in [
        ("kernel-mix-small", 10_000),
        ("kernel-ust-requests", 10_000),
        ("perf-mix", 1000),
    ] {
        recorded::unpack(&recorded::archive(archive), unpacked.path());
        let original = unpacked.path().join(archive);
        let events = all_events(&original);
        let count: usize = events.iter().map(Vec::len).sum();
        assert!(count > least, "{archive}: {count}");
        for (version, packet_size) in [
            (CtfVersion::V1_8, PacketSize::Fixed(1 << 16)),
            (CtfVersion::V2_0, PacketSize::UpTo(1 << 18)),
        ] {
            let options = Options {
                version,
                packet_size,
                ..Options::default()
            };
            let path = unpacked
                .path()
                .join(format!("{archive}-{version:?}-{packet_size:?}"));
            copy(&original, Session::create(&path).unwrap(), options).unwrap();
            let copied = all_events(&path);
            assert_eq!(copied.len(), events.len());
            for (copied, events) in copied.iter().zip(&events) {
                assert!(copied == events, "{archive}, {version:?}");
            }
            let set = TraceSet::open(&[&path]).unwrap();
            assert!(
                set.traces
                    .iter()
                    .all(|trace| trace.layout.class.version == version)
            );
            let files = set
                .traces
                .iter()
                .flat_map(|trace| &trace.streams)
                .flat_map(|stream| &stream.files);
            assert!(files.into_iter().all(|file| file.indexed));
        }
    }
}
