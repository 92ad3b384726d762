//! Real traces.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use tracebraid_ctf::trace::TraceSet;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A directory of reference material outside of the repository, if it is there.
pub fn shared(path: &str) -> Option<PathBuf> {
    let path = PathBuf::from(ROOT).join("../shared/traces").join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "SKIPPED: {} is not there; what it would have shown is not tested",
        path.display()
    );
    None
}

/// The output of another tool for a trace: committed with the tests, or outside of the repository.
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

/// The kernel trace of one of our own recordings: `archive` holds `inner`. It is unpacked once and
/// kept below the target directory.
pub fn ours(archive: &str, inner: &str) -> Option<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let name = format!("{archive}.tar.xz");
    let committed = PathBuf::from(ROOT).join("tests/data").join(&name);
    let path = if committed.is_file() {
        committed
    } else {
        shared(&format!("ours/{name}"))?
    };
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Another archive of that name has another size.
    let bytes = std::fs::metadata(&path).expect("the archive is there").len();
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{archive}-{bytes}"));
    if !directory.is_dir() {
        let fresh = directory.with_extension(std::process::id().to_string());
        std::fs::create_dir_all(&fresh).expect("a directory for the archive");
        let done = Command::new("tar")
            .arg("-xJf")
            .arg(&path)
            .arg("-C")
            .arg(&fresh)
            .status();
        assert!(
            done.is_ok_and(|status| status.success()),
            "{} can be unpacked",
            path.display()
        );
        // Another test program may have been faster.
        if std::fs::rename(&fresh, &directory).is_err() {
            let _ = std::fs::remove_dir_all(&fresh);
        }
    }
    Some(directory.join(inner).join("kernel"))
}

/// The kernel traces that the tests use, by name.
pub fn kernel_trace(name: &str) -> Option<TraceSet> {
    let path = match name {
        "kernel-mix-small" | "kernel-ust-requests" | "kernel-discarded" | "perf-mix" | "perf-memory" => {
            ours(name, name)?
        }
        "twohost-client" | "twohost-server" => ours("twohost", name)?,
        name => shared(&format!("public/{name}"))?,
    };
    Some(TraceSet::open(&[path]).expect("the trace can be opened"))
}
