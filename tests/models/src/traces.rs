//! Recorded traces.

use std::fs;
use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_testkit::recorded;
use tracebraid_testkit::skip::skipped;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A directory of reference material outside the repository, if it exists.
pub fn shared(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(ROOT).join("../shared/traces").join(path);
    if path.exists() {
        return Some(path);
    }
    skipped(format_args!(
        "{} does not exist: tests that need it are skipped",
        path.display()
    ));
    None
}

/// The output of another tool for a trace, from the repository or from outside.
pub fn oracle(trace: &str, file: &str) -> Option<serde_json::Value> {
    let committed = PathBuf::from(ROOT)
        .join("tests/data/oracle")
        .join(trace)
        .join(file);
    let path = if committed.is_file() {
        committed
    } else {
        shared(&format!("oracle/{trace}/{file}"))?
    };
    let text = std::fs::read(path).expect("the oracle can be read");
    Some(serde_json::from_slice(&text).expect("the oracle is JSON"))
}

/// The kernel trace `inner` of a recording in `archive`, unpacked once below the target directory.
pub fn ours(archive: &str, inner: &str) -> Option<PathBuf> {
    let committed = recorded::archive(archive);
    let path = if committed.is_file() {
        committed
    } else {
        shared(&format!("ours/{archive}.tar.xz"))?
    };
    Some(recorded::kept(&path).join(inner).join("kernel"))
}

/// A copy of a kernel trace in `directory` in which the last packet of each file comes first. The
/// copy has no index, since the original's would contradict it.
pub fn rotated(name: &str, directory: &Path) -> Option<TraceSet> {
    let original = ours(name, name)?;
    fs::copy(original.join("metadata"), directory.join("metadata")).expect("a copy");
    let set = TraceSet::open(&[original]).expect("the trace can be opened");
    for stream in set.traces.iter().flat_map(|trace| &trace.streams) {
        let (Some(file), Some(packet)) = (stream.files.first(), stream.packets.last()) else {
            continue;
        };
        let data = fs::read(&file.path).expect("a file of the trace");
        let (earlier, last) = data.split_at(packet.offset as usize);
        let name = file.path.file_name().expect("the name of a file");
        fs::write(directory.join(name), [last, earlier].concat()).expect("a copy");
    }
    Some(TraceSet::open(&[directory]).expect("the trace can be opened"))
}

/// The kernel traces that the tests use, by name.
pub fn kernel_trace(name: &str) -> Option<TraceSet> {
    let path = match name {
        "kernel-mix-small"
        | "kernel-ust-requests"
        | "kernel-discarded"
        | "perf-mix"
        | "perf-memory" => ours(name, name)?,
        "twohost-client" | "twohost-server" => ours("twohost", name)?,
        name => shared(&format!("public/{name}"))?,
    };
    Some(TraceSet::open(&[path]).expect("the trace can be opened"))
}
