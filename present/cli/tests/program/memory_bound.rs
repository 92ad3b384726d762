//! The memory of a report depends on the number of objects that exist at one time in a trace, not
//! on the length of the trace.

use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};

use tempfile::TempDir;
use tracebraid_testkit::grow::{Target, grow};

use crate::support::{recorded_trace, tracebraid};

pub(crate) const REPORTS: [&str; 13] = [
    "count",
    "cpu",
    "io",
    "files",
    "syscalls",
    "sched",
    "irq",
    "disk",
    "net",
    "memory",
    "processes",
    "waits",
    "report",
];

/// Limit of the anonymous memory of any report with two threads, in KiB.
const MOST: u64 = 64 << 10;

/// The largest value, in KiB, of a line of a process's status file until the process ends. The line
/// is sampled, so a short peak may be missed.
pub(crate) fn largest(line: &str, child: &mut Child) -> (u64, ExitStatus) {
    let mut most = 0;
    let status = tracebraid_testkit::processes::until_some("the process has ended", || {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find(|found| found.starts_with(line));
        let kibibytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
        most = most.max(kibibytes.unwrap_or(0u64));
        child.try_wait().expect("the status of the process")
    });
    (most, status)
}

/// Peak anonymous memory of a report, in KiB.
fn peak(report: &str, trace: &Path) -> u64 {
    let mut command = tracebraid();
    command.arg(report).arg(trace).args(["-j", "2"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the binary runs");
    let (most, status) = largest("RssAnon:", &mut child);
    assert!(status.success() && most > 0, "{report}");
    most
}

#[test]
fn memory_of_reports_is_bounded_at_any_length() {
    let directory = TempDir::new().expect("a temporary directory");
    let grown = |times: u64| {
        let to = directory.path().join(times.to_string());
        let source = recorded_trace("kernel-mix-small");
        grow(Path::new(&source), &to, Target::Times(times)).expect("a longer trace");
        to
    };
    let (short, long) = (grown(3), grown(12));
    for report in REPORTS {
        let (of_short, of_long) = (peak(report, &short), peak(report, &long));
        assert!(of_long < MOST, "{report}: {of_long} KiB");
        // Each repetition creates new processes, and `processes` lists all processes.
        let may_grow = if report == "processes" {
            MOST
        } else {
            16 << 10
        };
        assert!(
            of_long < of_short + may_grow,
            "{report}: {of_short}, then {of_long} KiB"
        );
    }
}
