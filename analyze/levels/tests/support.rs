//! Generated recordings and their super-traces.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Control;
use tracebraid_levels::{Merged, Options, merge};
use tracebraid_models::levels::{LevelShape, LevelTraces, record};
use tracebraid_testkit::recorded::temporary;

/// A directory that is removed at the end of a test.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Place {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = temporary().join(format!("levels-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Place(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A recording in `place`.
pub(crate) fn recorded(place: &Place, seed: u64, shape: LevelShape) -> LevelTraces {
    record(seed, shape, &place.path().join("recorded"))
}

/// Opens traces at these paths.
pub(crate) fn open(paths: &[&Path]) -> TraceSet {
    TraceSet::open(paths).expect("traces")
}

/// The super-trace of a set, at `name` in `place`.
pub(crate) fn merged(
    set: &TraceSet,
    place: &Place,
    name: &str,
    options: Options,
) -> (PathBuf, Merged) {
    let to = place.path().join(name);
    let mut all = merge(set, &to, options, &Control::default()).expect("a super-trace");
    assert_eq!(all.len(), 1, "one host");
    (to, all.remove(0))
}

/// Contents of all files below a directory, by path.
pub(crate) fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                left.push(path);
            } else {
                let below = path.strip_prefix(directory).expect("below").to_owned();
                found.insert(below, std::fs::read(&path).expect("a file"));
            }
        }
    }
    found
}
