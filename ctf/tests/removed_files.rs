//! A file that is removed after its trace was opened is reported once, and its packets are not
//! reported as damaged.

use std::fs;

use crate::formats_support::{read_stream, scan_counts};
use tracebraid_ctf::trace::Trace;

/// A trace of two files with three packets each.
fn trace(place: &std::path::Path) -> Trace {
    let metadata = "/* CTF 1.8 */ typealias integer { size = 64; align = 8; } := u64;
        trace { major = 1; minor = 8; byte_order = le; };
        stream { packet.context := struct { u64 packet_size; }; };
        event { name = e; fields := struct { u64 a; }; };";
    fs::write(place.join("metadata"), metadata).unwrap();
    let packet: Vec<u8> = [192u64, 1, 2]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for name in ["one", "two"] {
        fs::write(place.join(name), packet.repeat(3)).unwrap();
    }
    Trace::open(place).unwrap()
}

#[test]
fn removed_files_are_reported_once() {
    let place = tempfile::tempdir().unwrap();
    let trace = trace(place.path());
    fs::remove_file(place.path().join("two")).unwrap();
    assert_eq!(trace.streams.len(), 2);
    for stream in &trace.streams {
        let is_removed = stream.files[0].path.ends_with("two");
        let (shown, read) = read_stream(&trace, stream, 4096);
        let (counts, scanned) = scan_counts(&trace, stream);
        let events = if is_removed { 0 } else { 6 };
        assert_eq!((shown.len(), &counts[..]), (events, &[events as u64][..]));
        let scanned: Vec<String> = scanned.iter().map(ToString::to_string).collect();
        for damage in [read, scanned] {
            assert_eq!(damage.len(), usize::from(is_removed), "{damage:?}");
            for message in damage {
                assert!(
                    message.contains("has been removed since the trace was opened"),
                    "{message}"
                );
            }
        }
    }
}
