//! Memory while a history is built: bounded by the numbers of threads, CPUs, disks and paths, not
//! by the number of event records. With descriptors, it also depends on how often they change in a
//! minute. The index, which is written at the end of the file, has an entry for each block.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_models::bounds::{at_end, encoded_bytes, grown, repeated};

use crate::build::analysis;
use crate::ground::Asked;
use crate::user::Definition;

/// Sizes after all slices have been passed on.
#[derive(Debug)]
struct Sizes {
    /// Bytes of the state of all merged chunks.
    partial: usize,
    /// Length of the debug output of the values of all attributes, which settling needs and which
    /// cannot be serialized.
    values: usize,
    /// Bytes and blocks of the index.
    index: (usize, usize),
    packets: u64,
}

/// A user analysis with an attribute for each thread and a sum for each CPU.
const DEFINITION: &str = r#"
[[on]]
event = "sched_switch"
change = [{ set = "before/{next_tid}", to = "{prev_tid}" }, { add = "switches/{cpu}" }]
"#;

fn sizes(set: &TraceSet, files: bool) -> Sizes {
    let directory = tempfile::tempdir().expect("a directory");
    let asked = Asked {
        definition: Some(Definition::parse(DEFINITION).expect("a definition")),
        files,
    };
    let (analysis, _) =
        analysis(set, &[], asked, &directory.path().join("history")).expect("a plan");
    at_end(set, &analysis, |analysis, partial| {
        let pipeline = analysis.output.pipeline();
        let shards = pipeline.settling.shards.0.iter();
        let index = &pipeline.writer.index;
        let streams = set.streams().flat_map(|(_, stream)| &stream.packets);
        Sizes {
            partial: encoded_bytes(&partial),
            values: shards
                .map(|shard| format!("{:?}", shard.values).len())
                .sum(),
            index: (
                serde_json::to_vec(index).expect("JSON").len(),
                index.blocks.len(),
            ),
            packets: streams.map(|packet| packet.bytes).sum(),
        }
    })
}

fn repeatedly(times: [u64; 2], files: bool) -> [Sizes; 2] {
    let directory = tempfile::tempdir().expect("a directory for traces");
    times.map(|times| {
        sizes(
            &repeated("kernel-mix-small", times, directory.path()),
            files,
        )
    })
}

#[test]
fn state_does_not_grow_with_event_records() {
    let [few, many] = repeatedly([5, 20], false);
    assert_eq!(grown("partial state", few.partial, many.partial), None);
    assert_eq!(grown("values", few.values, many.values), None);
    // The index has an entry for each block, and so grows with the file.
    let (bytes, blocks) = many.index;
    assert!(
        blocks > 3 * few.index.1 && bytes < 300 * blocks,
        "{few:?} {many:?}"
    );
    assert!((bytes as u64) < many.packets / 1000, "{many:?}");
}

/// Changes of descriptors are kept for a minute, since calls in progress may refer to them: the
/// state has all changes of the last minute, and at most the same number of older ones. A
/// repetition lasts 4.3 seconds.
#[test]
fn descriptors_of_the_last_minute_are_kept() {
    let [few, many] = repeatedly([15, 30], true);
    assert!(many.partial < few.partial * 5 / 4, "{few:?} {many:?}");
}
