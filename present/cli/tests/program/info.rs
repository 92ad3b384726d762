//! The output of `info`.

use crate::support::small::Small;
use crate::support::{recorded, text, tracebraid};
use serde_json::Value;

/// Uses relative paths, so that the output does not depend on the directory of the trace.
fn info(arguments: &[&str]) -> String {
    let directory = recorded("kernel-discarded");
    recorded("ust-cyg-profile");
    let output = tracebraid()
        .arg("info")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tables() {
    insta::assert_snapshot!("kernel-discarded", info(&["kernel-discarded"]));
    insta::assert_snapshot!(
        "ust-cyg-profile-counted",
        info(&["--events", "--counts", "ust-cyg-profile"])
    );
    insta::assert_snapshot!("two-traces", info(&["kernel-discarded", "ust-cyg-profile"]));
}

#[test]
fn csv() {
    insta::assert_snapshot!(
        "streams-csv",
        info(&["--format", "csv", "kernel-discarded"])
    );
    insta::assert_snapshot!(
        "events-csv",
        info(&["--format", "csv", "--events", "--counts", "ust-cyg-profile"])
    );
}

#[test]
fn json() {
    let info: Value =
        serde_json::from_str(&info(&["--format", "json", "--counts", "kernel-discarded"])).unwrap();
    assert_eq!(info["events"], 27_682);
    assert_eq!(info["packets"], 198);
    assert_eq!(info["bytes"], 811_008);
    assert_eq!(info["duration"], 1_864_530_475i64);
    let trace = &info["traces"][0];
    assert_eq!(trace["format"], "CTF 1.8");
    assert_eq!(trace["uuid"], "8152cc12-797b-f142-a31a-0672d11b3981");
    assert_eq!(trace["environment"]["hostname"], "vm1");
    assert_eq!(trace["environment"]["tracer_major"], 2);
    assert_eq!(trace["clocks"][0]["frequency"], 1_000_000_000u64);
    assert_eq!(trace["streams"][3]["cpu"], 3);
    assert_eq!(trace["streams"][0]["loss_counter_faults"], 1);
    // The counter of the first stream reads 3080, 0, 3080 and finally 3395: no loss is counted
    // twice.
    let lost = |index: usize| trace["streams"][index]["lost_events"].as_u64().unwrap();
    assert_eq!(lost(0), 3395);
    assert_eq!((0..4).map(lost).sum::<u64>(), 98_024);
    assert_eq!(trace["event_classes"], 1195);
    assert_eq!(trace["events"], Value::Null);
}

#[test]
fn metadata_alone() {
    let directory = tempfile::tempdir().unwrap();
    let trace = Small::default().write(&directory.path().join("small"));
    std::fs::remove_file(trace.join("stream_0")).unwrap();
    let shown = text(&["info".into(), trace]);
    assert!(shown.contains("No data streams."), "{shown}");
}
