//! The report.

use std::collections::BTreeMap;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;

use crate::cpu::CpuAnalysis;
use crate::cpu::state::CpuPartial;
use crate::kernel::{CpuKey, Host, Thread, ThreadKey, nanoseconds, share};

/// Who used the CPUs. Times in nanoseconds; shares are parts of `duration_ns`, from 0 to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuReport {
    /// Beginning of the range: the first event record, or the beginning that was asked for.
    #[serde(serialize_with = "nanoseconds", rename = "begin_ns")]
    pub begin: Option<Timestamp>,
    /// End of the range: the last event record, or the end that was asked for.
    #[serde(serialize_with = "nanoseconds", rename = "end_ns")]
    pub end: Option<Timestamp>,
    /// From begin to end.
    pub duration_ns: u64,
    /// The machines.
    pub hosts: Vec<Host>,
    /// All CPUs together.
    pub total: CpuTotal,
    /// By CPU.
    pub cpus: Vec<CpuRow>,
    /// By process, most active first; threads whose process is not known are listed alone.
    pub processes: Vec<ProcessRow>,
    /// By thread, most active first; without idle threads.
    pub threads: Vec<ThreadRow>,
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
pub struct ProcessRow {
    /// Index of its trace.
    pub trace: u32,
    /// Its id; `None` for a thread whose process is not known.
    pub pid: Option<i32>,
    /// That thread.
    pub tid: Option<i32>,
    /// Last known name of its first thread.
    pub name: Option<String>,
    /// Threads that ran in the range.
    pub threads: u64,
    /// Time in which they ran.
    pub active_ns: u64,
    /// That time as a part of the range; more than 1 if several ran at a time.
    pub active_share: f64,
    /// Switches to them.
    pub switches: u64,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadRow {
    /// Who it is.
    #[serde(flatten)]
    pub thread: Thread,
    /// Time in which it ran.
    pub active_ns: u64,
    /// That time as a part of the range.
    pub active_share: f64,
    /// Switches to it.
    pub switches: u64,
}

pub(super) fn report(analysis: &CpuAnalysis, mut partial: CpuPartial) -> CpuReport {
    let range = analysis
        .extent
        .map(|extent| extent.within(analysis.options.window));
    let duration = range.map_or(0, |(begin, end)| end.0.abs_diff(begin.0));
    if let Some((_, end)) = range {
        partial.close(&analysis.scope(), end.0);
    }
    let cpus = cpu_rows(analysis, &partial, duration);
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
    total.active_share = share(total.active_ns, duration.saturating_mul(total.cpus));
    let threads = thread_rows(analysis, &partial, duration);
    CpuReport {
        begin: range.map(|range| range.0),
        end: range.map(|range| range.1),
        duration_ns: duration,
        hosts: analysis.hosts.clone(),
        total,
        cpus,
        processes: process_rows(&threads, &partial, duration),
        threads,
    }
}

fn cpu_rows(analysis: &CpuAnalysis, partial: &CpuPartial, duration: u64) -> Vec<CpuRow> {
    let mut states: BTreeMap<CpuKey, _> = analysis.sources.cpus().map(|key| (key, None)).collect();
    states.extend(partial.cpus.iter().map(|state| (state.key, Some(state))));
    let chosen = states
        .into_iter()
        .filter(|(key, _)| analysis.options.cpus.contains(key.cpu));
    chosen
        .map(|(key, state)| {
            let state = state.copied().unwrap_or_default();
            CpuRow {
                trace: key.trace,
                cpu: key.cpu,
                active_ns: state.active,
                idle_ns: state.idle,
                unknown_ns: duration.saturating_sub(state.active.saturating_add(state.idle)),
                active_share: share(state.active, duration),
                switches: state.switches,
                inconsistent_switches: state.inconsistent,
                losses: state.losses,
                first_switch: state.first_switch.map(|(time, prev_tid)| FirstSwitch {
                    time: Some(Timestamp(time)),
                    prev_tid,
                }),
            }
        })
        .collect()
}

fn thread_rows(analysis: &CpuAnalysis, partial: &CpuPartial, duration: u64) -> Vec<ThreadRow> {
    let used = partial
        .usage
        .entries()
        .filter(|(_, usage)| usage.active > 0 || usage.switches > 0);
    let mut rows: Vec<ThreadRow> = used
        .map(|(key, usage)| ThreadRow {
            thread: partial.people.thread(key),
            active_ns: usage.active,
            active_share: share(usage.active, duration),
            switches: usage.switches,
        })
        .filter(|row| analysis.options.threads.shows(&row.thread))
        .collect();
    rows.sort_by_key(|row| (std::cmp::Reverse(row.active_ns), row.thread.trace, row.thread.tid));
    rows
}

fn process_rows(threads: &[ThreadRow], partial: &CpuPartial, duration: u64) -> Vec<ProcessRow> {
    let mut rows: BTreeMap<(u32, Option<i32>, Option<i32>), ProcessRow> = BTreeMap::new();
    for row in threads {
        let Thread { trace, pid, tid, .. } = row.thread;
        let alone = if pid.is_none() { tid } else { None };
        let process = rows.entry((trace, pid, alone)).or_insert_with(|| {
            let first = pid
                .or(alone)
                .map(|tid| partial.people.thread(ThreadKey { trace, tid }));
            let name = first.and_then(|thread| thread.name);
            ProcessRow {
                trace,
                pid,
                tid: alone,
                name,
                threads: 0,
                active_ns: 0,
                active_share: 0.0,
                switches: 0,
            }
        });
        process.threads += 1;
        process.active_ns += row.active_ns;
        process.switches += row.switches;
    }
    let mut rows: Vec<_> = rows.into_values().collect();
    rows.iter_mut()
        .for_each(|row| row.active_share = share(row.active_ns, duration));
    rows.sort_by_key(|row| (std::cmp::Reverse(row.active_ns), row.trace, row.pid, row.tid));
    rows
}
