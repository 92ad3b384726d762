//! Wait reasons of calls: compared with a plain model, with the known causes of recorded requests,
//! and in scripted traces.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views};
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;
use tracebraid_tables::{Report, View};

use tracebraid_models::law::{ALL, SMALL, as_in_one_piece};
use tracebraid_models::model_waits;
use tracebraid_models::naming::{Field, Maker, TEXT, Value};
use tracebraid_models::synthetic::{Scripted, Shape, scripted};
use tracebraid_models::traces::{kernel_trace, ours};

use Value::{Int, Text};

fn report<A>(set: &TraceSet, views: Views) -> Json
where
    A: KernelAnalysis<Report = Report, Options: From<Views>>,
{
    let analysis = A::with(set, Selection::default(), views.into());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    serde_json::to_value(outcome.expect("not cancelled").report)
        .expect("a report can be serialized")
}

fn everything() -> Views {
    Views {
        views: vec![View::Stats, View::Top, View::Log],
        ..Views::default()
    }
}

fn list<'a>(report: &'a Json, key: &str) -> &'a Vec<Json> {
    report[key]
        .as_array()
        .unwrap_or_else(|| panic!("a list of {key}"))
}

fn number(row: &Json, key: &str) -> u64 {
    row[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}

fn text<'a>(row: &'a Json, key: &str) -> &'a str {
    row[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} of {row}"))
}

/// Counts and sums by name and wait reason, from the report or the model.
type Numbers = BTreeMap<(String, String), (u64, u64)>;

fn reported(report: &Json, table: &str, key: &str) -> Numbers {
    let rows = list(report, table).iter();
    let row = |row: &Json| {
        let name = row[key]
            .as_str()
            .map_or_else(|| row[key].to_string(), str::to_owned);
        let numbers = (number(row, "count"), number(row, "total_ns"));
        ((name, text(row, "why").to_owned()), numbers)
    };
    rows.map(row).filter(|(_, numbers)| numbers.1 > 0).collect()
}

fn modelled(sums: &model_waits::Sums, name: impl Fn(i32, &str) -> String) -> Numbers {
    let mut numbers = Numbers::new();
    for ((tid, call, why), (count, time)) in sums {
        let sum = numbers
            .entry((name(*tid, call), (*why).to_owned()))
            .or_default();
        *sum = (sum.0 + count, sum.1 + time);
    }
    numbers
}

#[test]
fn a_plain_model_says_the_same() {
    for name in ["kernel-mix-small", "kernel-ust-requests", "twohost-server"] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let report = report::<WaitAnalysis>(&set, everything());
        let sums = model_waits::waits(&set);
        assert!(sums.len() > 500, "{name}: {}", sums.len());
        let by_call = modelled(&sums, |_, call| call.to_owned());
        assert_eq!(
            reported(&report, "syscall_reasons", "syscall"),
            by_call,
            "{name}"
        );
        let by_thread = modelled(&sums, |tid, _| tid.to_string());
        assert_eq!(
            reported(&report, "thread_reasons", "tid"),
            by_thread,
            "{name}"
        );
    }
}

/// Even with losses, the parts of all calls sum to the totals of `syscalls`.
#[test]
fn parts_are_the_whole() {
    for name in [
        "kernel-mix-small",
        "kernel-discarded",
        "kernel-ust-requests",
        "many-threads",
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let waits = report::<WaitAnalysis>(&set, everything());
        let calls = report::<SyscallAnalysis>(&set, everything());
        for (table, key) in [("syscalls", "syscall"), ("threads", "tid")] {
            let whole = |row: &Json, count: &str| {
                let numbers = (number(row, count), number(row, "total_ns"));
                (row[key].to_string(), numbers)
            };
            let rows = list(&waits, table);
            let own: BTreeMap<_, _> = rows.iter().map(|row| whole(row, "calls")).collect();
            let expected: BTreeMap<_, _> = list(&calls, table)
                .iter()
                .map(|row| whole(row, "count"))
                .collect();
            assert_eq!(own, expected, "{name}: {table}");
            for row in rows {
                let cells = row.as_object().expect("a row").iter();
                let parts = cells.filter(|(key, _)| key.ends_with("_ns") && *key != "total_ns");
                let sum: u64 = parts.map(|(_, part)| part.as_u64().expect("a part")).sum();
                assert_eq!(sum, number(row, "total_ns"), "{name}: {row}");
            }
        }
    }
}

/// Losses make time unknown.
#[test]
fn losses_show() {
    let share = |name: &str| {
        let set = kernel_trace(name)?;
        let report = report::<WaitAnalysis>(&set, everything());
        let unknown = list(&report, "reasons")
            .iter()
            .find(|row| row["why"] == "unknown");
        Some(unknown.map_or(0.0, |row| row["share"].as_f64().expect("a share")))
    };
    if let (Some(lossy), Some(whole)) = (share("kernel-discarded"), share("kernel-ust-requests")) {
        assert!(lossy > 0.05, "{lossy}");
        assert!(whole < 0.001, "{whole}");
    }
}

/// A request of the recorded program: cause, thread, start and end, and its own measurements in
/// nanoseconds: waits for its lock, for its store, and for its backend.
struct Request {
    cause: String,
    tid: u64,
    range: (i64, i64),
    lock: u64,
    store: u64,
    rpc: u64,
}

fn requests(truth: &str, offset: i64) -> Vec<Request> {
    let request = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let int = |at: usize| cells[at].parse::<i64>().expect("a number");
        Request {
            cause: cells[3].to_owned(),
            tid: int(6) as u64,
            range: (int(1) + offset, int(2) + offset),
            lock: int(9) as u64,
            store: int(10) as u64,
            rpc: int(11) as u64,
        }
    };
    truth.lines().skip(1).map(request).collect()
}

/// Nanoseconds that the thread of a request waited, by wait reason.
fn waits_of(request: &Request, waits: &BTreeMap<u64, Vec<&Json>>) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for wait in waits.get(&request.tid).into_iter().flatten() {
        let begin = wait["begin_ns"].as_i64().expect("a time");
        let end = begin + number(wait, "duration_ns") as i64;
        let both = end.min(request.range.1) - begin.max(request.range.0);
        if both > 0 {
            *sums.entry(text(wait, "why").to_owned()).or_default() += both as u64;
        }
    }
    sums
}

/// 2,500 requests, of which 205 are slowed by causes that make a call wait. The trace does not
/// contain the causes.
#[test]
fn causes_of_slow_requests_are_found() {
    let archive = "kernel-ust-requests";
    let (Some(set), Some(path)) = (kernel_trace(archive), ours(archive, archive)) else {
        return;
    };
    let root = path
        .parent()
        .and_then(|path| path.parent())
        .expect("a directory");
    let truth = root.join(format!("{archive}.truth/requests.csv"));
    let truth = std::fs::read_to_string(truth).expect("the truth");
    let clock = set.traces[0]
        .clock(&set.traces[0].streams[0])
        .expect("a clock");
    let requests = requests(&truth, clock.timestamp(0).0);
    assert_eq!(requests.len(), 2500);
    let report = report::<WaitAnalysis>(&set, everything());
    let mut waits: BTreeMap<u64, Vec<&Json>> = BTreeMap::new();
    for wait in list(&report, "log") {
        waits.entry(number(wait, "tid")).or_default().push(wait);
    }
    let mut found: BTreeMap<(&str, String), u64> = BTreeMap::new();
    let mut measured = [("futex", 0, 0), ("block-device", 0, 0), ("network", 0, 0)];
    for request in &requests {
        let sums = waits_of(request, &waits);
        let most = sums.iter().max_by_key(|(_, time)| **time);
        let most = most.map(|(why, _)| why.clone()).unwrap_or_default();
        *found.entry((request.cause.as_str(), most)).or_default() += 1;
        for ((why, ours, theirs), own) in
            measured
                .iter_mut()
                .zip([request.lock, request.store, request.rpc])
        {
            *ours += sums.get(*why).copied().unwrap_or(0);
            *theirs += own;
        }
    }
    let of =
        |cause: &'static str, why: &str| found.get(&(cause, why.to_owned())).copied().unwrap_or(0);
    assert_eq!(of("disk", "block-device"), 50);
    assert_eq!(of("lock_sleep", "futex"), 35);
    assert!(of("lock_run", "futex") >= 40, "{found:?}");
    assert!(of("backend_sleep", "network") >= 36, "{found:?}");
    assert_eq!(of("backend_run", "network"), 42);
    // The program's measurements around its calls include some running time besides the waits.
    for (why, ours, theirs) in measured {
        let difference = ours.abs_diff(theirs) as f64 / theirs as f64;
        assert!(difference < 0.05, "{why}: {ours} beside {theirs}");
    }
}

/// Packets are short, so that chunks begin everywhere.
const SHAPE: Shape = Shape {
    cpus: 2,
    threads: 0,
    steps: 0,
    packet: 220,
    told_threads: true,
    ..Shape::PLAIN
};

/// Scripted events, each with its CPU and time.
#[derive(Default)]
struct Script(Vec<Scripted<'static>>);

impl Script {
    fn event(&mut self, cpu: u64, time: u64, name: &'static str, fields: Vec<Field<'static>>) {
        self.0
            .push((cpu, time, Maker { tid: 10, pid: 10 }, name, fields));
    }

    /// `state` is the reason for which the previous thread leaves.
    fn switch(&mut self, cpu: u64, time: u64, (prev, state): (i64, i64), next: i64) {
        let fields = vec![
            ("prev_comm", TEXT, Text("before")),
            ("prev_tid", 32, Int(prev)),
            ("prev_prio", 32, Int(20)),
            ("prev_state", 64, Int(state)),
            ("next_comm", TEXT, Text("after")),
            ("next_tid", 32, Int(next)),
            ("next_prio", 32, Int(20)),
        ];
        self.event(cpu, time, "sched_switch", fields);
    }

    fn wakes(&mut self, cpu: u64, time: u64, name: &'static str, tid: i64) {
        let fields = vec![
            ("comm", TEXT, Text("woken")),
            ("tid", 32, Int(tid)),
            ("prio", 32, Int(20)),
            ("target_cpu", 32, Int(0)),
        ];
        self.event(cpu, time, name, fields);
    }

    fn belongs(&mut self, time: u64, tid: i64, pid: i64) {
        let fields = vec![
            ("tid", 32, Int(tid)),
            ("pid", 32, Int(pid)),
            ("name", TEXT, Text("name")),
        ];
        self.event(0, time, "lttng_statedump_process_state", fields);
    }

    fn of_number(
        &mut self,
        cpu: u64,
        time: u64,
        name: &'static str,
        field: &'static str,
        number: i64,
    ) {
        self.event(cpu, time, name, vec![(field, 32, Int(number))]);
    }

    /// An entry with a descriptor.
    fn enter(&mut self, cpu: u64, time: u64, name: &'static str, descriptor: i64) {
        self.of_number(cpu, time, name, "fd", descriptor);
    }

    fn exit(&mut self, cpu: u64, time: u64, name: &'static str, result: i64) {
        self.event(cpu, time, name, vec![("ret", 64, Int(result))]);
    }

    fn futex(&mut self, cpu: u64, time: u64, address: i64, operation: i64) {
        let fields = vec![("uaddr", 64, Int(address)), ("op", 32, Int(operation))];
        self.event(cpu, time, "entry futex", fields);
    }

    /// The report, which must be the same however it is folded.
    fn report(self, shape: Shape) -> Json {
        let (directory, set) = scripted(shape, self.0);
        as_in_one_piece::<WaitAnalysis>("a script", &set, ALL, SMALL);
        let report = report::<WaitAnalysis>(&set, everything());
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
        report
    }
}

/// The given fields of all rows.
fn fields(report: &Json, table: &str, names: &[&str]) -> Json {
    let row = |row: &Json| names.iter().map(|name| row[name].clone()).collect::<Json>();
    list(report, table).iter().map(row).collect()
}

/// A thread waits seven times in one call, on two CPUs.
fn seven_waits() -> Script {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 10);
    script.switch(1, 1001, (0, 0), 20);
    script.enter(0, 1100, "entry read", 3);
    // Woken by a softirq, after an interrupt within it.
    script.switch(0, 1200, (10, 1), 0);
    script.of_number(1, 1300, "irq_softirq_entry", "vec", 3);
    script.of_number(1, 1310, "irq_handler_entry", "irq", 5);
    script.of_number(1, 1320, "irq_handler_exit", "irq", 5);
    script.wakes(1, 1330, "sched_waking", 10);
    script.of_number(1, 1340, "irq_softirq_exit", "vec", 3);
    script.switch(0, 1400, (0, 0), 10);
    // Woken by an interrupt within a softirq; then the thread continues on the other CPU.
    script.switch(0, 1500, (10, 1), 0);
    script.of_number(1, 1510, "irq_softirq_entry", "vec", 3);
    script.of_number(1, 1520, "irq_handler_entry", "irq", 5);
    script.wakes(1, 1530, "sched_waking", 10);
    script.wakes(1, 1531, "sched_wakeup", 10);
    script.of_number(1, 1540, "irq_handler_exit", "irq", 5);
    script.of_number(1, 1550, "irq_softirq_exit", "vec", 3);
    script.switch(1, 1600, (20, 1), 10);
    // Woken by an interrupt that completes a block request.
    script.switch(1, 1700, (10, 2), 20);
    script.of_number(0, 1710, "irq_handler_entry", "irq", 7);
    let done = vec![
        ("dev", 32, Int(8)),
        ("sector", 64, Int(1)),
        ("nr_sector", 32, Int(8)),
    ];
    script.event(0, 1715, "block_rq_complete", done);
    script.wakes(0, 1720, "sched_waking", 10);
    script.of_number(0, 1725, "irq_handler_exit", "irq", 7);
    script.switch(0, 1800, (0, 0), 10);
    // Woken by a timer.
    script.switch(0, 1900, (10, 1), 0);
    script.of_number(1, 1910, "timer_hrtimer_expire_entry", "hrtimer", 1);
    script.wakes(1, 1920, "sched_waking", 10);
    script.of_number(1, 1930, "timer_hrtimer_expire_exit", "hrtimer", 1);
    script.switch(0, 2000, (0, 0), 10);
    // Woken by a thread in a call.
    script.switch(0, 2005, (10, 1), 0);
    script.enter(1, 2010, "entry write", 4);
    script.wakes(1, 2020, "sched_waking", 10);
    script.exit(1, 2030, "exit write", 1);
    script.switch(0, 2100, (0, 0), 10);
    // Preempted; then no wake-up is recorded.
    script.switch(0, 2200, (10, 0x100), 0);
    script.switch(0, 2300, (0, 0), 10);
    script.switch(0, 2400, (10, 1), 0);
    script.switch(0, 2500, (0, 0), 10);
    // Woken while leaving the CPU.
    script.enter(1, 2530, "entry write", 4);
    script.wakes(1, 2540, "sched_waking", 10);
    script.switch(0, 2550, (10, 1), 0);
    script.wakes(0, 2560, "sched_wakeup", 10);
    script.exit(1, 2570, "exit write", 1);
    script.switch(0, 2600, (0, 0), 10);
    script.exit(0, 2700, "exit read", 5);
    script
}

#[test]
fn contexts_say_what_a_call_waited_for() {
    let report = seven_waits().report(SHAPE);
    let waits = fields(&report, "log", &["duration_ns", "why", "context"]);
    let expected = json!([
        [130, "network", "softirq NET_RX"],
        [70, "runnable", null],
        [30, "device", "irq 5"],
        [70, "runnable", null],
        [20, "block-device", "block-device"],
        [80, "runnable", null],
        [20, "timer", "timer"],
        [80, "runnable", null],
        [15, "thread", "thread"],
        [80, "runnable", null],
        [100, "preempted", null],
        [100, "unknown", null],
        [50, "runnable", null]
    ]);
    assert_eq!(waits, expected);
    assert_eq!(report["log"][8]["waker"]["tid"], 20);
    let read = &report["syscalls"][0];
    assert_eq!(
        (text(read, "syscall"), number(read, "total_ns")),
        ("read", 1600)
    );
    assert_eq!(
        (number(read, "running_ns"), number(read, "unknown_ns")),
        (755, 100)
    );
    assert_eq!(report["longest"][0]["duration_ns"], 130);
}

/// The same without switches: all time is unknown.
#[test]
fn without_switches_nothing_is_known() {
    let mut script = Script::default();
    script.enter(0, 1100, "entry read", 3);
    script.exit(0, 1700, "exit read", 5);
    let shape = Shape {
        tid_context: true,
        ..SHAPE
    };
    let (directory, set) = scripted(shape, script.0);
    let lacks = WaitAnalysis::new(&set, Selection::default()).lacks();
    let report = report::<WaitAnalysis>(&set, everything());
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    assert!(
        lacks.is_some_and(|lacks| lacks.contains("enable sched_switch")),
        "{lacks:?}"
    );
    let read = fields(
        &report,
        "syscalls",
        &["total_ns", "running_ns", "unknown_ns"],
    );
    assert_eq!(read, json!([[600, 0, 600]]));
}

/// A new owner of the id of a thread in a call is in no call; an exit ends only its own call.
#[test]
fn ids_are_used_again() {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 10);
    script.enter(0, 1100, "entry read", 3);
    script.switch(0, 1200, (10, 1), 20);
    let fork = vec![
        ("parent_comm", TEXT, Text("parent")),
        ("parent_tid", 32, Int(20)),
        ("parent_pid", 32, Int(20)),
        ("child_comm", TEXT, Text("child")),
        ("child_tid", 32, Int(10)),
        ("child_pid", 32, Int(10)),
    ];
    script.event(0, 1300, "sched_process_fork", fork);
    script.switch(0, 1400, (20, 1), 10);
    script.exit(0, 1500, "exit read", 5);
    script.enter(0, 1600, "entry read", 3);
    script.exit(0, 1700, "exit write", 5);
    script.enter(0, 1800, "entry close", 3);
    script.exit(0, 1850, "exit close", 0);
    let report = script.report(SHAPE);
    assert_eq!(
        fields(&report, "syscalls", &["syscall", "calls", "total_ns"]),
        json!([["close", 1, 50]])
    );
    assert_eq!(report["total"]["unfinished"], 0);
}

#[test]
fn a_dying_thread_ends_waits() {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 10);
    script.switch(1, 1001, (0, 0), 20);
    script.of_number(0, 1100, "entry wait4", "upid", -1);
    script.switch(0, 1200, (10, 1), 0);
    // Killed: in no call.
    script.enter(1, 1210, "entry read", 3);
    let dies = vec![
        ("comm", TEXT, Text("dies")),
        ("tid", 32, Int(20)),
        ("prio", 32, Int(20)),
    ];
    script.event(1, 1250, "sched_process_exit", dies);
    script.wakes(1, 1300, "sched_waking", 10);
    script.switch(0, 1400, (0, 0), 10);
    script.exit(0, 1500, "exit wait4", 20);
    let report = script.report(SHAPE);
    let waits = fields(&report, "log", &["duration_ns", "why"]);
    assert_eq!(waits, json!([[100, "child"], [100, "runnable"]]));
    assert_eq!(report["total"]["unfinished"], 0);
}

#[test]
fn futexes_by_address() {
    const ADDRESS: i64 = 0x7FFF_1234_5678;
    let mut script = Script::default();
    script.belongs(900, 10, 10);
    script.belongs(910, 11, 10);
    script.switch(0, 1000, (0, 0), 10);
    script.switch(1, 1001, (0, 0), 11);
    // Waits until the other thread wakes it.
    script.futex(0, 1100, ADDRESS, 128);
    script.switch(0, 1200, (10, 1), 0);
    script.futex(1, 1300, ADDRESS, 129);
    script.wakes(1, 1310, "sched_waking", 10);
    script.exit(1, 1320, "exit futex", 1);
    script.switch(0, 1400, (0, 0), 10);
    script.exit(0, 1500, "exit futex", 0);
    // Finds another value; wakes no thread; times out.
    script.futex(0, 1600, ADDRESS, 0);
    script.exit(0, 1610, "exit futex", -11);
    script.futex(0, 1620, ADDRESS, 1);
    script.exit(0, 1630, "exit futex", 0);
    script.futex(1, 1700, ADDRESS, 0x189);
    script.switch(1, 1710, (11, 1), 0);
    script.of_number(1, 1800, "timer_hrtimer_expire_entry", "hrtimer", 1);
    script.wakes(1, 1810, "sched_waking", 11);
    script.of_number(1, 1820, "timer_hrtimer_expire_exit", "hrtimer", 1);
    script.switch(1, 1900, (0, 0), 11);
    script.exit(1, 2000, "exit futex", -110);
    let report = script.report(SHAPE);
    let names = [
        "pid", "address", "count", "total_ns", "again", "timeouts", "threads", "wakes", "woken",
    ];
    let expected = json!([[10, "0x7fff12345678", 2, 700, 1, 1, 2, 2, 1]]);
    assert_eq!(fields(&report, "futexes", &names), expected);
    let row = &report["futexes"][0];
    assert_eq!(
        (&row["waker"]["tid"], &row["waker_wakes"]),
        (&json!(11), &json!(1))
    );
    let operations = fields(
        &report,
        "futex_operations",
        &["operation", "count", "total_ns", "again"],
    );
    let expected = json!([
        ["WAIT", 1, 400, 1],
        ["WAIT_BITSET", 1, 300, 0],
        ["WAKE", 2, 30, 0]
    ]);
    assert_eq!(operations, expected);
    let reasons = fields(&report, "reasons", &["why", "total_ns"]);
    assert!(
        reasons
            .as_array()
            .expect("rows")
            .contains(&json!(["futex", 110])),
        "{reasons}"
    );
}

/// One thread of a process sends, another receives.
#[test]
fn sockets_by_peer() {
    let mut script = Script::default();
    script.belongs(900, 10, 10);
    script.belongs(910, 11, 10);
    script.switch(0, 1000, (0, 0), 10);
    script.switch(1, 1001, (0, 0), 11);
    let peer = vec![
        ("fd", 32, Int(3)),
        ("family", 16, Int(2)),
        ("dport", 16, Int(80)),
        ("_v4addr_length", 32, Int(4)),
        ("v4addr", 8, Value::List(vec![10, 0, 0, 7])),
    ];
    script.event(0, 1100, "entry connect", peer);
    script.exit(0, 1150, "exit connect", 0);
    script.enter(0, 1200, "entry sendto", 3);
    script.exit(0, 1220, "exit sendto", 64);
    script.enter(1, 1205, "entry recvfrom", 3);
    script.exit(1, 1300, "exit recvfrom", 64);
    // A failure, nothing to receive, and a descriptor that is no longer a socket.
    script.enter(0, 1400, "entry sendto", 3);
    script.exit(0, 1410, "exit sendto", -32);
    script.enter(0, 1420, "entry recvfrom", 3);
    script.exit(0, 1430, "exit recvfrom", 0);
    script.enter(0, 1500, "entry close", 3);
    script.exit(0, 1510, "exit close", 0);
    script.enter(0, 1600, "entry read", 3);
    script.exit(0, 1610, "exit read", 9);
    let report = script.report(SHAPE);
    let names = ["pid", "side", "peer", "measure", "count", "total_ns"];
    let expected = json!([
        [10, "client", "10.0.0.7:80", "receive", 1, 95],
        [10, "client", "10.0.0.7:80", "response", 1, 80],
        [10, "client", "10.0.0.7:80", "connect", 1, 50],
        [10, "client", "10.0.0.7:80", "send", 1, 20]
    ]);
    assert_eq!(fields(&report, "sockets", &names), expected);
}

/// The bytes of an IPv6 address follow those of an IPv4 address, which is empty.
#[test]
fn peers_of_ipv6() {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 10);
    let peer = vec![
        ("fd", 32, Int(3)),
        ("family", 16, Int(10)),
        ("dport", 16, Int(80)),
        ("_v4addr_length", 32, Int(0)),
        ("_v6addr_length", 32, Int(8)),
        ("v6addr", 16, Value::List(vec![0, 0, 0, 0, 0, 0, 0, 0x0100])),
    ];
    script.event(0, 1100, "entry connect", peer);
    script.exit(0, 1150, "exit connect", -115);
    let report = script.report(SHAPE);
    let expected = json!([["client", "[::1]:80", "connect", 50]]);
    let names = ["side", "peer", "measure", "total_ns"];
    assert_eq!(fields(&report, "sockets", &names), expected);
}
