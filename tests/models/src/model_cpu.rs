//! The cpu report, by one plain pass over all events in the order of time.

use std::collections::{BTreeMap, BTreeSet};

use tracebraid_ctf::trace::TraceSet;

use crate::events::{ModelEvent, by_cpu, extent, merged};
use crate::model_stretches::{self, Ran};
use crate::plain::{CpuProcess, CpuReport, CpuRow, CpuThread, CpuTotal, CpuUsage, FirstSwitch};
use crate::plain::{Head, Host, Lists, Process, Thread};

/// Names and processes of threads, by trace and thread id.
#[derive(Default)]
pub struct People {
    names: BTreeMap<(u32, i32), String>,
    pids: BTreeMap<(u32, i32), i32>,
}

impl People {
    /// Learns names and processes from an event.
    pub fn learn(&mut self, trace: u32, event: &crate::events::Record) {
        let mut name = |tid: Option<i32>, name: Option<&str>| {
            if let (Some(tid), Some(name)) = (tid, name) {
                self.names.insert((trace, tid), name.to_owned());
            }
        };
        match event.name.as_str() {
            "sched_switch" => {
                name(
                    event.id("prev_tid").filter(|&tid| tid != 0),
                    event.text("prev_comm"),
                );
                name(
                    event.id("next_tid").filter(|&tid| tid != 0),
                    event.text("next_comm"),
                );
            }
            "sched_process_fork" => {
                name(event.id("child_tid"), event.text("child_comm"));
                for (tid, pid) in [("child_tid", "child_pid"), ("parent_tid", "parent_pid")] {
                    if let (Some(tid), Some(pid)) = (event.id(tid), event.id(pid)) {
                        self.pids.insert((trace, tid), pid);
                    }
                }
            }
            "sched_process_exec" => {
                let base = event
                    .text("filename")
                    .map(|path| path.rsplit('/').next().unwrap_or(path));
                name(
                    event.id("tid").or(event.id("pid")),
                    base.map(|base| &base[..base.len().min(15)]),
                );
            }
            "lttng_statedump_process_state" => {
                name(event.id("tid"), event.text("name"));
                if let (Some(tid), Some(pid)) = (event.id("tid"), event.id("pid")) {
                    self.pids.insert((trace, tid), pid);
                }
            }
            _ => {}
        }
    }

    /// The thread in the form of tables.
    pub fn shown(&self, trace: u32, tid: i32) -> tracebraid_follow::Thread {
        let Thread {
            trace,
            tid,
            pid,
            name,
        } = self.thread(trace, tid);
        tracebraid_follow::Thread {
            trace,
            tid,
            pid,
            name,
        }
    }

    pub fn thread(&self, trace: u32, tid: i32) -> Thread {
        Thread {
            trace,
            tid: (tid != -1).then_some(tid),
            pid: self.pids.get(&(trace, tid)).copied(),
            name: self
                .names
                .get(&(trace, tid))
                .cloned()
                .filter(|name| !name.is_empty()),
        }
    }
}

fn hosts(set: &TraceSet) -> Vec<Host> {
    let host = |(trace, content): (usize, &tracebraid_ctf::trace::Trace)| Host {
        trace: trace as u32,
        name: content.layout.class.env_str("hostname").map(str::to_owned),
    };
    set.traces.iter().enumerate().map(host).collect()
}

/// The part of the whole range that lies in the window.
pub fn range(set: &TraceSet, window: (i64, i64)) -> (i64, i64) {
    let (first, last) = extent(set);
    let from = first.max(window.0);
    (from, last.min(window.1).max(from))
}

pub fn head(set: &TraceSet, (begin, end): (i64, i64)) -> Head {
    Head {
        begin_ns: Some(begin),
        end_ns: Some(end),
        duration_ns: end.abs_diff(begin),
        hosts: hosts(set),
    }
}

/// Trace, process id, and thread id if the process is unknown.
pub type ProcessKey = (u32, Option<i32>, Option<i32>);

#[derive(Default)]
struct Cpu {
    current: Option<(i32, i64)>,
    seen_until: i64,
    active: u64,
    idle: u64,
    switches: u64,
    inconsistent: u64,
    losses: u64,
    first_switch: Option<(i64, i32)>,
}

/// Use of CPUs by a thread.
#[derive(Clone, Default)]
struct Used {
    active: u64,
    switches: u64,
    migrations: u64,
    priority: Option<i32>,
    priorities: BTreeSet<i32>,
}

/// Counts switches to threads, their migrations and their priorities.
fn count(threads: &mut BTreeMap<(u32, i32), Used>, trace: u32, event: &crate::events::Record) {
    for (id, priority) in [
        ("prev_tid", "prev_prio"),
        ("next_tid", "next_prio"),
        ("prev_pid", "prev_prio"),
        ("next_pid", "next_prio"),
        ("tid", "prio"),
        ("pid", "prio"),
    ] {
        let is_of_it = event.name != "sched_process_exec" && !event.name.starts_with("lttng");
        let Some(tid) = event.id(id).filter(|&tid| tid != 0 && is_of_it) else {
            continue;
        };
        let thread = threads.entry((trace, tid)).or_default();
        thread.switches += u64::from(id.starts_with("next"));
        thread.migrations += u64::from(event.name == "sched_migrate_task" && id == "tid");
        if let Some(number) = event.id(priority) {
            // LTTng's priorities start at the first that is not real-time.
            let priority = number + if id.ends_with("tid") { 100 } else { 0 };
            thread.priority = Some(priority);
            thread.priorities.insert(priority);
        }
    }
}

/// The report for the events of `window.0..window.1` on the chosen CPUs.
pub fn cpu(set: &TraceSet, window: (i64, i64), chosen: Option<&[u32]>) -> CpuReport {
    let known = [
        "sched_switch",
        "sched_process_fork",
        "sched_process_exec",
        "sched_migrate_task",
        "lttng_statedump_process_state",
    ];
    let entries = merged(by_cpu(set, |name| known.contains(&name)));
    let (begin, end) = range(set, window);
    let mut people = People::default();
    let mut cpus: BTreeMap<(u32, u32), Cpu> = BTreeMap::new();
    let mut threads: BTreeMap<(u32, i32), Used> = BTreeMap::new();
    let mut stretches: Vec<Ran> = Vec::new();
    let clip =
        |from: i64, to: i64| to.min(window.1).saturating_sub(from.max(window.0)).max(0) as u64;
    for entry in &entries {
        let cpu = cpus.entry((entry.trace, entry.cpu)).or_default();
        let counts = chosen.is_none_or(|chosen| chosen.contains(&entry.cpu));
        if let ModelEvent::Event(event) = &entry.what
            && counts
            && (window.0..window.1).contains(&entry.time)
        {
            count(&mut threads, entry.trace, event);
        }
        let place = (entry.trace, entry.cpu);
        let mut ran = |cpu: &mut Cpu, tid: i32, from: i64, to: i64, cut| match tid {
            _ if !counts => {}
            0 => cpu.idle += clip(from, to),
            tid => {
                cpu.active += clip(from, to);
                threads.entry((entry.trace, tid)).or_default().active += clip(from, to);
                stretches.extend(Ran::new(place, tid, (from, to), window, cut));
            }
        };
        match &entry.what {
            ModelEvent::Packet { lost, end } => {
                if *lost {
                    cpu.losses += 1;
                    if let Some((tid, since)) = cpu.current.take() {
                        let until = cpu.seen_until;
                        ran(cpu, tid, since, until, Some("loss"));
                    }
                }
                cpu.seen_until = end.unwrap_or(entry.time);
            }
            ModelEvent::Cut => {
                cpu.losses += 1;
                if let Some((tid, since)) = cpu.current.take() {
                    ran(cpu, tid, since, entry.time, Some("loss"));
                }
            }
            ModelEvent::Event(event) => {
                people.learn(entry.trace, event);
                let (prev, next, switch) = match event.name.as_str() {
                    "sched_switch" => (
                        event.id("prev_tid").unwrap(),
                        event.id("next_tid").unwrap(),
                        true,
                    ),
                    "sched_process_exec" => {
                        let old = event.id("old_tid").or(event.id("old_pid")).unwrap();
                        let new = event.id("tid").or(event.id("pid")).unwrap();
                        if old == new {
                            continue;
                        }
                        (old, new, false)
                    }
                    _ => continue,
                };
                match cpu.current {
                    Some((tid, since)) if tid == prev => ran(cpu, tid, since, entry.time, None),
                    Some(_) => cpu.inconsistent += 1,
                    None => {}
                }
                cpu.current = Some((next, entry.time));
                if switch {
                    cpu.first_switch.get_or_insert((entry.time, prev));
                    if counts && window.0 <= entry.time && entry.time < window.1 {
                        cpu.switches += 1;
                    }
                }
            }
        }
    }
    cpus.retain(|(_, cpu), _| chosen.is_none_or(|chosen| chosen.contains(cpu)));
    for ((trace, number), cpu) in &mut cpus {
        if let Some((tid, since)) = cpu.current.take() {
            if tid == 0 {
                cpu.idle += clip(since, end);
            } else {
                cpu.active += clip(since, end);
                threads.entry((*trace, tid)).or_default().active += clip(since, end);
                let place = (*trace, *number);
                stretches.extend(Ran::new(place, tid, (since, end), window, Some("range")));
            }
        }
    }
    CpuReport {
        lists: model_stretches::lists(stretches, &people),
        ..report(set, (begin, end), &people, &cpus, &threads)
    }
}

/// True if a trace of the set has, or could have, events of that class.
fn has_class(set: &TraceSet, name: &str) -> bool {
    let streams = set
        .traces
        .iter()
        .flat_map(|trace| &trace.layout.class.streams);
    let mut classes = streams.flat_map(|stream| &stream.events);
    classes.any(|class| *class.name == *name)
}

fn report(
    set: &TraceSet,
    (begin, end): (i64, i64),
    people: &People,
    cpus: &BTreeMap<(u32, u32), Cpu>,
    threads: &BTreeMap<(u32, i32), Used>,
) -> CpuReport {
    let duration = end.abs_diff(begin);
    let moved = has_class(set, "sched_migrate_task");
    let share = |part: u64, whole: u64| {
        if whole == 0 {
            0.0
        } else {
            part as f64 / whole as f64
        }
    };
    let rows: Vec<CpuRow> = cpus
        .iter()
        .map(|(&(trace, number), cpu)| CpuRow {
            trace,
            cpu: number,
            active_ns: cpu.active,
            idle_ns: cpu.idle,
            unknown_ns: duration.saturating_sub(cpu.active + cpu.idle),
            active_share: share(cpu.active, duration),
            switches: cpu.switches,
            inconsistent_switches: cpu.inconsistent,
            losses: cpu.losses,
            first_switch: cpu
                .first_switch
                .map(|(time_ns, prev_tid)| FirstSwitch { time_ns, prev_tid }),
        })
        .collect();
    let sum = |of: fn(&CpuRow) -> u64| rows.iter().map(of).sum::<u64>();
    let total = CpuTotal {
        cpus: rows.len() as u64,
        active_ns: sum(|row| row.active_ns),
        idle_ns: sum(|row| row.idle_ns),
        unknown_ns: sum(|row| row.unknown_ns),
        active_share: share(sum(|row| row.active_ns), duration * rows.len() as u64),
        switches: sum(|row| row.switches),
        migrations: moved.then(|| threads.values().map(|used| used.migrations).sum()),
    };
    let usage = |used: &Used| CpuUsage {
        active_ns: used.active,
        active_share: share(used.active, duration),
        switches: used.switches,
        migrations: moved.then_some(used.migrations),
    };
    let mut by_thread = Vec::new();
    let mut by_process: BTreeMap<ProcessKey, (u64, Used)> = BTreeMap::new();
    for (&(trace, tid), used) in threads {
        if used.active == 0 && used.switches == 0 && used.migrations == 0 {
            continue;
        }
        let thread = people.thread(trace, tid);
        let key = (
            trace,
            thread.pid,
            if thread.pid.is_none() {
                Some(tid)
            } else {
                None
            },
        );
        let process = by_process.entry(key).or_default();
        process.0 += 1;
        process.1.active += used.active;
        process.1.switches += used.switches;
        process.1.migrations += used.migrations;
        by_thread.push(CpuThread {
            thread,
            usage: usage(used),
            priority: used.priority,
            priorities: used.priorities.iter().copied().collect(),
        });
    }
    by_thread.sort_by_key(|row| {
        (
            std::cmp::Reverse(row.usage.active_ns),
            row.thread.trace,
            row.thread.tid,
        )
    });
    let mut processes: Vec<_> = by_process.into_iter().collect();
    processes.sort_by_key(|(key, (_, used))| (std::cmp::Reverse(used.active), *key));
    let row = |((trace, pid, tid), (threads, used)): (ProcessKey, (u64, Used))| CpuProcess {
        process: Process {
            trace,
            pid,
            tid,
            name: people.thread(trace, pid.or(tid).unwrap()).name,
            threads,
        },
        usage: usage(&used),
    };
    CpuReport {
        head: head(set, (begin, end)),
        total,
        cpus: rows,
        processes: processes.into_iter().map(row).collect(),
        threads: by_thread,
        lists: Lists::default(),
    }
}
