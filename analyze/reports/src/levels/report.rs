//! Builds the report from the sums.

use std::collections::BTreeMap;

use tracebraid_follow::{Input, Thread, ThreadKey};
use tracebraid_tables::{Report, Total, Unit};

use crate::levels::level_sums::{LwpSums, ThreadSums};
use crate::levels::{
    Described, LevelPartial, LevelRules, compensation, kept_by, level_tables, made_calls,
};

/// A user-level thread.
pub(super) struct UltRow<'a> {
    pub(super) key: ThreadKey,
    pub(super) described: &'a Described,
    /// With its full name.
    pub(super) thread: Thread,
    pub(super) sums: &'a ThreadSums,
}

/// An LWP.
pub(super) struct LwpRow<'a> {
    pub(super) key: ThreadKey,
    pub(super) thread: Thread,
    /// Of its user-level threads.
    pub(super) with: &'a LwpSums,
    /// Of its scheduler.
    pub(super) own: &'a ThreadSums,
}

/// A process with user-level threads.
#[derive(Default)]
pub(super) struct ProcessRow {
    pub(super) lwps: u64,
    pub(super) threads: u64,
    pub(super) cpus: std::collections::BTreeSet<u32>,
    pub(super) runtime: String,
    pub(super) active_ns: u64,
    pub(super) scheduler_ns: u64,
    pub(super) preempted_ns: u64,
    pub(super) ready_ns: u64,
}

static NOTHING: std::sync::LazyLock<ThreadSums> = std::sync::LazyLock::new(ThreadSums::default);
static NO_LWP: std::sync::LazyLock<LwpSums> = std::sync::LazyLock::new(LwpSums::default);

pub(super) fn report(rules: &LevelRules, input: &Input, mut partial: LevelPartial) -> Report {
    let subtracted = compensation::subtract(rules, &mut partial);
    let ults = ults(rules, &partial);
    let lwps = lwps(rules, &partial);
    let processes = processes(&ults, &lwps);
    let mut sections = vec![
        level_tables::processes(&partial.people, &processes),
        level_tables::threads(&ults),
        level_tables::preempted_by(&partial, &ults),
        kept_by::kept_by(&partial, &ults),
        kept_by::keepers(&ults),
        level_tables::blocked(&ults),
        level_tables::lwps(&lwps),
        made_calls::functions(&partial, &ults, &lwps),
        made_calls::system_calls(&ults),
    ];
    sections.retain(|section| rules.options.views.shows(section.view));
    let mut notes = rules.options.unmatched(ults.is_empty());
    notes.extend(made_calls::note(&ults));
    let count =
        |key, title, one, value: usize| Total::new(key, title, (value as u64).into()).or_one(one);
    let sum = |of: fn(&UltRow<'_>) -> u64| ults.iter().map(of).sum::<u64>();
    let duration = |key, title, value: u64| Total::new(key, title, value.into()).of(Unit::Duration);
    let mut totals = vec![
        count("processes", "processes", "process", processes.len()),
        count(
            "threads",
            "user-level threads",
            "user-level thread",
            ults.len(),
        ),
        count("lwps", "LWPs", "LWP", lwps.len()),
        duration("active_ns", "active", sum(|row| row.sums.active.ns)),
        duration(
            "preempted_ns",
            "LWP preempted",
            sum(|row| row.sums.preempted.ns),
        ),
        duration(
            "ready_ns",
            "ready without an LWP",
            sum(|row| row.sums.ready.ns),
        ),
    ];
    totals.extend(subtracted.totals());
    Report {
        head: input.head(),
        totals,
        sections,
        notes,
        ..Report::default()
    }
}

/// The selected user-level threads, in the order of their ids.
fn ults<'a>(rules: &LevelRules, partial: &'a LevelPartial) -> Vec<UltRow<'a>> {
    let row = |(key, (_, _, described)): (ThreadKey, &'a (i64, u32, Described))| {
        let mut thread = partial.people.thread(key);
        thread.pid = Some(described.pid);
        if !described.name.is_empty() {
            thread.name = Some(described.name.clone());
        }
        let sums = partial.sums.threads.find(key).unwrap_or(&NOTHING);
        UltRow {
            key,
            described,
            thread,
            sums,
        }
    };
    let rows = partial.described.entries().map(row);
    let mut rows: Vec<_> = rows
        .filter(|row| rules.shows(&row.thread, row.described.ult))
        .collect();
    rows.sort_by_key(|row| row.key);
    rows
}

fn lwps<'a>(rules: &LevelRules, partial: &'a LevelPartial) -> Vec<LwpRow<'a>> {
    let mut keys: Vec<ThreadKey> = partial
        .sums
        .lwps
        .entries()
        .filter(|(key, sums)| key.tid >= 0 && (sums.switches > 0 || sums.ult.is_some()))
        .map(|(key, _)| key)
        .collect();
    keys.sort_unstable();
    let row = |key: ThreadKey| {
        let with = partial.sums.lwps.find(key).unwrap_or(&NO_LWP);
        let mut thread = partial.people.thread(key);
        if thread.pid.is_none()
            && let Some(tid) = with.ult
            && let Some((_, _, ult)) = partial.described.find(ThreadKey { tid, ..key })
        {
            thread.pid = Some(ult.pid);
        }
        LwpRow {
            key,
            thread,
            with,
            own: partial.sums.threads.find(key).unwrap_or(&NOTHING),
        }
    };
    let rows = keys.into_iter().map(row);
    rows.filter(|row| rules.selection.threads.shows(&row.thread))
        .collect()
}

/// By trace and process id.
fn processes(ults: &[UltRow<'_>], lwps: &[LwpRow<'_>]) -> BTreeMap<(u32, Option<i32>), ProcessRow> {
    let mut processes: BTreeMap<_, ProcessRow> = BTreeMap::new();
    for ult in ults {
        let of = processes
            .entry((ult.key.trace, ult.thread.pid))
            .or_default();
        of.threads += 1;
        of.active_ns += ult.sums.active.ns;
        of.preempted_ns += ult.sums.preempted.ns;
        of.ready_ns += ult.sums.ready.ns;
        if of.runtime.is_empty() {
            of.runtime.clone_from(&ult.described.runtime);
        }
    }
    for lwp in lwps {
        let of = processes
            .entry((lwp.thread.trace, lwp.thread.pid))
            .or_default();
        of.lwps += 1;
        of.scheduler_ns += lwp.own.active.ns;
        of.cpus.extend(&lwp.with.cpus);
    }
    processes
}
