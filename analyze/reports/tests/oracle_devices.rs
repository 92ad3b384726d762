//! `disk` and `net` compared with lttng-analyses, number by number: `iolatencystats`,
//! `iolatencyfreq` and the tables of block devices and interfaces of `iousagetop`.

use std::collections::BTreeMap;

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views};
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::disk::DiskAnalysis;
use tracebraid_reports::net::NetAnalysis;
use tracebraid_tables::{Report, View};

fn report<A>(set: &TraceSet, views: Views) -> Report
where
    A: KernelAnalysis<Report = Report, Options: From<Views>>,
{
    let analysis = A::with(set, Selection::default(), views.into());
    fold(set, &analysis, Options::default(), &Control::default())
        .expect("not cancelled")
        .report
}

/// The report, and the distributions of a second pass.
fn with_frequencies<A>(set: &TraceSet) -> Value
where
    A: KernelAnalysis<Report = Report, Options: From<Views>>,
{
    let mut first = report::<A>(set, Views::default());
    let views = Views {
        views: vec![View::Freq],
        ranges: Some(std::mem::take(&mut first.ranges)),
        ..Views::default()
    };
    first.sections.extend(report::<A>(set, views).sections);
    serde_json::to_value(&first).expect("a report is JSON")
}

/// Titles and rows of the tables of a class.
fn tables<'v>(results: &'v Value, class: &str) -> Vec<(&'v str, &'v Vec<Value>)> {
    let tables = results["results"].as_array().expect("tables").iter();
    let of_class =
        tables.filter(|table| table["class"] == class || table["class"]["inherit"] == class);
    of_class
        .map(|table| {
            let rows = table["data"].as_array().expect("rows");
            (table["class"]["title"].as_str().unwrap_or_default(), rows)
        })
        .collect()
}

fn rows<'v>(report: &'v Value, section: &str) -> &'v Vec<Value> {
    report[section].as_array().expect("a section")
}

fn row<'v>(report: &'v Value, section: &str, key: &str, name: &Value) -> &'v Value {
    let found = rows(report, section).iter().find(|row| row[key] == *name);
    found.unwrap_or_else(|| panic!("{name} is in {section}"))
}

fn close(what: &str, ours: &Value, theirs: &Value) {
    let (ours, theirs) = (
        ours.as_f64().expect("a number"),
        theirs.as_f64().expect("a number"),
    );
    assert!(
        (ours - theirs).abs() <= theirs.abs() * 1e-12,
        "{what}: {ours} for {theirs}"
    );
}

/// Compares the latencies of each disk; returns the number of equal numbers.
fn latencies(name: &str, report: &Value) -> Option<usize> {
    let results = oracle(name, "lttng-iolatencystats.mi.json")?;
    let mut same = 0;
    for (_, table) in tables(&results, "disk-latency-stats") {
        assert_eq!(
            table.len(),
            rows(report, "latencies").len(),
            "{name}: disks"
        );
        for theirs in table {
            let ours = row(report, "latencies", "disk", &theirs[0]["name"]);
            let columns = ["count", "min_ns", "average_ns", "max_ns", "deviation_ns"];
            for (at, column) in columns.iter().enumerate() {
                let what = format!("{name}: {column} of {}", ours["disk"]);
                close(&what, &ours[column], &theirs[at + 1]["value"]);
                same += 1;
            }
        }
    }
    let results = oracle(name, "lttng-iolatencyfreq.mi.json")?;
    for (title, table) in tables(&results, "freq") {
        let Some((_, disk)) = title.split_once("[disk: ") else {
            continue;
        };
        let disk = disk.trim_end_matches(']');
        let ours: Vec<_> = rows(report, "distribution")
            .iter()
            .filter(|row| row["disk"] == disk)
            .collect();
        assert_eq!(ours.len(), table.len(), "{name}: steps of {disk}");
        for (ours, theirs) in ours.iter().zip(table) {
            close(
                &format!("{name}: {disk}"),
                &ours["from_ns"],
                &theirs[0]["value"],
            );
            close(
                &format!("{name}: {disk}"),
                &ours["to_ns"],
                &theirs[1]["value"],
            );
            assert_eq!(ours["count"], theirs[2]["value"], "{name}: {disk} {ours}");
            same += 3;
        }
    }
    Some(same)
}

/// Compares requests and sectors of disks, and bytes of threads.
fn usage(name: &str, report: &Value) -> Option<usize> {
    let results = oracle(name, "lttng-iousagetop.mi.json")?;
    let mut same = 0;
    for (class, section, column) in [
        ("per-disk-top-sector", "disks", "sectors"),
        ("per-disk-top-request", "disks", "requests"),
        // Its title wrongly reads "per sector".
        ("per-disk-top-rps", "latencies", "average_ns"),
    ] {
        for theirs in tables(&results, class)
            .into_iter()
            .flat_map(|table| table.1)
        {
            let ours = row(report, section, "disk", &theirs[0]["name"]);
            close(
                &format!("{name}: {class}"),
                &ours[column],
                &theirs[1]["value"],
            );
            same += 1;
        }
    }
    for column in ["read_bytes", "written_bytes"] {
        let word = if column == "read_bytes" {
            "[read]"
        } else {
            "[written]"
        };
        let table = tables(&results, "per-process-top-block");
        let table = table.into_iter().filter(|(title, _)| title.ends_with(word));
        let theirs: BTreeMap<i64, u64> = table
            .flat_map(|(_, rows)| rows)
            .map(|row| {
                (
                    row[0]["tid"].as_i64().expect("a thread"),
                    row[1]["value"].as_u64().expect("bytes"),
                )
            })
            .collect();
        let ours: BTreeMap<i64, u64> = rows(report, "threads")
            .iter()
            .map(|row| {
                (
                    row["tid"].as_i64().expect("a thread"),
                    row[column].as_u64().expect("bytes"),
                )
            })
            .filter(|(_, bytes)| *bytes > 0)
            .collect();
        assert_eq!(ours, theirs, "{name}: {column} by thread");
        same += theirs.len();
    }
    Some(same)
}

#[test]
fn disks() {
    for (name, numbers, requests, not_begun) in [
        ("kernel-mix-small", 236, 685, 1),
        ("kernel-ust-requests", 220, 2748, 4),
        ("twohost-server", 219, 1555, 3),
        ("twohost-client", 145, 163, 0),
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let report = with_frequencies::<DiskAnalysis>(&set);
        let Some(latencies) = latencies(name, &report) else {
            continue;
        };
        let Some(usage) = usage(name, &report) else {
            continue;
        };
        assert_eq!(
            latencies + usage,
            numbers,
            "{name}: numbers that are the same"
        );
        assert_eq!(report["total"]["requests"], requests, "{name}");
        // Simultaneous flushes of several hardware queues, which the events do not distinguish.
        assert_eq!(report["total"]["not_begun"], not_begun, "{name}");
        assert_eq!(report["total"]["unfinished"], not_begun, "{name}");
    }
}

/// Interface, bytes sent (equal there), and packets and bytes received, which it does not count.
type Bytes = (&'static str, u64, u64, u64);

#[test]
fn interfaces() {
    let expected: [(&str, &[Bytes]); 4] = [
        ("kernel-mix-small", &[("lo", 21_110_630, 6979, 21_012_924)]),
        ("kernel-ust-requests", &[("lo", 1_017_206, 8827, 893_628)]),
        (
            "twohost-server",
            &[
                ("eth0", 338_240, 3278, 291_716),
                ("lo", 218_606, 1935, 191_516),
            ],
        ),
        ("twohost-client", &[("eth0", 324_736, 2846, 276_384)]),
    ];
    for (name, expected) in expected {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let Some(results) = oracle(name, "lttng-iousagetop.mi.json") else {
            continue;
        };
        let report = serde_json::to_value(report::<NetAnalysis>(&set, Views::default()));
        let report = report.expect("a report is JSON");
        assert_eq!(rows(&report, "interfaces").len(), expected.len(), "{name}");
        for (title, table) in tables(&results, "per-netif-top") {
            for theirs in table {
                let ours = row(&report, "interfaces", "interface", &theirs[0]["name"]);
                let expected = expected
                    .iter()
                    .find(|of| theirs[0]["name"] == of.0)
                    .expect("known");
                if title.ends_with("[sent]") {
                    assert_eq!(ours["sent_bytes"], theirs[1]["value"], "{name}");
                    assert_eq!(ours["sent_bytes"], expected.1, "{name}");
                } else {
                    // It expects an event of another name.
                    assert_eq!(theirs[1]["value"], 0, "{name}");
                    assert_eq!(ours["received_packets"], expected.2, "{name}: {ours}");
                    assert_eq!(ours["received_bytes"], expected.3, "{name}: {ours}");
                }
            }
        }
    }
}
