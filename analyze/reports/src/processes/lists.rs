//! Tables of lives: from the begin to the end of a process.

use std::cmp::Reverse;
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;

use crate::kernel::{Limits, Lists, Selection, Thread};
use crate::processes::{NamedBy, ProcessRow};
use crate::report::{Column, Section, Unit, View, distribution_columns, distribution_values};
use crate::stats::{Bins, Distribution, Ranges};

const PROCESS: Column = Column::new("process", "Process", Unit::Process);
const MAKER: Column = Column::new("parent", "Made by", Unit::Process);

/// A process, and whoever made it.
struct Subject<'r> {
    row: &'r ProcessRow,
    process: Arc<Thread>,
    parent: Option<Arc<Thread>>,
}

/// The tables that are asked for, of those of the processes that are chosen; all of them are in `rows`.
pub(super) fn lists(selection: &Selection, rows: &[ProcessRow]) -> Lists {
    let chosen = rows.iter().filter(|row| row.is_chosen(selection));
    let subjects: Vec<Subject<'_>> = chosen
        .filter(|row| is_within(selection, row))
        .map(|row| subject(rows, row))
        .collect();
    let ended = subjects.iter().filter_map(|subject| {
        let end = subject.row.end?.0;
        let life = subject.row.life()?;
        selection.window.contains(end).then_some((subject, life))
    });
    let mut ended: Vec<(&Subject<'_>, u64)> = ended.collect();
    let sections = vec![
        lives(&ended),
        longest(selection, &mut ended),
        log(selection, &subjects),
        frequencies(&ended),
    ];
    Lists::new(selection, sections, Ranges::default())
}

/// True if it lived as long as is asked for.
fn is_within(selection: &Selection, row: &ProcessRow) -> bool {
    let limits = &selection.limits;
    *limits == Limits::default() || row.life().is_some_and(|life| limits.contain(life))
}

fn subject<'r>(rows: &'r [ProcessRow], row: &'r ProcessRow) -> Subject<'r> {
    let place = row.parent.and_then(|place| usize::try_from(place).ok());
    let known = place.and_then(|place| rows.get(place)).map(ProcessRow::thread);
    let told = || {
        let pid = row.parent_pid?;
        Some(Thread {
            trace: row.trace,
            tid: Some(pid),
            pid: Some(pid),
            name: (pid == 0).then(|| "kernel".to_owned()),
        })
    };
    Subject {
        row,
        process: Arc::new(row.thread()),
        parent: known.or_else(told).map(Arc::new),
    }
}

/// All lives together.
fn lives(ended: &[(&Subject<'_>, u64)]) -> Section {
    let mut all = Distribution::default();
    ended.iter().for_each(|(_, life)| all.add(*life));
    let rows = (!ended.is_empty()).then(|| distribution_values(&all).to_vec());
    let columns = distribution_columns().to_vec();
    Section::new("lives", "Lives", columns, rows.into_iter().collect()).short()
}

fn longest(selection: &Selection, ended: &mut [(&Subject<'_>, u64)]) -> Section {
    ended.sort_by_key(|(subject, life)| (Reverse(*life), subject.row.begin, subject.row.id));
    let row = |(subject, life): &(&Subject<'_>, u64)| {
        vec![
            subject.row.begin.into(),
            subject.row.end.into(),
            (*life).into(),
            subject.process.clone().into(),
            subject.parent.clone().into(),
            subject.row.active_ns.into(),
        ]
    };
    let columns = vec![
        Column::new("begin_ns", "Begin", Unit::Time),
        Column::new("end_ns", "End", Unit::Time).left_out(2),
        Column::new("life_ns", "Life", Unit::Duration),
        PROCESS,
        MAKER.left_out(1),
        Column::new("active_ns", "Active", Unit::Duration),
    ];
    let rows = ended.iter().take(selection.top()).map(row).collect();
    Section {
        view: View::Top,
        ..Section::new("longest", "Longest lives", columns, rows)
    }
}

/// Something that happened to a process, and the name that it got by that.
type Step<'r> = (Timestamp, &'static str, Option<&'r str>);

/// What happened to a process, in the order of time.
fn steps(row: &ProcessRow) -> Vec<Step<'_>> {
    let inherited = row.names.iter().find(|name| name.by == NamedBy::Fork);
    let inherited = inherited.map(|name| name.name.as_str());
    let begin = row.begin.map(|time| (time, "fork", inherited));
    let names = row.names.iter().filter_map(|name| {
        let what = match name.by {
            NamedBy::Exec => "exec",
            NamedBy::Rename => "rename",
            // It began with the one, and is not changed by the other.
            NamedBy::Fork | NamedBy::Dump => return None,
        };
        Some((name.time?, what, Some(name.name.as_str())))
    });
    let end = row.end.map(|time| (time, "exit", None));
    begin.into_iter().chain(names).chain(end).collect()
}

/// What happened, in the order of time.
fn log(selection: &Selection, subjects: &[Subject<'_>]) -> Section {
    let of = |subject| move |step| (subject, step);
    let all = subjects
        .iter()
        .flat_map(|subject| steps(subject.row).into_iter().map(of(subject)));
    let in_range = all.filter(|(_, (time, ..))| selection.window.contains(time.0));
    let mut all: Vec<(&Subject<'_>, Step<'_>)> = in_range.collect();
    // Stable: what happened to one process at one time stays in its order.
    all.sort_by_key(|(subject, (time, ..))| (*time, subject.row.id));
    let row = |(subject, (time, what, name)): (&Subject<'_>, Step<'_>)| {
        let parent = subject.parent.clone().filter(|_| what == "fork");
        let life = subject.row.life().filter(|_| what == "exit");
        vec![
            time.into(),
            what.into(),
            subject.process.clone().into(),
            name.into(),
            parent.into(),
            life.into(),
        ]
    };
    let columns = vec![
        Column::new("time_ns", "Time", Unit::Time),
        Column::new("event", "Event", Unit::Text),
        PROCESS,
        Column::new("new_name", "New name", Unit::Text),
        MAKER.left_out(2),
        Column::new("life_ns", "Life", Unit::Duration).left_out(1),
    ];
    let rows = all.into_iter().map(row).collect();
    Section {
        view: View::Log,
        ..Section::new("log", "What happened", columns, rows)
    }
}

/// How often lives of each length occurred.
fn frequencies(ended: &[(&Subject<'_>, u64)]) -> Section {
    let lives = || ended.iter().map(|(_, life)| *life);
    let range = lives().min().zip(lives().max());
    let mut bins = Bins::default();
    if let Some(range) = range {
        lives().for_each(|life| bins.add(range, life));
    }
    let group = range.map(|range| ("all".to_owned(), range, &bins));
    let about = Column::new("of", "Of", Unit::Text);
    crate::report::frequencies(about, group.into_iter().collect())
}
