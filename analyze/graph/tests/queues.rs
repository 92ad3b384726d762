//! Work that waits in queues, and requests of io_uring: hand-written events.

use tracebraid_engine::Options;
use tracebraid_follow::Selection;
use tracebraid_graph::{Graph, WaitReason};

use crate::support::script::{Part, Script, Value};
use crate::support::traces;

/// States in which threads leave their CPUs: `TASK_INTERRUPTIBLE`, and idle.
const WAITS: i64 = 1;
const IDLE: i64 = 0x402;

fn part(begin: i64, end: i64, tid: i32, reason: &'static str, detail: &str) -> Part {
    (begin, end, tid, reason, detail.to_owned())
}

fn queues(script: &mut Script, cpu: u32, time: u64, work: i64) {
    let fields = vec![
        ("work", Value::Int(work)),
        ("function", Value::Int(77)),
        ("workqueue", Value::Text("events")),
        ("req_cpu", Value::Int(8192)),
    ];
    script.event(cpu, time, "workqueue_queue_work", fields);
}

fn executes(script: &mut Script, cpu: u32, time: u64, work: i64) {
    script.is(
        cpu,
        time,
        "workqueue_execute_start",
        &[("work", work), ("function", 77)],
    );
}

/// 10 waits from 1100 on for work of the worker 50, which does other work until 1500; 20 queues the
/// work at 1300.
fn worker_is_busy(of_other: bool) -> Script {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 10);
    script.switch(1, 1010, (0, 0), 50);
    executes(&mut script, 1, 1020, 900);
    script.switch(0, 1100, (10, WAITS), 20);
    if of_other {
        queues(&mut script, 0, 1300, 901);
    } else {
        script.is(0, 1290, "irq_softirq_entry", &[("vec", 1)]);
        script.is(0, 1295, "timer_expire_entry", &[("timer", 5)]);
        queues(&mut script, 0, 1300, 901);
        script.is(0, 1310, "timer_expire_exit", &[("timer", 5)]);
        script.is(0, 1320, "irq_softirq_exit", &[("vec", 1)]);
    }
    script.switch(1, 1400, (50, 0), 30);
    script.switch(1, 1450, (30, WAITS), 50);
    executes(&mut script, 1, 1500, 901);
    script.wakes(1, 1600, 10);
    // The work of a flush, which no event queues.
    executes(&mut script, 1, 1610, 902);
    script.switch(0, 1700, (20, WAITS), 10);
    script.wakes(1, 1710, 20);
    script.switch(1, 1800, (50, IDLE), 0);
    script.switch(0, 1900, (10, WAITS), 20);
    script
}

#[test]
fn work_is_of_who_queues_it() {
    let script = worker_is_busy(true);
    let expected = [
        part(1000, 1100, 10, "running", "CPU 0"),
        part(1100, 1300, 20, "running", "CPU 0"),
        part(1300, 1400, 50, "work-queue", "events"),
        part(1400, 1450, 50, "preempted", "by ? (30)"),
        part(1450, 1500, 50, "work-queue", "events"),
        part(1500, 1600, 50, "running", "CPU 1"),
        part(1600, 1700, 10, "runnable", "the CPU ran ? (20)"),
    ];
    assert_eq!(script.path(10, (1000, 1700)), expected);
    // The time of the worker until then is its own on a path of the worker itself.
    let own = script.path(50, (1010, 1600));
    assert!(
        own.iter()
            .all(|part| part.2 == 50 && part.3 != "work-queue"),
        "{own:?}"
    );
    // Work without a recorded queueing belongs to the preceding work.
    let flushed = script.path(20, (1700, 1710));
    assert_eq!(flushed, [part(1700, 1710, 50, "running", "CPU 1")]);
}

#[test]
fn what_queues_work_may_be_an_interrupt() {
    let expected = [
        part(1100, 1300, 50, "timer", ""),
        part(1300, 1400, 50, "work-queue", "events"),
    ];
    let found = worker_is_busy(false).path(10, (1100, 1700));
    assert_eq!(found[..2], expected);
}

#[test]
fn work_that_queues_itself_again_is_followed_to_who_queued_it_first() {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 20);
    script.switch(1, 1010, (0, 0), 50);
    script.switch(1, 1050, (50, IDLE), 10);
    script.switch(1, 1100, (10, WAITS), 0);
    queues(&mut script, 0, 1200, 900);
    script.wakes(0, 1210, 50);
    script.switch(1, 1220, (0, 0), 50);
    executes(&mut script, 1, 1230, 900);
    queues(&mut script, 1, 1300, 900);
    executes(&mut script, 1, 1350, 900);
    script.wakes(1, 1400, 10);
    script.switch(1, 1500, (50, IDLE), 10);
    script.switch(1, 1600, (10, WAITS), 0);
    let expected = [
        part(1100, 1200, 20, "running", "CPU 0"),
        part(1200, 1210, 50, "work-queue", "events"),
        part(1210, 1220, 50, "runnable", "the CPU was idle"),
        part(1220, 1230, 50, "work-queue", "events"),
        part(1230, 1300, 50, "running", "CPU 1"),
        part(1300, 1350, 50, "work-queue", "events"),
        part(1350, 1400, 50, "running", "CPU 1"),
    ];
    assert_eq!(script.path(10, (1100, 1400)), expected);
}

#[test]
fn nothing_changes_without_the_events_of_queues() {
    let mut script = worker_is_busy(true);
    script.without("workqueue_queue_work");
    let found = script.path(10, (1100, 1600));
    assert!(
        found
            .iter()
            .all(|part| part.2 == 50 && part.3 != "work-queue"),
        "{found:?}"
    );
}

fn ring(script: &mut Script, cpu: u32, time: u64, event: &str, request: i64) {
    let name = format!("io_uring_{event}");
    let fields = [
        ("ctx", 70),
        ("req", request),
        ("user_data", 0),
        ("opcode", 22),
    ];
    script.is(cpu, time, &name, &fields);
}

fn waits(script: &mut Script, cpu: u32, time: u64) {
    let fields = [("fd", 3), ("to_submit", 0), ("min_complete", 1)];
    script.is(cpu, time, "syscall_entry_io_uring_enter", &fields);
    script.is(
        cpu,
        time + 1,
        "io_uring_cqring_wait",
        &[("ctx", 70), ("min_events", 1)],
    );
}

/// The thread 10 waits for an io_uring from 1100 on. 20 submits a request at 1200, which goes to
/// the worker 60 at 1210, which executes another request until 1300. If `is_late`, 10 itself
/// records the completion.
fn worker_of_ring(is_late: bool) -> Script {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 20);
    ring(&mut script, 0, 1010, "submit_req", 1);
    ring(&mut script, 0, 1020, "queue_async_work", 1);
    script.switch(1, 1030, (0, 0), 10);
    waits(&mut script, 1, 1050);
    script.switch(1, 1100, (10, WAITS), 60);
    ring(&mut script, 0, 1200, "submit_req", 2);
    ring(&mut script, 0, 1210, "queue_async_work", 2);
    ring(&mut script, 1, 1300, "complete", 1);
    script.switch(1, 1350, (60, WAITS), 0);
    script.wakes(0, 1380, 60);
    script.switch(1, 1390, (0, 0), 60);
    if !is_late {
        ring(&mut script, 1, 1490, "complete", 2);
    }
    script.wakes(1, 1500, 10);
    script.switch(1, 1600, (60, WAITS), 10);
    if is_late {
        ring(&mut script, 1, 1610, "complete", 2);
    }
    script.is(1, 1700, "syscall_exit_io_uring_enter", &[("ret", 1)]);
    script.switch(1, 1800, (10, WAITS), 0);
    script
}

#[test]
fn requests_of_rings_are_of_who_submits_them() {
    for is_late in [false, true] {
        let graph = worker_of_ring(is_late).graph(&Selection::default());
        let found = crate::support::script::parts(&graph, 10, (1100, 1600));
        let expected = [
            part(1100, 1210, 20, "running", "CPU 0"),
            part(1210, 1300, 60, "work-queue", "io_uring"),
            part(1300, 1350, 60, "running", "CPU 1"),
        ];
        assert_eq!(found[..3], expected, "{is_late}");
        let request = graph.ring_requests.first().expect("one waited-for request");
        assert_eq!(
            (graph.ring_requests.len(), request.submitted),
            (1, 1200),
            "{is_late}"
        );
        // The link names the operation of the request.
        let (actor, _) = graph.with_tid(10).next().expect("the thread is there");
        let path = graph.path(actor, 1100, 1600);
        let links: Vec<String> = path.hops.iter().map(|hop| graph.link(hop.link)).collect();
        assert_eq!(links[1], "io_uring_enter read, woken by", "{is_late}");
        assert_eq!(links[2], "work in io_uring, queued by", "{is_late}");
    }
}

#[test]
fn before_a_request_of_another_thread_there_is_that_thread() {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 20);
    script.switch(1, 1030, (0, 0), 10);
    waits(&mut script, 1, 1050);
    script.switch(1, 1100, (10, WAITS), 0);
    ring(&mut script, 0, 1200, "submit_req", 2);
    script.is(1, 1400, "irq_softirq_entry", &[("vec", 1)]);
    script.is(1, 1410, "timer_expire_entry", &[("timer", 5)]);
    script.wakes(1, 1420, 10);
    script.is(1, 1430, "timer_expire_exit", &[("timer", 5)]);
    script.is(1, 1440, "irq_softirq_exit", &[("vec", 1)]);
    script.switch(1, 1500, (0, 0), 10);
    ring(&mut script, 1, 1510, "complete", 2);
    script.is(1, 1600, "syscall_exit_io_uring_enter", &[("ret", 1)]);
    script.switch(1, 1700, (10, WAITS), 0);
    let expected = [
        part(1100, 1200, 20, "running", "CPU 0"),
        part(1200, 1420, 10, "timer", "io_uring_enter read"),
        part(1420, 1500, 10, "runnable", "the CPU was idle"),
    ];
    assert_eq!(script.path(10, (1100, 1500)), expected);
}

/// Waits recorded by the program itself: kind, thread, and interval by the trace's clock.
fn told() -> (Graph, Vec<(String, i32, (i64, i64))>) {
    let directory = tracebraid_testkit::recorded::unpacked("perf-queues").join("perf-queues");
    let set = traces::open(&[directory.join("trace")]);
    let row = |row: Vec<String>| {
        let number = |at: usize| row[at].parse::<i64>().expect("a number");
        (row[0].clone(), number(1) as i32, (number(2), number(3)))
    };
    // The file has no header row.
    let text = std::fs::read_to_string(directory.join("truth.csv")).expect("it is there");
    let rows = text
        .lines()
        .map(|line| row(line.split(',').map(str::to_owned).collect()));
    let rows = rows.collect();
    (
        traces::graph(&set, Selection::default(), Options::default()),
        rows,
    )
}

/// Nearly all of each wait was the time of one thread, whose action ended the wait through kernel
/// work; the links describe the relation.
#[test]
fn recorded_waits_go_through_queues_and_rings() {
    let (graph, waits) = told();
    let mut found = 0;
    for (what, tid, (begin, end)) in &waits {
        let (of, links): (&str, &[&str]) = match what.as_str() {
            "pty" => ("writer", &["read fd", "work in events_unbound, queued by"]),
            "async" => ("feeder", &["io_uring_enter openat, woken by", "woken by"]),
            "timeout" => ("submitter", &["io_uring_enter timeout, woken by"]),
            other => panic!("unknown kind {other}"),
        };
        let (actor, _) = graph.with_tid(*tid).next().expect("the thread is there");
        let path = graph.path(actor, *begin, *end);
        assert!(path.tiles(*begin, *end));
        let is_of = |hop: u32| {
            let name = graph
                .actor(path.hops[hop as usize].actor)
                .and_then(|actor| actor.name.as_deref());
            name == Some(of)
        };
        let of_it = path.segments.iter().filter(|segment| is_of(segment.hop));
        let whole = (end - begin) as f64;
        let share = of_it.map(|segment| segment.duration()).sum::<u64>() as f64 / whole;
        let way = path
            .segments
            .iter()
            .filter(|segment| is_of(segment.hop))
            .map(|segment| segment.hop);
        let way: Vec<String> = way
            .max()
            .map(|hop| path.way(hop).map(|hop| graph.link(hop.link)).collect())
            .unwrap_or_default();
        let fits = links
            .iter()
            .rev()
            .zip(&way)
            .filter(|(link, found)| found.starts_with(*link))
            .count();
        let unknown = path
            .segments
            .iter()
            .filter(|segment| graph.reason(&path, segment) == WaitReason::Unknown);
        let unknown = unknown.map(|segment| segment.duration()).sum::<u64>() as f64 / whole;
        if share > 0.85 && fits == links.len() && unknown < 0.01 {
            found += 1;
        } else {
            println!("{what} {begin}: {share:.3} of {of}, unknown {unknown:.3}, {way:?}");
        }
    }
    // The state of the writer is unknown before its first switch.
    assert_eq!(waits.len(), 30);
    assert!(found >= 29, "{found}");
}
