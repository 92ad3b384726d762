//! The tables of reactions.

use std::cmp::Reverse;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_engine::parallel;
use tracebraid_follow::{Input, Thread, ThreadKey};
use tracebraid_statistics::{Distribution, keep_first_by_key};
use tracebraid_tables::{
    Column, Report, Section, Total, Unit, Value, View, distribution_columns, distribution_values,
};

use crate::levels::reactions::reaction::{PARTS, ReactionSource};
use crate::levels::reactions::reaction_sums::{Reacted, ThreadReactions, by_source};
use crate::levels::reactions::{ReactionPartial, ReactionRules};

struct ReactionRow<'a> {
    thread: Thread,
    sums: &'a ThreadReactions,
}

pub(super) fn report(rules: &ReactionRules, input: &Input, partial: ReactionPartial) -> Report {
    let rows = rows(rules, &partial);
    let count: u64 = rows.iter().map(|row| row.sums.all.summary().count()).sum();
    let mut sections = vec![sources(&rows), threads(&rows), longest(rules, &rows)];
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        head: input.head(),
        totals: vec![Total::new("reactions", "reactions", count.into()).or_one("reaction")],
        sections,
        notes: rules.options.unmatched(rows.is_empty()),
        ..Report::default()
    }
}

fn rows<'a>(rules: &ReactionRules, partial: &'a ReactionPartial) -> Vec<ReactionRow<'a>> {
    let row = |(key, sums): (ThreadKey, &'a ThreadReactions)| {
        let (_, _, described) = partial.described.find(key)?;
        let mut thread = partial.people.thread(key);
        thread.pid = Some(described.pid);
        if !described.name.is_empty() {
            thread.name = Some(described.name.clone());
        }
        let is_shown = rules.shows(&thread, described.ult);
        is_shown.then_some(ReactionRow { thread, sums })
    };
    let threads = partial.sums.threads();
    let threads = threads.filter(|(_, sums)| sums.all.summary().count() > 0);
    let rows = parallel::map(threads.collect(), row);
    let mut rows: Vec<_> = rows.into_iter().flatten().collect();
    rows.sort_by_key(|row| {
        (
            Reverse(row.sums.all.summary().sum()),
            row.thread.trace,
            row.thread.tid,
        )
    });
    rows
}

fn source_name(source: ReactionSource) -> String {
    match source {
        ReactionSource::Interrupt(interrupt) => interrupt.label(),
        ReactionSource::Thread => "thread".to_owned(),
        ReactionSource::Runtime => "runtime".to_owned(),
    }
}

fn with_distribution(about: Vec<Column>) -> Vec<Column> {
    about.into_iter().chain(distribution_columns()).collect()
}

/// By source and part; the whole comes last.
fn sources(rows: &[ReactionRow<'_>]) -> Section {
    let columns = with_distribution(vec![
        Column::new("source", "Woken by", Unit::Text),
        Column::new("part", "Delay", Unit::Text),
    ]);
    let mut lines = Vec::new();
    let threads: Vec<_> = rows.iter().map(|row| row.sums).collect();
    for (source, parts) in by_source(&threads) {
        for (part, durations) in PARTS.iter().chain(&["total"]).zip(&parts) {
            let about = [Value::text(source_name(source)), Value::text(*part)];
            lines.push(
                about
                    .into_iter()
                    .chain(distribution_values(durations))
                    .collect(),
            );
        }
    }
    Section::new("sources", "Reactions by source", columns, lines).short()
}

fn threads(rows: &[ReactionRow<'_>]) -> Section {
    let columns = with_distribution(vec![Column::new(
        "thread",
        "User-level thread",
        Unit::Thread,
    )]);
    let line = |row: &ReactionRow<'_>| {
        let all: &Distribution = &row.sums.all;
        let about = [Value::from(row.thread.clone())];
        about.into_iter().chain(distribution_values(all)).collect()
    };
    let lines = parallel::map(rows.iter().collect(), line);
    Section::new("threads", "Reactions by user-level thread", columns, lines)
}

fn longest(rules: &ReactionRules, rows: &[ReactionRow<'_>]) -> Section {
    let most = rules.longest();
    let each = rows.iter().enumerate().flat_map(|(at, row)| {
        let longest = row.sums.longest.clone().into_greatest(most);
        longest.into_iter().map(move |reacted| (reacted, at))
    });
    let mut all: Vec<(Reacted, usize)> = each.collect();
    keep_first_by_key(&mut all, most, |(reacted, at)| (Reverse(*reacted), *at));
    let line = |(reacted, at): (Reacted, usize)| {
        let mut values = vec![
            Value::Time(Timestamp(reacted.reaction.begin)),
            reacted.total.into(),
        ];
        values.extend(reacted.reaction.parts(reacted.end).map(Value::from));
        values.push(Value::text(source_name(reacted.reaction.source)));
        values.push(u64::from(reacted.cpu).into());
        values.push(
            rows.get(at)
                .map_or(Value::None, |row| row.thread.clone().into()),
        );
        values
    };
    let duration = |key, title| Column::new(key, title, Unit::Duration);
    let columns = vec![
        Column::new("begin_ns", "Begin", Unit::Time),
        duration("total_ns", "Reaction"),
        duration("interrupt_ns", "Interrupt").left_out(2),
        duration("kernel_ns", "Kernel"),
        duration("scheduler_ns", "Scheduler"),
        duration("lwp_ns", "LWP wait"),
        duration("thread_ns", "Thread").left_out(3),
        Column::new("source", "Woken by", Unit::Text).left_out(4),
        Column::new("cpu", "CPU", Unit::Id).left_out(1),
        Column::new("thread", "User-level thread", Unit::Thread),
    ];
    let lines = all.into_iter().map(line).collect();
    Section::new("longest", "Longest reactions", columns, lines).of(View::Top)
}
