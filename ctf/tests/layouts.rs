//! The scanner equals the reference reader on the layouts of various tracers: counting alone, in
//! several packets at once, within ranges of the clock, and collecting hits; also on truncated and
//! damaged traces.
//!
//! `LAYOUTS_SEEDS` sets the number of damaged variants of each layout.

use std::path::Path;
use std::sync::Arc;

use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::scan::{Counts, LANES, Progress, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::Trace;
use tracebraid_testkit::reference::Reader;
use tracebraid_testkit::rng::Rng;

const EVENTS: u64 = 6_000;

/// Class, clock and position of the body of each event record, and the damage.
fn read(trace: &Trace, stream: &Stream) -> (Vec<(usize, u64, u64)>, Vec<String>) {
    let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 16);
    let mut found = Vec::new();
    while let Some(event) = reader.event() {
        found.push((event.class_index, event.clock, event.body.pos));
        reader.advance();
    }
    (found, texts(&reader.take_damage()))
}

fn texts(damage: &[tracebraid_ctf::damage::Damage]) -> Vec<String> {
    damage.iter().map(ToString::to_string).collect()
}

fn by_class(trace: &Trace, stream: &Stream, records: &[(usize, u64, u64)]) -> Vec<u64> {
    let mut counts = vec![0; trace.layout.streams[stream.class].events.len()];
    records.iter().for_each(|(class, ..)| counts[*class] += 1);
    counts
}

fn table(trace: &Trace, stream: &Stream, chosen: impl Fn(usize) -> bool) -> Arc<ScanTable> {
    Arc::new(ScanTable::new(&trace.layout.streams[stream.class], chosen))
}

fn scanner<'t>(trace: &'t Trace, stream: &'t Stream, table: &Arc<ScanTable>) -> Scanner<'t> {
    Scanner::new(trace, stream, table.clone(), 0..stream.packets.len()).unwrap()
}

/// Counts in steps of `step` cycles.
fn count_alone(trace: &Trace, stream: &Stream, step: u64) -> (Vec<u64>, Vec<String>) {
    let layout = &trace.layout.streams[stream.class];
    let mut scanner = scanner(trace, stream, &table(trace, stream, |_| false));
    let mut counts = Counts::new(layout);
    while scanner.next_packet().is_some() {
        let mut within = 0..step;
        loop {
            let counted = scanner.count(&mut counts, within.clone());
            match counted.refused {
                Some(clock) => {
                    let begin = clock / step * step;
                    within = begin..begin.saturating_add(step);
                }
                None if counted.ended => break,
                None => {}
            }
        }
    }
    (counts.take(layout), texts(&scanner.take_damage()))
}

/// Counts in [`LANES`] packets at once; each lane continues with the next packet.
fn count_together(trace: &Trace, stream: &Stream) -> (Vec<u64>, Vec<String>) {
    let layout = &trace.layout.streams[stream.class];
    let table = table(trace, stream, |_| false);
    let mut counts = Counts::new(layout);
    let mut damage = Vec::new();
    let packets: Vec<usize> = (0..stream.packets.len()).collect();
    for group in packets.chunks(LANES) {
        let over = |&packet: &usize| {
            Scanner::new(trace, stream, table.clone(), packet..packet + 1).unwrap()
        };
        let mut scanners: Vec<_> = group.iter().map(over).collect();
        let are_open: Vec<bool> = scanners
            .iter_mut()
            .map(|lane| lane.next_packet().is_some())
            .collect();
        if let ([a, b, c], true) = (scanners.as_mut_slice(), are_open.iter().all(|&open| open)) {
            loop {
                let lanes = [&mut *a, &mut *b, &mut *c];
                let (_, stopped) = Scanner::count_together(lanes, &mut counts, [u64::MAX; LANES]);
                let stopped = [&mut *a, &mut *b, &mut *c]
                    .into_iter()
                    .nth(stopped)
                    .unwrap();
                if stopped.count_next(&mut counts, 0..u64::MAX).ended {
                    break;
                }
            }
        }
        for (scanner, is_open) in scanners.iter_mut().zip(are_open) {
            while is_open && !scanner.count(&mut counts, 0..u64::MAX).ended {}
            scanner.next_packet();
            damage.extend(texts(&scanner.take_damage()));
        }
    }
    (counts.take(layout), damage)
}

fn hits(
    trace: &Trace,
    stream: &Stream,
    chosen: impl Fn(usize) -> bool,
) -> (Vec<(usize, u64, u64)>, Vec<String>) {
    let mut scanner = scanner(trace, stream, &table(trace, stream, chosen));
    let mut found = Vec::new();
    while scanner.next_packet().is_some() {
        loop {
            let progress = scanner.scan();
            scanner
                .batch()
                .for_each(|class, clock, body, _| found.push((class, clock, body.pos)));
            if progress == Progress::PacketEnd {
                break;
            }
        }
    }
    (found, texts(&scanner.take_damage()))
}

/// Checks that all readers return the same results.
fn compare(name: &str, trace: &Trace) -> u64 {
    let mut events = 0;
    for stream in &trace.streams {
        let (records, damage) = read(trace, stream);
        events += records.len() as u64;
        let counts = by_class(trace, stream, &records);
        for step in [u64::MAX, 5_000_000, 70_001, 999] {
            assert_eq!(
                count_alone(trace, stream, step),
                (counts.clone(), damage.clone()),
                "{name} by {step}"
            );
        }
        assert_eq!(
            count_together(trace, stream),
            (counts, damage.clone()),
            "{name} together"
        );
        assert_eq!(
            hits(trace, stream, |_| true),
            (records.clone(), damage.clone()),
            "{name} hits"
        );
        let some: Vec<_> = records
            .into_iter()
            .filter(|(class, ..)| class % 3 == 2)
            .collect();
        assert_eq!(
            hits(trace, stream, |class| class % 3 == 2),
            (some, damage),
            "{name} some hits"
        );
    }
    events
}

fn reference_events(trace: &Trace, directory: &Path) -> u64 {
    let reader = Reader::new(&trace.layout.class);
    let streams =
        (0..2).map(|stream| std::fs::read(directory.join(format!("stream_{stream}"))).unwrap());
    streams
        .map(|data| reader.stream(&data).event_count() as u64)
        .sum()
}

#[test]
fn every_layout_is_scanned_as_the_reference_reads_it() {
    for name in tracebraid_testkit::layouts::names() {
        let place = tempfile::tempdir().unwrap();
        tracebraid_testkit::layouts::write(name, EVENTS, place.path()).unwrap();
        let trace = Trace::open(place.path()).unwrap();
        assert!(trace.damage.is_empty(), "{name}: {:?}", trace.damage);
        let events = compare(name, &trace);
        assert!(events >= EVENTS, "{name}: {events}");
        assert_eq!(events, reference_events(&trace, place.path()), "{name}");
    }
}

fn seeds() -> u64 {
    let count = std::env::var("LAYOUTS_SEEDS").ok();
    count.and_then(|count| count.parse().ok()).unwrap_or(6)
}

#[test]
fn damaged_traces_of_every_layout_are_scanned_as_they_are_read() {
    for name in tracebraid_testkit::layouts::names() {
        for seed in 0..seeds() {
            let place = tempfile::tempdir().unwrap();
            tracebraid_testkit::layouts::write(name, 900, place.path()).unwrap();
            let mut rng = Rng::new(seed);
            for stream in 0..2 {
                let path = place.path().join(format!("stream_{stream}"));
                let mut data = std::fs::read(&path).unwrap();
                for _ in 0..rng.below(12) {
                    let at = rng.below(data.len() as u64) as usize;
                    data[at] = rng.next_u64() as u8;
                }
                let length = data.len() as u64 - rng.below(200);
                data.truncate(length as usize);
                std::fs::write(&path, data).unwrap();
            }
            compare(
                &format!("{name}, seed {seed}"),
                &Trace::open(place.path()).unwrap(),
            );
        }
    }
}
