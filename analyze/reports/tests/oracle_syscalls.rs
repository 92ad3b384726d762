//! System calls compared with lttng-analyses' `syscallstats`, number by number.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_kernel_model::Syscall;
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::syscalls::SyscallAnalysis;

/// Rows by thread and call.
type Rows = BTreeMap<(i64, String), Value>;

fn ours(set: &TraceSet) -> Rows {
    let analysis = SyscallAnalysis::new(set, Selection::default());
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    let report = serde_json::to_value(outcome.expect("not cancelled").report).expect("JSON");
    let rows = report["thread_syscalls"].as_array().expect("rows").iter();
    let key = |row: &Value| {
        let call = row["syscall"].as_str().expect("a name").to_owned();
        (row["tid"].as_i64().expect("a thread"), call)
    };
    rows.map(|row| (key(row), row.clone())).collect()
}

/// The peer's rows; calls that its tracer had no name for are `unknown`.
fn theirs(results: &Value) -> Rows {
    let mut found = Rows::new();
    for table in results["results"].as_array().expect("tables") {
        let Some(title) = table["class"]["title"].as_str() else {
            continue;
        };
        let tid = title
            .rsplit("TID: ")
            .next()
            .expect("a thread")
            .trim_end_matches(")]");
        let tid = tid.parse().expect("a number");
        for row in table["data"].as_array().expect("rows") {
            let name = row[0]["name"].as_str().expect("a name");
            let call = Syscall::by_name(name).map(Syscall::user_name);
            found.insert((tid, call.unwrap_or(name).to_owned()), row.clone());
        }
    }
    found
}

/// Number of calls that returned an error. It counts the first of each kind twice.
fn failed(map: &Value) -> u64 {
    let map = map.as_str().expect("a dictionary").trim_matches(['{', '}']);
    let pairs = map.split(", ").filter_map(|pair| pair.split_once(": "));
    pairs
        .filter(|(name, _)| *name != "'success'")
        .map(|(_, count)| count.parse::<u64>().expect("a number") - 1)
        .sum()
}

fn is_near(ours: &Value, theirs: &Value) -> bool {
    let (Some(ours), Some(theirs)) = (ours.as_f64(), theirs.as_f64()) else {
        return false;
    };
    (ours - theirs).abs() <= 1e-12 * theirs.abs() + 1e-9
}

/// True if all numbers of a row are equal.
fn same(ours: &Value, theirs: &Value) -> bool {
    let deviation = &theirs[5]["value"];
    ours["count"] == theirs[1]["value"]
        && ours["min_ns"] == theirs[2]["value"]
        && is_near(&ours["average_ns"], &theirs[3]["value"])
        && ours["max_ns"] == theirs[4]["value"]
        // It omits the deviation of fewer than three calls.
        && (deviation.is_null() || is_near(&ours["deviation_ns"], deviation))
        && ours["errors"] == failed(&theirs[6]["value"])
}

fn count(row: &Value) -> u64 {
    row["count"].as_u64().expect("a number")
}

/// Compares all rows; the calls that it does not name must have the same number. Returns the number
/// of equal rows.
fn compare(name: &str) -> Option<usize> {
    let set = kernel_trace(name)?;
    let (ours, theirs) = (
        ours(&set),
        theirs(&oracle(name, "lttng-syscallstats.mi.json")?),
    );
    let mut unnamed: BTreeMap<i64, i64> = BTreeMap::new();
    let mut rows = 0;
    for ((tid, call), row) in &theirs {
        if call == "unknown" {
            *unnamed.entry(*tid).or_default() += row[1]["value"].as_i64().expect("a number");
            continue;
        }
        let own = ours.get(&(*tid, call.clone()));
        assert!(
            own.is_some_and(|own| same(own, row)),
            "{name}: {call} of {tid}: {own:?}\n{row}"
        );
        rows += 1;
    }
    for ((tid, _), row) in ours.iter().filter(|(key, _)| !theirs.contains_key(key)) {
        *unnamed.entry(*tid).or_default() -= count(row) as i64;
    }
    assert!(
        unnamed.values().all(|&left| left == 0),
        "{name}: {unnamed:?}"
    );
    Some(rows)
}

#[test]
fn all_rows_of_traces_without_losses() {
    for (name, rows) in [
        ("kernel-mix-small", 4955),
        ("kernel-ust-requests", 599),
        ("many-threads", 16231),
        ("twohost-client", 351),
        ("twohost-server", 360),
    ] {
        if let Some(compared) = compare(name) {
            assert_eq!(compared, rows, "{name}: rows compared");
        }
    }
}

/// It ignores losses of events, so it may have more calls there, never fewer.
#[test]
fn lost_events_leave_no_more_calls_than_it_has() {
    let Some((set, results)) = kernel_trace("kernel-discarded")
        .zip(oracle("kernel-discarded", "lttng-syscallstats.mi.json"))
    else {
        return;
    };
    let (ours, theirs) = (ours(&set), theirs(&results));
    let named: BTreeSet<_> = theirs.keys().map(|(_, call)| call.as_str()).collect();
    let (mut equal, mut fewer) = (0, 0);
    for ((tid, call), row) in ours
        .iter()
        .filter(|((_, call), _)| named.contains(call.as_str()))
    {
        let theirs = &theirs[&(*tid, call.clone())];
        assert!(
            count(row) <= theirs[1]["value"].as_u64().expect("a number"),
            "{call} of {tid}"
        );
        match same(row, theirs) {
            true => equal += 1,
            false => fewer += 1,
        }
    }
    assert_eq!((equal, fewer), (137, 50));
}
