//! Recordings of programs whose newest events are still in ring buffers and not in streams, because
//! no recorder was running or it was killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;

/// Directories of recordings with events that are still in ring buffers.
pub(crate) fn sessions(set: &TraceSet) -> BTreeSet<PathBuf> {
    let paths = set.traces.iter().flat_map(|trace| &trace.paths);
    let kept = paths.filter(|path| has_rings(path));
    // Traces of a process are in DIR/ust/pid/PROCESS.
    kept.filter_map(|path| Some(path.ancestors().nth(3)?.to_owned()))
        .map(|session| match session.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => session,
        })
        .collect()
}

/// Whether a trace has a ring buffer that has not become a stream.
fn has_rings(trace: &Path) -> bool {
    let entries = fs::read_dir(trace).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let buffer = name.strip_prefix(".ring_")?.split('_').next()?.to_owned();
            Some(format!("stream_{buffer}_0"))
        })
        .any(|stream| !trace.join(stream).exists())
}
