//! Traces whose recorder promises an end mark, and which change after they have been opened.

use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::TraceEnd;

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
trace { major = 1; minor = 8; byte_order = le; packet.header := struct { uint32_t magic; }; };
env { tracebraid_end_mark = 1; };
stream { event.header := struct { uint32_t id; }; };
event { name = "work"; id = 0; fields := struct { uint32_t number; }; };
event { name = "tracebraid_end"; id = 1; fields := struct { uint32_t events; }; };
"#;

/// A trace in a new directory, with one event and no mark.
fn opened(name: &str) -> (PathBuf, TraceSet) {
    let directory = std::env::temp_dir().join(format!("end-mark-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::write(directory.join("metadata"), METADATA).expect("it can be written");
    let packet = [0xC1FC_1FC1_u32, 0, 7].map(u32::to_le_bytes).concat();
    std::fs::write(directory.join("stream_0"), packet).expect("it can be written");
    let set = TraceSet::open(std::slice::from_ref(&directory)).expect("it can be opened");
    (directory, set)
}

fn end(set: &TraceSet) -> Option<TraceEnd> {
    TraceEnd::of(&set.traces[0])
}

fn grow(directory: &Path) {
    let mark = [0xC1FC_1FC1_u32, 1, 1].map(u32::to_le_bytes).concat();
    let file = directory.join("stream_0");
    let bytes = [std::fs::read(&file).expect("it is there"), mark].concat();
    std::fs::write(file, bytes).expect("it can be written");
}

/// The chunk that was being written when the trace was opened has its mark after the part read.
#[test]
fn a_trace_that_has_grown_since_is_not_unfinished() {
    let (directory, set) = opened("grown");
    assert_eq!(end(&set), Some(TraceEnd::Unfinished));
    grow(&directory);
    assert_eq!(end(&set), Some(TraceEnd::Growing));
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

#[test]
fn the_end_of_a_trace_that_has_been_removed_since_is_unknown() {
    let (directory, set) = opened("removed");
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    assert_eq!(end(&set), None);
}
