//! Waits that go on where the window ends, or the trace does.

use tracebraid_critical_path::Graph;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_kernel_fold::{Selection, Window};

use crate::support::script::{Part, Script, parts};

/// 10 waits from 1100 to 1500, when 20 wakes it, and again from 1700 on.
fn script() -> Script {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 20);
    script.switch(1, 1000, (0, 0), 10);
    script.is(1, 1050, "syscall_entry_read", &[("fd", 3)]);
    script.switch(1, 1100, (10, 1), 0);
    script.wakes(0, 1500, 10);
    script.switch(1, 1550, (0, 0), 10);
    script.is(1, 1560, "syscall_exit_read", &[("ret", 1)]);
    script.is(1, 1650, "syscall_entry_read", &[("fd", 4)]);
    script.switch(1, 1700, (10, 1), 0);
    script.switch(0, 1900, (20, 1), 0);
    script
}

fn selection(to: i64, behind: u64) -> Selection {
    Selection {
        window: Window {
            from: None,
            to: Some(Timestamp(to)),
        },
        behind,
        ..Selection::default()
    }
}

fn last(graph: &Graph, end: i64) -> Part {
    parts(graph, 10, (1000, end)).pop().expect("a path has parts")
}

#[test]
fn what_is_read_behind_the_window_tells_what_ended_waits() {
    let (begin, end) = (1100, 1400);
    let behind = script().graph(&selection(end, 1000));
    let of_20 = (begin, end, 20, "running", "CPU 0".to_owned());
    assert_eq!(last(&behind, end), of_20);
    let within = script().graph(&selection(end, 50));
    let still = (begin, end, 10, "still-waiting", "read fd 3".to_owned());
    assert_eq!(last(&within, end), still);
    // The range that was asked for stays what it was.
    assert_eq!(behind.head, within.head);
}

#[test]
fn whoever_waits_at_the_end_still_does() {
    let graph = script().graph(&Selection::default());
    let still = (1700, 1900, 10, "still-waiting", "read fd 4".to_owned());
    assert_eq!(last(&graph, 1900), still);
    // Behind that nothing is known.
    let unknown = (1900, 2000, 10, "unknown", String::new());
    assert_eq!(last(&graph, 2000), unknown);
}

#[test]
fn whoever_waits_where_events_were_lost_perhaps_does_not() {
    let mut script = script();
    script.loses(0, 1800);
    let graph = script.graph(&Selection::default());
    let (.., reason, _) = last(&graph, 1900);
    assert_eq!(reason, "unknown");
}
