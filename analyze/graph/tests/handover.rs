//! Executions that begin in one thread and end in another, on hand-written graphs.

use tracebraid_follow::ThreadKey;
use tracebraid_graph::{
    Actor, ActorId, Graph, Interrupt, NO_OBJECT, Packet, Passed, State, Stretch, WaitReason, Wake,
};
use tracebraid_kernel_model::Syscall;

const FIRST: ActorId = ActorId(0);
const LAST: ActorId = ActorId(1);
const MIDDLE: ActorId = ActorId(2);
const OTHER: ActorId = ActorId(3);

const RUNS: State = State::Running(0);

fn call(name: &str) -> Syscall {
    let mut calls = (0..Syscall::count()).map(Syscall);
    calls.find(|call| call.name() == name).expect("a call")
}

fn waits(call: Syscall, wake: Wake) -> State {
    State::Blocked {
        call,
        object: NO_OBJECT,
        wake,
        reason: match wake {
            Wake::Timer => WaitReason::Timer,
            Wake::Packet(_) => WaitReason::Network,
            Wake::Thread(_) => WaitReason::Thread,
            _ => WaitReason::Unknown,
        },
        is_idle: false,
    }
}

fn until(by: ActorId) -> State {
    waits(Syscall::OTHER, Wake::Thread(by))
}

const TIMER: Wake = Wake::Timer;

/// A graph of threads 10, 11 and so on, given their states with start times.
fn graph(lines: &[&[(i64, State)]]) -> Graph {
    let actor = |(tid, line): (i32, &&[(i64, State)])| Actor {
        key: ThreadKey { trace: 0, tid },
        line: line
            .iter()
            .map(|&(begin, state)| Stretch { begin, state })
            .collect(),
        ..Actor::default()
    };
    Graph {
        known_until: 1000,
        actors: (10..).zip(lines).map(actor).collect(),
        ..Graph::default()
    }
}

/// An execution from 100 to 200.
const PASSED: Passed = Passed {
    first: FIRST,
    last: LAST,
    begin: 100,
    end: 200,
    busy_until: None,
    next: None,
    was_free: true,
    is_sure: true,
};

/// End, thread and reason of each segment.
fn parts(graph: &Graph, passed: Passed) -> Vec<(i64, i32, &'static str)> {
    let path = graph.passed_path(&passed);
    assert!(path.tiles(passed.begin, passed.end), "{path:?}");
    let part = |segment: &tracebraid_graph::Segment| {
        let actor = graph.actor(path.hops[segment.hop as usize].actor).unwrap();
        (
            segment.end,
            actor.key.tid,
            graph.reason(&path, segment).name(),
        )
    };
    path.segments.iter().map(part).collect()
}

#[test]
fn a_thread_that_waits_is_woken() {
    let line = [
        (0, RUNS),
        (50, until(FIRST)),
        (130, State::Runnable(1)),
        (135, RUNS),
    ];
    let graph = graph(&[&[(0, RUNS)], &line]);
    let found = parts(&graph, PASSED);
    assert_eq!(
        found,
        [
            (130, 10, "running"),
            (135, 11, "runnable"),
            (200, 11, "running")
        ]
    );
    // The result is the same as without the first thread.
    assert_eq!(graph.passed_path(&PASSED), graph.path(LAST, 100, 200));
}

#[test]
fn what_the_last_thread_did_before_is_of_others() {
    // The last thread serves another execution, which waits for a timer, waits for another thread,
    // and is then woken.
    let line = [
        (0, RUNS),
        (90, waits(Syscall::OTHER, TIMER)),
        (110, RUNS),
        (120, until(OTHER)),
        (140, RUNS),
        (150, until(FIRST)),
        (160, RUNS),
    ];
    let graph = graph(&[&[(0, RUNS)], &line, &[], &[(0, RUNS)]]);
    for passed in [
        PASSED,
        Passed {
            busy_until: Some(145),
            was_free: false,
            ..PASSED
        },
    ] {
        assert_eq!(
            parts(&graph, passed),
            [(160, 10, "running"), (200, 11, "running")]
        );
    }
}

#[test]
fn a_thread_that_has_more_to_do_is_queued_for() {
    // The first thread waits for the next execution from 120 on.
    let first = [(0, RUNS), (120, waits(Syscall::OTHER, TIMER)), (300, RUNS)];
    let last = [
        (0, RUNS),
        (130, waits(Syscall::OTHER, TIMER)),
        (150, RUNS),
        (180, until(OTHER)),
        (190, RUNS),
    ];
    let graph = graph(&[&first, &last, &[], &[(0, RUNS)]]);
    let passed = Passed {
        busy_until: Some(160),
        ..PASSED
    };
    let expected = [
        (120, 10, "running"),
        (130, 11, "queued"),
        (150, 11, "queued"),
        (160, 11, "queued"),
        (180, 11, "running"),
        (190, 13, "running"),
        (200, 11, "running"),
    ];
    assert_eq!(parts(&graph, passed), expected);
    let path = graph.passed_path(&passed);
    let details: Vec<String> = path
        .segments
        .iter()
        .map(|segment| graph.detail(&path, segment))
        .collect();
    assert_eq!(details[1..3], ["? (11), running: CPU 0", "? (11), timer"]);
    let summary = graph.summary(&path);
    let queued = summary
        .reasons
        .iter()
        .filter(|sum| sum.reason.name() == "queued");
    assert_eq!(queued.map(|sum| sum.duration_ns).sum::<u64>(), 40);
    // The last thread begins the next execution before it waits.
    let passed = Passed {
        next: Some(110),
        ..passed
    };
    assert_eq!(parts(&graph, passed)[0], (110, 10, "running"));
}

#[test]
fn a_lock_of_the_queue_is_no_hand_over() {
    // Both threads contend: while the last thread still serves another execution, and once the
    // first has continued with the next.
    let last = [
        (0, RUNS),
        (105, until(FIRST)),
        (110, RUNS),
        (165, until(FIRST)),
        (170, RUNS),
    ];
    let graph = graph(&[&[(0, RUNS)], &last]);
    let passed = Passed {
        busy_until: Some(160),
        next: Some(115),
        ..PASSED
    };
    let expected = [
        (115, 10, "running"),
        (160, 11, "queued"),
        (165, 11, "running"),
        (170, 10, "running"),
        (200, 11, "running"),
    ];
    assert_eq!(parts(&graph, passed), expected);
}

#[test]
fn a_thread_that_serves_several_at_once_may_end_others_meanwhile() {
    let last = |call| {
        let woken = waits(call, Wake::Thread(FIRST));
        [
            (0, RUNS),
            (90, woken),
            (110, RUNS),
            (130, waits(call, TIMER)),
            (180, RUNS),
        ]
    };
    let passed = Passed {
        busy_until: Some(150),
        ..PASSED
    };
    let found = |call| parts(&graph(&[&[(0, RUNS)], &last(call)]), passed);
    let expected = [
        (110, 10, "running"),
        (130, 11, "running"),
        (180, 11, "timer"),
        (200, 11, "running"),
    ];
    assert_eq!(found(call("epoll_wait")), expected);
    // In a futex call it serves one execution after the other.
    let expected = [
        (150, 10, "running"),
        (180, 11, "timer"),
        (200, 11, "running"),
    ];
    assert_eq!(found(call("futex")), expected);
}

#[test]
fn threads_between_hand_it_on() {
    let middle = [
        (0, RUNS),
        (80, until(FIRST)),
        (120, RUNS),
        (125, waits(Syscall::OTHER, TIMER)),
        (140, RUNS),
    ];
    let last = [(0, RUNS), (60, until(MIDDLE)), (150, RUNS)];
    let graph = graph(&[&[(0, RUNS)], &last, &middle]);
    let expected = [
        (120, 10, "running"),
        (125, 12, "running"),
        (140, 12, "timer"),
        (150, 12, "running"),
        (200, 11, "running"),
    ];
    assert_eq!(parts(&graph, PASSED), expected);
}

#[test]
fn messages_hand_it_over() {
    let last = [
        (0, RUNS),
        (60, waits(Syscall::OTHER, Wake::Packet(0))),
        (150, RUNS),
    ];
    let mut graph = graph(&[&[(0, RUNS)], &last]);
    graph.packets = vec![Packet {
        connection: 0,
        sent: Some(120),
        by: Some(FIRST),
    }]
    .into();
    let expected = [
        (120, 10, "running"),
        (150, 11, "network"),
        (200, 11, "running"),
    ];
    assert_eq!(parts(&graph, PASSED), expected);
}

#[test]
fn what_is_not_seen_is_said_to_be_so() {
    // The last thread waits for a timer, then looks into the queue.
    let first = [(0, RUNS), (110, waits(Syscall::OTHER, TIMER))];
    let last = [
        (0, RUNS),
        (90, waits(Syscall::OTHER, TIMER)),
        (150, RUNS),
        (160, waits(Syscall::OTHER, TIMER)),
        (190, RUNS),
    ];
    let graph = graph(&[&first, &last]);
    let expected = [
        (110, 10, "running"),
        (150, 11, "unknown-hand-over"),
        (160, 11, "running"),
        (190, 11, "timer"),
        (200, 11, "running"),
    ];
    assert_eq!(parts(&graph, PASSED), expected);
    // A thread not known to serve executions may do unrelated work until it no longer waits.
    let unknown = Passed {
        was_free: false,
        ..PASSED
    };
    let found = parts(&graph, unknown);
    assert_eq!(found.last(), Some(&(200, 11, "running")));
    let rest = &found[1..found.len() - 1];
    assert!(
        rest.iter().all(|part| part.2 == "unknown-hand-over") && rest.last().unwrap().0 == 190,
        "{found:?}"
    );
    // If the first thread is uncertain, the path is that of the last thread.
    let unsure = Passed {
        is_sure: false,
        ..PASSED
    };
    assert_eq!(graph.passed_path(&unsure), graph.path(LAST, 100, 200));
}

#[test]
fn who_is_interrupted_begins_nothing() {
    let first = [
        (0, RUNS),
        (95, State::Interrupted(0, Interrupt::Irq(5))),
        (105, RUNS),
    ];
    let last = [(0, RUNS), (90, until(OTHER)), (150, RUNS)];
    let graph = graph(&[&first, &last, &[], &[(0, RUNS)]]);
    assert_eq!(graph.passed_path(&PASSED), graph.path(LAST, 100, 200));
}
