//! The hand-made seeds for fuzzing are imported completely.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use tempfile::TempDir;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_import::{ImportError, Summary, import, is_importable};
use tracebraid_testkit::rng::Rng;

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

/// Go 1.22 has no stacks of states, 1.23 no clocks of the system, 1.25 no ends of generations.
#[test]
fn versions_of_go_are_the_same() {
    for version in [22, 23, 25, 26] {
        let file = seed(&format!("go-{version}"));
        assert!(is_importable(&file));
        let directory = TempDir::new().expect("a directory");
        let to = directory.path().join("to");
        let summary = import(&file, &to, &AtomicBool::new(false)).expect("it is imported");
        assert_eq!(summary.damage, [] as [&str; 0], "{version}");
        // The name of the first goroutine follows its state until Go 1.22.
        let names = u64::from(version == 22);
        assert_eq!(summary.events, 43 + names, "{version}: {summary:?}");
        let has_time = !summary
            .lacks
            .iter()
            .any(|lack| lack.contains("time of day"));
        assert_eq!(has_time, version >= 25, "{version}: {summary:?}");
        let set = TraceSet::open(&[to]).expect("a trace");
        let [trace] = &set.traces[..] else {
            panic!("{} traces", set.traces.len());
        };
        // Two threads, and the states at the begin.
        assert_eq!(trace.streams.len(), 3);
        let clock = &trace.layout.class.clocks[0];
        assert_eq!(clock.name.as_deref(), Some("monotonic"));
        assert_eq!(clock.precision, Some(64));
    }
}

/// Files with changed bytes: sound parts are imported, the others reported.
#[test]
fn damage_of_a_trace_of_go_is_reported_or_refused() {
    let directory = TempDir::new().expect("a directory");
    let [file, to] = ["file", "to"].map(|name| directory.path().join(name));
    let mut rng = Rng::new(7);
    let (mut damaged, mut lost) = (0, 0);
    for number in 0..600 {
        let name = format!("go-{}", [22, 23, 25, 26][number % 4]);
        let mut bytes = std::fs::read(seed(&name)).expect("the file");
        for _ in 0..rng.between(1, 4) {
            let at = rng.between(16, bytes.len() as u64 - 1) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        std::fs::write(&file, &bytes).expect("written");
        match import(&file, &to, &AtomicBool::new(false)) {
            Ok(summary) => {
                let set = TraceSet::open(std::slice::from_ref(&to)).expect("a trace");
                assert_eq!(set.damage().count(), 0, "{number}");
                damaged += usize::from(!summary.damage.is_empty());
                let is_lost = |what: &String| what.contains("are left out");
                lost += usize::from(summary.damage.iter().any(is_lost));
                std::fs::remove_dir_all(&to).expect("removed");
            }
            Err(ImportError::Malformed { .. }) => {}
            Err(error) => panic!("{number}: {error}"),
        }
    }
    assert!(
        damaged > 200 && lost > 100,
        "{damaged} damaged, {lost} lost"
    );
}

#[test]
fn a_trace_of_go_that_ends_anywhere_keeps_whole_generations() {
    for version in [23, 26] {
        let whole = std::fs::read(seed(&format!("go-{version}"))).expect("the file");
        let directory = TempDir::new().expect("a directory");
        let [file, to] = ["file", "to"].map(|name| directory.path().join(name));
        let mut kept = 0;
        for length in (16..whole.len()).step_by(3) {
            std::fs::write(&file, &whole[..length]).expect("written");
            match import(&file, &to, &AtomicBool::new(false)) {
                // Until Go 1.25, a file may end between batches.
                Ok(summary) if summary.damage.is_empty() => assert!(version < 26, "{length}"),
                Ok(_) => kept += 1,
                Err(ImportError::Malformed { what, .. }) => {
                    assert!(
                        what.contains("first second") || what.contains("empty"),
                        "{what}"
                    );
                }
                Err(error) => panic!("{length} bytes: {error}"),
            }
            let _ = std::fs::remove_dir_all(&to);
            assert!(!directory.path().join("to.part").exists());
        }
        assert!(kept > 40, "{kept} times a generation was kept");
    }
}

#[test]
fn traces_of_fxt_are_read_completely() {
    for (name, events) in [("fxt-32", 8), ("fxt-64", 8), ("fxt-kernel", 2)] {
        assert!(is_importable(&seed(name)));
        let directory = TempDir::new().expect("a directory");
        let to = directory.path().join("to");
        let summary = import(&seed(name), &to, &AtomicBool::new(false)).expect("it is imported");
        assert_eq!(summary.damage, [] as [&str; 0], "{name}");
        assert_eq!(summary.events, events, "{name}");
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
