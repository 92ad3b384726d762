//! The files report: equal to a plain pass call by call; filters; views.

use std::collections::BTreeSet;

use serde_json::Value;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Limits, Selection, ThreadFilter, Views};
use tracebraid_language::glob::Glob;
use tracebraid_reports::files::{FileChoice, FilesAnalysis, FilesOptions};
use tracebraid_tables::View;

use tracebraid_models::law::{ALL, SMALL, as_in_one_piece};
use tracebraid_models::model_files::{Row, Sums, by_class, by_path, calls};
use tracebraid_models::naming::Value::{Int, Text};
use tracebraid_models::naming::{Field, Maker, TEXT};
use tracebraid_models::synthetic::{Scripted, Shape, scripted, trace};
use tracebraid_models::traces::kernel_trace;

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 20_000,
    packet: 900,
    ..Shape::PLAIN
};

fn report(set: &TraceSet, selection: Selection, options: FilesOptions) -> Value {
    let analysis = FilesAnalysis::with(set, selection, options);
    let outcome = fold(set, &analysis, Options::default(), &Control::default());
    serde_json::to_value(outcome.expect("not cancelled").report).expect("JSON")
}

fn with_log() -> FilesOptions {
    let views = Views {
        views: vec![View::Stats, View::Top, View::Log],
        rows: 50,
        ..Views::default()
    };
    views.into()
}

fn rows<'v>(report: &'v Value, key: &str) -> &'v [Value] {
    report[key].as_array().unwrap_or_else(|| panic!("{key}"))
}

/// A row of the model in the form of the log.
fn told(row: &Row) -> [Value; 9] {
    [
        row.begin.into(),
        row.duration().into(),
        row.class.into(),
        row.syscall.clone().into(),
        row.bytes.into(),
        row.result.clone().into(),
        row.paths.0.clone().into(),
        row.fd.into(),
        row.tid.into(),
    ]
}

const KEYS: [&str; 9] = [
    "begin_ns",
    "duration_ns",
    "class",
    "syscall",
    "bytes",
    "result",
    "path",
    "fd",
    "tid",
];

/// The quantile of the given number of thousandths.
fn quantile(durations: &[i64], thousandths: usize) -> i64 {
    let mut sorted = durations.to_vec();
    sorted.sort_unstable();
    sorted[(sorted.len() * thousandths).div_ceil(1000).max(1) - 1]
}

fn same_durations(what: &str, row: &Value, sums: &Sums) {
    let durations = &sums.durations;
    if durations.is_empty() {
        assert_eq!(row["average_ns"], Value::Null, "{what}");
        return;
    }
    assert_eq!(row["max_ns"], *durations.iter().max().unwrap(), "{what}");
    let average = durations.iter().sum::<i64>() as f64 / durations.len() as f64;
    let found = row["average_ns"].as_f64().unwrap();
    assert!(
        (found - average).abs() <= 1e-9 * average,
        "{what}: {found} {average}"
    );
    let exact = quantile(durations, 990);
    let found = row["p99_ns"].as_i64().unwrap();
    assert!(
        (found - exact).abs() <= exact / 128,
        "{what}: {found} {exact}"
    );
}

/// Every call of the log, and every sum in the tables, equals that of a plain pass.
fn as_modelled(name: &str, set: &TraceSet) -> usize {
    let model = calls(set);
    let report = report(set, Selection::default(), with_log());
    let log = rows(&report, "log");
    for (expected, found) in model.iter().zip(log) {
        let found = KEYS.map(|key| match (key, &found["error"]) {
            ("result", Value::Null) => found["result"].to_string().into(),
            ("result", error) => error.clone(),
            (key, _) => found[key].clone(),
        });
        assert_eq!(found, told(expected), "{name}");
    }
    assert_eq!(log.len(), model.len(), "{name}");
    let classes = by_class(&model);
    assert_eq!(rows(&report, "classes").len(), classes.len(), "{name}");
    for row in rows(&report, "classes") {
        let class = row["class"].as_str().unwrap();
        let sums = &classes[class];
        let what = format!("{name}: {class}");
        same_durations(&what, row, sums);
        assert_eq!(row["count"], sums.durations.len(), "{what}");
        assert_eq!(
            row["min_ns"],
            *sums.durations.iter().min().unwrap(),
            "{what}"
        );
        assert_eq!(
            (&row["errors"], &row["bytes"]),
            (&sums.errors.into(), &sums.read.into()),
            "{what}"
        );
        let slowest = rows(&report, &format!("slowest_{class}"));
        let mut longest: Vec<i64> = sums.durations.clone();
        longest.sort_unstable_by_key(|duration| -duration);
        longest.truncate(50);
        let found: Vec<i64> = slowest
            .iter()
            .map(|row| row["duration_ns"].as_i64().unwrap())
            .collect();
        assert_eq!(found, longest, "{what}");
    }
    same_files(name, &report, &model);
    same_processes(name, &report);
    model.len()
}

/// Rows of processes are the sums of their rows by file: `file_*` columns of those of the type
/// `file`. The rows with most bytes of files come first.
fn same_processes(name: &str, report: &Value) {
    let parts = rows(report, "process_files");
    let processes = rows(report, "processes");
    let id = |row: &Value| ["trace", "pid", "tid", "name"].map(|key| row[key].to_string());
    let all = |of: &[Value]| of.iter().map(id).collect::<BTreeSet<_>>();
    assert_eq!(all(processes), all(parts), "{name}");
    let of_files = |row: &Value| {
        let bytes = ["file_read_bytes", "file_written_bytes"].map(|key| row[key].as_u64().unwrap());
        bytes[0] + bytes[1]
    };
    assert!(
        processes.is_sorted_by_key(|row| std::cmp::Reverse(of_files(row))),
        "{name}"
    );
    for row in processes {
        let own = parts.iter().filter(|part| {
            let is_same = |key: &&str| part[*key] == row[*key];
            ["trace", "pid", "tid", "name"].iter().all(is_same)
        });
        let sum = |key: &str, is_chosen: &dyn Fn(&Value) -> bool| -> u64 {
            let chosen = own.clone().filter(|part| is_chosen(part));
            chosen.map(|part| part[key].as_u64().unwrap()).sum()
        };
        let is_file = |part: &Value| part["type"] == "file";
        for key in ["read_bytes", "written_bytes"] {
            assert_eq!(
                row[format!("file_{key}")],
                sum(key, &is_file),
                "{name}: {row}"
            );
        }
        for key in ["read_bytes", "written_bytes", "calls", "errors", "opens"] {
            assert_eq!(row[key], sum(key, &|_| true), "{name}: {row}");
        }
    }
}

fn same_files(name: &str, report: &Value, model: &[Row]) {
    let paths = by_path(model);
    let mut met = std::collections::BTreeMap::new();
    for row in rows(report, "files") {
        *met.entry(row["path"].as_str().unwrap()).or_insert(0) += 1;
    }
    assert!(met.keys().eq(paths.keys()), "{name}: the same files");
    let keys = ["read_bytes", "written_bytes", "calls", "errors", "opens"];
    for (path, sums) in &paths {
        let what = format!("{name}: {path}");
        let expected = [
            sums.read as u64,
            sums.written as u64,
            sums.durations.len() as u64,
            sums.errors,
            sums.opens,
        ];
        for table in ["files", "process_files"] {
            let of_path = rows(report, table)
                .iter()
                .filter(|row| row["path"] == *path);
            let mut found = [0; 5];
            for row in of_path {
                keys.iter()
                    .zip(&mut found)
                    .for_each(|(key, sum)| *sum += row[key].as_u64().unwrap());
                // Files with the same name may be of several types.
                if table == "files" && met[path] == 1 {
                    same_durations(&what, row, sums);
                }
            }
            assert_eq!(found, expected, "{what}: {table}");
        }
    }
}

#[test]
fn recorded_traces_are_as_a_plain_pass_has_them() {
    for (name, calls) in [
        ("kernel-mix-small", 19_377),
        ("kernel-ust-requests", 28_976),
        ("many-threads", 25_892),
        ("twohost-client", 9037),
        ("twohost-server", 15_945),
    ] {
        if let Some(set) = kernel_trace(name) {
            assert_eq!(as_modelled(name, &set), calls, "{name}");
        }
    }
}

#[test]
fn random_traces_are_as_a_plain_pass_has_them() {
    for seed in 0..12 {
        for told_threads in [false, true] {
            let shape = Shape {
                cpus: 1 + seed % 4,
                told_threads,
                ..SHAPE
            };
            let (directory, set) = trace(seed, shape);
            let found = as_modelled(&format!("seed {seed}"), &set);
            assert!(found > 2000, "seed {seed}: {found} calls");
            std::fs::remove_dir_all(directory).expect("the trace can be removed");
        }
    }
}

fn total(report: &Value) -> u64 {
    rows(report, "classes")
        .iter()
        .map(|row| row["count"].as_u64().unwrap())
        .sum()
}

/// Bounds of sizes are inclusive, and calls without a size pass.
#[test]
fn filters_choose_calls() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let model = calls(&set);
    let count =
        |wanted: &dyn Fn(&Row) -> bool| model.iter().filter(|row| wanted(row)).count() as u64;
    let sizes = Limits {
        min: Some(4096),
        max: Some(65_536),
    };
    let found = report(
        &set,
        Selection::default(),
        FilesOptions {
            sizes,
            ..FilesOptions::default()
        },
    );
    let large = count(&|row| {
        row.bytes
            .is_none_or(|bytes| (4096..=65_536).contains(&bytes))
    });
    assert_eq!(total(&found), large);
    assert!(large > count(&|row| row.bytes.is_none()) && large < model.len() as u64);

    let limits = Limits {
        min: Some(100_000),
        max: Some(1_000_000),
    };
    let found = report(
        &set,
        Selection::default(),
        FilesOptions::from(Views {
            limits,
            ..Views::default()
        }),
    );
    let long = count(&|row| (100_000..=1_000_000).contains(&row.duration()));
    assert!(long > 100);
    assert_eq!(total(&found), long);

    let paths = vec![Glob::new("/scratch/*")];
    let found = report(
        &set,
        Selection::default(),
        FilesOptions {
            files: FileChoice {
                paths,
                ..FileChoice::default()
            },
            ..FilesOptions::default()
        },
    );
    let is_there = |path: &Option<String>| {
        path.as_ref()
            .is_some_and(|path| path.starts_with("/scratch/"))
    };
    let there = count(&|row| is_there(&row.paths.0) || is_there(&row.paths.1));
    assert!(there > 1000);
    assert_eq!(total(&found), there);
    let mut files = rows(&found, "files").iter();
    assert!(files.all(|row| row["path"].as_str().unwrap().starts_with("/scratch/")));

    types_choose_files(&set);

    let threads = ThreadFilter {
        tids: vec![284],
        ..ThreadFilter::default()
    };
    let found = report(
        &set,
        Selection {
            threads,
            ..Selection::default()
        },
        with_log(),
    );
    let own = count(&|row| row.tid == 284);
    assert!(own > 1000);
    assert_eq!(
        (total(&found), rows(&found, "log").len() as u64),
        (own, own)
    );
    assert!(
        rows(&found, "slowest_read")
            .iter()
            .all(|row| row["tid"] == 284)
    );
}

/// A call is chosen if one of its files has a type that is asked for.
fn types_choose_files(set: &TraceSet) {
    let of = |types: &[&str]| {
        let types = types.iter().map(|text| Glob::new(text)).collect();
        let files = FileChoice {
            types,
            ..FileChoice::default()
        };
        let options = FilesOptions {
            files,
            ..with_log()
        };
        report(set, Selection::default(), options)
    };
    let types = |report: &Value| -> BTreeSet<String> {
        let files = rows(report, "files").iter();
        files
            .map(|row| row["type"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = of(&[]);
    let known = types(&all);
    assert!(
        known.contains("file") && known.contains("network"),
        "{known:?}"
    );
    let some = of(&["n*work", "file"]);
    assert_eq!(types(&some), ["file", "network"].map(str::to_owned).into());
    let of_types = |row: &&Value| matches!(row["type"].as_str(), Some("file" | "network"));
    let expected: Vec<&Value> = rows(&all, "files").iter().filter(of_types).collect();
    assert_eq!(rows(&some, "files").iter().collect::<Vec<_>>(), expected);
    let (listed, chosen) = (rows(&all, "log"), rows(&some, "log"));
    assert!(chosen.len() > 1000 && chosen.len() < listed.len());
    let mut listed = listed.iter();
    assert!(chosen.iter().all(|row| listed.any(|other| other == row)));
    assert_eq!(total(&some), chosen.len() as u64);
}

/// The histogram of each class counts all its calls, also with a filter of threads.
#[test]
fn the_second_pass_counts_every_call_once() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    for tids in [vec![], vec![284]] {
        let threads = ThreadFilter {
            tids,
            ..ThreadFilter::default()
        };
        let selection = Selection {
            threads,
            ..Selection::default()
        };
        let analysis = FilesAnalysis::with(&set, selection.clone(), with_log());
        let first = fold(&set, &analysis, Options::default(), &Control::default());
        let first = first.expect("not cancelled").report;
        let ranges = Some(first.ranges.clone());
        let views = Views {
            ranges,
            ..with_log().views
        };
        let second = report(&set, selection, views.into());
        let first = serde_json::to_value(first).expect("JSON");
        for row in rows(&first, "classes") {
            let bins = rows(&second, "distribution")
                .iter()
                .filter(|bin| bin["class"] == row["class"]);
            let counts: Vec<u64> = bins.map(|bin| bin["count"].as_u64().unwrap()).collect();
            assert_eq!(counts.len(), 20);
            assert_eq!(row["count"], counts.iter().sum::<u64>(), "{}", row["class"]);
        }
    }
}

/// Consecutive calls, each with its thread in the context.
#[derive(Default)]
struct Script(Vec<Scripted<'static>>);

impl Script {
    fn event(&mut self, tid: i32, name: &'static str, fields: Vec<Field<'static>>) {
        let time = 1000 + 10 * self.0.len() as u64;
        self.0
            .push((0, time, Maker { tid, pid: tid }, name, fields));
    }

    fn goes_to(&mut self, tid: i32, path: &'static str, result: i64) {
        self.event(tid, "entry chdir", vec![("filename", TEXT, Text(path))]);
        self.event(tid, "exit chdir", vec![("ret", 64, Int(result))]);
    }

    fn goes_to_held(&mut self, tid: i32, fd: i64) {
        self.event(tid, "entry fchdir", vec![("fd", 32, Int(fd))]);
        self.event(tid, "exit fchdir", vec![("ret", 64, Int(0))]);
    }

    /// `openat`, relative to the descriptor `dir`.
    fn opens(&mut self, tid: i32, dir: i64, path: &'static str, fd: i64) {
        let fields = vec![
            ("dfd", 32, Int(dir)),
            ("filename", TEXT, Text(path)),
            ("flags", 32, Int(0)),
        ];
        self.event(tid, "entry openat", fields);
        self.event(tid, "exit openat", vec![("ret", 64, Int(fd))]);
    }

    fn forks(&mut self, parent: i32, child: i32) {
        let fields = vec![
            ("parent_comm", TEXT, Text("parent")),
            ("parent_tid", 32, Int(parent.into())),
            ("parent_pid", 32, Int(parent.into())),
            ("child_comm", TEXT, Text("child")),
            ("child_tid", 32, Int(child.into())),
            ("child_pid", 32, Int(child.into())),
        ];
        self.event(parent, "sched_process_fork", fields);
    }
}

/// `AT_FDCWD`.
const HERE: i64 = -100;

/// Names are relative to the working directory of a process, as far as it is known; children
/// inherit it.
#[test]
fn names_are_relative_to_working_directories() {
    let mut script = Script::default();
    script.opens(7, HERE, "unknown", 3);
    script.goes_to(7, "sub", 0);
    script.opens(7, HERE, "still-unknown", 3);
    script.goes_to(7, "/srv", 0);
    script.goes_to(7, "/not-there", -2);
    script.opens(7, HERE, "a", 3);
    script.forks(7, 8);
    script.goes_to(7, "sub", 0);
    script.opens(7, HERE, "b", 4);
    script.opens(8, HERE, "c", 3);
    script.opens(8, HERE, "/absolute", 5);
    script.opens(8, HERE, "/dir", 6);
    script.opens(8, 6, "d", 7);
    script.goes_to_held(8, 6);
    script.opens(8, HERE, "e", 8);
    script.goes_to_held(8, 99);
    script.opens(8, HERE, "f", 9);
    let shape = Shape {
        cpus: 1,
        tid_context: true,
        told_threads: true,
        packet: 220,
        ..SHAPE
    };
    let (directory, set) = scripted(shape, script.0);
    as_in_one_piece::<FilesAnalysis>("a script", &set, ALL, SMALL);
    let report = report(&set, Selection::default(), with_log());
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    let paths: Vec<&str> = (rows(&report, "log").iter())
        .map(|row| row["path"].as_str().expect("a path"))
        .collect();
    let expected = [
        "unknown",
        "still-unknown",
        "/srv/a",
        "/srv/sub/b",
        "/srv/c",
        "/absolute",
        "/dir",
        "/dir/d",
        "/dir/e",
        "f",
    ];
    assert_eq!(paths, expected);
}
