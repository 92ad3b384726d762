//! Columns that several reports share.

use crate::{Column, Forms, Section, Sentence, Unit, Value, View};
use tracebraid_follow::Thread;
use tracebraid_statistics::{Bin, Bins, Distribution, PowerBin, Powers};

/// The columns of a distribution of durations, which follow those that identify the row.
pub const fn distribution_columns() -> [Column; 10] {
    [
        Column::new("count", "Count", Unit::Count),
        Column::new("total_ns", "Total", Unit::Duration),
        Column::new("min_ns", "Min", Unit::Duration)
            .optional()
            .left_out(4),
        Column::new("average_ns", "Average", Unit::Duration)
            .optional()
            .left_out(5),
        Column::new("max_ns", "Max", Unit::Duration).optional(),
        Column::new("deviation_ns", "Std dev", Unit::Duration)
            .optional()
            .left_out(3),
        Column::new("p50_ns", "p50", Unit::Duration)
            .optional()
            .left_out(6),
        Column::new("p90_ns", "p90", Unit::Duration)
            .optional()
            .left_out(1),
        Column::new("p99_ns", "p99", Unit::Duration)
            .optional()
            .left_out(7),
        Column::new("p999_ns", "p99.9", Unit::Duration)
            .optional()
            .left_out(2),
    ]
}

/// The values of [`distribution_columns`].
pub fn distribution_values(distribution: &Distribution) -> [Value; 10] {
    let summary = distribution.summary();
    let [p50, p90, p99, p999] = distribution.quantiles([500, 900, 990, 999]);
    [
        summary.count().into(),
        // Totals above 584 years saturate.
        u64::try_from(summary.sum()).unwrap_or(u64::MAX).into(),
        summary.min().into(),
        summary.mean().into(),
        summary.max().into(),
        summary.deviation().into(),
        p50.into(),
        p90.into(),
        p99.into(),
        p999.into(),
    ]
}

/// The group of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Unique among the groups of a table.
    pub name: String,
    /// The thread, or the first thread of the process, if the group belongs to one.
    pub thread: Option<Thread>,
}

impl From<String> for Group {
    fn from(name: String) -> Group {
        Group { name, thread: None }
    }
}

/// Histograms of durations, by group, with its bounds and its counts.
pub fn frequencies<G: Into<Group>>(about: Column, groups: Vec<(G, (u64, u64), &Bins)>) -> Section {
    let bin = |bin: Bin| (bin.from.into(), bin.to.into(), bin.count);
    let groups = groups.into_iter();
    let groups =
        groups.map(|(group, range, bins)| (group.into(), bins.bins(range).map(bin).collect()));
    distribution(about, groups)
}

/// Histograms of logarithmic buckets by group.
pub fn histogram(about: Column, groups: Vec<(Group, Powers)>) -> Section {
    let bin = |bin: PowerBin| (bin.from.into(), bin.to.into(), bin.count);
    let groups = groups.into_iter();
    let groups = groups.map(|(name, powers)| (name, powers.bins().map(bin).collect()));
    distribution(about, groups)
}

/// The histogram of each group: its name, and the bounds and counts of its buckets.
fn distribution(
    about: Column,
    groups: impl Iterator<Item = (Group, Vec<(Value, Value, u64)>)>,
) -> Section {
    let mut rows = Vec::new();
    let mut has_threads = false;
    for (Group { name, thread }, bins) in groups {
        has_threads |= thread.is_some();
        let thread = Value::from(thread);
        let all: u64 = bins.iter().map(|bin| bin.2).sum();
        let mut passed = 0;
        for (from, to, count) in bins {
            passed += count;
            let upto = Value::Part(passed, all);
            rows.push(vec![
                Value::text(name.clone()),
                from,
                to,
                count.into(),
                upto,
                thread.clone(),
            ]);
        }
    }
    let mut columns = vec![
        about,
        Column::new("from_ns", "From", Unit::Duration),
        Column::new("to_ns", "To", Unit::Duration),
        Column::new("count", "Count", Unit::Count),
        Column::new("cumulative_share", "Cumulative", Unit::Share).only(Forms::TEXT),
    ];
    if has_threads {
        let thread = Column::new("thread", "Thread", Unit::Thread).optional();
        columns.push(thread.only(Forms::CSV.and(Forms::JSON)));
    }
    Section::new(DISTRIBUTION, "Distribution", columns, rows)
        .of(View::Freq)
        .limited_by_group()
}

/// Key of tables of histograms: rows with equal first cells are one histogram.
pub const DISTRIBUTION: &str = "distribution";

/// A sentence about the durations in the first row of a table: their number, what `between` they
/// extend, and p50, p99 and maximum. `None` if the table is empty.
pub fn lengths(
    section: &Section,
    (one, many): (&'static str, &'static str),
    between: &'static str,
) -> Option<Sentence> {
    let row = section.iter().next()?;
    let sentence = Sentence::default()
        .words("  ")
        .number(row.unsigned("count"), one, many)
        .words(" from ")
        .words(between)
        .words(": p50 ")
        .value(Unit::Duration, row.unsigned("p50_ns"))
        .words(", p99 ")
        .value(Unit::Duration, row.unsigned("p99_ns"))
        .words(", max ")
        .value(Unit::Duration, row.unsigned("max_ns"));
    Some(sentence)
}

/// A note if the report has tables of views other than statistics, all empty.
pub fn nothing_to_list(sections: &[Section]) -> Option<String> {
    let mut listed = sections
        .iter()
        .filter(|section| section.view != View::Stats)
        .peekable();
    listed.peek()?;
    let is_empty = listed.all(|section| section.rows.is_empty());
    is_empty.then(|| NOTHING_TO_LIST.to_owned())
}

const NOTHING_TO_LIST: &str = "nothing to list: no interval in the time range matches, or --min and \
                               --max exclude all";
