//! The tree of processes compared with a plain pass over all events and with the other reports.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, ThreadFilter};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;

use tracebraid_models::events::{ModelEvent, Record, by_cpu, extent, merged};
use tracebraid_models::plain::{CpuReport, IoReport, ProcessRow, ProcessesReport, plain};
use tracebraid_models::synthetic::{Shape, trace};
use tracebraid_models::traces::kernel_trace;

fn report<A: KernelAnalysis>(set: &TraceSet, selection: Selection) -> A::Report {
    let analysis = A::new(set, selection);
    fold(set, &analysis, Options::default(), &Control::default())
        .expect("not cancelled")
        .report
}

fn processes(set: &TraceSet) -> ProcessesReport {
    plain(&report::<ProcessAnalysis>(set, Selection::default()))
}

fn json(report: &impl Serialize) -> Value {
    serde_json::to_value(report).expect("a report can be serialized")
}

/// The recordings.
const TRACES: [&str; 7] = [
    "kernel-mix-small",
    "kernel-ust-requests",
    "kernel-discarded",
    "many-threads",
    "twohost-client",
    "twohost-server",
    "perf-mix",
];

/// A life of a thread, according to a plain pass.
#[derive(Debug, Default)]
struct Life {
    begin: Option<i64>,
    end: Option<i64>,
    pid: Option<i32>,
    parent: Option<i32>,
    active: u64,
    execs: u64,
}

#[derive(Default)]
struct Model {
    lives: BTreeMap<(u32, i32), Vec<Life>>,
    /// By CPU, the running thread: id, start of the stretch, number of its life.
    current: BTreeMap<(u32, u32), (i32, i64, usize)>,
}

impl Model {
    fn of(set: &TraceSet) -> Model {
        let mut model = Model::default();
        for entry in merged(by_cpu(set, |name| {
            name.starts_with("sched_") || name == "lttng_statedump_process_state"
        })) {
            if let ModelEvent::Event(event) = &entry.what {
                model.event(entry.trace, entry.cpu, entry.time, event);
            }
        }
        let (_, end) = extent(set);
        let current = std::mem::take(&mut model.current);
        for ((trace, _), (tid, since, life)) in current {
            model.lives(trace, tid)[life].active += end.abs_diff(since);
        }
        model
    }

    fn lives(&mut self, trace: u32, tid: i32) -> &mut Vec<Life> {
        let lives = self.lives.entry((trace, tid)).or_default();
        if lives.is_empty() {
            lives.push(Life::default());
        }
        lives
    }

    fn last(&mut self, trace: u32, tid: i32) -> &mut Life {
        self.lives(trace, tid).last_mut().unwrap()
    }

    fn switch(&mut self, (trace, cpu): (u32, u32), time: i64, prev: i32, next: i32) {
        let number = self.lives(trace, next).len() - 1;
        self.lives(trace, prev);
        let before = self.current.insert((trace, cpu), (next, time, number));
        if let Some((tid, since, life)) = before.filter(|before| before.0 == prev) {
            self.lives(trace, tid)[life].active += time.abs_diff(since);
        }
    }

    fn event(&mut self, trace: u32, cpu: u32, time: i64, event: &Record) {
        match event.name.as_str() {
            "sched_switch" => {
                let (prev, next) = (event.id("prev_tid").unwrap(), event.id("next_tid").unwrap());
                self.switch((trace, cpu), time, prev, next);
            }
            "sched_process_fork" => {
                let parent = event.id("parent_pid").unwrap();
                self.last(trace, event.id("parent_tid").unwrap()).pid = Some(parent);
                let life = Life {
                    begin: Some(time),
                    pid: event.id("child_pid"),
                    parent: Some(parent),
                    ..Life::default()
                };
                let child = (trace, event.id("child_tid").unwrap());
                self.lives.entry(child).or_default().push(life);
            }
            "sched_process_exec" => {
                let (tid, old) = (event.id("tid").unwrap(), event.id("old_tid").unwrap());
                if tid != old {
                    self.switch((trace, cpu), time, old, tid);
                    // The end of its first thread was recorded only to free the id.
                    self.last(trace, old).end = Some(time);
                    self.last(trace, tid).end = None;
                }
                self.last(trace, tid).execs += 1;
            }
            "sched_process_exit" => self.last(trace, event.id("tid").unwrap()).end = Some(time),
            "lttng_statedump_process_state" => {
                let life = self.last(trace, event.id("tid").unwrap());
                life.pid = event.id("pid");
                life.parent = life.parent.or(event.id("ppid"));
            }
            _ => {}
        }
    }

    /// By trace, first thread and number of the life under its id: threads, CPU time, all ends.
    fn processes(&self) -> BTreeMap<(u32, i32, usize), (u64, u64, Vec<Option<i64>>)> {
        let mut sums: BTreeMap<_, (u64, u64, Vec<Option<i64>>)> = BTreeMap::new();
        for (&(trace, tid), lives) in self.lives.iter().filter(|((_, tid), _)| *tid != 0) {
            for (number, life) in lives.iter().enumerate() {
                let key = match life.pid.filter(|&pid| pid != tid) {
                    None => (trace, tid, number),
                    Some(pid) => {
                        let others = self.lives.get(&(trace, pid)).map_or(&[][..], Vec::as_slice);
                        let begun = others.iter().filter(|other| other.begin <= life.begin);
                        (trace, pid, begun.count().saturating_sub(1))
                    }
                };
                let sum = sums.entry(key).or_default();
                sum.0 += 1;
                sum.1 += life.active;
                sum.2.push(life.end);
            }
        }
        sums
    }
}

/// Every process has a row with its parent, its times, its threads and its CPU time.
fn as_modelled(what: &str, set: &TraceSet) {
    let model = Model::of(set);
    let found = processes(set);
    let expected = model.processes();
    assert_eq!(found.processes.len(), expected.len(), "{what}: processes");
    let mut numbers: BTreeMap<(u32, i32), Vec<&ProcessRow>> = BTreeMap::new();
    for row in &found.processes {
        numbers.entry((row.trace, row.tid)).or_default().push(row);
    }
    numbers
        .values_mut()
        .for_each(|rows| rows.sort_by_key(|row| row.begin_ns));
    for (&(trace, tid, number), (threads, active, ends)) in &expected {
        let what = format!("{what}: process {tid}, {number}");
        let lives = model
            .lives
            .get(&(trace, tid))
            .map_or(&[][..], Vec::as_slice);
        // Its id may belong to another process's thread by now: then its first thread is unknown.
        let life = lives
            .get(number)
            .filter(|life| life.pid.is_none_or(|pid| pid == tid));
        let row = numbers[&(trace, tid)]
            .iter()
            .find(|row| {
                // Rows whose first thread is unknown have no start to compare.
                row.begin_ns == life.and_then(|life| life.begin)
                    && (row.begin_ns.is_some()
                        || (row.threads, row.active_ns) == (*threads, *active))
            })
            .unwrap_or_else(|| panic!("{what} is there"));
        assert_eq!(row.threads, *threads, "{what}: threads");
        assert_eq!(row.active_ns, *active, "{what}: CPU time");
        let end = ends.iter().copied().collect::<Option<Vec<i64>>>();
        let end = end.and_then(|ends| ends.into_iter().max());
        assert_eq!(row.end_ns, end, "{what}: end");
        assert_eq!(
            row.parent_pid,
            life.and_then(|life| life.parent),
            "{what}: parent"
        );
        let execs = row.names.iter().filter(|name| name.by == "exec");
        assert_eq!(
            execs.count() as u64,
            life.map_or(0, |life| life.execs),
            "{what}: exec"
        );
    }
    is_a_tree(what, &found);
}

/// Rows refer to their parents, and sums of subtrees are those of their rows.
fn is_a_tree(what: &str, report: &ProcessesReport) {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for (at, row) in report.processes.iter().enumerate() {
        assert_eq!(row.id, at as u64, "{what}");
        *sums.entry(row.id).or_default() += row.active_ns;
        let mut above = row.parent;
        let mut depth = 0;
        while let Some(parent) = above {
            assert!(parent < row.id, "{what}: parents come before");
            *sums.entry(parent).or_default() += row.active_ns;
            above = report.processes[parent as usize].parent;
            depth += 1;
        }
        assert_eq!(row.depth, depth, "{what}");
    }
    for row in &report.processes {
        assert_eq!(
            sums[&row.id], row.tree_active_ns,
            "{what}: tree of {}",
            row.tid
        );
        if let Some(parent) = row.parent {
            let parent = &report.processes[parent as usize];
            assert_eq!(Some(parent.tid), row.parent_pid, "{what}: {}", row.tid);
            assert!(parent.tree_syscalls >= row.tree_syscalls);
        }
    }
}

#[test]
fn recorded() {
    for name in TRACES {
        // With lost events the model lacks CPU time at the end; the events of perf contain no
        // processes.
        if ["kernel-discarded", "perf-mix"].contains(&name) {
            continue;
        }
        if let Some(set) = kernel_trace(name) {
            as_modelled(name, &set);
        }
    }
}

/// Ids that are reused belong to other processes.
#[test]
fn ids_that_are_used_again() {
    let mut again = 0;
    for seed in 0..8 {
        let shape = Shape {
            cpus: 1 + seed % 4,
            threads: 9,
            steps: 12_000,
            packet: 900,
            ..Shape::PLAIN
        };
        let (directory, set) = trace(seed, shape);
        as_modelled(&format!("seed {seed}"), &set);
        adds_up(&format!("seed {seed}"), &set);
        let rows = processes(&set).processes;
        let mut ids: Vec<_> = rows.iter().map(|row| row.tid).collect();
        ids.sort_unstable();
        again += ids.windows(2).filter(|pair| pair[0] == pair[1]).count();
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
    assert!(again > 100, "{again} ids were used again");
}

/// The sums equal those of the other reports: of `cpu` and `syscalls` in every trace, of bytes
/// where no events were lost.
fn adds_up(what: &str, set: &TraceSet) -> ProcessesReport {
    let found = processes(set);
    let selection = || Selection::default();
    let cpu: CpuReport = plain(&report::<CpuAnalysis>(set, selection()));
    assert_eq!(
        found.total.active_ns, cpu.total.active_ns,
        "{what}: CPU time"
    );
    let calls = json(&report::<SyscallAnalysis>(set, selection()));
    assert_eq!(
        found.total.syscalls, calls["total"]["calls"],
        "{what}: system calls"
    );
    let io: IoReport = plain(&report::<IoAnalysis>(set, selection()));
    let lost = cpu.cpus.iter().any(|cpu| cpu.losses > 0);
    if !lost {
        let bytes = |read, written| format!("{read} read, {written} written");
        assert_eq!(
            bytes(found.total.read_bytes, found.total.written_bytes),
            bytes(io.total.read_bytes, io.total.written_bytes),
            "{what}"
        );
    }
    // Each process's CPU time, if ids are not reused.
    for process in &cpu.processes {
        let of_it = |row: &&ProcessRow| {
            row.trace == process.process.trace
                && Some(row.tid) == process.process.pid.or(process.process.tid)
        };
        let rows: Vec<_> = found.processes.iter().filter(of_it).collect();
        if let [row] = rows.as_slice()
            && !what.starts_with("seed")
        {
            assert_eq!(
                row.active_ns, process.usage.active_ns,
                "{what}: process {}",
                row.tid
            );
        }
    }
    let whole = |of: fn(&ProcessRow) -> u64| found.processes.iter().map(of).sum::<u64>();
    assert_eq!(whole(|row| row.active_ns), found.total.active_ns, "{what}");
    assert_eq!(whole(|row| row.syscalls), found.total.syscalls, "{what}");
    assert_eq!(
        whole(|row| row.read_bytes),
        found.total.read_bytes,
        "{what}"
    );
    found
}

#[test]
fn sums_are_those_of_the_other_reports() {
    for name in TRACES {
        if let Some(set) = kernel_trace(name) {
            is_a_tree(name, &adds_up(name, &set));
        }
    }
}

/// Selected processes are shown with their ancestors; sums stay the same.
#[test]
fn chosen_processes_have_their_ancestors() {
    let set = kernel_trace("kernel-mix-small").expect("it is committed");
    let all = processes(&set);
    let selection = Selection {
        threads: ThreadFilter {
            tids: vec![284],
            ..ThreadFilter::default()
        },
        ..Selection::default()
    };
    let chosen: ProcessesReport = plain(&report::<ProcessAnalysis>(&set, selection));
    let ids: Vec<_> = chosen.processes.iter().map(|row| row.tid).collect();
    assert_eq!(ids.last(), Some(&284), "{ids:?}");
    assert!(ids.len() > 1 && ids.len() < all.processes.len(), "{ids:?}");
    for row in &chosen.processes {
        assert!(all.processes.contains(row), "{}", row.tid);
    }
    assert_eq!(chosen.total, all.total);
}
