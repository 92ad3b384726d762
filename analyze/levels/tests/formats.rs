//! Traces of CTF 2 give the super-trace that the same traces in CTF 1.8 give.

use std::path::Path;

use tracebraid_ctf::schema::CtfVersion;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_ctf::write::trace::{Options as WriteOptions, Session};
use tracebraid_levels::Options;
use tracebraid_models::levels::{LevelShape, SuperRecord, super_records};
use tracebraid_testkit::rewrite::copy;

use crate::support::{Place, merged, open, recorded};

/// Writes a trace anew, in another version.
fn rewrite(from: &Path, version: CtfVersion) {
    let to = from.with_extension("copy");
    let options = WriteOptions {
        version,
        ..WriteOptions::default()
    };
    copy(from, Session::create(&to).expect("a session"), options).expect("a copy");
    std::fs::remove_dir_all(from).expect("removed");
    std::fs::rename(to, from).expect("renamed");
}

/// Records without their packets, and without texts, of which CTF 1.8 has other kinds.
fn records(set: &TraceSet) -> Vec<(i64, Option<u32>, [i64; 3], String, Vec<(String, i64)>)> {
    let of = |own: SuperRecord| {
        let mut ints: Vec<(String, i64)> = own.record.ints.into_iter().collect();
        ints.sort();
        let ids = [own.tid.into(), own.lwp.into(), own.ult as i64];
        (own.time, own.cpu, ids, own.record.name, ints)
    };
    super_records(set).into_iter().map(of).collect()
}

#[test]
fn ctf_2_is_merged_like_ctf_1_8() {
    let options = Options {
        bound: Some(0),
        ..Options::default()
    };
    for (seed, is_kernel_2) in [(3, true), (4, false)] {
        let place = Place::new();
        let traces = recorded(&place, seed, LevelShape::PLAIN);
        // Packets of the copies end with their last records.
        let copies = traces.all();
        copies
            .iter()
            .for_each(|trace| rewrite(trace, CtfVersion::V1_8));
        let (first, expected) = merged(&open(&traces.all()), &place, "first", options);
        for (number, trace) in copies.iter().enumerate() {
            if number > 0 || is_kernel_2 {
                rewrite(trace, CtfVersion::V2_0);
            }
        }
        let (second, found) = merged(&open(&traces.all()), &place, "second", options);
        assert!(found.left_out.is_empty(), "{:?}", found.left_out);
        assert_eq!(found.counts, expected.counts);
        let [first, second] = [first, second].map(|path| open(&[&path]));
        assert_eq!(second.traces[0].layout.class.version, CtfVersion::V2_0);
        assert!(records(&second) == records(&first));
    }
}
