//! Periods that users define: compared with lttng-analyses on random events, and the law.

use std::collections::BTreeMap;

use serde_json::Value;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{Limits, Window};
use tracebraid_language::periods::Periods;
use tracebraid_periods::{Asked, Order, PeriodAnalysis};
use tracebraid_tables::{Report, View};

use tracebraid_models::law::{LARGE, SMALL, Ways, any_tree_of, every_way, folded, json};
use tracebraid_models::naming::{Maker, Value as Number};
use tracebraid_models::synthetic::{Scripted, Shape, scripted, trace};

const SHAPE: Shape = Shape {
    cpus: 2,
    threads: 9,
    steps: 12_000,
    silent_losses: 20,
    lost_packets: 20,
    packet: 700,
    tid_context: true,
    ties: true,
    ..Shape::PLAIN
};

/// Origin of the clocks of these traces.
const ORIGIN: i64 = 5000;

fn periods(definitions: &[&str], captures: &[&str]) -> Periods {
    let mut periods = Periods::default();
    for text in definitions {
        periods
            .period(text)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    for text in captures {
        periods
            .captures(text)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    periods
}

fn all_views() -> Asked {
    Asked {
        views: vec![View::Stats, View::Top, View::Log],
        ..Asked::default()
    }
}

fn report(set: &TraceSet, periods: &Periods, asked: &Asked) -> Report {
    let analysis = PeriodAnalysis::new(set, periods.clone(), asked).expect("it makes sense");
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    outcome.expect("not cancelled").report
}

fn rows(report: &Report, key: &str) -> Vec<Value> {
    let report: Value = serde_json::from_str(&json(report)).expect("JSON");
    report[key].as_array().cloned().unwrap_or_default()
}

/// An event: time, CPU, name, and fields.
type Event<'a> = (u64, u64, &'a str, Vec<(&'static str, i64)>);

/// Calls `then` with a trace of the events.
fn with<T>(events: &[Event<'_>], then: impl FnOnce(&TraceSet) -> T) -> T {
    let quiet = Shape {
        silent_losses: 0,
        lost_packets: 0,
        tid_context: false,
        packet: 300,
        ..SHAPE
    };
    let script: Vec<Scripted<'_>> = events
        .iter()
        .map(|(time, cpu, name, fields)| {
            let field = |&(name, value): &(&'static str, i64)| (name, 64, Number::Int(value));
            let maker = Maker { tid: 1, pid: 1 };
            (
                *cpu,
                *time,
                maker,
                *name,
                fields.iter().map(field).collect(),
            )
        })
        .collect();
    let (directory, set) = scripted(quiet, script);
    let result = then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    result
}

/// The captures of lttng-analyses in the form of our report.
fn captured(captures: &Value) -> String {
    let captures = captures.as_object().expect("captures");
    let mut parts: Vec<String> = captures
        .iter()
        .map(|(name, value)| match value {
            Value::Null => format!("{name} = -"),
            Value::String(text) => format!("{name} = {text}"),
            value => format!("{name} = {value}"),
        })
        .collect();
    parts.sort_unstable();
    parts.join(", ")
}

type Row = (i64, i64, String, String, String);

fn theirs(rows: &Value) -> Vec<Row> {
    let row = |row: &Value| {
        let time = |at: usize| row[at].as_i64().expect("a time") + ORIGIN;
        let name = row[2].as_str().expect("a name").to_owned();
        (time(0), time(1), name, captured(&row[3]), captured(&row[4]))
    };
    let mut rows: Vec<Row> = rows.as_array().expect("rows").iter().map(row).collect();
    rows.sort_unstable();
    rows
}

fn ours(report: &Report) -> Vec<Row> {
    let row = |row: &Value| {
        let time = |key: &str| row[key].as_i64().expect("a time");
        let name = row["period"].as_str().expect("a name").to_owned();
        let [begin, end] = ["begin", "end"].map(|key| captured(&row[key]));
        (time("begin_ns"), time("end_ns"), name, begin, end)
    };
    let mut rows: Vec<Row> = rows(report, "log").iter().map(row).collect();
    rows.sort_unstable();
    rows
}

fn texts(value: &Value) -> Vec<&str> {
    let list = value.as_array().expect("a list").iter();
    list.map(|text| text.as_str().expect("text")).collect()
}

/// Calls `then` with the events of an oracle case as a trace.
fn with_case<T>(case: &Value, then: impl FnOnce(&TraceSet) -> T) -> T {
    let event = |event: &'_ Value| {
        let number = |at: usize| event[at].as_u64().expect("a number");
        let mut fields = vec![("k", number(3) as i64)];
        fields.extend(event[4].as_i64().map(|x| ("x", x)));
        (
            number(0),
            number(1),
            event[2].as_str().expect("a name").to_owned(),
            fields,
        )
    };
    let events: Vec<_> = case["events"]
        .as_array()
        .expect("events")
        .iter()
        .map(event)
        .collect();
    let events: Vec<Event<'_>> = events
        .iter()
        .map(|(time, cpu, name, fields)| (*time, *cpu, name.as_str(), fields.clone()))
        .collect();
    with(&events, then)
}

/// Random events under definitions with and without parents, conditions of all kinds and captures:
/// the periods are those that lttng-analyses 0.6.1's own code finds (with pyparsing 2.2.2).
#[test]
fn as_lttng_analyses_finds_them() {
    let cases =
        tracebraid_models::traces::oracle("periods", "invented.json").expect("it is committed");
    let mut found = 0;
    for (number, case) in cases.as_array().expect("cases").iter().enumerate() {
        let periods = periods(&texts(&case["periods"]), &texts(&case["captures"]));
        with_case(case, |set| {
            let flat = report(set, &periods, &all_views());
            assert_eq!(ours(&flat), theirs(&case["log"]), "case {number}");
            let order = Order::Hierarchy;
            let nested = report(
                set,
                &periods,
                &Asked {
                    order,
                    ..all_views()
                },
            );
            assert_eq!(ours(&nested), theirs(&case["hierarchy"]), "case {number}");
            for line in case["stats"].as_array().expect("statistics") {
                let name = line[0].as_str().expect("a name");
                let own = rows(&flat, "periods");
                let own = own.iter().find(|row| {
                    let path = row["period"].as_str().expect("a name");
                    path == name
                });
                let own = own.expect("the period is there");
                let keys = ["count", "min_ns", "max_ns", "total_ns"];
                assert_eq!(
                    keys.map(|key| &own[key]),
                    [1, 2, 3, 4].map(|at| &line[at]),
                    "case {number}"
                );
            }
            found += ours(&flat).len();
        });
    }
    assert!(found > 500, "only {found} periods");
}

/// The sums of lttng-analyses with `--aggregate-by`: for each period of that definition, and for
/// each definition with periods within it, at any depth, their number, minimum, maximum and sum.
#[test]
fn aggregated_as_by_lttng_analyses() {
    type Line = (i64, i64, String, u64, u64, u64, u64);
    let cases =
        tracebraid_models::traces::oracle("periods", "invented.json").expect("it is committed");
    let mut compared = 0;
    for (number, case) in cases.as_array().expect("cases").iter().enumerate() {
        let periods = periods(&texts(&case["periods"]), &texts(&case["captures"]));
        // There each period is followed by those within it; names are paths.
        let list = theirs_in_order(&case["hierarchy"]);
        let mut outer: Vec<&str> = list.iter().map(|row| row.2.as_str()).collect();
        outer.sort_unstable();
        outer.dedup();
        for path in outer {
            let mut expected: Vec<Line> = Vec::new();
            for (at, (begin, end, ..)) in list.iter().enumerate().filter(|(_, row)| row.2 == path) {
                let mut sums: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
                let inside = list[at + 1..].iter().take_while(|row| {
                    let rest = row.2.strip_prefix(path);
                    rest.is_some_and(|rest| rest.starts_with('/'))
                });
                for row in inside {
                    sums.entry(&row.2).or_default().push(row.1.abs_diff(row.0));
                }
                expected.extend(sums.into_iter().map(|(name, all)| {
                    let (least, most) = (all.iter().min().unwrap(), all.iter().max().unwrap());
                    (
                        *begin,
                        *end,
                        name.to_owned(),
                        all.len() as u64,
                        *least,
                        *most,
                        all.iter().sum(),
                    )
                }));
            }
            expected.sort_unstable();
            let asked = Asked {
                aggregate_by: Some(path.to_owned()),
                ..all_views()
            };
            let line = |row: &Value| {
                let time = |key: &str| row[key].as_i64().expect("a time");
                let [count, min, max, sum] = ["count", "min_ns", "max_ns", "total_ns"]
                    .map(|key| row[key].as_u64().expect("a number"));
                let name = row["period"].as_str().expect("a name").to_owned();
                (time("begin_ns"), time("end_ns"), name, count, min, max, sum)
            };
            let found = with_case(case, |set| {
                rows(&report(set, &periods, &asked), "aggregated")
            });
            let mut found: Vec<Line> = found.iter().map(line).collect();
            found.sort_unstable();
            assert_eq!(found, expected, "case {number}, by {path}");
            compared += found.len();
        }
    }
    assert!(compared > 30, "only {compared} lines");
}

fn theirs_in_order(rows: &Value) -> Vec<(i64, i64, String)> {
    let row = |row: &Value| {
        let time = |at: usize| row[at].as_i64().expect("a time") + ORIGIN;
        (
            time(0),
            time(1),
            row[2].as_str().expect("a name").to_owned(),
        )
    };
    rows.as_array().expect("rows").iter().map(row).collect()
}

/// Groups side by side: all groups of a period share one scale, from the overall minimum to the
/// overall maximum, and the counts are those of their periods.
#[test]
fn series_of_groups() {
    let events = [
        (1000, 100, 1),
        (2000, 500, 1),
        (3000, 300, 2),
        (4000, 2100, 2),
    ];
    let pair = |(begin, length, k): (u64, u64, i64)| {
        [
            (begin, 0, "b", vec![("k", k)]),
            (begin + length, 0, "e", vec![("k", k)]),
        ]
    };
    let events: Vec<Event<'_>> = events.into_iter().flat_map(pair).collect();
    let one = periods(
        &["p : $evt.$name == \"b\" : $evt.$name == \"e\""],
        &["p : k = $evt.k"],
    );
    let asked = Asked {
        group_by: vec!["p.k".to_owned()],
        series: true,
        ..all_views()
    };
    with(&events, |set| {
        let first = report(set, &one, &asked);
        let ranges = Some(first.ranges.clone());
        let second = report(
            set,
            &one,
            &Asked {
                ranges,
                ..asked.clone()
            },
        );
        let rows = rows(&second, "series");
        assert_eq!(rows.len(), 2 * 20);
        let step = |row: &Value| {
            (
                row["from_ns"].as_f64().unwrap(),
                row["to_ns"].as_f64().unwrap(),
            )
        };
        // lttng-analyses: step = (max - min) / 20, [lower, upper), the maximum in the last bin.
        for (at, pair) in rows.chunks(2).enumerate() {
            let from = 100.0 + at as f64 * 100.0;
            assert_eq!([step(&pair[0]), step(&pair[1])], [(from, from + 100.0); 2]);
        }
        let counted = rows.iter().filter(|row| row["count"] != 0);
        let counted: Vec<_> = counted
            .map(|row| (step(row).0, captured(&row["group"])))
            .collect();
        let expected = [
            (100.0, "p.k = 1"),
            (300.0, "p.k = 2"),
            (500.0, "p.k = 1"),
            (2000.0, "p.k = 2"),
        ];
        assert_eq!(counted, expected.map(|(from, k)| (from, k.to_owned())));
        powers_side_by_side(&self::rows(&first, "series"));
    });
}

/// With logarithmic buckets, all groups have those from the least to the greatest value of any.
fn powers_side_by_side(rows: &[Value]) {
    let number = |row: &Value, key: &str| row[key].as_u64().expect("a number");
    let bounds = rows
        .iter()
        .map(|row| (number(row, "from_ns"), number(row, "to_ns")));
    let expected = (6..12).flat_map(|bits| [(1 << bits, 2 << bits); 2]);
    assert!(bounds.eq(expected), "{rows:?}");
    let counted = rows.iter().filter(|row| row["count"] != 0);
    let counted = counted.map(|row| (number(row, "from_ns"), captured(&row["group"])));
    let expected = [(64, 1), (256, 2), (256, 1), (2048, 2)];
    assert!(counted.eq(expected.map(|(from, k)| (from, format!("p.k = {k}")))));
}

/// Definitions for running threads, their calls, and the time from switching out to switching in.
const DEFINITIONS: [&str; 4] = [
    "run : $evt.$name == \"sched_switch\" && $evt.next_tid != 0 : $evt.$name == \"sched_switch\" && \
     $evt.$cpu == $begin.$evt.$cpu",
    "call(run) : $evt.$name =* \"syscall_entry_*\" && $evt.$cpu == $parent.$begin.$evt.$cpu : $evt.$name =* \
     \"syscall_exit_*\" && $evt.tid == $begin.$evt.tid",
    "away : $evt.$name == \"sched_switch\" : $evt.$name == \"sched_switch\" && $evt.next_tid == \
     $begin.$evt.prev_tid",
    "step(call) : $evt.$name =* \"*_switch\" || $evt.$name =* \"syscall_*_f*\" : $evt.$name =* \"syscall_*\"",
];

const CAPTURES: [&str; 2] = [
    "run : comm = $evt.next_comm, tid = $evt.next_tid, cpu = $evt.cpu_id : prev = $evt.prev_tid",
    "call : what = $evt.$name : ret = $evt.ret, $evt.$time",
];

/// The same conditions in a form that no index supports.
fn without_index(text: &str) -> String {
    let mut text = text.to_owned();
    for field in ["$cpu", "tid", "next_tid"] {
        for source in ["$begin", "$parent.$begin"] {
            for other in [field, "prev_tid"] {
                let plain = format!("$evt.{field} == {source}.$evt.{other}");
                let hidden = format!(
                    "($evt.{field} <= {source}.$evt.{other} && $evt.{field} >= {source}.$evt.{other})"
                );
                text = text.replace(&plain, &hidden);
            }
        }
    }
    text
}

fn hold(what: &str, set: &TraceSet, definitions: &[&str], asked: &Asked, ways: Ways) {
    let definitions = periods(definitions, &CAPTURES);
    let analysis = PeriodAnalysis::new(set, definitions, asked).expect("it makes sense");
    let expected = folded(set, &analysis, (1, u64::MAX));
    every_way(what, set, &analysis, &expected, ways);
}

fn some(set: &TraceSet) -> Vec<Asked> {
    let (begin, end) = tracebraid_models::events::extent(set);
    let third = (end - begin) / 3;
    let groups = ["run.tid", "cpu"].map(str::to_owned);
    vec![
        Asked {
            group_by: groups.to_vec(),
            aggregate_by: Some("run".to_owned()),
            ..all_views()
        },
        Asked {
            window: Window {
                from: Some(Timestamp(begin + third)),
                to: Some(Timestamp(end - third)),
            },
            limits: Limits {
                min: Some(200),
                max: Some(10_000),
            },
            select: vec!["run/call".to_owned(), "away".to_owned()],
            order: Order::Hierarchy,
            ..all_views()
        },
        Asked {
            most_open: 3,
            order: Order::Duration,
            ..all_views()
        },
    ]
}

#[test]
fn the_law() {
    for seed in 0..8 {
        let shape = Shape {
            cpus: 1 + seed % 4,
            two_streams: seed % 2 == 1,
            ..SHAPE
        };
        let (directory, set) = trace(seed, shape);
        for (number, asked) in some(&set).iter().enumerate() {
            hold(
                &format!("periods, seed {seed}, {number}"),
                &set,
                &DEFINITIONS,
                asked,
                SMALL,
            );
        }
        let analysis = PeriodAnalysis::new(&set, periods(&DEFINITIONS, &CAPTURES), &all_views());
        any_tree_of("periods", &set, &analysis.expect("it makes sense"), seed);
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
}

#[test]
fn the_law_on_recorded_traces() {
    for name in ["kernel-mix-small", "kernel-discarded"] {
        if let Some(set) = tracebraid_models::traces::kernel_trace(name) {
            for (number, asked) in some(&set).iter().enumerate() {
                // Without the periods within calls, which would be very many.
                let definitions = &DEFINITIONS[..3];
                hold(
                    &format!("periods of {name}, {number}"),
                    &set,
                    definitions,
                    asked,
                    LARGE,
                );
            }
        }
    }
}

#[test]
fn indexes_change_nothing() {
    let hidden: Vec<String> = DEFINITIONS.iter().map(|text| without_index(text)).collect();
    assert!(
        hidden
            .iter()
            .zip(DEFINITIONS)
            .filter(|(a, b)| a != b)
            .count()
            == 3
    );
    let hidden: Vec<&str> = hidden.iter().map(String::as_str).collect();
    for seed in 0..6 {
        let (directory, set) = trace(seed, SHAPE);
        let indexed = report(&set, &periods(&DEFINITIONS, &CAPTURES), &all_views());
        let plain = report(&set, &periods(&hidden, &CAPTURES), &all_views());
        assert!(rows(&indexed, "log").len() > 1000);
        assert_eq!(json(&indexed), json(&plain), "seed {seed}");
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
}

/// Calls, and running time in their threads, by thread.
const BY_THREAD: [&str; 2] = [
    "call : $evt.$name =* \"syscall_entry_*\" : $evt.$name =* \"syscall_exit_*\" && $evt.tid == $begin.$evt.tid",
    "some : $evt.$name =* \"syscall_entry_*\" && ($evt.tid == 3 || $evt.tid > 5) && !($evt.tid == 7) :
        $evt.$name == \"sched_switch\" && $evt.tid == $begin.$evt.tid",
];
const CAPTURED_THREADS: [&str; 2] = [
    "call : from = $evt.tid : to = $evt.tid",
    "some : $evt.tid : from = $begin.$evt.tid",
];

/// If event records do not contain their thread, the running thread is used.
#[test]
fn threads_are_known_with_and_without_their_context() {
    for seed in 0..6 {
        let found = [true, false].map(|tid_context| {
            let shape = Shape {
                silent_losses: 0,
                lost_packets: 0,
                cpus: 1 + seed % 3,
                two_streams: seed % 2 == 1,
                ties: false,
                tid_context,
                ..SHAPE
            };
            let (directory, set) = trace(seed, shape);
            let analysis =
                PeriodAnalysis::new(&set, periods(&BY_THREAD, &CAPTURED_THREADS), &all_views());
            assert_eq!(analysis.expect("it makes sense").doubts(), [""; 0]);
            let report = report(&set, &periods(&BY_THREAD, &CAPTURED_THREADS), &all_views());
            std::fs::remove_dir_all(directory).expect("the trace can be removed");
            // The running thread of a CPU is unknown before the first switch.
            let mut log = ours(&report);
            log.retain(|(begin, ..)| *begin > ORIGIN + 100_000);
            let is_known = |(.., begin, end): &Row| !begin.contains("= -") && !end.contains("= -");
            assert!(log.iter().all(is_known));
            log
        });
        let [with, without] = found;
        assert!(with.len() > 1000, "seed {seed}: {}", with.len());
        assert_eq!(with, without, "seed {seed}");
    }
}

/// Losses, and the division into chunks, do not change the result.
#[test]
fn the_law_of_threads_that_run() {
    for seed in 0..6 {
        let shape = Shape {
            cpus: 1 + seed % 4,
            two_streams: seed % 2 == 1,
            counted_losses: 20,
            tid_context: false,
            ..SHAPE
        };
        let (directory, set) = trace(seed, shape);
        let analysis =
            PeriodAnalysis::new(&set, periods(&BY_THREAD, &CAPTURED_THREADS), &all_views());
        let analysis = analysis.expect("it makes sense");
        let expected = folded(&set, &analysis, (1, u64::MAX));
        every_way(
            &format!("threads, seed {seed}"),
            &set,
            &analysis,
            &expected,
            SMALL,
        );
        any_tree_of("threads", &set, &analysis, seed);
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
}

#[test]
fn too_many_open_ones_are_not_begun_and_told_of() {
    let events: Vec<Event<'_>> = (0..10)
        .map(|k| (1000 + k, 0, "begin", vec![("k", k as i64)]))
        .chain([
            (2000, 0, "end", vec![("k", 3)]),
            (2001, 0, "end", vec![("k", 7)]),
        ])
        .collect();
    let all = periods(
        &["p : $evt.$name == \"begin\" : $evt.$name == \"end\" && $evt.k == $begin.$evt.k"],
        &[],
    );
    with(&events, |set| {
        let few = Asked {
            most_open: 5,
            ..all_views()
        };
        let report: Value = serde_json::from_str(&json(&report(set, &all, &few))).expect("JSON");
        assert_eq!(report["total"]["periods"], 1);
        assert_eq!(report["total"]["refused"], 5);
        assert_eq!(report["total"]["unfinished"], 4);
    });
}

/// Numbers of periods within periods, and of groups, in a scripted trace.
#[test]
fn parents_and_groups() {
    let event = |time, name, k| (time, 0, name, vec![("k", k)]);
    let events = [
        event(1000, "P", 1),
        event(1100, "c", 0),
        event(1200, "C", 0),
        event(1300, "c", 0),
        event(1600, "C", 0),
        event(2000, "Q", 0),
        event(3000, "P", 2),
        event(3100, "Q", 0),
        // A parent of zero duration, with a child.
        event(4000, "P", 1),
        event(4000, "c", 0),
        event(4000, "C", 0),
        event(4000, "Q", 0),
        // A parent without an end: its child counts for no parent.
        event(5000, "P", 1),
        event(5100, "c", 0),
        event(5200, "C", 0),
    ];
    let both = periods(
        &[
            "p : $evt.$name == \"P\" : $evt.$name == \"Q\"",
            "c(p) : $evt.$name == \"c\" : $evt.$name == \"C\"",
        ],
        &["p : k = $evt.k"],
    );
    let asked = Asked {
        group_by: vec!["p.k".to_owned()],
        ..all_views()
    };
    with(&events, |set| {
        let report = report(set, &both, &asked);
        let within = &rows(&report, "within")[0];
        let keys = ["parents", "count_max", "duration_max_ns"];
        assert_eq!(
            keys.map(|key| within[key].as_u64()),
            [Some(3), Some(2), Some(400)]
        );
        let share = |row: &Value| row["share_average"].as_f64().expect("a share");
        assert!(
            (share(within) - 0.2).abs() < 1e-9,
            "of the two that take time: {within}"
        );
        let active = &rows(&report, "within_active")[0];
        assert_eq!(active["parents"], 2);
        assert!((share(active) - 0.4).abs() < 1e-9, "{active}");
        let groups = rows(&report, "groups");
        let numbers = |row: &Value| {
            let text = |key: &str| row[key].as_str().expect("text").to_owned();
            (
                text("period"),
                captured(&row["group"]),
                row["count"].as_u64(),
                row["total_ns"].as_u64(),
            )
        };
        let expected = [
            ("p", "p.k = 1", 2, 1000),
            ("p", "p.k = 2", 1, 100),
            ("p/c", "p.k = 1", 4, 500),
        ];
        let expected = expected.map(|(a, b, c, d)| (a.to_owned(), b.to_owned(), Some(c), Some(d)));
        assert_eq!(groups.iter().map(numbers).collect::<Vec<_>>(), expected);
        assert_eq!(rows(&report, "periods")[0]["unfinished"], 1);
    });
}

/// Cases in which lttng-analyses errs: integers above 2⁵³, `!=` with a missing value, `/` in texts.
#[test]
fn values_are_exact() {
    let events = [
        (1000, 0, "a/b", vec![("x", i64::MAX)]),
        (1100, 0, "n", vec![]),
        (1200, 0, "z", vec![("x", i64::MAX - 1)]),
        (1300, 0, "z", vec![("x", i64::MAX)]),
    ];
    let begin = "$evt.$name == \"a/b\" && $evt.x == 9223372036854775807";
    let exact = periods(
        &[
            &format!("p : {begin} : $evt.x == $begin.$evt.x"),
            &format!("q : {begin} : $evt.x != $begin.$evt.x"),
        ],
        &[],
    );
    with(&events, |set| {
        let ends: Vec<i64> = ours(&report(set, &exact, &all_views()))
            .iter()
            .map(|row| row.1)
            .collect();
        assert_eq!(ends, [1200 + ORIGIN, 1300 + ORIGIN]);
    });
}

#[test]
fn what_is_asked_for_must_exist() {
    with(&[(1000, 0, "a", vec![("k", 1)])], |set| {
        let one = || periods(&["p : $evt.$name == \"a\""], &["p : k = $evt.k"]);
        let error = |asked: Asked| {
            PeriodAnalysis::new(set, one(), &asked)
                .err()
                .unwrap_or_default()
        };
        let group = |name: &str| Asked {
            group_by: vec![name.to_owned()],
            ..Asked::default()
        };
        assert_eq!(error(group("k")), "");
        assert!(error(group("z")).contains("`z`"), "{}", error(group("z")));
        assert!(error(group("q.k")).contains("no period `q`"));
        assert!(error(group("p.x")).contains("does not capture `x`"));
        let select = Asked {
            select: vec!["q".to_owned()],
            ..Asked::default()
        };
        assert!(error(select).contains("no period `q`"));
        let doubtful = periods(&["p : $evt.nope == 1 : $evt.$name == \"a\""], &[]);
        let analysis =
            PeriodAnalysis::new(set, doubtful, &Asked::default()).expect("it makes sense");
        let doubts = analysis.doubts().join("; ");
        assert!(
            doubts.contains("a field 'nope'") && doubts.contains("can begin the period p"),
            "{doubts}"
        );
    });
}
