//! Counts of event records as CSV and JSON tables.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_reports::count::{CountReport, LossRow, Rate, StreamRow};
use tracebraid_tables::{Section, Unit, Value};

use super::by_count;
use crate::commands::data_tables::table;

/// The tables of a report, the main table first; `top` limits the rows of names and streams.
pub(super) fn tables(report: &CountReport, top: usize) -> Vec<Section> {
    vec![
        names(report, top),
        streams(report, top),
        rate(&report.rate),
        losses(&report.losses),
    ]
}

fn names(report: &CountReport, top: usize) -> Section {
    let columns = [("event", Unit::Text), ("count", Unit::Count)];
    let rows = by_count(&report.by_name).into_iter().take(top);
    let rows = rows.map(|(name, count)| vec![name.into(), count.into()]);
    table("by_name", &columns, rows.collect())
}

fn streams(report: &CountReport, top: usize) -> Section {
    let columns = [
        ("trace", Unit::Id),
        ("file", Unit::Path),
        ("cpu", Unit::Cpu),
        ("events", Unit::Count),
        ("packets", Unit::Count),
        ("bytes", Unit::Bytes),
    ];
    let row = |stream: &StreamRow| {
        vec![
            u64::from(stream.trace).into(),
            stream.file.as_str().into(),
            stream.cpu.map(u64::from).into(),
            stream.events.into(),
            stream.packets.into(),
            stream.bytes.into(),
        ]
    };
    let rows = report.streams.iter().take(top).map(row);
    table("streams", &columns, rows.collect())
}

/// A row for each column of the bars in text.
fn rate(rate: &Rate) -> Section {
    let columns = [
        ("begin_ns", Unit::Time),
        ("end_ns", Unit::Time),
        ("count", Unit::Count),
    ];
    let parts = rate.counts.len().max(1) as i128;
    let length = i128::from(rate.to) - i128::from(rate.from);
    let at = |part: usize| {
        let offset = i64::try_from(length * part as i128 / parts).unwrap_or(0);
        Value::from(Timestamp(rate.from.saturating_add(offset)))
    };
    let counts = rate.counts.iter().enumerate();
    let rows = counts.map(|(part, &count)| vec![at(part), at(part + 1), count.into()]);
    table("rate", &columns, rows.collect())
}

fn losses(losses: &[LossRow]) -> Section {
    let columns = [
        ("kind", Unit::Text),
        ("count", Unit::Count),
        ("file", Unit::Path),
        ("from_ns", Unit::Time),
        ("to_ns", Unit::Time),
    ];
    let row = |loss: &LossRow| {
        vec![
            loss.kind.into(),
            loss.count.into(),
            loss.file.as_str().into(),
            loss.from.map(Timestamp).into(),
            loss.to.map(Timestamp).into(),
        ]
    };
    table("losses", &columns, losses.iter().map(row).collect())
}
