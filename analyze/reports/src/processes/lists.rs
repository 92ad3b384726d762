//! Tables of lives: from the start to the end of a process.

use crate::groups;
use crate::processes::{GROUPINGS, ProcessOptions, ProcessRules};
use std::cmp::Reverse;
use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;

use crate::processes::life::NamedBy;
use crate::processes::report::ProcessRow;
use tracebraid_follow::{Limits, Selection, Thread};
use tracebraid_statistics::{Bins, Distribution, Powers};
use tracebraid_tables::{
    Column, Forms, Section, Unit, View, distribution_columns, distribution_values,
};

const PROCESS: Column = Column::new("process", "Process", Unit::Process);
const MAKER: Column = Column::new("parent", "Made by", Unit::Process).optional();

/// A process and its creator.
struct Subject<'r> {
    row: &'r ProcessRow,
    process: Arc<Thread>,
    parent: Option<Arc<Thread>>,
}

/// The requested tables of the selected processes; `rows` contains all processes. Traces may
/// contain very many, so only requested tables are computed.
pub(super) fn lists(rules: &ProcessRules, rows: &[ProcessRow]) -> Vec<Section> {
    let ProcessRules {
        selection, options, ..
    } = rules;
    let chosen = || {
        let chosen = rows.iter().filter(|row| row.is_chosen(selection));
        chosen.filter(|row| is_within(options, row))
    };
    let ended = chosen().filter_map(|row| {
        let life = row.life()?;
        selection.window.contains(row.end?.0).then_some((row, life))
    });
    let mut ended: Vec<(&ProcessRow, u64)> = ended.collect();
    let mut sections = vec![lives(&ended)];
    if options.views.shows(View::Top) {
        sections.push(longest(options, rows, &mut ended));
    }
    if options.views.shows(View::Log) {
        let subjects: Vec<Subject<'_>> = chosen().map(|row| subject(rows, row)).collect();
        sections.push(log(selection, &subjects));
    }
    if options.views.shows(View::Freq) {
        sections.push(frequencies(options, &ended));
    }
    sections.retain(|section| options.views.views.contains(&section.view));
    sections
}

/// True if the life is within the requested limits.
fn is_within(options: &ProcessOptions, row: &ProcessRow) -> bool {
    let limits = &options.views.limits;
    *limits == Limits::default() || row.life().is_some_and(|life| limits.contain(life))
}

fn subject<'r>(rows: &'r [ProcessRow], row: &'r ProcessRow) -> Subject<'r> {
    let place = row.parent.and_then(|place| usize::try_from(place).ok());
    let known = place
        .and_then(|place| rows.get(place))
        .map(ProcessRow::thread);
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

/// Distribution of all lives.
fn lives(ended: &[(&ProcessRow, u64)]) -> Section {
    let mut all = Distribution::default();
    ended.iter().for_each(|(_, life)| all.add(*life));
    let rows = (!ended.is_empty()).then(|| distribution_values(&all).to_vec());
    let columns = distribution_columns().to_vec();
    Section::new("lives", "Lifetimes", columns, rows.into_iter().collect())
        .short()
        .only(Forms::JSON.and(Forms::LAMI))
}

fn longest(
    options: &ProcessOptions,
    all: &[ProcessRow],
    ended: &mut [(&ProcessRow, u64)],
) -> Section {
    ended.sort_by_key(|(row, life)| (Reverse(*life), row.begin, row.id));
    let row = |(row, life): &(&ProcessRow, u64)| {
        let Subject {
            process, parent, ..
        } = subject(all, row);
        vec![
            row.begin.into(),
            row.end.into(),
            (*life).into(),
            process.into(),
            parent.into(),
            row.used.active.into(),
        ]
    };
    let columns = vec![
        Column::new("begin_ns", "Begin", Unit::Time),
        Column::new("end_ns", "End", Unit::Time).left_out(2),
        Column::new("life_ns", "Lifetime", Unit::Duration),
        PROCESS,
        MAKER.left_out(1),
        Column::new("active_ns", "Active", Unit::Duration),
    ];
    let rows = ended.iter().take(options.views.top()).map(row).collect();
    Section::new("longest", "Longest lifetimes", columns, rows).of(View::Top)
}

/// An event of a process, with the name that it sets.
type LifeStep<'r> = (Timestamp, &'static str, Option<&'r str>);

/// The events of a process, in the order of time.
fn steps(row: &ProcessRow) -> Vec<LifeStep<'_>> {
    let inherited = row.names.iter().find(|name| name.by == NamedBy::Fork);
    let inherited = inherited.map(|name| name.name.as_str());
    let begin = row.begin.map(|time| (time, "fork", inherited));
    let names = row.names.iter().filter_map(|name| {
        let what = match name.by {
            NamedBy::Exec => "exec",
            NamedBy::Rename => "rename",
            // The name at fork belongs to the start, and the state dump changes nothing.
            NamedBy::Fork | NamedBy::Dump => return None,
        };
        Some((name.time, what, Some(name.name.as_str())))
    });
    let end = row.end.map(|time| (time, "exit", None));
    begin.into_iter().chain(names).chain(end).collect()
}

/// All events, in the order of time.
fn log(selection: &Selection, subjects: &[Subject<'_>]) -> Section {
    let of = |subject| move |step| (subject, step);
    let all = subjects
        .iter()
        .flat_map(|subject| steps(subject.row).into_iter().map(of(subject)));
    let in_range = all.filter(|(_, (time, ..))| selection.window.contains(time.0));
    let mut all: Vec<(&Subject<'_>, LifeStep<'_>)> = in_range.collect();
    // A stable sort: simultaneous events of one process stay in order.
    all.sort_by_key(|(subject, (time, ..))| (*time, subject.row.id));
    let row = |(subject, (time, what, name)): (&Subject<'_>, LifeStep<'_>)| {
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
        Column::new("new_name", "New name", Unit::Text).optional(),
        MAKER.left_out(2),
        Column::new("life_ns", "Lifetime", Unit::Duration)
            .optional()
            .left_out(1),
    ];
    let rows = all.into_iter().map(row).collect();
    Section::new("log", "Forks, execs and exits", columns, rows).of(View::Log)
}

/// A histogram of lives.
fn frequencies(options: &ProcessOptions, ended: &[(&ProcessRow, u64)]) -> Section {
    let lives = || ended.iter().map(|(_, life)| *life);
    let mut powers = Powers::default();
    lives().for_each(|life| powers.add(life));
    let all = |_| groups::all([&powers].into_iter());
    if let Some(section) = groups::section(&options.views, GROUPINGS, groups::OF, all) {
        return section;
    }
    let range = lives().min().zip(lives().max());
    let mut bins = Bins::default();
    if let Some(range) = range {
        lives().for_each(|life| bins.add(range, life));
    }
    let group = range.map(|range| ("all".to_owned(), range, &bins));
    tracebraid_tables::frequencies(groups::OF, group.into_iter().collect())
}
