//! Damaged traces are merged as far as they can be read.

use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Control;
use tracebraid_levels::{Options, merge};
use tracebraid_models::levels::LevelShape;
use tracebraid_testkit::rng::Rng;

use crate::support::{Place, open, recorded};

/// Number of records that can be read.
fn readable(set: &TraceSet) -> u64 {
    let mut count = 0;
    for (trace, stream) in set.streams() {
        let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 17);
        while reader.peek().is_some() {
            count += 1;
            reader.advance();
        }
        assert!(
            reader.take_damage().is_empty(),
            "a super-trace is not damaged"
        );
    }
    count
}

/// Overwrites bytes of a stream file of one of the traces, or cuts it.
fn damage(traces: &[&std::path::Path], random: &mut Rng) {
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let directory = traces[below(traces.len())];
    let files = std::fs::read_dir(directory).expect("a directory").flatten();
    let mut files: Vec<_> = files.map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file() && path.file_name().is_some_and(|name| name != "metadata"));
    files.sort();
    let Some(file) = files.get(below(files.len())) else {
        return;
    };
    let mut bytes = std::fs::read(file).expect("a file");
    if bytes.is_empty() {
        return;
    }
    for _ in 0..=below(8) {
        let at = below(bytes.len());
        bytes[at] = below(256) as u8;
    }
    if below(4) == 0 {
        bytes.truncate(below(bytes.len()));
    }
    std::fs::write(file, bytes).expect("written");
    let _ = std::fs::remove_dir_all(directory.join("index"));
}

#[test]
fn damage_hides_nothing_but_itself() {
    let shape = LevelShape {
        steps: 1500,
        ..LevelShape::PLAIN
    };
    let mut random = Rng::new(5);
    let mut merges = 0;
    for seed in 0..60 {
        let place = Place::new();
        let traces = recorded(&place, seed % 4, shape);
        for _ in 0..=random.below(3) {
            damage(&traces.all(), &mut random);
        }
        let Ok(set) = TraceSet::open(&traces.all()) else {
            continue;
        };
        let to = place.path().join("super");
        let options = Options {
            window_bytes: 10_000,
            ..Options::default()
        };
        let Ok(all) = merge(&set, &to, options, &Control::default()) else {
            continue;
        };
        merges += 1;
        let expected: u64 = all
            .iter()
            .map(|one| one.counts.copied + one.counts.derived)
            .sum();
        assert_eq!(readable(&open(&[&to])), expected, "seed {seed}");
    }
    assert!(merges > 30, "{merges}");
}
