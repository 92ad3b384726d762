//! Builds the report from the sums.

use std::collections::{BTreeMap, BTreeSet};

use tracebraid_descriptors::Texts;
use tracebraid_kernel_model::Syscall;
use tracebraid_language::glob::Glob;

use crate::files::rows::{self, Names};
use crate::files::stats::{ClassStats, Told, Use};
use crate::files::tally::Tally;
use crate::files::{FilesPartial, FilesRules, GROUPINGS, Played, type_names};
use crate::groups::{self, OfThreads};
use tracebraid_files::{Class, File, FileChoice, FileId, Files, Seen, is_unfinished};
use tracebraid_follow::{By, Head, Input, People, Process, Table, Thread, ThreadKey};
use tracebraid_statistics::{Bins, Powers, Ranges};
use tracebraid_tables::{Group, Report, Section, Total, unmatched_known};

/// A thread's calls by class.
type Classes = Vec<(Class, ClassStats)>;

/// Use of files by process.
pub(super) type ByProcess = Vec<(Process, BTreeMap<FileId, Use>)>;

pub(super) fn report(rules: &FilesRules, input: &Input, partial: FilesPartial) -> Report {
    let FilesPartial {
        seen: Seen {
            people, nobodys, ..
        },
        played,
        ..
    } = partial;
    let Played {
        machine,
        texts,
        mut tally,
        ..
    } = played;
    let unfinished = machine
        .threads
        .entries()
        .filter(|(_, open)| is_unfinished(open));
    let unfinished = unfinished.count() as u64;
    let threads = shown(rules, &people, &tally);
    if let Some(ranges) = &rules.ranges {
        return Report {
            head: input.head(),
            sections: vec![frequencies(&tally, &threads, ranges)],
            ..Report::default()
        };
    }
    let by_class = by_class(&tally, &threads);
    let by_process = by_process(&people, &tally, &threads);
    let mut notes = unmatched(&machine.files, &texts, &rules.options.files);
    // The names of the calls that occurred are not kept, only whether any occurred.
    let counted = Syscall::all().take_while(|_| !by_class.is_empty());
    notes.extend(rules.options.calls.unmatched(counted));
    let names = Names::new(&machine.files, &texts, input.head());
    let mut sections = vec![
        rows::files(&names, &by_process),
        rows::processes(&names, &by_process),
        rows::classes(&by_class),
        rows::process_files(&names, &by_process),
    ];
    let top = rules.options.views.top();
    sections.extend(Class::ALL.map(|class| {
        let longest = longest(&mut tally.threads, &threads, class, top);
        rows::slowest(&names, &threads, class, &longest)
    }));
    let mut log = std::mem::take(&mut tally.log);
    // Calls that end at the same time are found in an order that depends on the slices.
    log.sort_by_key(|told| {
        let thread = tally.threads.key(told.place as usize);
        let call = (told.begin, told.call, told.class, told.fd, told.result);
        (told.end(), thread, call)
    });
    sections.push(rows::log(&names, &threads, &log));
    let head = input.head();
    let groups = |by| match by {
        By::Operation => by_class.iter().map(of_class).collect(),
        by => of_threads((&head, &people), &tally, &threads).groups(by),
    };
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        rows::CLASS,
        groups,
    ));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        head,
        totals: totals(&by_class, unfinished, nobodys),
        sections,
        ranges: ranges(&by_class),
        notes,
        ..Report::default()
    }
}

/// A note for each pattern that matches no file, with similar names.
fn unmatched(files: &Files, texts: &Texts, choice: &FileChoice) -> Vec<String> {
    let mut notes = unmatched_types(files, &choice.types);
    if choice.paths.is_empty() {
        return notes;
    }
    let name = |file: &File| vec![texts.get(file.name).unwrap_or_default().to_owned()];
    let names: Vec<_> = files.all().iter().map(name).collect();
    notes.extend(tracebraid_tables::unmatched(
        "--path",
        &choice.paths,
        &names,
    ));
    notes
}

fn unmatched_types(files: &Files, globs: &[Glob]) -> Vec<String> {
    let known = type_names();
    let met: BTreeSet<&str> = files.all().iter().map(|file| file.kind.name()).collect();
    let met: Vec<&str> = met.into_iter().collect();
    unmatched_known("--type", globs, (&met, &known), "no file of the selection")
}

fn totals(by_class: &BTreeMap<Class, ClassStats>, unfinished: u64, nobodys: u64) -> Vec<Total> {
    let calls = |stats: &ClassStats| stats.durations.summary().count();
    let sum = |of: &dyn Fn(&ClassStats) -> u64| by_class.values().map(of).sum::<u64>().into();
    vec![
        Total::new("calls", "I/O calls", sum(&calls)).or_one("I/O call"),
        Total::new("errors", "errors", sum(&|stats| stats.errors)).or_one("error"),
        Total::new("unfinished", "unfinished", unfinished.into()),
        Total::new(
            "unknown_thread",
            "events of unknown threads",
            nobodys.into(),
        )
        .or_one("event of an unknown thread"),
    ]
}

/// By index in the tally: the selected threads.
fn shown(rules: &FilesRules, people: &People, tally: &Tally) -> Vec<Option<Thread>> {
    let threads = tally.threads.entries();
    let threads = threads.map(|(key, _)| people.thread(key));
    threads
        .map(|thread| Some(thread).filter(|thread| rules.follow.selection.threads.shows(thread)))
        .collect()
}

/// The calls of the selected threads.
fn of_shown<'m>(
    tally: &'m Tally,
    threads: &[Option<Thread>],
) -> impl Iterator<Item = &'m (Class, ClassStats)> {
    let shown = tally.threads.entries().zip(threads);
    let shown = shown.filter(|(_, thread)| thread.is_some());
    shown.flat_map(|((_, classes), _)| classes)
}

fn by_class(tally: &Tally, threads: &[Option<Thread>]) -> BTreeMap<Class, ClassStats> {
    let mut sums: BTreeMap<Class, ClassStats> = BTreeMap::new();
    for (class, stats) in of_shown(tally, threads) {
        sums.entry(*class).or_default().merge(stats);
    }
    sums
}

fn by_process(people: &People, tally: &Tally, threads: &[Option<Thread>]) -> ByProcess {
    let mut uses: Vec<Vec<(FileId, &Use)>> = vec![Vec::new(); threads.len()];
    for (&(place, file), sums) in tally.uses.keys().iter().zip(&tally.sums) {
        if let Some(uses) = uses.get_mut(place as usize) {
            uses.push((file, sums));
        }
    }
    let threads = threads
        .iter()
        .zip(uses)
        .filter(|(_, uses)| !uses.is_empty());
    let threads = threads.filter_map(|(thread, uses)| Some((thread.clone()?, uses)));
    people.processes(threads, |sums: &mut BTreeMap<FileId, Use>, uses| {
        for (file, of_file) in uses {
            sums.entry(file).or_default().merge(of_file);
        }
    })
}

/// The longest calls of a class, in an order that does not depend on chunks.
fn longest(
    calls: &mut Table<Classes>,
    threads: &[Option<Thread>],
    class: Class,
    most: usize,
) -> Vec<Told> {
    let keys: Vec<ThreadKey> = calls.entries().map(|(key, _)| key).collect();
    let shown = calls.values().zip(threads);
    let shown = shown.filter(|(_, thread)| thread.is_some());
    let of_class = shown
        .flat_map(|(classes, _)| classes)
        .filter(|(of, _)| *of == class);
    let mut longest: Vec<Told> = of_class
        .flat_map(|(_, stats)| std::mem::take(&mut stats.top).into_sorted(most))
        .collect();
    longest.sort_by_key(|told| {
        let thread = keys.get(told.place as usize);
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

fn of_class((class, stats): (&Class, &ClassStats)) -> (Group, Powers) {
    (class.name().to_owned().into(), stats.durations.powers())
}

fn of_threads<'a>(
    (head, people): (&'a Head, &'a People),
    tally: &Tally,
    threads: &[Option<Thread>],
) -> OfThreads<'a> {
    let of_thread = |((_, classes), thread): ((ThreadKey, &Classes), &Option<Thread>)| {
        let mut sum = Powers::default();
        (classes.iter()).for_each(|(_, stats)| sum.merge(&stats.durations.powers()));
        Some((thread.clone()?, sum))
    };
    let threads = tally.threads.entries().zip(threads).filter_map(of_thread);
    OfThreads {
        head,
        people,
        threads: threads.collect(),
    }
}

/// The table of the second pass: histograms of durations.
fn frequencies(
    tally: &Tally,
    threads: &[Option<Thread>],
    ranges: &[(Class, (u64, u64))],
) -> Section {
    let mut bins: BTreeMap<Class, Bins> = BTreeMap::new();
    for (class, stats) in of_shown(tally, threads) {
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
    tracebraid_tables::frequencies(rows::CLASS, groups)
}
