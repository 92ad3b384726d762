//! Damaged traces: damage is reported with its position and does not affect data elsewhere, and no
//! damage causes a panic, a hang or unbounded memory.
//!
//! `DAMAGE_SEEDS` sets the number of seeds for each format and each kind of damage.

use std::path::Path;

use crate::formats_support::{read_stream, scan_counts, scan_hits};
use tracebraid_ctf::damage::Damage as Told;
use tracebraid_ctf::schema::CtfVersion;
use tracebraid_ctf::trace::Trace;
use tracebraid_testkit::damage::{ALL, Damage, Expected, damage};
use tracebraid_testkit::generate::{Options, generate};
use tracebraid_testkit::rng::Rng;

fn seeds() -> std::ops::Range<u64> {
    let count = std::env::var("DAMAGE_SEEDS")
        .ok()
        .and_then(|count| count.parse().ok());
    0..count.unwrap_or(25)
}

/// Result of reading a whole trace: event records and damage.
struct Read {
    events: u64,
    damage: Vec<Told>,
}

fn read(directory: &Path) -> Read {
    let trace = Trace::open(directory).expect("metadata that is not damaged");
    let mut damage = trace.damage.clone();
    damage.extend(trace.notes.clone());
    let mut events = 0;
    for stream in &trace.streams {
        let mut reader = tracebraid_ctf::reader::StreamReader::new(
            &trace,
            stream,
            0..stream.packets.len(),
            4096,
        );
        while reader.peek().is_some() {
            events += 1;
            reader.advance();
        }
        damage.extend(reader.take_damage());
    }
    Read { events, damage }
}

/// The scanner must find the same event records as the reader in the rest of the trace.
fn compare_scanner(directory: &Path) -> Result<(), String> {
    let trace = Trace::open(directory).map_err(|error| error.to_string())?;
    for stream in &trace.streams {
        let (shown, _) = read_stream(&trace, stream, 1 << 17);
        let mut counts = vec![0u64; trace.layout.streams[stream.class].events.len()];
        shown.iter().for_each(|event| counts[event.class] += 1);
        let (counted, _) = scan_counts(&trace, stream);
        if counted != counts {
            return Err(format!(
                "{:?}: counted {counted:?}, read {counts:?}",
                stream.files
            ));
        }
        let hits: Vec<_> = scan_hits(&trace, stream, |_| true)
            .into_iter()
            .map(|hit| (hit.0, hit.1))
            .collect();
        let read: Vec<_> = shown
            .iter()
            .zip(&hits)
            .map(|(event, hit)| (event.class, event.clock.unwrap_or(hit.1)))
            .collect();
        if hits.len() != shown.len() || hits != read {
            return Err(format!(
                "{:?}: {} hits, {} event records read",
                stream.files,
                hits.len(),
                shown.len()
            ));
        }
    }
    Ok(())
}

fn check(expected: &Expected, directory: &Path) -> Result<(), String> {
    let read = read(directory);
    let told: Vec<String> = read.damage.iter().map(ToString::to_string).collect();
    if read.events < expected.events_at_least || read.events > expected.events_at_most {
        return Err(format!("{} event records; reported: {told:?}", read.events));
    }
    compare_scanner(directory)?;
    // Packets that begin before the previous packet are not damage: only the times show it.
    if expected.is_harmless || expected.damage == Damage::ClockBackwards {
        return Ok(());
    }
    let is_it = |told: &&Told| {
        let place = told.offset.unwrap_or(0);
        told.path == expected.file
            && (expected.packet_offset..=expected.byte_offset).contains(&place)
    };
    match read.damage.iter().find(is_it) {
        Some(_) => Ok(()),
        None => Err(format!("not reported at its position; reported: {told:?}")),
    }
}

#[test]
fn every_kind_of_damage_is_told_with_its_place_and_hides_only_itself() {
    let mut failures = Vec::new();
    let mut done = 0;
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        for kind in ALL {
            for seed in seeds() {
                let generated = generate(&Options {
                    seed,
                    version,
                    ..Options::default()
                })
                .unwrap();
                let directory = tempfile::tempdir().unwrap();
                generated.save(directory.path()).unwrap();
                let Some(expected) = damage(directory.path(), kind).unwrap() else {
                    continue;
                };
                done += 1;
                if let Err(error) = check(&expected, directory.path()) {
                    failures.push(format!(
                        "{version:?} seed {seed}: {error}\n  expected {expected:?}"
                    ));
                }
            }
        }
    }
    let shown: Vec<_> = failures
        .iter()
        .take(12)
        .map(|failure| failure.chars().take(1200).collect::<String>())
        .collect();
    assert!(
        failures.is_empty(),
        "{} failures of {done}, the first:\n{}",
        failures.len(),
        shown.join("\n")
    );
    assert!(done > 200, "only {done}");
}

/// Random changes of bytes in all files except the metadata.
#[test]
fn random_bytes_never_panic_and_scanner_and_reader_agree() {
    let mut failures = Vec::new();
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        for seed in seeds() {
            let generated = generate(&Options {
                seed,
                version,
                ..Options::default()
            })
            .unwrap();
            let mut rng = Rng::new(seed);
            for round in 0..4 {
                let directory = tempfile::tempdir().unwrap();
                generated.save(directory.path()).unwrap();
                for stream in &generated.streams {
                    let mut data = stream.data.clone();
                    for _ in 0..rng.between(1, 8) {
                        let at = rng.below(data.len() as u64) as usize;
                        if let Some(byte) = data.get_mut(at) {
                            *byte = rng.next_u64() as u8;
                        }
                    }
                    if rng.chance(20) {
                        data.truncate(rng.below(data.len() as u64 + 1) as usize);
                    }
                    std::fs::write(directory.path().join(&stream.file_name), data).unwrap();
                }
                if let Err(error) = compare_scanner(directory.path()) {
                    failures.push(format!("{version:?} seed {seed} round {round}: {error}"));
                }
            }
        }
    }
    let shown = failures
        .iter()
        .take(12)
        .cloned()
        .collect::<Vec<_>>()
        .join("\n");
    assert!(
        failures.is_empty(),
        "{} failures, the first:\n{shown}",
        failures.len()
    );
}

/// A clock that has reached its largest value does not stop counting.
#[test]
fn counting_ends_at_the_end_of_the_clock() {
    use crate::formats_support::lttng::{METADATA, Packet, extended, write};
    let mut packet = Packet::new(0, 0, &[u64::MAX - 9]);
    packet.end = u64::MAX;
    packet.events.extend(extended(0, u64::MAX, &[1, 0, 0, 0]));
    packet.events.extend(extended(0, u64::MAX, &[2, 0, 0, 0]));
    let place = tempfile::tempdir().unwrap();
    write(place.path(), METADATA, &[("stream", &[packet])]);
    let trace = Trace::open(place.path()).unwrap();
    assert_eq!(scan_counts(&trace, &trace.streams[0]), (vec![3, 0], vec![]));
}
