//! Case studies that need the machine for themselves, because they measure what disturbs it.

use crate::study::{Context, study};

#[test]
fn a_task_of_higher_priority_takes_the_cpu() {
    let Some(study) = study(
        "cpu-contention",
        ["duration < 4ms", "duration > 5ms"],
        ("step", 20),
    ) else {
        return;
    };
    // The culprit and its function: its thread has the same name as the one from which it takes the
    // CPU.
    let contexts = study.contexts();
    let first = contexts.first().expect("contexts differ");
    let way = [
        "[preempted]",
        "<controller>",
        "housekeeping",
        "keep_house",
        "rebuild_index",
        // The compiler inlined it; debug information contains the name.
        "compute",
    ];
    assert!(first.goes(&way), "{first:?}");
    assert!(first.more > 1e6, "{first:?}");
    study.gates("rebuild_index", "1ms");
}

#[test]
fn the_log_is_written_while_a_request_reads() {
    let Some(study) = study(
        "disk-contention",
        ["duration < 6ms", "duration > 8ms"],
        ("request", 8),
    ) else {
        return;
    };
    // The time of a request is divided between the users of the disk. The reader itself has the
    // largest part, or one as large.
    let own = [
        "handle_request",
        "read_block",
        "pread64()",
        "[block-device]",
    ];
    let contexts = study.contexts();
    let first = contexts.first().expect("contexts differ");
    assert!(first.goes(&own), "{first:?}");
    // Of the other users, the first is the cause. Times include nested frames, because its part may
    // be shown under `fsync` or beside it.
    let contexts = study.whole_contexts();
    let is_other = |of: &&Context| of.frames.iter().any(|frame| frame.starts_with('<'));
    let other = contexts
        .iter()
        .find(is_other)
        .expect("another thread used it");
    assert!(other.goes(&own) && other.has("<logger>"), "{other:?}");
    let cause = contexts
        .iter()
        .find(|of| of.goes(&["<logger>", "flush_log"]));
    let other = cause.unwrap_or_else(|| panic!("{contexts:?}"));
    assert!(other.more > 5e6, "{other:?}");
    study.gates("read_block", "5ms");
}

#[test]
fn an_order_waits_for_the_bookkeeper_s_transaction() {
    let Some(study) = study(
        "lock-contention",
        ["duration < 10ms", "duration > 15ms"],
        ("order", 8),
    ) else {
        return;
    };
    // From the client to its session in the server, and to the other session, which computes.
    let contexts = study.contexts();
    let first = contexts.first().expect("contexts differ");
    let way = [
        "place_order",
        "<postgres>",
        "ProcSleep",
        "<postgres>",
        "ExecScan",
        "textlike",
    ];
    assert!(first.goes(&way), "{first:?}");
    study.gates("textlike", "2ms");
}

#[test]
fn a_commit_sleeps_in_the_server() {
    let Some(study) = study(
        "server-sleep",
        ["duration < 15ms", "duration > 25ms"],
        ("line", 15),
    ) else {
        return;
    };
    let contexts = study.contexts();
    let first = contexts.first().expect("contexts differ");
    let way = [
        "write_line",
        "<postgres>",
        "XLogFlush",
        "pg_usleep",
        "[timer]",
    ];
    assert!(first.goes(&way), "{first:?}");
    assert!(first.more > 10e6, "{first:?}");
    study.gates("pg_usleep", "10ms");
}

#[test]
fn another_kernel_occupies_the_device() {
    let Some(study) = study(
        "device-contention",
        ["duration < 6ms", "duration > 8ms"],
        ("frame", 10),
    ) else {
        return;
    };
    // The kernel is of a queue of its own: no event that the program waits for belongs to it.
    let contexts = study.contexts();
    let first = contexts.first().expect("contexts differ");
    assert!(
        first.goes(&["process_frame", "[device]", "[render_preview]"]),
        "{first:?}"
    );
    assert!(first.more > 5e6, "{first:?}");
    study.gates("render_preview", "2ms");
}
