//! For each period of the `aggregate_by` definition, sums of the periods within it.

use std::collections::BTreeMap;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_language::periods::Periods;

use crate::report::{CAPTURES, captured};
use crate::sums::Done;
use crate::wanted::Wanted;
use tracebraid_statistics::Summary;
use tracebraid_tables::{Column, Section, Unit, Value, View};

/// For each period of the `aggregate_by` definition, in the order of their starts, one row for each
/// definition with periods within it, at any depth. These rows are in the order of the definitions.
pub(super) fn section(wanted: &Wanted, periods: &Periods, log: &[Done]) -> Section {
    let mut around: BTreeMap<u64, (&Done, BTreeMap<usize, Summary>)> = BTreeMap::new();
    let outer = log.iter().filter(|done| wanted.up(done.period) == Some(0));
    around.extend(outer.map(|done| (done.number(), (done, BTreeMap::new()))));
    // A period within one that did not end, or that the limits exclude, is ignored.
    let there: std::collections::HashSet<u64> = log.iter().map(Done::number).collect();
    for done in log.iter().filter(|done| wanted.is_shown(done.period)) {
        let Some(up) = wanted.up(done.period).filter(|&up| up > 0) else {
            continue;
        };
        let path = done.numbers.len().checked_sub(up + 1);
        let path = path
            .and_then(|from| done.numbers.get(from..))
            .unwrap_or_default();
        let outer = path
            .first()
            .filter(|_| path.iter().all(|number| there.contains(number)));
        if let Some((_, sums)) = outer.and_then(|number| around.get_mut(number)) {
            sums.entry(done.period).or_default().add(done.duration());
        }
    }
    let rows = around.values().flat_map(|(outer, sums)| {
        let row =
            |(&period, sums): (&usize, &Summary)| values(wanted, periods, outer, (period, sums));
        sums.iter().map(row)
    });
    Section {
        key: "aggregated",
        title: "Periods within each period".to_owned(),
        view: View::Log,
        columns: columns(),
        rows: rows.collect(),
        is_long: true,
        ..Section::default()
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::new("begin_ns", "Begin", Unit::Time),
        Column::new("end_ns", "End", Unit::Time).left_out(2),
        Column::new("parent", "Within", Unit::Text),
        Column::new("parent_ns", "Duration", Unit::Duration),
        Column::new("period", "Period", Unit::Text),
        Column::new("count", "Count", Unit::Count),
        Column::new("total_ns", "Total", Unit::Duration),
        Column::new("min_ns", "Min", Unit::Duration).left_out(4),
        Column::new("average_ns", "Average", Unit::Duration).left_out(6),
        Column::new("max_ns", "Max", Unit::Duration).left_out(5),
        Column::new("deviation_ns", "Std dev", Unit::Duration)
            .optional()
            .left_out(3),
        CAPTURES[0].left_out(2),
        CAPTURES[1].left_out(1),
    ]
}

fn values(
    wanted: &Wanted,
    periods: &Periods,
    outer: &Done,
    inner: (usize, &Summary),
) -> Vec<Value> {
    let (period, sums) = inner;
    let captures = periods.list.get(outer.period).map(|period| {
        [
            captured(&period.begin_captures, &outer.begin_captures),
            captured(&period.end_captures, &outer.end_captures),
        ]
    });
    let [begin, end] = captures.unwrap_or([Value::None, Value::None]);
    vec![
        Timestamp(outer.begin).into(),
        Timestamp(outer.end).into(),
        Value::text(wanted.path(outer.period)),
        outer.duration().into(),
        Value::text(wanted.path(period)),
        sums.count().into(),
        // Totals above 584 years saturate.
        u64::try_from(sums.sum()).unwrap_or(u64::MAX).into(),
        sums.min().into(),
        sums.mean().into(),
        sums.max().into(),
        sums.deviation().into(),
        begin,
        end,
    ]
}
