//! A skipped test is reported, although it passes.

use std::process::Command;

use tracebraid_testkit::skip::skipped;

const WHY: &str = "TRACEBRAID_TEST_SKIPS_BECAUSE";

/// Runs in another process.
#[test]
fn skips() {
    if let Ok(why) = std::env::var(WHY) {
        skipped(why);
    }
}

#[test]
fn the_harness_does_not_swallow_it() {
    let program = std::env::current_exe().expect("a test program has a path");
    let output = Command::new(program)
        .args(["--exact", "skip::skips"])
        .env(WHY, "there is no moon")
        .output()
        .expect("the test program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said, "SKIPPED: there is no moon\n");
}
