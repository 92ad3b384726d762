//! Waits that are in progress at the end of the window or of the trace.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_engine::Options;
use tracebraid_follow::{Selection, Window};
use tracebraid_graph::{ActorId, Graph, Occupant, Path, Segment, SegmentKind, WaitReason};

use crate::support::script::{Part, Script, parts};
use crate::support::traces;

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
    parts(graph, 10, (1000, end))
        .pop()
        .expect("a path has parts")
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
    // The reported window remains the requested one.
    assert_eq!(behind.head, within.head);
}

#[test]
fn whoever_waits_at_the_end_still_does() {
    let graph = script().graph(&Selection::default());
    let still = (1700, 1900, 10, "still-waiting", "read fd 4".to_owned());
    assert_eq!(last(&graph, 1900), still);
    // The state is unknown after the end of the trace.
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

/// Paths from a time on are the same whether or not earlier parts of the graph were dropped.
#[test]
fn what_came_before_the_window_does_not_matter() {
    for name in ["kernel-ust-requests", "kernel-mix-small"] {
        let trace = tracebraid_testkit::recorded::unpacked(name)
            .join(name)
            .join("kernel");
        let set = traces::open(&[trace]);
        let whole = traces::graph(&set, Selection::default(), Options::default());
        let (begin, end) = (whole.head.begin.expect("events").0, whole.known_until);
        let from = begin + (end - begin) / 3 * 2;
        let window = Window {
            from: Some(Timestamp(from)),
            to: None,
        };
        let selection = Selection {
            window,
            ..Selection::default()
        };
        let options = Options {
            threads: 2,
            chunk_bytes: 300_000,
            ..Options::default()
        };
        let later = traces::graph(&set, selection, options);
        assert!(
            later.bytes() * 5 < whole.bytes() * 2,
            "{} of {}",
            later.bytes(),
            whole.bytes()
        );
        let mut segments = 0;
        for (id, actor) in whole.ids() {
            for part in 0..8 {
                let window = (
                    from + (end - from) / 8 * part,
                    from + (end - from) / 8 * (part + 1),
                );
                let found = described(&later, later.path(id, window.0, window.1));
                let expected = described(&whole, whole.path(id, window.0, window.1));
                segments += found.len();
                assert_eq!(found, expected, "{name}: {:?} in {window:?}", actor.key);
            }
        }
        assert!(segments > 10_000, "{segments}");
        // Earlier states are unknown.
        let path = later.path(ActorId(0), begin, from + 1);
        assert_eq!(
            (path.segments[0].end, path.segments[0].kind),
            (from, SegmentKind::Unknown)
        );
    }
}

fn described(graph: &Graph, path: Path) -> Vec<(i64, ActorId, WaitReason, String)> {
    let part = |segment: &Segment| {
        let actor = path.hops[segment.hop as usize].actor;
        (
            segment.end,
            actor,
            graph.reason(&path, segment),
            graph.detail(&path, segment),
        )
    };
    path.segments.iter().map(part).collect()
}

/// Two recordings; the one that begins later ends minutes before the other.
#[test]
fn nothing_is_known_behind_the_end_of_a_machines_trace() {
    let unpacked = tracebraid_testkit::recorded::unpacked;
    let set = traces::open(&[
        unpacked("kernel-mix-small"),
        unpacked("kernel-ust-requests").join("kernel-ust-requests/kernel"),
    ]);
    let graph = traces::graph(&set, Selection::default(), Options::default());
    let &[(trace, end)] = graph.ends.as_slice() else {
        panic!("one of them ends first: {:?}", graph.ends);
    };
    assert!(graph.known_until - end > 1_000_000_000);
    let mut paths = 0;
    for (id, actor) in graph.ids().filter(|(_, actor)| actor.key.trace == trace) {
        let Some(within) = graph.within(id, (i64::MIN, i64::MAX)) else {
            // The thread was only named, or its first event record is the last of all.
            assert!(actor.begin().is_none_or(|begin| begin == end), "{actor:?}");
            continue;
        };
        assert!(within.end <= end, "{actor:?}");
        // Time past the end of the trace is unknown.
        let path = graph.path(id, within.begin, graph.known_until);
        let last = path.segments.last().expect("a path has parts");
        let reason = graph.reason(&path, last);
        assert!(
            last.begin <= end && last.end == graph.known_until,
            "{actor:?}"
        );
        assert_eq!((reason, last.hop), (WaitReason::Unknown, 0), "{actor:?}");
        paths += 1;
    }
    assert!(paths > 50);
    for (cpu, line) in graph.cpus.iter().filter(|(cpu, _)| cpu.trace == trace) {
        let last = graph
            .occupied(*cpu, graph.known_until)
            .first()
            .expect("it was seen");
        assert_eq!(
            (last.begin, last.by),
            (end, Occupant::Unknown),
            "{cpu:?} {}",
            line.len()
        );
    }
}
