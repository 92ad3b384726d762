//! The report.

use std::collections::BTreeMap;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;

use crate::cpu::CpuAnalysis;
use crate::cpu::lists::lists;
use crate::cpu::state::CpuPartial;
use crate::cpu::usage::Usage;
use tracebraid_follow::{CpuKey, Head, KernelReport, Process, Thread, nanoseconds, share};
use tracebraid_tables::Lists;

/// Who used the CPUs. Times in nanoseconds; shares are parts of `duration_ns`, from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuReport {
    /// The range and the machines.
    #[serde(flatten)]
    pub head: Head,
    /// All CPUs together.
    pub total: CpuTotal,
    /// By CPU.
    pub cpus: Vec<CpuRow>,
    /// By process, most active first; threads whose process is not known are listed alone.
    pub processes: Vec<CpuProcess>,
    /// By thread, most active first; without idle threads.
    pub threads: Vec<CpuThread>,
    /// The stretches for which threads ran, as far as they are asked for.
    #[serde(flatten)]
    pub lists: Lists,
}

/// All CPUs together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuTotal {
    /// Number of CPUs.
    pub cpus: u64,
    /// Time in which a thread other than the idle ones ran.
    pub active_ns: u64,
    /// Time in which the idle threads ran.
    pub idle_ns: u64,
    /// Time of which it is not known who ran.
    pub unknown_ns: u64,
    /// Part of all CPUs' time that was active.
    pub active_share: f64,
    /// Switches in the range.
    pub switches: u64,
    /// Times in the range that a thread was moved to another CPU, if the traces tell.
    pub migrations: Option<u64>,
}

/// A CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuRow {
    /// Index of the trace.
    pub trace: u32,
    /// Its number.
    pub cpu: u32,
    /// Time in which a thread other than the idle one ran.
    pub active_ns: u64,
    /// Time in which the idle thread ran.
    pub idle_ns: u64,
    /// Time of which it is not known who ran: before the first switch, from lost events to the
    /// next switch, and before switches from another thread than the one switched to.
    pub unknown_ns: u64,
    /// Part of the range that was active.
    pub active_share: f64,
    /// Switches in the range.
    pub switches: u64,
    /// Switches, in the whole trace, from another thread than had been switched to: others must
    /// have been lost.
    pub inconsistent_switches: u64,
    /// Times, in the whole trace, that the tracer says that it lost events.
    pub losses: u64,
    /// The first switch in the whole trace: who ran before it, though not since when.
    pub first_switch: Option<FirstSwitch>,
}

/// A CPU's first switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FirstSwitch {
    /// When.
    #[serde(serialize_with = "nanoseconds", rename = "time_ns")]
    pub time: Option<Timestamp>,
    /// Thread that ran before.
    pub prev_tid: i32,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuProcess {
    /// Who it is; threads that ran in the range are counted.
    #[serde(flatten)]
    pub process: Process,
    /// Its threads' use of CPUs; the share is more than 1 if several ran at a time.
    #[serde(flatten)]
    pub usage: CpuUsage,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuThread {
    /// Who it is.
    #[serde(flatten)]
    pub thread: Thread,
    /// Its use of CPUs.
    #[serde(flatten)]
    pub usage: CpuUsage,
    /// The last priority in the range that an event tells, as the kernel counts: -1 deadline, 0
    /// (highest) to 99 real time, 100 to 139 the rest.
    pub priority: Option<i32>,
    /// All that it had, each once, in the order of numbers.
    pub priorities: Vec<i32>,
}

/// Use of CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuUsage {
    /// Time on CPUs.
    pub active_ns: u64,
    /// That time as a part of the range.
    pub active_share: f64,
    /// Switches to whoever this is.
    pub switches: u64,
    /// Times that it was moved to another CPU, if the traces tell.
    pub migrations: Option<u64>,
}

impl KernelReport for CpuReport {
    fn head(&self) -> &Head {
        &self.head
    }

    fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    fn truncate(&mut self, rows: usize) {
        self.processes.truncate(rows);
        self.threads.truncate(rows);
        self.lists.truncate(rows);
    }
}

pub(super) fn report(analysis: &CpuAnalysis, mut partial: CpuPartial) -> CpuReport {
    let head = analysis.input.head();
    partial.close(&analysis.rules, &analysis.input);
    let cpus = cpu_rows(analysis, &partial, head.duration_ns);
    let mut total = CpuTotal {
        cpus: cpus.len() as u64,
        ..CpuTotal::default()
    };
    for cpu in &cpus {
        total.active_ns += cpu.active_ns;
        total.idle_ns += cpu.idle_ns;
        total.unknown_ns += cpu.unknown_ns;
        total.switches += cpu.switches;
    }
    total.active_share = share(total.active_ns, head.duration_ns.saturating_mul(total.cpus));
    let moved = analysis.knows_migrations();
    // Of all threads, like the other totals.
    let migrations = partial.usage.entries().map(|(_, usage)| usage.migrations);
    total.migrations = moved.then(|| migrations.sum());
    let usage = |sum: &Usage| CpuUsage {
        active_ns: sum.active,
        active_share: share(sum.active, head.duration_ns),
        switches: sum.switches,
        migrations: moved.then_some(sum.migrations),
    };
    let threads = thread_rows(analysis, &partial, usage);
    CpuReport {
        total,
        cpus,
        processes: process_rows(&threads, &partial, usage),
        lists: lists(&analysis.rules, &head, &mut partial, &threads),
        threads,
        head,
    }
}

fn cpu_rows(analysis: &CpuAnalysis, partial: &CpuPartial, duration: u64) -> Vec<CpuRow> {
    let mut states: BTreeMap<CpuKey, _> = analysis.input.sources.cpus().map(|key| (key, None)).collect();
    states.extend(partial.cpus.iter().map(|state| (state.key, Some(state))));
    let chosen = states
        .into_iter()
        .filter(|(key, _)| analysis.input.selection.cpus.contains(key.cpu));
    chosen
        .map(|(key, state)| {
            let state = state.cloned().unwrap_or_default();
            CpuRow {
                trace: key.trace,
                cpu: key.cpu,
                active_ns: state.active,
                idle_ns: state.idle,
                unknown_ns: duration.saturating_sub(state.active.saturating_add(state.idle)),
                active_share: share(state.active, duration),
                switches: state.switches,
                inconsistent_switches: state.runs.inconsistent,
                losses: state.runs.losses,
                first_switch: state.first_switch.map(|(time, prev_tid)| FirstSwitch {
                    time: Some(Timestamp(time)),
                    prev_tid,
                }),
            }
        })
        .collect()
}

fn thread_rows(
    analysis: &CpuAnalysis,
    partial: &CpuPartial,
    usage: impl Fn(&Usage) -> CpuUsage,
) -> Vec<CpuThread> {
    let used = partial
        .usage
        .entries()
        .filter(|(_, usage)| usage.active > 0 || usage.switches > 0 || usage.migrations > 0);
    let mut rows: Vec<CpuThread> = used
        .map(|(key, sum)| CpuThread {
            thread: partial.people.thread(key),
            usage: usage(sum),
            priority: sum.priorities.last(),
            priorities: sum.priorities.all().to_vec(),
        })
        .filter(|row| analysis.input.selection.threads.shows(&row.thread))
        .filter(|row| {
            let priorities = &analysis.input.selection.priorities;
            priorities.is_empty() || row.priorities.iter().any(|own| priorities.contains(own))
        })
        .collect();
    rows.sort_by_key(|row| {
        (
            std::cmp::Reverse(row.usage.active_ns),
            row.thread.trace,
            row.thread.tid,
        )
    });
    rows
}

fn process_rows(
    threads: &[CpuThread],
    partial: &CpuPartial,
    usage: impl Fn(&Usage) -> CpuUsage,
) -> Vec<CpuProcess> {
    let of_threads = threads.iter().map(|row| (row.thread.clone(), row.usage));
    let sums = partial
        .people
        .processes(of_threads, |sum: &mut Usage, thread: CpuUsage| {
            sum.active += thread.active_ns;
            sum.switches += thread.switches;
            sum.migrations += thread.migrations.unwrap_or(0);
        });
    let rows = sums.into_iter().map(|(process, sum)| CpuProcess {
        process,
        usage: usage(&sum),
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| {
        let process = &row.process;
        (
            std::cmp::Reverse(row.usage.active_ns),
            process.trace,
            process.pid,
            process.tid,
        )
    });
    rows
}
