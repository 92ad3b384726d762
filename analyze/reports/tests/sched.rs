//! Scheduling: scripted events, and the results of `sched`.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views, Window};
use tracebraid_models::model_sched::{Queue, queues};
use tracebraid_models::naming::{Field, Maker, TEXT, Value};
use tracebraid_models::synthetic::{Scripted, Shape, scripted};
use tracebraid_reports::sched::{SchedAnalysis, SchedOptions};
use tracebraid_tables::View;

use Value::{Int, Text};

const SHAPE: Shape = Shape {
    cpus: 2,
    threads: 0,
    steps: 0,
    packet: 4000,
    told_threads: true,
    ..Shape::PLAIN
};

/// Nanoseconds from the origin to the clock's zero.
const OFFSET: i64 = 5000;

/// Columns of the table of run queues.
const QUEUES: [&str; 6] = [
    "cpu",
    "average_length",
    "max_length",
    "waits",
    "wait_ns",
    "max_wait_ns",
];

/// Scripted events, each with its CPU and time.
#[derive(Default)]
struct Script(Vec<Scripted<'static>>);

impl Script {
    fn event(&mut self, cpu: u64, time: u64, name: &'static str, fields: Vec<Field<'static>>) {
        self.0
            .push((cpu, time, Maker { tid: 0, pid: 0 }, name, fields));
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
            ("next_prio", 32, Int(next - 10)),
        ];
        self.event(cpu, time, "sched_switch", fields);
    }

    fn wakes(&mut self, cpu: u64, time: u64, name: &'static str, tid: i64, target: i64) {
        let fields = vec![
            ("comm", TEXT, Text("woken")),
            ("tid", 32, Int(tid)),
            ("prio", 32, Int(20)),
            ("target_cpu", 32, Int(target)),
        ];
        self.event(cpu, time, name, fields);
    }

    fn waking(&mut self, cpu: u64, time: u64, tid: i64, target: i64) {
        self.wakes(cpu, time, "sched_waking", tid, target);
    }

    fn forks(&mut self, cpu: u64, time: u64, parent: i64, child: i64) {
        let fields = vec![
            ("parent_comm", TEXT, Text("parent")),
            ("parent_tid", 32, Int(parent)),
            ("parent_pid", 32, Int(parent)),
            ("child_comm", TEXT, Text("child")),
            ("child_tid", 32, Int(child)),
            ("child_pid", 32, Int(child)),
        ];
        self.event(cpu, time, "sched_process_fork", fields);
    }

    fn report(self, shape: Shape, options: SchedOptions) -> Json {
        self.report_of(shape, Selection::default(), options)
    }

    fn report_of(self, shape: Shape, selection: Selection, options: SchedOptions) -> Json {
        let (directory, set) = scripted(shape, self.0);
        let analysis = SchedAnalysis::with(&set, selection, options);
        let outcome = fold(&set, &analysis, Options::default(), &Control::default());
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
        serde_json::to_value(outcome.expect("not cancelled").report)
            .expect("a report can be serialized")
    }
}

fn everything() -> SchedOptions {
    let views = Views {
        views: vec![View::Stats, View::Top, View::Log],
        ..Views::default()
    };
    views.into()
}

/// The given fields of all rows.
fn fields(report: &Json, list: &str, names: &[&str]) -> Json {
    let rows = report[list]
        .as_array()
        .unwrap_or_else(|| panic!("a list of {list}"));
    let row = |row: &Json| names.iter().map(|name| row[name].clone()).collect::<Json>();
    rows.iter().map(row).collect()
}

/// Two CPUs: threads are preempted, migrated, and woken by a thread, a softirq and an interrupt.
fn two_cpus() -> Script {
    let mut script = Script::default();
    let vector = || vec![("vec", 32, Int(3))];
    script.switch(0, 1000, (0, 0), 10);
    script.switch(1, 1001, (0, 0), 20);
    script.waking(0, 1010, 30, 1);
    script.wakes(0, 1020, "sched_wakeup", 30, 0);
    script.wakes(0, 1030, "sched_wakeup", 31, 0);
    let moved = vec![
        ("comm", TEXT, Text("moved")),
        ("tid", 32, Int(31)),
        ("prio", 32, Int(20)),
        ("orig_cpu", 32, Int(0)),
        ("dest_cpu", 32, Int(1)),
    ];
    script.event(1, 1040, "sched_migrate_task", moved);
    script.switch(0, 1050, (10, 0x100), 30);
    script.switch(1, 1060, (20, 1), 31);
    script.switch(0, 1070, (30, 0), 10);
    script.switch(1, 1080, (31, 2), 0);
    script.event(1, 1090, "irq_softirq_entry", vector());
    script.waking(1, 1091, 31, 1);
    script.event(1, 1092, "irq_softirq_exit", vector());
    script.switch(1, 1095, (0, 0), 31);
    let irq = vec![("irq", 32, Int(5)), ("name", TEXT, Text("eth"))];
    script.event(1, 1100, "irq_handler_entry", irq);
    script.waking(1, 1101, 20, 1);
    let irq = vec![("irq", 32, Int(5)), ("ret", 32, Int(1))];
    script.event(1, 1102, "irq_handler_exit", irq);
    script.switch(1, 1110, (31, 1), 20);
    script.switch(0, 1200, (10, 1), 0);
    script
}

#[test]
fn latencies_and_who_woke() {
    let report = two_cpus().report(SHAPE, everything());
    let log = fields(
        &report,
        "log",
        &["tid", "wakeup_ns", "latency_ns", "cpu", "priority"],
    );
    let row = |tid: i64, wakeup: i64, latency: u64, cpu: u32| {
        json!([tid, wakeup + OFFSET, latency, cpu, tid + 90])
    };
    let expected = [
        row(30, 1010, 40, 0),
        row(31, 1030, 30, 1),
        row(31, 1091, 4, 1),
        row(20, 1101, 9, 1),
    ];
    assert_eq!(log, Json::from(expected.to_vec()));
    let wakers: Vec<_> = report["log"].as_array().expect("a list").iter().collect();
    let waker = |row: &&Json| {
        json!([
            row["waker_context"],
            row["waker"]["tid"],
            row["waker"]["name"]
        ])
    };
    let wakers: Json = wakers.iter().map(waker).collect();
    let expected = json!([
        ["thread", 10, "before"],
        ["thread", 10, "before"],
        ["softirq", null, "softirq NET_RX"],
        ["irq", null, "irq 5"]
    ]);
    assert_eq!(wakers, expected);
    assert_eq!(report["total"]["latencies"], 4);
    assert_eq!(report["total"]["pending"], 0);
}

#[test]
fn queues_and_waits() {
    let report = two_cpus().report(SHAPE, everything());
    // Waits for CPU 0: thread 30 from 1020 to 1050 and from 1070 to the end, 31 from 1030 to 1040,
    // 10 from 1050 to 1070. For the other CPU: 31 from 1040 to 1060 and from 1091 to 1095, 20 from
    // 1101 to 1110.
    let expected = json!([
        [0, (30.0 + 130.0 + 10.0 + 20.0) / 200.0, 2, 2, 50, 30],
        [1, (20.0 + 4.0 + 9.0) / 200.0, 1, 3, 43, 30]
    ]);
    assert_eq!(fields(&report, "queues", &QUEUES), expected);
    let expected = json!([
        [31, 2, 34, 30],
        [30, 1, 30, 30],
        [10, 1, 20, 20],
        [20, 1, 9, 9]
    ]);
    let names = ["tid", "waits", "wait_ns", "max_wait_ns"];
    assert_eq!(fields(&report, "thread_waits", &names), expected);
}

#[test]
fn queues_are_cut_at_the_range() {
    let time = |time: i64| Some(tracebraid_ctf::clock::Timestamp(time + OFFSET));
    let window = Window {
        from: time(1035),
        to: time(1060),
    };
    let selection = Selection {
        window,
        ..Selection::default()
    };
    let report = two_cpus().report_of(SHAPE, selection, everything());
    // 30 up to 1050, 31 up to 1040, 10 from 1050 on; 31 from 1040 on.
    let expected = json!([
        [0, (15.0 + 5.0 + 10.0) / 25.0, 2, 1, 30],
        [1, 20.0 / 25.0, 1, 0, 0]
    ]);
    let names = ["cpu", "average_length", "max_length", "waits", "wait_ns"];
    assert_eq!(fields(&report, "queues", &names), expected);
    assert_eq!(report["total"]["latencies"], 1);
}

#[test]
fn switches_have_reasons() {
    let report = two_cpus().report(SHAPE, everything());
    let expected = json!([
        ["runnable", "involuntary", 1],
        ["preempted", "involuntary", 1],
        ["sleeping", "voluntary", 3],
        ["disk-sleep", "voluntary", 1]
    ]);
    assert_eq!(
        fields(&report, "reasons", &["reason", "kind", "switches"]),
        expected
    );
    let names = ["tid", "switches", "voluntary", "involuntary"];
    let expected = json!([[10, 2, 1, 1], [31, 2, 2, 0], [20, 1, 1, 0], [30, 1, 0, 1]]);
    assert_eq!(fields(&report, "thread_switches", &names), expected);
    let expected = json!([[0, 1, 1]]);
    let names = ["from_cpu", "to_cpu", "migrations"];
    assert_eq!(fields(&report, "migrations", &names), expected);
    assert_eq!(
        fields(&report, "thread_migrations", &["tid", "migrations"]),
        json!([[31, 1]])
    );
}

#[test]
fn priorities_choose_latencies_only() {
    let options = SchedOptions {
        priorities: vec![120, 110],
        ..everything()
    };
    let report = two_cpus().report(SHAPE, options);
    assert_eq!(
        fields(&report, "priorities", &["priority", "count"]),
        json!([[110, 1], [120, 1]])
    );
    assert_eq!(report["total"]["switches"], 6);
    assert_eq!(fields(&report, "queues", &["waits"]), json!([[2], [3]]));
}

/// Ids that are reused, taken over or freed; threads that ran without a recorded switch.
#[test]
fn wake_ups_end_with_their_threads() {
    let mut script = Script::default();
    script.switch(0, 1000, (0, 0), 10);
    script.waking(0, 1010, 40, 0);
    // Another thread with the same id.
    script.forks(0, 1020, 10, 40);
    script.wakes(0, 1030, "sched_wakeup_new", 40, 0);
    script.switch(0, 1040, (10, 1), 40);
    // A thread whose first wake-up is not recorded waits from its creation on.
    script.forks(0, 1050, 40, 41);
    script.switch(0, 1060, (40, 1), 41);
    // The thread runs.
    script.waking(0, 1070, 41, 0);
    script.switch(0, 1080, (41, 1), 0);
    script.waking(0, 1090, 10, 0);
    script.event(
        0,
        1095,
        "sched_process_free",
        vec![
            ("comm", TEXT, Text("x")),
            ("tid", 32, Int(10)),
            ("prio", 32, Int(20)),
        ],
    );
    script.switch(0, 1100, (0, 0), 10);
    // Thread 50 ran although no switch shows it, and needs no other wake-up.
    script.waking(0, 1110, 50, 0);
    script.switch(0, 1120, (50, 1), 0);
    // Thread 10 did not.
    script.waking(0, 1130, 10, 0);
    script.switch(0, 1140, (0, 0), 10);
    let exec = vec![
        ("filename", TEXT, Text("/bin/x")),
        ("tid", 32, Int(60)),
        ("old_tid", 32, Int(10)),
    ];
    script.event(0, 1150, "sched_process_exec", exec);
    script.waking(0, 1160, 60, 0);
    script.waking(0, 1165, 10, 0);
    script.switch(0, 1170, (60, 1), 0);
    script.switch(0, 1180, (0, 0), 60);
    let report = script.report(SHAPE, everything());
    let expected = json!([[40, 10], [10, 10]]);
    assert_eq!(fields(&report, "log", &["tid", "latency_ns"]), expected);
    assert_eq!(report["total"]["pending"], 1);
    let expected = json!([[10, 1, 10], [40, 1, 10], [41, 1, 10]]);
    assert_eq!(
        fields(&report, "thread_waits", &["tid", "waits", "wait_ns"]),
        expected
    );
}

/// A wake-up becomes unknown if events are lost on the CPU that the thread waits for, and not if
/// they are lost elsewhere.
#[test]
fn losses_end_what_waits_there() {
    let script = |target: i64| {
        let mut script = Script::default();
        script.switch(0, 1000, (0, 0), 10);
        script.switch(1, 1000, (0, 0), 20);
        script.wakes(1, 1010, "sched_wakeup", 30, target);
        // Events of CPU 0 fill a packet and begin another.
        for time in 0..4 {
            script.switch(0, 1020 + 20 * time, (10, 1), 0);
            script.switch(0, 1030 + 20 * time, (0, 0), 10);
        }
        script.switch(
            target as u64,
            1200,
            (if target == 0 { 10 } else { 20 }, 1),
            30,
        );
        script
    };
    let lossy = Shape {
        counted_losses: 1000,
        packet: 400,
        ..SHAPE
    };
    for (shape, target, expected) in [
        (SHAPE, 0, json!([[30, 190]])),
        (SHAPE, 1, json!([[30, 190]])),
        (lossy, 0, json!([])),
        (lossy, 1, json!([[30, 190]])),
    ] {
        let report = script(target).report(shape, everything());
        let found = fields(&report, "log", &["tid", "latency_ns"]);
        assert_eq!(
            found, expected,
            "{} losses, CPU {target}",
            shape.counted_losses
        );
    }
}

/// On recorded traces without losses, run queues and preemptions are those of a plain pass.
#[test]
fn queues_are_those_of_a_model() {
    for name in [
        "kernel-mix-small",
        "kernel-ust-requests",
        "twohost-client",
        "twohost-server",
        "many-threads",
    ] {
        let Some(set) = tracebraid_models::traces::kernel_trace(name) else {
            continue;
        };
        let analysis = SchedAnalysis::new(&set, Selection::default());
        let outcome = fold(&set, &analysis, Options::default(), &Control::default());
        let report = outcome.expect("not cancelled").report;
        let report = serde_json::to_value(report).expect("a report can be serialized");
        queues_are_as_modelled(name, &report, &set);
        preemptions_are_as_modelled(name, &report, &set);
    }
}

fn queues_are_as_modelled(name: &str, report: &Json, set: &TraceSet) {
    let duration = report["duration_ns"].as_u64().expect("a duration") as f64;
    let row = |(cpu, queue): (u32, Queue)| {
        json!([
            cpu,
            queue.queued as f64 / duration,
            queue.longest,
            queue.waits.len(),
            queue.waits.iter().sum::<u64>(),
            queue.waits.iter().max()
        ])
    };
    let expected: Json = queues(set).into_iter().map(row).collect();
    assert_eq!(fields(report, "queues", &QUEUES), expected, "{name}");
}

fn preemptions_are_as_modelled(name: &str, report: &Json, set: &TraceSet) {
    let mut preempted: BTreeMap<(i64, i64), Vec<u64>> = BTreeMap::new();
    for (_, queue) in queues(set) {
        for ((tid, by), waits) in queue.preempted {
            preempted
                .entry((tid.into(), by.into()))
                .or_default()
                .extend(waits);
        }
    }
    let expected: BTreeMap<(i64, i64), (u64, u64, u64)> = preempted
        .into_iter()
        .map(|(who, waits)| {
            let greatest = waits.iter().max().copied().unwrap_or(0);
            (who, (waits.len() as u64, waits.iter().sum(), greatest))
        })
        .collect();
    let rows = report["preempted_by"].as_array().expect("a list");
    let found: BTreeMap<(i64, i64), (u64, u64, u64)> = rows
        .iter()
        .map(|row| {
            let id = |value: &Json| value.as_i64().expect("a thread");
            let number = |key: &str| row[key].as_u64().expect("a number");
            let sums = (number("count"), number("total_ns"), number("max_ns"));
            ((id(&row["tid"]), id(&row["preemptor"]["tid"])), sums)
        })
        .collect();
    assert_eq!(found.len(), rows.len(), "{name}: a row for each pair");
    assert_eq!(found, expected, "{name}");
    assert!(
        name == "twohost-server" || found.len() > 3,
        "{name}: {}",
        found.len()
    );
}
