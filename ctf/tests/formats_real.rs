//! Real traces, if they are beside the repository: they must be undamaged and have the number of
//! event records that other readers find.

use std::path::PathBuf;

use crate::formats_support::scan_counts;
use tracebraid_ctf::losses::LossKind;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_testkit::skip::skipped;

const TRACES: &[(&str, &str)] = &[
    ("many-threads", "many-threads"),
    ("synctraces/scp_src", "scp_src"),
    ("synctraces/scp_dest", "scp_dest"),
    ("ros2", "ros2"),
    ("hello-lost", "hello-lost"),
    ("cyg-profile", "cyg-profile"),
    ("context-switches-ust", "context-switches-ust"),
    ("lttng-tracefile-rotation", "lttng-tracefile-rotation"),
    ("multi-domains", "multi-domains"),
];

fn shared() -> Option<PathBuf> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/traces"));
    if path.join("public").is_dir() {
        return Some(path);
    }
    skipped(format_args!(
        "there are no published traces at {}",
        path.display()
    ));
    None
}

#[test]
fn published_traces_are_sound_and_complete() {
    let Some(shared) = shared() else { return };
    for (place, oracle) in TRACES {
        let count =
            std::fs::read_to_string(shared.join("oracle").join(oracle).join("count")).unwrap();
        let count: u64 = count.trim().parse().unwrap();
        let set = TraceSet::open(&[shared.join("public").join(place)]).unwrap();
        let mut told: Vec<String> = set.damage().map(ToString::to_string).collect();
        let (mut read, mut scanned) = (0, 0);
        for trace in &set.traces {
            for stream in &trace.streams {
                let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 17);
                while reader.peek().is_some() {
                    read += 1;
                    reader.advance();
                }
                told.extend(reader.take_damage().iter().map(ToString::to_string));
                scanned += scan_counts(trace, stream).0.iter().sum::<u64>();
            }
        }
        assert_eq!((read, scanned), (count, count), "{place}");
        assert_eq!(told, [""; 0], "{place}");
    }
}

#[test]
fn what_tracers_lost_is_told() {
    let Some(shared) = shared() else { return };
    let losses = |place: &str| {
        let set = TraceSet::open(&[shared.join("public").join(place)]).unwrap();
        let streams = set.traces.iter().flat_map(|trace| &trace.streams);
        let losses: Vec<_> = streams.flat_map(|stream| stream.losses()).collect();
        losses
            .into_iter()
            .filter(|loss| loss.kind == LossKind::Events)
            .filter_map(|loss| loss.count)
            .sum::<u64>()
    };
    // The program emitted a million event records; 32,300 were kept.
    assert_eq!(losses("hello-lost"), 1_000_000 - 32_300);
    assert_eq!(losses("ros2"), 0);
}
