//! The hand-made seeds for fuzzing are imported completely.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;
use tracebraid_ctf::trace::Trace;
use tracebraid_import::{ImportError, Summary, import, is_importable};

fn seed(name: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/import");
    corpus.join(name)
}

fn imported(file: &Path) -> (TempDir, Summary, Trace) {
    assert!(is_importable(file));
    let directory = TempDir::new().expect("a directory");
    let to = directory.path().join("to");
    let summary = import(file, &to, &AtomicBool::new(false)).expect("it is imported");
    let trace = Trace::open(&to.join("kernel")).expect("a trace");
    (directory, summary, trace)
}

fn classes(summary: &Summary) -> Vec<&str> {
    summary.classes.iter().map(String::as_str).collect()
}

#[test]
fn perf_with_a_head_and_through_a_pipe_is_the_same() {
    for name in ["perf", "perf-pipe"] {
        let (_directory, summary, trace) = imported(&seed(name));
        assert_eq!(summary.damage, [] as [&str; 0], "{name}");
        assert_eq!((summary.events, summary.lost), (5, 5), "{name}");
        let expected = ["one:plain", "perf_comm", "perf_mmap2", "two:dynamic"];
        assert_eq!(classes(&summary), expected, "{name}");
        let [stream] = &trace.streams[..] else {
            panic!("{} streams", trace.streams.len());
        };
        assert_eq!(stream.losses().len(), 1, "{name}");
    }
}

#[test]
fn versions_and_compressions_of_trace_dat_are_the_same() {
    for name in ["trace-6", "trace-7-none", "trace-7-zlib"] {
        let (_directory, summary, trace) = imported(&seed(name));
        assert_eq!(summary.damage, [] as [&str; 0], "{name}");
        assert_eq!((summary.events, summary.lost), (6, 9 << 20), "{name}");
        assert_eq!(classes(&summary), ["one:plain", "two:dynamic"], "{name}");
        assert_eq!(trace.layout.class.env_str("hostname"), Some("host"));
        assert_eq!(trace.layout.class.env_str("machine"), Some("x86_64"));
    }
}

#[test]
fn a_file_that_ends_anywhere_is_read_up_to_there_or_refused() {
    for name in [
        "perf",
        "perf-pipe",
        "trace-6",
        "trace-7-none",
        "trace-7-zlib",
    ] {
        let whole = std::fs::read(seed(name)).expect("the file");
        let directory = TempDir::new().expect("a directory");
        let file = directory.path().join("file");
        let to = directory.path().join("to");
        for length in (16..whole.len()).step_by(5) {
            std::fs::write(&file, &whole[..length]).expect("written");
            match import(&file, &to, &AtomicBool::new(false)) {
                Ok(summary) => {
                    let is_told = !summary.damage.is_empty() || name == "perf-pipe";
                    assert!(is_told, "{name}: {length} bytes: nothing is said");
                    std::fs::remove_dir_all(&to).expect("removed");
                }
                Err(ImportError::Malformed { offset, .. }) => {
                    assert!(
                        offset <= whole.len() as u64,
                        "{name}: {length} bytes: {offset}"
                    );
                }
                Err(error) => panic!("{name}: {length} bytes: {error}"),
            }
            assert!(!to.exists() && !directory.path().join("to.part").exists());
        }
    }
}

#[test]
fn an_import_can_be_stopped() {
    let directory = TempDir::new().expect("a directory");
    let to = directory.path().join("to");
    for name in ["perf", "trace-7-zlib"] {
        let stopped = import(&seed(name), &to, &AtomicBool::new(true));
        assert!(matches!(stopped, Err(ImportError::Interrupted)), "{name}");
        assert!(!to.exists() && !directory.path().join("to.part").exists());
    }
}
