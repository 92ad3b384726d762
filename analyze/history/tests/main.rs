//! Histories of recorded traces, compared with a plain state machine.
#![allow(missing_docs)]

mod append;
mod damage;
mod files;
mod frequency;
mod law;
mod missing;
mod model;
mod probes;
mod queries;
mod user;

use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_history::{Asked, Built, History, build};

/// A directory for files of a test.
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

pub(crate) fn build_with(set: &TraceSet, file: &Path, threads: usize, chunk_bytes: u64) -> Built {
    build_asked(set, Asked::default(), file, threads, chunk_bytes)
}

pub(crate) fn build_asked(
    set: &TraceSet,
    asked: Asked,
    file: &Path,
    threads: usize,
    chunk_bytes: u64,
) -> Built {
    let options = Options {
        threads,
        chunk_bytes,
        ..Options::default()
    };
    build(
        set,
        &[PathBuf::from("trace")],
        asked,
        file,
        options,
        &Control::default(),
    )
    .unwrap()
}

/// Builds a history with several numbers of threads and chunk sizes, which must yield the same
/// file. Returns it.
pub(crate) fn build_in_ways(
    set: &TraceSet,
    asked: &Asked,
    ways: &[(usize, u64)],
    name: &str,
) -> (Scratch, PathBuf) {
    let place = Scratch::new();
    let file = place.file("history");
    let mut first: Option<Vec<u8>> = None;
    for &(threads, chunk) in ways {
        let built = build_asked(set, asked.clone(), &file, threads, chunk);
        assert!(built.doubts.is_empty(), "{name}: {:?}", built.doubts);
        let bytes = std::fs::read(&file).unwrap();
        let first = first.get_or_insert_with(|| bytes.clone());
        assert!(
            *first == bytes,
            "{name}: {threads} threads, chunks of {chunk}: {} and {} bytes",
            first.len(),
            bytes.len()
        );
    }
    (place, file)
}

/// Numbers of threads and chunk sizes in bytes.
pub(crate) const WAYS: [(usize, u64); 5] =
    [(1, u64::MAX), (1, 1), (2, 30_000), (3, 1 << 20), (2, 0)];

/// The history of a trace.
pub(crate) fn history(set: &TraceSet) -> (Scratch, History) {
    let place = Scratch::new();
    let file = place.file("history");
    build_with(set, &file, 2, 100_000);
    let history = History::open(&file).unwrap();
    (place, history)
}
