//! Real traces.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

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

/// Where archives of this run are unpacked; removed by the system's cleaner of temporary files.
fn unpacked() -> &'static PathBuf {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let directory =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("traces-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a temporary directory");
        directory
    })
}

/// The kernel trace of one of our own recordings: `archive` holds `inner`.
pub fn ours(archive: &str, inner: &str) -> Option<PathBuf> {
    static ONCE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let name = format!("{archive}.tar.xz");
    let committed = PathBuf::from(ROOT).join("tests/data").join(&name);
    let path = if committed.is_file() {
        committed
    } else {
        shared(&format!("ours/{name}"))?
    };
    let _guard = ONCE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let directory = unpacked().join(archive);
    if !directory.is_dir() {
        std::fs::create_dir_all(&directory).expect("a directory for the archive");
        let done = Command::new("tar")
            .arg("-xJf")
            .arg(&path)
            .arg("-C")
            .arg(&directory)
            .status();
        assert!(
            done.is_ok_and(|status| status.success()),
            "{} can be unpacked",
            path.display()
        );
    }
    Some(directory.join(inner).join("kernel"))
}

/// The kernel traces that the tests use, by name.
pub fn kernel_trace(name: &str) -> Option<TraceSet> {
    let path = match name {
        "kernel-mix-small" | "kernel-ust-requests" | "kernel-discarded" => ours(name, name)?,
        "twohost-client" | "twohost-server" => ours("twohost", name)?,
        name => shared(&format!("public/{name}"))?,
    };
    Some(TraceSet::open(&[path]).expect("the trace can be opened"))
}
