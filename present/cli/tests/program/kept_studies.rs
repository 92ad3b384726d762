//! Recordings and databases of the case studies in the repository: the injected cause of slow
//! executions still comes first.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::text;

/// A study and its files in the repository.
struct Study {
    name: &'static str,
    fast: &'static str,
    slow: &'static str,
    /// Number of slow executions.
    count: u64,
    /// Frames of the cause, from the outermost to the innermost, with others between them.
    cause: &'static [&'static str],
    /// Frames that are known without the binaries of the recorded server.
    known: &'static [&'static str],
    /// Number of top contexts that must include the cause.
    among: usize,
}

const STUDIES: [Study; 5] = [
    Study {
        name: "cpu-contention",
        fast: "duration < 4ms",
        slow: "duration > 5ms",
        count: 30,
        cause: &[
            "compute_step",
            "[preempted]",
            "<controller>",
            "housekeeping",
            "keep_house",
            "rebuild_index",
        ],
        known: &[
            "compute_step",
            "[preempted]",
            "<controller>",
            "housekeeping",
            "keep_house",
            "rebuild_index",
        ],
        among: 1,
    },
    Study {
        name: "disk-contention",
        fast: "duration < 10ms",
        slow: "duration > 20ms",
        count: 19,
        cause: &[
            "handle_request",
            "read_block",
            "pread64()",
            "[block-device]",
            "<logger>",
            "write_log",
            "flush_log",
        ],
        known: &[
            "handle_request",
            "read_block",
            "pread64()",
            "[block-device]",
            "<logger>",
            "write_log",
            "flush_log",
        ],
        among: 1,
    },
    Study {
        name: "lock-contention",
        fast: "duration < 10ms",
        slow: "duration > 15ms",
        count: 13,
        cause: &[
            "place_order",
            "[network]",
            "<postgres>",
            "ProcSleep",
            "<postgres>",
            "ExecScan",
            "textlike",
        ],
        known: &[
            "place_order",
            "[network]",
            "<postgres>",
            "epoll_wait()",
            "<postgres>",
        ],
        among: 1,
    },
    Study {
        name: "server-sleep",
        fast: "duration < 15ms",
        slow: "duration > 25ms",
        count: 24,
        cause: &[
            "write_line",
            "[network]",
            "<postgres>",
            "XLogFlush",
            "pg_usleep",
            "[timer]",
        ],
        known: &[
            "write_line",
            "[network]",
            "<postgres>",
            "pselect6()",
            "[timer]",
        ],
        among: 1,
    },
    Study {
        name: "device-contention",
        fast: "duration < 6ms",
        slow: "duration > 8ms",
        count: 20,
        cause: &["process_frame", "futex()", "[device]", "[render_preview]"],
        known: &["process_frame", "futex()", "[device]", "[render_preview]"],
        among: 1,
    },
];

fn kept(study: &Study, file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/case-studies")
        .join(study.name)
        .join(file)
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Whether these frames occur in this order, with others between them.
fn goes(frames: &Value, way: &[&str]) -> bool {
    let mut frames = frames.as_array().expect("frames").iter();
    way.iter().all(|wanted| frames.any(|frame| frame == wanted))
}

/// Checks that the comparison of a database lists the cause among the top contexts.
fn names(study: &Study, database: &Path, cause: &[&str]) {
    let options = [
        "compare", "--format", "json", "--a", study.fast, "--b", study.slow,
    ];
    let compared = text(&[&options[..], &[utf8(database)]].concat());
    let compared: Value = serde_json::from_str(&compared).expect("JSON");
    let contexts = compared["contexts"].as_array().expect("contexts");
    let first = &contexts[..study.among.min(contexts.len())];
    assert!(
        first
            .iter()
            .any(|of| of["is_significant"] == true && goes(&of["context"], cause)),
        "{}: {first:?}",
        study.name
    );
    assert_eq!(
        first[0]["groups"][1]["executions"], study.count,
        "{}",
        study.name
    );
}

/// The trace of a study.
fn unpacked(study: &Study, into: &TempDir) -> PathBuf {
    let tar = Command::new("tar")
        .arg("-xJf")
        .arg(kept(study, "recording.tar.xz"))
        .arg("-C")
        .arg(into.path())
        .status();
    assert!(tar.expect("tar runs").success(), "{}", study.name);
    into.path().join(study.name)
}

#[test]
fn databases_that_are_kept_tell_the_cause() {
    for study in &STUDIES {
        names(study, &kept(study, "requests.db"), study.cause);
    }
}

#[test]
fn recordings_that_are_kept_give_it_again() {
    for study in &STUDIES {
        let directory = TempDir::new().expect("a temporary directory");
        let trace = unpacked(study, &directory);
        let database = directory.path().join("requests.db");
        let debug = directory.path().join(format!("{}.debug", study.name));
        let periods = kept(study, "requests.periods");
        text(&[
            "executions",
            "build",
            utf8(&trace),
            "-o",
            utf8(&database),
            "--file",
            utf8(&periods),
            "--debug-dir",
            utf8(&debug),
        ]);
        names(study, &database, study.known);
    }
}

/// A range of time that ends while a thread waits for a device.
#[test]
fn a_wait_for_a_device_beyond_the_range_has_its_reason() {
    let directory = TempDir::new().expect("a temporary directory");
    let study = STUDIES.iter().find(|of| of.name == "device-contention");
    let trace = unpacked(study.expect("a study"), &directory);
    let range = ["--from", "11:28:41.970", "--to", "11:28:41.975"];
    let options = ["critical-path", "--process", "frames", "--format", "json"];
    let report = text(&[&options[..], &range, &[utf8(&trace)]].concat());
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let first = &report["paths"][0]["reasons"][0];
    assert_eq!(first["reason"], "device", "{report:#}");
    assert_eq!(first["detail"], "render_preview", "{report:#}");
}
