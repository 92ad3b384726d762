//! Builds the report from the sums.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_ctf::clock::Timestamp;

use crate::cpu::CpuAnalysis;
use crate::cpu::lists::lists;
use crate::cpu::sections;
use crate::cpu::state::CpuPartial;
use crate::cpu::usage::Usage;
use tracebraid_follow::{CpuKey, Process, Thread};
use tracebraid_tables::{Report, Section, nothing_to_list};

/// Sums over all selected CPUs. Times in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuTotal {
    pub(super) cpus: u64,
    /// Time in which a thread other than the idle threads ran.
    pub(super) active: u64,
    /// Time in which the idle threads ran.
    pub(super) idle: u64,
    /// Time in which the running thread is unknown.
    pub(super) unknown: u64,
    /// Switches in the range.
    pub(super) switches: u64,
    /// Switches whose previous thread is not the one that was last switched to.
    pub(super) inconsistent: u64,
    /// Migrations in the range; `None` if the traces do not contain them.
    pub(super) migrations: Option<u64>,
}

/// The row of a CPU.
#[derive(Clone, Debug)]
pub(super) struct CpuRow {
    pub(super) key: CpuKey,
    pub(super) active: u64,
    pub(super) idle: u64,
    /// Time in which the running thread is unknown: before the first switch, from lost events to
    /// the next switch, and before an inconsistent switch.
    pub(super) unknown: u64,
    pub(super) switches: u64,
    /// Switches in the whole trace whose previous thread is not the one that was last switched to:
    /// switches between were lost.
    pub(super) inconsistent: u64,
    /// Losses of events in the whole trace.
    pub(super) losses: u64,
    /// The first switch in the whole trace: its time, and the thread that ran until then, since an
    /// unknown time.
    pub(super) first_switch: Option<(Timestamp, i32)>,
}

/// The row of a process, with its threads that ran in the range.
#[derive(Clone, Debug)]
pub(super) struct CpuProcess {
    pub(super) process: Process,
    /// Sum over its threads; the share exceeds 1 if several ran at once.
    pub(super) usage: CpuUsage,
}

/// The row of a thread.
#[derive(Clone, Debug)]
pub(super) struct CpuThread {
    pub(super) thread: Thread,
    pub(super) usage: CpuUsage,
    /// The last recorded priority in the range, on the kernel's scale: -1 deadline, 0 (highest) to
    /// 99 real time, 100 to 139 the rest.
    pub(super) priority: Option<i32>,
    /// Distinct priorities, ascending.
    pub(super) priorities: Vec<i32>,
}

/// Use of CPUs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuUsage {
    pub(super) active: u64,
    /// Switches to the thread, or to a thread of the process.
    pub(super) switches: u64,
    /// Migrations to another CPU; `None` if the traces do not contain them.
    pub(super) migrations: Option<u64>,
}

pub(super) fn report(analysis: &CpuAnalysis, mut partial: CpuPartial) -> Report {
    let head = analysis.input.head();
    let rules = &analysis.rules;
    partial.close(rules, &analysis.input);
    let cpus = cpu_rows(analysis, &partial, head.duration_ns);
    let moved = analysis.knows_migrations();
    let total = total(&cpus, &partial, moved);
    let usage = |sum: &Usage| CpuUsage {
        active: sum.active,
        switches: sum.switches,
        migrations: moved.then_some(sum.migrations),
    };
    let threads = thread_rows(analysis, &partial, usage);
    let (lists, ranges) = lists(rules, &head, &mut partial, &threads);
    let mut report = Report {
        is_chosen: Some(!threads.is_empty()),
        ranges,
        notes: notes(analysis, &threads, &lists),
        ..Report::default()
    };
    // A second pass only builds histograms.
    if rules.shows_use {
        let processes = process_rows(&threads, &partial, usage);
        report.summary = vec![sections::summary(&head, &total)];
        report.totals = sections::totals(&head, &total);
        report.sections = vec![
            sections::cpus(&head, &total, &cpus, &lists),
            sections::processes(&head, processes),
            sections::threads(&head, threads),
        ];
    } else {
        report.totals = sections::times(&total);
    }
    report.sections.extend(lists);
    report.head = head;
    report
}

/// Warnings about options that selected nothing.
fn notes(analysis: &CpuAnalysis, threads: &[CpuThread], lists: &[Section]) -> Vec<String> {
    let mut notes = Vec::new();
    if !analysis.rules.options.priorities.is_empty() && threads.is_empty() {
        notes.push("--prio matches no selected thread".to_owned());
    }
    notes.extend(nothing_to_list(lists).filter(|_| !threads.is_empty()));
    notes
}

fn total(cpus: &[CpuRow], partial: &CpuPartial, moved: bool) -> CpuTotal {
    let mut total = CpuTotal {
        cpus: cpus.len() as u64,
        ..CpuTotal::default()
    };
    for cpu in cpus {
        total.active += cpu.active;
        total.idle += cpu.idle;
        total.unknown += cpu.unknown;
        total.switches += cpu.switches;
        total.inconsistent += cpu.inconsistent;
    }
    // Over all threads, like the other totals.
    let migrations = partial.usage.entries().map(|(_, usage)| usage.migrations);
    total.migrations = moved.then(|| migrations.sum());
    total
}

fn cpu_rows(analysis: &CpuAnalysis, partial: &CpuPartial, duration: u64) -> Vec<CpuRow> {
    let mut states: BTreeMap<CpuKey, _> = analysis
        .input
        .sources
        .cpus()
        .map(|key| (key, None))
        .collect();
    states.extend(partial.cpus.iter().map(|state| (state.key, Some(state))));
    let chosen = states
        .into_iter()
        .filter(|(key, _)| analysis.input.selection.cpus.contains(key.cpu));
    chosen
        .map(|(key, state)| {
            let state = state.cloned().unwrap_or_default();
            CpuRow {
                key,
                active: state.active,
                idle: state.idle,
                unknown: duration.saturating_sub(state.active.saturating_add(state.idle)),
                switches: state.switches,
                inconsistent: state.runs.inconsistent,
                losses: state.runs.losses,
                first_switch: state.first_switch.map(|(time, tid)| (Timestamp(time), tid)),
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
            let priorities = &analysis.rules.options.priorities;
            priorities.is_empty() || row.priorities.iter().any(|own| priorities.contains(own))
        })
        .collect();
    rows.sort_by_key(|row| (Reverse(row.usage.active), row.thread.trace, row.thread.tid));
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
            sum.active += thread.active;
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
            Reverse(row.usage.active),
            process.trace,
            process.pid,
            process.tid,
        )
    });
    rows
}
