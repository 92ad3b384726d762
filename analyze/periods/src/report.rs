//! Builds the report from the sums.

use std::cmp::Reverse;
use std::collections::HashSet;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_language::Datum;
use tracebraid_language::periods::{Capture, Periods};

use crate::aggregated;
use crate::sums::{Done, Group, OfPeriod, PerParent, SHARES, Sums, Within, value_of};
use crate::wanted::{Order, Wanted};
use tracebraid_follow::Head;
use tracebraid_statistics::{Bins, Distribution, Powers, Ranges, Summary};
use tracebraid_tables::{
    Column, Report, Section, Total, Unit, Value, View, distribution_columns, distribution_values,
    frequencies, histogram,
};

const PERIOD: Column = Column::new("period", "Period", Unit::Text);

pub(super) fn report(wanted: &Wanted, periods: &Periods, head: Head, mut sums: Sums) -> Report {
    sums.periods
        .resize_with(periods.list.len(), OfPeriod::default);
    // Groups are in the order of their first periods, which depends only on the trace; the report
    // has the greatest total first.
    sums.groups.sort_by_cached_key(|group| {
        (
            group.period,
            Reverse(group.durations.summary().sum()),
            group.values.clone(),
        )
    });
    if wanted.ranges.is_some() {
        return second(wanted, head, &sums);
    }
    let top = if wanted.shows(View::Top) {
        wanted.rows
    } else {
        0
    };
    let longest = sums.longest(top);
    let aggregated = aggregated::section(wanted, periods, &sums.log);
    let log = ordered(wanted, std::mem::take(&mut sums.log));
    let mut sections = vec![
        of_periods(wanted, &sums.periods),
        of_groups(wanted, &sums.groups),
    ];
    sections.push(within(wanted, periods, &sums, Of::All));
    sections.push(within(wanted, periods, &sums, Of::Active));
    sections.push(list(
        "longest",
        "Longest periods",
        View::Top,
        (wanted, periods, &longest),
    ));
    sections.push(list("log", "Periods", View::Log, (wanted, periods, &log)));
    sections.push(aggregated);
    let grouped = !wanted.group_names.is_empty();
    let nested = periods.list.iter().any(|period| period.parent.is_some());
    sections.retain(|section| {
        let matters = match section.key {
            "groups" => grouped,
            "within" | "within_active" => nested,
            "aggregated" => wanted.aggregate_by.is_some(),
            _ => true,
        };
        matters && wanted.shows(section.view)
    });
    if wanted.has_powers {
        sections.push(powers(wanted, &sums));
    }
    if wanted.has_powers && wanted.series {
        sections.push(series(wanted, &sums));
    }
    Report {
        head,
        totals: totals(wanted, &sums),
        sections,
        ranges: ranges(wanted, &sums),
        ..Report::default()
    }
}

/// The definitions that are shown, with their sums.
fn shown<'s>(
    wanted: &'s Wanted,
    sums: &'s [OfPeriod],
) -> impl Iterator<Item = (usize, &'s OfPeriod)> {
    sums.iter()
        .enumerate()
        .filter(|(period, _)| wanted.is_shown(*period))
}

fn totals(wanted: &Wanted, sums: &Sums) -> Vec<Total> {
    let of = |number: fn(&OfPeriod) -> u64| {
        shown(wanted, &sums.periods)
            .map(|(_, own)| number(own))
            .sum::<u64>()
    };
    let count = of(|period| period.durations.summary().count());
    let mut totals = vec![
        Total::new("periods", "periods", count.into()).or_one("period"),
        Total::new(
            "unfinished",
            "unfinished periods",
            of(|period| period.unfinished).into(),
        )
        .or_one("unfinished period"),
    ];
    let rare = rare_totals(sums.refused, sums.ungrouped);
    totals.extend(
        rare.into_iter()
            .filter(|total| total.value != Value::Unsigned(0)),
    );
    totals
}

/// Totals that a report has only if they are not 0.
pub fn rare_totals(refused: u64, ungrouped: u64) -> [Total; 2] {
    let not_begun = "not begun because too many were open (see --max-open)";
    let in_no_group = "in no group because there are too many groups";
    [
        Total::new("refused", not_begun, refused.into()),
        Total::new("ungrouped", in_no_group, ungrouped.into()),
    ]
}

fn of_periods(wanted: &Wanted, sums: &[OfPeriod]) -> Section {
    let row = |(period, own): (usize, &OfPeriod)| {
        let values = distribution_values(&own.durations);
        let about = [Value::text(wanted.path(period))];
        about
            .into_iter()
            .chain(values)
            .chain([own.unfinished.into()])
            .collect()
    };
    let unfinished = Column::new("unfinished", "Unfinished", Unit::Count).left_out(8);
    Section {
        key: "periods",
        title: "By period".to_owned(),
        view: View::Stats,
        columns: [PERIOD]
            .into_iter()
            .chain(distribution_columns())
            .chain([unfinished])
            .collect(),
        rows: shown(wanted, sums).map(row).collect(),
        is_long: false,
        ..Section::default()
    }
}

fn of_groups(wanted: &Wanted, groups: &[Group]) -> Section {
    let row = |group: &Group| {
        let about = [
            Value::text(wanted.path(group.period)),
            Value::Named(group.named(wanted).collect()),
        ];
        about
            .into_iter()
            .chain(distribution_values(&group.durations))
            .collect()
    };
    let group = Column::new("group", "Group", Unit::Named);
    Section {
        key: "groups",
        title: "By group".to_owned(),
        view: View::Stats,
        columns: [PERIOD, group]
            .into_iter()
            .chain(distribution_columns())
            .collect(),
        rows: groups.iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

/// The enclosing periods to aggregate over.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    All,
    Active,
}

/// Counts, durations and shares of the periods within each enclosing period.
fn within(wanted: &Wanted, periods: &Periods, sums: &Sums, of: Of) -> Section {
    let number = |key, title, order| Column::new(key, title, Unit::Number).left_out(order);
    let time = |key, title, order| Column::new(key, title, Unit::Duration).left_out(order);
    let share = |key, title, order| {
        Column::new(key, title, Unit::Share)
            .optional()
            .left_out(order)
    };
    let (key, title) = match of {
        Of::All => ("within", "Within each period"),
        Of::Active => ("within_active", "Within each period that has one"),
    };
    Section {
        key,
        title: title.to_owned(),
        view: View::Stats,
        columns: vec![
            Column::new("parent", "Within", Unit::Text),
            PERIOD,
            Column::new("parents", "Parents", Unit::Count).left_out(10),
            Column::new("count_min", "Min", Unit::Count).left_out(7),
            number("count_average", "Count", 0),
            Column::new("count_max", "Max", Unit::Count).left_out(8),
            number("count_deviation", "Std dev", 3).optional(),
            time("duration_min_ns", "Min", 5),
            time("duration_average_ns", "Duration", 0),
            time("duration_max_ns", "Max", 6),
            time("duration_deviation_ns", "Std dev", 2).optional(),
            share("share_min", "Min", 4),
            share("share_average", "Of parent", 0),
            share("share_max", "Max", 9),
            share("share_deviation", "Std dev", 1),
        ],
        rows: pairs(wanted, periods, sums, of),
        is_long: false,
        ..Section::default()
    }
}

fn pairs(wanted: &Wanted, periods: &Periods, sums: &Sums, of: Of) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    let parents = sums.periods.iter().enumerate();
    for (parent, own) in
        parents.filter(|(parent, _)| wanted.aggregate_by.is_none_or(|by| by == *parent))
    {
        for (inner, sums) in inside(periods, parent).into_iter().zip(&own.within) {
            let Within { all, active } = sums;
            let values = if of == Of::All { all } else { active };
            if wanted.is_shown(inner) && active.counts.count() > 0 {
                let names = [parent, inner].map(|period| Value::text(wanted.path(period)));
                rows.push(names.into_iter().chain(per_parent(values)).collect());
            }
        }
    }
    rows
}

/// The periods within one, in the order of the plan: each child followed by those within the child.
fn inside(periods: &Periods, parent: usize) -> Vec<usize> {
    let mut list = Vec::new();
    let children = |of: usize| {
        (of + 1..periods.list.len()).filter(move |&one| {
            periods
                .list
                .get(one)
                .is_some_and(|period| period.parent == Some(of))
        })
    };
    let mut next: Vec<usize> = children(parent).collect();
    next.reverse();
    while let Some(one) = next.pop() {
        list.push(one);
        let behind = next.len();
        next.extend(children(one));
        next.get_mut(behind..).unwrap_or_default().reverse();
    }
    list
}

fn per_parent(values: &PerParent) -> [Value; 13] {
    let part = |parts: Option<f64>| Value::from(parts.map(|parts| parts / SHARES as f64));
    let PerParent {
        counts,
        durations,
        shares,
    } = values;
    let whole = |number: Option<u64>| number.map(|number| number as f64);
    let of = |summary: &Summary| {
        [
            summary.min().into(),
            summary.mean().into(),
            summary.max().into(),
            summary.deviation().into(),
        ]
    };
    let [a, b, c, d] = of(counts);
    let [e, f, g, h]: [Value; 4] = of(durations);
    let [i, j, k, l] = [
        whole(shares.min()),
        shares.mean(),
        whole(shares.max()),
        shares.deviation(),
    ]
    .map(part);
    [counts.count().into(), a, b, c, d, e, f, g, h, i, j, k, l]
}

/// Captured values with their names.
pub(super) fn captured(captures: &[Capture], values: &[Datum]) -> Value {
    let names = captures.iter().map(|capture| capture.name.to_string());
    Value::Named(names.zip(values.iter().map(value_of)).collect())
}

/// Columns of the values captured at the start and at the end of a period.
pub(super) const CAPTURES: [Column; 2] = [
    Column::new("begin", "At its beginning", Unit::Named),
    Column::new("end", "At its end", Unit::Named),
];

fn list(
    key: &'static str,
    title: &str,
    view: View,
    (wanted, periods, of): (&Wanted, &Periods, &[Done]),
) -> Section {
    let row = |done: &Done| {
        let period = periods.list.get(done.period)?;
        Some(vec![
            Timestamp(done.begin).into(),
            Timestamp(done.end).into(),
            done.duration().into(),
            Value::text(wanted.path(done.period)),
            done.at[0].cpu.map(u64::from).into(),
            captured(&period.begin_captures, &done.begin_captures),
            captured(&period.end_captures, &done.end_captures),
        ])
    };
    Section {
        key,
        title: title.to_owned(),
        view,
        columns: vec![
            Column::new("begin_ns", "Begin", Unit::Time),
            Column::new("end_ns", "End", Unit::Time).left_out(2),
            Column::new("duration_ns", "Duration", Unit::Duration),
            PERIOD,
            Column::new("cpu", "CPU", Unit::Cpu).optional().left_out(1),
            CAPTURES[0],
            CAPTURES[1],
        ],
        rows: of.iter().filter_map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

/// The log in the requested order.
fn ordered(wanted: &Wanted, mut log: Vec<Done>) -> Vec<Done> {
    match wanted.order {
        Order::Time => log.sort_by_key(Done::number),
        Order::Duration => log.sort_by_key(Done::rank),
        Order::Hierarchy => {
            // A period within one that is not in the log has no position in the hierarchy.
            let there: HashSet<u64> = log.iter().map(Done::number).collect();
            log.retain(|done| done.numbers.iter().all(|number| there.contains(number)));
            log.sort_by(|a, b| a.numbers.cmp(&b.numbers));
        }
    }
    log.retain(|done| wanted.is_shown(done.period));
    log
}

/// Histograms of logarithmic buckets of periods and groups.
fn powers(wanted: &Wanted, sums: &Sums) -> Section {
    let periods = shown(wanted, &sums.periods)
        .map(|(period, own)| (wanted.path(period).to_owned(), own.durations.powers()));
    let groups = (sums.groups.iter()).map(|group| (group.label(wanted), group.durations.powers()));
    let all = periods.chain(groups).filter(|of| of.1.count() > 0);
    let all = all.map(|(name, powers)| (name.into(), powers));
    histogram(PERIOD, all.collect())
}

/// Bounds of the durations of periods and groups, by label.
fn ranges(wanted: &Wanted, sums: &Sums) -> Ranges {
    let bounds = |durations: &Distribution| {
        let summary = durations.summary();
        Some((summary.min()?, summary.max()?))
    };
    let periods = shown(wanted, &sums.periods).filter_map(|(period, own)| {
        Some((wanted.path(period).to_owned(), bounds(&own.durations)?))
    });
    let of_group = |group: &Group| {
        if !wanted.series {
            return bounds(&group.durations);
        }
        // All groups of a period share one scale.
        let all = sums
            .groups
            .iter()
            .filter(|other| other.period == group.period);
        let bounds = all.filter_map(|other| bounds(&other.durations));
        bounds.reduce(|(min, max), (least, most)| (min.min(least), max.max(most)))
    };
    // Groups of the same period are adjacent.
    let mut last = None;
    let mut range = |group: &Group| match last {
        Some((period, range)) if wanted.series && period == group.period => range,
        _ => {
            let range = of_group(group);
            last = Some((group.period, range));
            range
        }
    };
    let groups: Vec<_> = (sums.groups.iter())
        .filter_map(|group| Some((group.label(wanted), range(group)?)))
        .collect();
    periods.chain(groups).collect()
}

/// The report of the second pass: histograms of durations.
fn second(wanted: &Wanted, head: Head, sums: &Sums) -> Report {
    let periods = shown(wanted, &sums.periods)
        .map(|(period, own)| (wanted.path(period).to_owned(), &own.bins));
    let groups = sums
        .groups
        .iter()
        .map(|group| (group.label(wanted), &group.bins));
    let range = |(label, bins): (String, _)| {
        let range = *wanted.ranges.as_ref()?.get(&label)?;
        Some((label, range, bins))
    };
    let all: Vec<(String, (u64, u64), &Bins)> = periods.chain(groups).filter_map(range).collect();
    let mut sections = vec![frequencies(PERIOD, all)];
    if wanted.series {
        sections.push(series(wanted, sums));
    }
    Report {
        head,
        sections,
        ..Report::default()
    }
}

/// For each period and each bin, the counts of its groups side by side.
fn series(wanted: &Wanted, sums: &Sums) -> Section {
    let mut rows = Vec::new();
    for groups in sums.groups.chunk_by(|a, b| a.period == b.period) {
        let bins: Vec<_> = match &wanted.ranges {
            Some(ranges) => linear_bins(wanted, ranges, groups),
            None => power_bins(groups),
        };
        for at in 0..bins.first().map_or(0, |(_, bins)| bins.len()) {
            let bins = bins.iter();
            let bins = bins.filter_map(|(group, bins)| Some((group, bins.get(at)?.clone())));
            rows.extend(bins.map(|(group, (from, to, count))| {
                vec![
                    Value::text(wanted.path(group.period)),
                    from,
                    to,
                    Value::Named(group.named(wanted).collect()),
                    count.into(),
                ]
            }));
        }
    }
    Section {
        key: "series",
        title: "Distribution by group".to_owned(),
        view: View::Freq,
        columns: vec![
            PERIOD,
            Column::new("from_ns", "From", Unit::Duration),
            Column::new("to_ns", "To", Unit::Duration),
            Column::new("group", "Group", Unit::Named),
            Column::new("count", "Count", Unit::Count),
        ],
        rows,
        is_long: true,
        ..Section::default()
    }
}

/// The bounds and counts of a group's buckets.
type GroupBins<'g> = (&'g Group, Vec<(Value, Value, u64)>);

/// The same steps for all groups of a period.
fn linear_bins<'g>(wanted: &Wanted, ranges: &Ranges, groups: &'g [Group]) -> Vec<GroupBins<'g>> {
    let bins = |group: &'g Group| {
        let range = ranges.get(&group.label(wanted))?;
        let bins = group.bins.bins(*range);
        let bins = bins.map(|bin| (bin.from.into(), bin.to.into(), bin.count));
        Some((group, bins.collect()))
    };
    groups.iter().filter_map(bins).collect()
}

/// The buckets from the least to the greatest value of all groups of a period.
fn power_bins(groups: &[Group]) -> Vec<GroupBins<'_>> {
    let mut all = Powers::default();
    let own: Vec<_> = (groups.iter())
        .map(|group| group.durations.powers())
        .inspect(|own| all.merge(own))
        .collect();
    let bins = |(group, own): (_, &Powers)| {
        let bins = own.bins_like(&all);
        let bins = bins.map(|bin| (bin.from.into(), bin.to.into(), bin.count));
        (group, bins.collect())
    };
    groups.iter().zip(&own).map(bins).collect()
}
