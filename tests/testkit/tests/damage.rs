//! Damage to traces: the reference reader finds it at the expected position, and reads the expected
//! number of event records.

use std::collections::HashMap;
use tracebraid_ctf::schema::CtfVersion;
use tracebraid_testkit::damage::{ALL, Damage, Expected, damage};
use tracebraid_testkit::directory;
use tracebraid_testkit::generate::{Options, generate};
use tracebraid_testkit::reference::Reader;

/// Event records that the reference reader finds in the trace, and whether it finds a fault.
fn read(trace: &std::path::Path) -> (u64, bool) {
    let class = directory::trace_class(trace).unwrap();
    let reader = Reader::new(&class);
    let mut events = 0;
    let mut has_error = false;
    for file in directory::stream_files(trace).unwrap() {
        let stream = reader.stream(&std::fs::read(file).unwrap());
        events += stream.event_count() as u64;
        has_error |= stream.first_error().is_some();
    }
    (events, has_error)
}

fn check(expected: &Expected, trace: &std::path::Path, sound: u64) {
    let (events, has_error) = read(trace);
    let name = expected.damage;
    assert!(
        expected.file.is_file(),
        "{name:?}: {}",
        expected.file.display()
    );
    assert!(
        expected.events_at_least <= expected.events_at_most,
        "{expected:?}"
    );
    assert!(expected.events_at_most <= sound, "{expected:?}");
    assert!(
        events <= expected.events_at_most,
        "{events} events, {expected:?}"
    );
    match name {
        // The reference reader stops at a packet that it cannot start.
        Damage::BadMagic | Damage::WrongUuid | Damage::ContentBeyondPacket => {
            assert!(has_error, "{expected:?}")
        }
        Damage::EmptyStream
        | Damage::GarbageIndex
        | Damage::ForeignIndex
        | Damage::ClockBackwards => {
            assert!(!has_error, "{expected:?}");
            assert_eq!(events, expected.events_at_least, "{expected:?}");
        }
        _ => {
            assert!(has_error, "{expected:?}");
            assert_eq!(events, expected.events_at_least, "{expected:?}");
        }
    }
}

#[test]
fn every_damage_is_where_it_is_said_to_be() {
    let mut done: HashMap<Damage, u32> = HashMap::new();
    for version in [CtfVersion::V1_8, CtfVersion::V2_0] {
        for seed in 0..40 {
            for kind in ALL {
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
                check(&expected, directory.path(), generated.event_count() as u64);
                *done.entry(kind).or_default() += 1;
            }
        }
    }
    for kind in ALL {
        assert!(
            done.get(&kind).is_some_and(|&count| count >= 10),
            "{kind:?}: {:?}",
            done.get(&kind)
        );
    }
}
