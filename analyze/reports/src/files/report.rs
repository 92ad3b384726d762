//! The report.

use std::collections::BTreeMap;

use crate::files::class::Class;
use crate::files::machine::Machine;
use crate::files::names::FileId;
use crate::files::rows::{self, Names};
use crate::files::stats::{ClassStats, Told, Use};
use crate::files::{FilesPartial, FilesRules};
use crate::kernel::{Input, Process, Thread};
use crate::report::{Report, Section, Total};
use crate::stats::{Bins, Ranges};

/// What processes did with files.
pub(super) type ByProcess = Vec<(Process, BTreeMap<FileId, Use>)>;

pub(super) fn report(
    rules: &FilesRules,
    input: &Input,
    mut partial: FilesPartial,
    mut machine: Machine,
) -> Report {
    let nobodys = partial.nobodys + partial.tasks.untold().len() as u64;
    let unfinished = partial.threads.iter().filter(|calls| calls.is_unfinished());
    let unfinished = unfinished.count() as u64;
    let threads = shown(rules, &partial, &machine);
    if let Some(ranges) = &rules.ranges {
        return Report {
            head: input.head(),
            sections: vec![frequencies(&machine, &threads, ranges)],
            ..Report::default()
        };
    }
    let by_class = by_class(&machine, &threads);
    let by_process = by_process(&partial, &machine, &threads);
    let notes = machine.files.unmatched(&partial.texts, &rules.selection.paths);
    let names = Names::new(&machine.files, &partial.texts, input.head());
    let mut sections = vec![
        rows::files(&names, &by_process),
        rows::classes(&by_class),
        rows::processes(&names, &by_process),
    ];
    let top = rules.selection.top();
    sections.extend(Class::ALL.map(|class| {
        let longest = longest(&mut machine.classes, &threads, &partial, class, top);
        rows::slowest(&names, &threads, class, &longest)
    }));
    let mut log = std::mem::take(&mut machine.log);
    log.sort_by_key(|told| (told.end(), partial.tasks.key(told.place as usize)));
    sections.push(rows::log(&names, &threads, &log));
    sections.retain(|section| rules.selection.shows(section.view));
    Report {
        head: input.head(),
        totals: totals(&by_class, unfinished, nobodys),
        sections,
        ranges: ranges(&by_class),
        notes,
    }
}

fn totals(by_class: &BTreeMap<Class, ClassStats>, unfinished: u64, nobodys: u64) -> Vec<Total> {
    let calls = |stats: &ClassStats| stats.durations.summary().count();
    let sum = |of: &dyn Fn(&ClassStats) -> u64| by_class.values().map(of).sum::<u64>().into();
    vec![
        Total::new("calls", "I/O calls", sum(&calls)),
        Total::new("errors", "errors", sum(&|stats| stats.errors)),
        Total::new("unfinished", "not finished", unfinished.into()),
        Total::new("unknown_thread", "events of unknown threads", nobodys.into()),
    ]
}

/// By place: the threads that are asked for and did something.
fn shown(rules: &FilesRules, partial: &FilesPartial, machine: &Machine) -> Vec<Option<Thread>> {
    let places = 0..machine.classes.len();
    places
        .map(|place| Some(partial.tasks.thread(place)).filter(|thread| rules.selection.threads.shows(thread)))
        .collect()
}

fn by_class(machine: &Machine, threads: &[Option<Thread>]) -> BTreeMap<Class, ClassStats> {
    let mut sums: BTreeMap<Class, ClassStats> = BTreeMap::new();
    let shown = machine.classes.iter().zip(threads);
    for (class, stats) in shown.filter(|(_, thread)| thread.is_some()).flat_map(|of| of.0) {
        sums.entry(*class).or_default().merge(stats);
    }
    sums
}

fn by_process(partial: &FilesPartial, machine: &Machine, threads: &[Option<Thread>]) -> ByProcess {
    let mut uses: Vec<Vec<(FileId, &Use)>> = vec![Vec::new(); threads.len()];
    for (&(place, file), sums) in machine.uses.keys().iter().zip(&machine.sums) {
        if let Some(uses) = uses.get_mut(place as usize) {
            uses.push((file, sums));
        }
    }
    let threads = threads.iter().zip(uses).filter(|(_, uses)| !uses.is_empty());
    let threads = threads.filter_map(|(thread, uses)| Some((thread.clone()?, uses)));
    let people = partial.tasks.people();
    people.processes(threads, |sums: &mut BTreeMap<FileId, Use>, uses| {
        for (file, of_file) in uses {
            sums.entry(file).or_default().merge(of_file);
        }
    })
}

/// The longest calls of a class, in an order that does not depend on chunks.
fn longest(
    classes: &mut [Vec<(Class, ClassStats)>],
    threads: &[Option<Thread>],
    partial: &FilesPartial,
    class: Class,
    most: usize,
) -> Vec<Told> {
    let shown = classes
        .iter_mut()
        .zip(threads)
        .filter(|(_, thread)| thread.is_some());
    let of_class = shown.flat_map(|(stats, _)| stats).filter(|(of, _)| *of == class);
    let mut longest: Vec<Told> = of_class
        .flat_map(|(_, stats)| std::mem::take(&mut stats.top).into_sorted(most))
        .collect();
    longest.sort_by_key(|told| {
        let thread = partial.tasks.key(told.place as usize);
        (std::cmp::Reverse(told.duration), told.begin, thread)
    });
    longest.truncate(most);
    longest
}

fn ranges(by_class: &BTreeMap<Class, ClassStats>) -> Ranges {
    let range = |(class, stats): (&Class, &ClassStats)| {
        let summary = stats.durations.summary();
        Some((class.name().to_owned(), (summary.min()?, summary.max()?)))
    };
    by_class.iter().filter_map(range).collect()
}

/// The second pass's report: how often durations of each size occurred.
fn frequencies(machine: &Machine, threads: &[Option<Thread>], ranges: &[(Class, (u64, u64))]) -> Section {
    let mut bins: BTreeMap<Class, Bins> = BTreeMap::new();
    let shown = machine.classes.iter().zip(threads);
    for (class, stats) in shown.filter(|(_, thread)| thread.is_some()).flat_map(|of| of.0) {
        if let Some(counted) = &stats.bins {
            bins.entry(*class).or_default().merge(counted);
        }
    }
    let mut groups = Vec::new();
    for (class, bins) in &bins {
        if let Some((_, range)) = ranges.iter().find(|(of, _)| of == class) {
            groups.push((class.name().to_owned(), *range, bins));
        }
    }
    crate::report::frequencies(rows::CLASS, groups)
}
