//! Histories of real traces: what they tell is what a plain state machine tells.
#![allow(missing_docs)]

mod append;
mod damage;
#[path = "../../reports/tests/support/events.rs"]
#[allow(dead_code, unreachable_pub)]
mod events;
mod law;
mod model;
mod queries;
#[path = "../../reports/tests/support/traces.rs"]
#[allow(dead_code, unreachable_pub)]
mod traces;
mod user;

use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Control, Options};
use tracebraid_history::{Built, History, build};

/// A directory for files of a test.
pub(crate) struct Place(tempfile::TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

pub(crate) fn build_with(set: &TraceSet, file: &Path, threads: usize, chunk_bytes: u64) -> Built {
    let options = Options {
        threads,
        chunk_bytes,
        ..Options::default()
    };
    build(
        set,
        &[PathBuf::from("trace")],
        None,
        file,
        options,
        &Control::default(),
    )
    .unwrap()
}

/// The history of a trace.
pub(crate) fn history(set: &TraceSet) -> (Place, History) {
    let place = Place::new();
    let file = place.file("history");
    build_with(set, &file, 2, 100_000);
    let history = History::open(&file).unwrap();
    (place, history)
}
