//! Builds the report from the sums.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_kernel_model::Syscall;

use crate::groups::{self, Groups, OfThreads};
use crate::returned;
use crate::syscalls::calls::{Call, CallStats};
use crate::syscalls::{GROUPINGS, SyscallPartial, SyscallRules};
use tracebraid_engine::parallel;
use tracebraid_follow::{By, Head, Input, People, Thread, ThreadKey};
use tracebraid_statistics::{Powers, Ranges, keep_first_by_key};
use tracebraid_tables::{
    Column, Report, Section, Total, Unit, Value, View, distribution_columns, distribution_values,
};

const THREAD: Column = Column::new("thread", "Thread", Unit::Thread);
const SYSCALL: Column = Column::new("syscall", "System call", Unit::Syscall);
const ERRORS: Column = Column::new("errors", "Errors", Unit::Count).left_out(8);

/// A row of the table of threads.
struct Row {
    thread: Arc<Thread>,
    calls: Vec<(Syscall, CallStats)>,
}

pub(super) fn report(rules: &SyscallRules, input: &Input, partial: SyscallPartial) -> Report {
    let SyscallPartial {
        people, sums, open, ..
    } = partial;
    let shows = |key: ThreadKey| {
        Some(people.thread(key)).filter(|thread| rules.selection.threads.shows(thread))
    };
    let is_unfinished = |call: Syscall| !call.ends_thread() && rules.chosen.contain(call);
    let open = open.parked().filter(|(_, open)| is_unfinished(open.call));
    let unfinished = open.filter(|(thread, _)| shows(*thread).is_some()).count();
    let top = rules.options.views.top();
    let parts = parallel::map(sums.threads.into_entries(), |(thread, calls)| {
        let (calls, longest) = calls.into_parts(top);
        let known = shows(thread).filter(|_| !calls.is_empty()).map(Arc::new);
        (known, calls, longest)
    });
    let counted: BTreeSet<_> = parts
        .iter()
        .flat_map(|(_, calls, _)| calls)
        .map(|(call, _)| *call)
        .collect();
    let notes = rules.options.calls.unmatched(counted.into_iter());
    let (mut rows, mut longest) = (Vec::new(), Vec::new());
    for (thread, calls, of_thread) in parts {
        let Some(thread) = thread else { continue };
        rows.push(Row { thread, calls });
        longest.extend(of_thread);
    }
    let by_call = by_call(&rows);
    if rules.options.views.ranges.is_some() {
        return frequencies(rules, input, &by_call);
    }
    let head = input.head();
    let groups = |by| groups((&head, &people), &rows, &by_call, by);
    let mut sections = vec![
        of_calls(&by_call),
        of_threads(&rows),
        of_both(&rows),
        of_errors(&by_call),
        of_errors_and_names(&rows),
    ];
    sections.extend(single_calls(&rows, longest, sums.log, top));
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        SYSCALL,
        groups,
    ));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        head,
        totals: totals(&by_call, unfinished as u64, sums.nobodys),
        sections,
        ranges: ranges(&by_call),
        notes,
        ..Report::default()
    }
}

/// The totals; `unknown` is the number of entries and exits of unknown threads.
fn totals(by_call: &BTreeMap<Syscall, CallStats>, unfinished: u64, unknown: u64) -> Vec<Total> {
    let all = by_call
        .values()
        .fold(CallStats::default(), |mut all, stats| {
            all.merge(stats);
            all
        });
    vec![
        Total::new(
            "calls",
            "system calls",
            all.durations.summary().count().into(),
        )
        .or_one("system call"),
        Total::new("errors", "errors", all.failed().into()).or_one("error"),
        Total::new("unfinished", "unfinished calls", unfinished.into()).or_one("unfinished call"),
        Total::new(
            "unknown_thread",
            "events of unknown threads",
            unknown.into(),
        )
        .or_one("event of an unknown thread"),
    ]
}

fn by_call<'a>(rows: &'a [Row]) -> BTreeMap<Syscall, CallStats> {
    let calls = |row: &'a Row| row.calls.iter().map(|(call, stats)| (*call, stats));
    parallel::sums_by_key(rows, calls, CallStats::merge)
}

fn ranges(by_call: &BTreeMap<Syscall, CallStats>) -> Ranges {
    let range = |(call, stats): (&Syscall, &CallStats)| {
        let summary = stats.durations.summary();
        Some((
            call.user_name().to_owned(),
            (summary.min()?, summary.max()?),
        ))
    };
    by_call.iter().filter_map(range).collect()
}

/// The columns `about`, then those of a distribution, then errors.
fn columns(about: &[Column]) -> Vec<Column> {
    about
        .iter()
        .copied()
        .chain(distribution_columns())
        .chain([ERRORS])
        .collect()
}

fn values(about: impl IntoIterator<Item = Value>, stats: &CallStats) -> Vec<Value> {
    let durations = distribution_values(&stats.durations);
    about
        .into_iter()
        .chain(durations)
        .chain([stats.failed().into()])
        .collect()
}

fn of_calls(by_call: &BTreeMap<Syscall, CallStats>) -> Section {
    let mut sorted: Vec<_> = by_call.iter().collect();
    sorted
        .sort_by_key(|(call, stats)| (Reverse(stats.durations.summary().sum()), call.user_name()));
    let row = |(call, stats): (&Syscall, &CallStats)| values([call.user_name().into()], stats);
    Section {
        key: "syscalls",
        title: "By system call".to_owned(),
        view: View::Stats,
        columns: columns(&[SYSCALL]),
        rows: sorted.into_iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

fn of_threads(rows: &[Row]) -> Section {
    let line = |row: &Row| {
        let mut sum = CallStats::default();
        row.calls.iter().for_each(|(_, stats)| sum.merge(stats));
        let order = (
            Reverse(sum.durations.summary().count()),
            row.thread.trace,
            row.thread.tid,
        );
        (order, values([row.thread.clone().into()], &sum))
    };
    let mut lines = parallel::map(rows.iter().collect(), line);
    lines.sort_by_key(|(order, _)| *order);
    Section {
        key: "threads",
        title: "By thread".to_owned(),
        view: View::Stats,
        columns: columns(&[THREAD]),
        rows: lines.into_iter().map(|(_, line)| line).collect(),
        is_long: true,
        ..Section::default()
    }
}

fn of_both(rows: &[Row]) -> Section {
    let mut lines: Vec<_> = (rows.iter())
        .flat_map(|row| {
            row.calls
                .iter()
                .map(move |(call, stats)| (&row.thread, *call, stats))
        })
        .collect();
    lines.sort_by_key(|(thread, call, stats)| {
        let total = Reverse(stats.durations.summary().sum());
        (total, thread.trace, thread.tid, call.user_name())
    });
    let row = |(thread, call, stats): (&Arc<Thread>, Syscall, &CallStats)| {
        values([thread.clone().into(), call.user_name().into()], stats)
    };
    Section {
        key: "thread_syscalls",
        title: "By thread and system call".to_owned(),
        view: View::Stats,
        columns: columns(&[THREAD, SYSCALL]),
        rows: parallel::map(lines, row),
        is_long: true,
        ..Section::default()
    }
}

fn of_errors(by_call: &BTreeMap<Syscall, CallStats>) -> Section {
    let errors = by_call.iter().flat_map(|(call, stats)| {
        stats
            .errors
            .iter()
            .map(move |&(errno, count)| (*call, errno, count))
    });
    let mut errors: Vec<_> = errors.collect();
    errors.sort_by_key(|&(call, errno, count)| (Reverse(count), call.user_name(), errno));
    let row = |(call, errno, count): (Syscall, u16, u64)| {
        vec![
            call.user_name().into(),
            Value::Text(returned::name_of(i64::from(errno))),
            count.into(),
        ]
    };
    Section {
        key: "errors",
        title: "Errors".to_owned(),
        view: View::Stats,
        columns: vec![
            SYSCALL,
            Column::new("error", "Error", Unit::Text),
            Column::new("count", "Count", Unit::Count),
        ],
        rows: errors.into_iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

/// The name of an error, or its number.
/// Errors by the last name of the thread: programs that are started again and again have many
/// threads of the same name.
fn of_errors_and_names(rows: &[Row]) -> Section {
    let mut sums: BTreeMap<(Option<&str>, Syscall, u16), (u64, u64)> = BTreeMap::new();
    for row in rows {
        let name = row.thread.name.as_deref();
        for (call, stats) in &row.calls {
            for &(errno, count) in &stats.errors {
                let sum = sums.entry((name, *call, errno)).or_default();
                sum.0 += 1;
                sum.1 += count;
            }
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&((name, call, errno), (_, count))| {
        (Reverse(count), name, call.user_name(), errno)
    });
    let row = |((name, call, errno), (threads, count)): ((Option<&str>, Syscall, u16), _)| {
        let count: u64 = count;
        vec![
            name.into(),
            Value::Unsigned(threads),
            call.user_name().into(),
            Value::Text(returned::name_of(i64::from(errno))),
            count.into(),
        ]
    };
    let columns = vec![
        Column::new("thread_name", "Thread", Unit::Text).optional(),
        Column::new("threads", "Threads", Unit::Count).left_out(1),
        SYSCALL,
        Column::new("error", "Error", Unit::Text),
        Column::new("count", "Count", Unit::Count),
    ];
    let rows = sums.into_iter().map(row).collect();
    Section::new("name_errors", "Errors by thread name", columns, rows)
}

/// Tables of single calls: the `top` longest calls, and the log in the order of end times.
fn single_calls(
    rows: &[Row],
    mut longest: Vec<Call>,
    mut log: Vec<Call>,
    top: usize,
) -> [Section; 2] {
    // All rows of a thread share one `Arc<Thread>`.
    let who = rows.iter().map(|row| {
        let Thread { trace, tid, .. } = *row.thread;
        let tid = tid.unwrap_or(ThreadKey::UNKNOWN);
        (ThreadKey { trace, tid }, Arc::clone(&row.thread))
    });
    let who: HashMap<ThreadKey, Arc<Thread>> = who.collect();
    // Calls of one thread with equal start and duration are in descending order.
    let order = |call: &Call| {
        (
            Reverse(call.duration),
            call.begin,
            call.thread,
            Reverse(*call),
        )
    };
    keep_first_by_key(&mut longest, top, order);
    log.sort_by_key(|call| (call.end(), call.thread, *call));
    let list = |key, title: &str, view, calls: &[Call]| Section {
        key,
        title: title.to_owned(),
        view,
        columns: [
            Column::new("begin_ns", "Begin", Unit::Time),
            Column::new("duration_ns", "Duration", Unit::Duration),
            SYSCALL,
        ]
        .into_iter()
        .chain(returned::COLUMNS)
        .chain([THREAD])
        .collect(),
        rows: parallel::map(calls.iter().collect(), |call| {
            Some(one(call, Arc::clone(who.get(&call.thread)?)))
        })
        .into_iter()
        .flatten()
        .collect(),
        is_long: true,
        ..Section::default()
    };
    [
        list("longest", "Longest calls", View::Top, &longest),
        list("log", "Calls", View::Log, &log),
    ]
}

fn one(call: &Call, thread: Arc<Thread>) -> Vec<Value> {
    let mut row = vec![
        Timestamp(call.begin).into(),
        call.duration.into(),
        call.call.user_name().into(),
    ];
    row.extend(returned::values(call.result, call.error()));
    row.push(thread.into());
    row
}

/// Durations of calls of the threads that are shown.
fn groups(
    (head, people): (&Head, &People),
    rows: &[Row],
    by_call: &BTreeMap<Syscall, CallStats>,
    by: By,
) -> Groups {
    let powers = |(_, stats): &(Syscall, CallStats)| stats.durations.powers();
    if by == By::Call {
        let group = |(call, stats): (&Syscall, &CallStats)| {
            (call.user_name().to_owned().into(), stats.durations.powers())
        };
        return groups::most_first(by_call.iter().map(group).collect());
    }
    let of_thread = |row: &Row| {
        let mut sum = Powers::default();
        row.calls.iter().for_each(|call| sum.merge(&powers(call)));
        ((*row.thread).clone(), sum)
    };
    let threads = parallel::map(rows.iter().collect(), of_thread);
    OfThreads {
        head,
        people,
        threads,
    }
    .groups(by)
}

/// The report of the second pass: histograms of durations.
fn frequencies(
    rules: &SyscallRules,
    input: &Input,
    by_call: &BTreeMap<Syscall, CallStats>,
) -> Report {
    let of = |(call, stats): (&Syscall, &'_ CallStats)| {
        let range = (*rules.ranges.get(usize::from(call.0))?)?;
        Some((call.user_name().to_owned(), range, *stats.bins.clone()?))
    };
    let mut groups: Vec<_> = by_call.iter().filter_map(of).collect();
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    let groups = groups
        .iter()
        .map(|(name, range, bins)| (name.clone(), *range, bins));
    Report {
        head: input.head(),
        sections: vec![tracebraid_tables::frequencies(SYSCALL, groups.collect())],
        ..Report::default()
    }
}
