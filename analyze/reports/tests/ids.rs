//! Thread ids that change owners.

use serde_json::{Value, json};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;

use tracebraid_models::law::{ALL, Lawful, SMALL, as_in_one_piece};
use tracebraid_models::naming::Value::{Int, Text};
use tracebraid_models::naming::{Field, Maker, TEXT};
use tracebraid_models::synthetic::{Scripted, Shape, scripted};

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
            .push((cpu, time, Maker { tid: 0, pid: 0 }, name, fields));
    }

    fn switch(&mut self, cpu: u64, time: u64, prev: i64, next: i64) {
        let fields = vec![
            ("prev_comm", TEXT, Text("before")),
            ("prev_tid", 32, Int(prev)),
            ("prev_prio", 32, Int(20)),
            ("prev_state", 64, Int(1)),
            ("next_comm", TEXT, Text("after")),
            ("next_tid", 32, Int(next)),
            ("next_prio", 32, Int(20)),
        ];
        self.event(cpu, time, "sched_switch", fields);
    }

    fn forks(&mut self, cpu: u64, time: u64, (parent, child): (i64, i64), process: i64) {
        let fields = vec![
            ("parent_comm", TEXT, Text("parent")),
            ("parent_tid", 32, Int(parent)),
            ("parent_pid", 32, Int(parent)),
            ("child_comm", TEXT, Text("child")),
            ("child_tid", 32, Int(child)),
            ("child_pid", 32, Int(process)),
        ];
        self.event(cpu, time, "sched_process_fork", fields);
    }

    fn executes(&mut self, cpu: u64, time: u64, (old, tid): (i64, i64)) {
        let fields = vec![
            ("filename", TEXT, Text("/bin/program")),
            ("tid", 32, Int(tid)),
            ("old_tid", 32, Int(old)),
        ];
        self.event(cpu, time, "sched_process_exec", fields);
    }

    fn ends(&mut self, cpu: u64, time: u64, tid: i64) {
        let fields = vec![
            ("comm", TEXT, Text("program")),
            ("tid", 32, Int(tid)),
            ("prio", 32, Int(20)),
        ];
        self.event(cpu, time, "sched_process_exit", fields);
    }

    fn enters(&mut self, cpu: u64, time: u64, name: &'static str) {
        self.event(cpu, time, name, vec![("fd", 32, Int(3))]);
    }

    fn exits(&mut self, cpu: u64, time: u64, name: &'static str) {
        self.event(cpu, time, name, vec![("ret", 64, Int(0))]);
    }

    /// Calls `to` with the trace, then removes it.
    fn with<T>(self, to: impl FnOnce(&TraceSet) -> T) -> T {
        let (directory, set) = scripted(SHAPE, self.0);
        let result = to(&set);
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
        result
    }
}

/// The report, which must be the same however it is folded.
fn report<A: Lawful + KernelAnalysis>(set: &TraceSet) -> Value {
    as_in_one_piece::<A>("a script", set, ALL, SMALL);
    let analysis = A::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    serde_json::to_value(outcome.expect("not cancelled").report)
        .expect("a report can be serialized")
}

/// A thread that is not the first of its process executes a program: the other threads end, and it
/// gets the id of the first one, within the call.
#[test]
fn a_thread_takes_over_the_id_of_its_process() {
    let mut script = Script::default();
    script.switch(0, 1000, 0, 5);
    script.forks(0, 1010, (5, 10), 10);
    script.switch(0, 1020, 5, 10);
    script.forks(0, 1030, (10, 11), 10);
    script.switch(0, 1040, 10, 11);
    script.enters(0, 1050, "entry execve");
    script.switch(0, 1060, 11, 10);
    script.ends(0, 1070, 10);
    script.switch(0, 1080, 10, 11);
    script.executes(0, 1090, (11, 10));
    script.exits(0, 1100, "exit execve");
    script.enters(0, 1110, "entry fsync");
    script.exits(0, 1120, "exit fsync");
    script.switch(0, 1130, 10, 5);
    script.switch(0, 1140, 5, 10);
    script.ends(0, 1150, 10);
    script.switch(0, 1160, 10, 0);
    script.with(|set| {
        for calls in [report::<SyscallAnalysis>(set), report::<WaitAnalysis>(set)] {
            let total = &calls["total"];
            assert_eq!(
                [&total["calls"], &total["unfinished"]],
                [&json!(2), &json!(0)]
            );
        }
        assert_eq!(report::<WaitAnalysis>(set)["total"]["time_ns"], 60);
        let files = report::<FilesAnalysis>(set);
        assert_eq!(files["total"]["calls"], 1);
        let processes = report::<ProcessAnalysis>(set);
        let rows = processes["processes"].as_array().expect("rows");
        let process = rows
            .iter()
            .find(|row| row["pid"] == 10)
            .expect("the process");
        let time = |key: &str| process[key].as_i64().expect("a time");
        assert_eq!(time("end_ns") - time("begin_ns"), 140, "{process}");
        assert_eq!(process["threads"], 2);
    });
}

/// An id is given to a new thread before the CPU of the previous owner has recorded its switch.
#[test]
fn who_ran_has_the_time_whoever_has_the_id_by_then() {
    let mut script = Script::default();
    script.switch(0, 1000, 0, 7);
    script.switch(1, 1005, 0, 5);
    script.ends(0, 1010, 7);
    script.forks(1, 1020, (5, 7), 7);
    script.enters(1, 1022, "entry fsync");
    script.exits(1, 1024, "exit fsync");
    script.switch(0, 1030, 7, 0);
    script.switch(1, 1040, 5, 7);
    script.switch(1, 1050, 7, 0);
    script.with(|set| {
        let processes = report::<ProcessAnalysis>(set);
        let rows = processes["processes"].as_array().expect("rows");
        let lives = rows.iter().filter(|row| row["tid"] == 7);
        let active: Vec<_> = lives
            .map(|row| row["active_ns"].as_i64().expect("a time"))
            .collect();
        assert_eq!(active.iter().sum::<i64>(), 40);
        assert_eq!(active.iter().copied().max(), Some(30), "{rows:?}");
    });
}
