//! The super-trace does not depend on threads and chunks.

use tracebraid_levels::Options;
use tracebraid_models::levels::LevelShape;

use crate::support::{Place, contents, merged, open, recorded};

#[test]
fn threads_and_chunks_do_not_change_a_byte() {
    for (name, shape) in LevelShape::all() {
        let place = Place::new();
        let traces = recorded(&place, 11, shape);
        let set = open(&traces.all());
        let options = Options {
            window_bytes: 20_000,
            bound: Some(shape.clock_error),
            threads: 1,
            ..Options::default()
        };
        let (first, expected) = merged(&set, &place, "first", options);
        let expected_files = contents(&first);
        assert!(expected.counts.copied > 1000, "{name}");
        for (threads, chunk_bytes) in [(1, 1), (2, 3000), (3, 1), (8, 0)] {
            let options = Options {
                threads,
                chunk_bytes,
                ..options
            };
            let (path, own) = merged(&set, &place, "other", options);
            let what = format!("{name}: {threads} threads, chunks of {chunk_bytes}");
            assert_eq!(own.counts, expected.counts, "{what}");
            let files = contents(&path);
            assert!(files.keys().eq(expected_files.keys()), "{what}");
            for (file, bytes) in &files {
                assert!(expected_files[file] == *bytes, "{what}: {}", file.display());
            }
            std::fs::remove_dir_all(path).expect("removed");
        }
    }
}
