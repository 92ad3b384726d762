//! Critical paths as CSV and JSON tables. The column `path` is the number of the path, from 0.

use tracebraid_ctf::clock::Timestamp;
use tracebraid_graph::{PathReport, PathRow};
use tracebraid_tables::{Section, Unit, Value};

use crate::commands::data_tables::table;

/// The tables of a report, the main table first.
pub(super) fn tables(report: &PathReport) -> Vec<Section> {
    vec![
        segments(report),
        paths(report),
        reasons(report),
        threads(report),
        hosts(report),
        competitors(report),
    ]
}

/// A table with rows of all paths.
fn of_paths<I: IntoIterator<Item = Vec<Value>>>(
    key: &'static str,
    columns: &[(&'static str, Unit)],
    report: &PathReport,
    rows: impl Fn(&PathRow) -> I,
) -> Section {
    let number = ("path", Unit::Id);
    let columns: Vec<_> = std::iter::once(number)
        .chain(columns.iter().copied())
        .collect();
    let mut all = Vec::new();
    for (number, path) in report.paths.iter().enumerate() {
        let number = Value::from(number as u64);
        let of_path = rows(path).into_iter();
        all.extend(of_path.map(|row| std::iter::once(number.clone()).chain(row).collect()));
    }
    table(key, &columns, all)
}

fn segments(report: &PathReport) -> Section {
    let columns = [
        ("begin_ns", Unit::Time),
        ("duration_ns", Unit::Duration),
        ("depth", Unit::Count),
        ("thread", Unit::Thread),
        ("reason", Unit::Text),
        ("detail", Unit::Text),
    ];
    of_paths("segments", &columns, report, |path| {
        let row = |segment: &tracebraid_graph::SegmentRow| {
            vec![
                Timestamp(segment.begin_ns).into(),
                segment.duration_ns.into(),
                (segment.depth as u64).into(),
                segment.thread.clone().into(),
                segment.reason.name().into(),
                segment.detail.as_str().into(),
            ]
        };
        path.segments.iter().map(row).collect::<Vec<_>>()
    })
}

fn paths(report: &PathReport) -> Section {
    let columns = [
        ("thread", Unit::Thread),
        ("call", Unit::Text),
        ("begin_ns", Unit::Time),
        ("duration_ns", Unit::Duration),
    ];
    of_paths("paths", &columns, report, |path| {
        [vec![
            path.thread.clone().into(),
            path.call.as_deref().into(),
            Timestamp(path.begin_ns).into(),
            path.duration_ns.into(),
        ]]
    })
}

fn reasons(report: &PathReport) -> Section {
    let columns = [
        ("reason", Unit::Text),
        ("detail", Unit::Text),
        ("duration_ns", Unit::Duration),
        ("segments", Unit::Count),
    ];
    of_paths("reasons", &columns, report, |path| {
        let row = |sum: &tracebraid_graph::ReasonSum| {
            vec![
                sum.reason.name().into(),
                sum.detail.as_str().into(),
                sum.duration_ns.into(),
                sum.parts.into(),
            ]
        };
        path.summary.reasons.iter().map(row).collect::<Vec<_>>()
    })
}

fn threads(report: &PathReport) -> Section {
    let columns = [
        ("thread", Unit::Thread),
        ("duration_ns", Unit::Duration),
        ("running_ns", Unit::Duration),
    ];
    of_paths("threads", &columns, report, |path| {
        let row = |sum: &tracebraid_graph::ThreadSum| {
            vec![
                sum.thread.clone().into(),
                sum.duration_ns.into(),
                sum.running_ns.into(),
            ]
        };
        path.summary.threads.iter().map(row).collect::<Vec<_>>()
    })
}

fn hosts(report: &PathReport) -> Section {
    let columns = [
        ("trace", Unit::Id),
        ("host", Unit::Text),
        ("duration_ns", Unit::Duration),
    ];
    of_paths("hosts", &columns, report, |path| {
        let hosts = path.summary.hosts.iter();
        let row = |&(trace, duration): &(u32, u64)| {
            vec![
                u64::from(trace).into(),
                Value::Text(report.head.host(trace)),
                duration.into(),
            ]
        };
        hosts.map(row).collect::<Vec<_>>()
    })
}

fn competitors(report: &PathReport) -> Section {
    let columns = [
        ("device", Unit::Text),
        ("thread", Unit::Thread),
        ("duration_ns", Unit::Duration),
        ("requests", Unit::Count),
    ];
    of_paths("competitors", &columns, report, |path| {
        let row = |of: &tracebraid_graph::Competitor| {
            vec![
                of.device.as_str().into(),
                of.thread.clone().into(),
                of.duration_ns.into(),
                of.requests.into(),
            ]
        };
        path.summary.competitors.iter().map(row).collect::<Vec<_>>()
    })
}
