//! The report of made-up traces is that of a plain model, in every layout of streams, for all threads
//! and chunks; the relation of clocks is recovered within its bounds.

mod cuda;
mod durations;
mod level_zero;
mod line;
mod program;
mod trace;

use std::collections::BTreeMap;

use program::{Command, Program};
use serde_json::Value;
use trace::Layout;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_devices::{DeviceAnalysis, HostDid};
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::Window;
use tracebraid_testkit::rng::Rng;

const LAYOUTS: [Layout; 2] = [Layout::ByThread, Layout::ByCpu];

fn report(set: &TraceSet, threads: usize, chunk_bytes: u64) -> Value {
    report_holding(set, threads, chunk_bytes, 1000)
}

/// The report, where more than some commands in memory go to a file.
fn report_holding(set: &TraceSet, threads: usize, chunk_bytes: u64, most: usize) -> Value {
    let mut analysis = DeviceAnalysis::new(set, Window::default()).holding(most);
    let options = Options {
        threads,
        chunk_bytes,
        slice_bytes: chunk_bytes,
        ..Options::default()
    };
    loop {
        let found = fold(set, &analysis, options, &Control::default()).expect("not cancelled");
        if !analysis.learn(&found.report) {
            let report = analysis.report(&found.report, &HostDid::default());
            return serde_json::to_value(report).expect("JSON");
        }
    }
}

fn with_set<T>(program: &Program, layout: Layout, then: impl FnOnce(&TraceSet) -> T) -> T {
    with_sets(&[program], layout, then)
}

/// A trace for each process.
fn with_sets<T>(programs: &[&Program], layout: Layout, then: impl FnOnce(&TraceSet) -> T) -> T {
    let directory = tempfile::tempdir().expect("a directory");
    let paths = programs.iter().enumerate().map(|(number, program)| {
        let path = directory.path().join(number.to_string());
        std::fs::create_dir(&path).expect("a directory");
        trace::write(program, layout, &path);
        path
    });
    let set = TraceSet::open(&paths.collect::<Vec<_>>()).expect("a trace");
    then(&set)
}

/// Sums of a key by another, of a table.
fn sums(report: &Value, table: &str, by: &str, key: &str) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for row in report[table].as_array().expect("rows") {
        let group = match &row[by] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        *sums.entry(group).or_insert(0) += row[key].as_u64().unwrap_or(0);
    }
    sums
}

/// The same of commands, by the plain model.
fn expected(
    commands: &[&Command],
    by: impl Fn(&Command) -> Option<String>,
    value: impl Fn(&Command) -> u64,
) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for command in commands {
        if let Some(group) = by(command) {
            *sums.entry(group).or_insert(0) += value(command);
        }
    }
    sums
}

fn is_as_modelled(what: &str, program: &Program, report: &Value) {
    let done: Vec<&Command> = program
        .commands
        .iter()
        .filter(|of| of.is_recorded)
        .collect();
    let total = |key: &str| report["total"][key].as_u64().expect("a number");
    assert_eq!(total("commands"), done.len() as u64, "{what}");
    let waiting = program.commands.len() - done.len();
    assert_eq!(total("unfinished"), waiting as u64, "{what}");
    assert_eq!(
        total("without_call"),
        program.strangers.len() as u64,
        "{what}"
    );
    let queue = |of: &Command| Some(format!("{:#x}", of.queue));
    let spans: [(&str, fn(&Command) -> u64); 4] = [
        ("commands", |_| 1),
        ("host_queue_ns", |of| of.times[1] - of.times[0]),
        ("device_queue_ns", |of| of.times[2] - of.times[1]),
        ("execution_ns", |of| of.times[3] - of.times[2]),
    ];
    for (key, value) in spans {
        let found = sums(report, "queues", "handle", key);
        assert_eq!(found, expected(&done, queue, value), "{what}: {key}");
    }
    let numbers = sums(report, "queues", "queue", "commands");
    assert!(
        numbers
            .keys()
            .all(|number| ["1", "2", "3"].contains(&number.as_str())),
        "{what}"
    );
    let kernel = |of: &Command| of.kernel.map(|_| of.kernel_name.clone());
    let execution = |of: &Command| of.times[3] - of.times[2];
    let found = sums(report, "kernels", "kernel", "total_ns");
    assert_eq!(found, expected(&done, kernel, execution), "{what}: kernels");
    let kind = |of: &Command| match of.kernel {
        None => Some(if of.is_read { "read" } else { "write" }.to_owned()),
        Some(_) => None,
    };
    let found = sums(report, "transfers", "kind", "bytes");
    assert_eq!(found, expected(&done, kind, |of| of.bytes), "{what}: bytes");
    let calls: Vec<&Command> = program.commands.iter().collect();
    let function = |of: &Command| Some(of.function().to_owned());
    let mut found = sums(report, "functions", "function", "total_ns");
    found.remove("clCreateCommandQueue");
    let of_calls = expected(&calls, function, |of| of.exit - of.entry);
    assert_eq!(found, of_calls, "{what}: calls");
    line::is_as_modelled(what, &complete(0, program), report);
}

fn complete(process: usize, program: &Program) -> Vec<(usize, &Command)> {
    let done = program.commands.iter().filter(|of| of.is_recorded);
    done.map(|of| (process, of)).collect()
}

/// The true relation is within the bounds that the report states.
fn clock_is_within_bounds(what: &str, program: &Program, report: &Value) {
    let done = program.commands.iter().filter(|of| of.is_recorded);
    let ends = done.flat_map(|of| [of.times[0], of.times[3]]);
    let (first, last) = (
        ends.clone().min().expect("a time"),
        ends.max().expect("a time"),
    );
    let middle = first + (last - first) / 2;
    let device = &report["clocks"][0];
    let offset = device["offset_ns"].as_i64().expect("an offset");
    let error = device["error_ns"].as_u64().expect("bounds");
    let truth =
        i128::from(program.host_at(middle)) + i128::from(trace::ORIGIN) - i128::from(middle);
    let difference = (i128::from(offset) - truth).unsigned_abs();
    // Device times are rounded to nanoseconds.
    assert!(
        difference <= u128::from(error) + 2,
        "{what}: {offset} is {difference} ns off, but known within {error}: {device}"
    );
    assert!(error < 1_000_000, "{what}: {device}");
}

/// Compares table by table: whole reports are too long for a message.
fn is_equal(what: &str, found: &Value, expected: &Value) {
    for (key, table) in expected.as_object().expect("an object") {
        let rows = |of: &Value| of.as_array().cloned().unwrap_or_else(|| vec![of.clone()]);
        let (found, expected) = (rows(&found[key]), rows(table));
        assert_eq!(found.len(), expected.len(), "{what}: {key}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{what}: {key}");
        }
    }
}

#[test]
fn made_up_programs_are_as_modelled() {
    (0..10).for_each(|seed| is_modelled_in_every_way(seed, &Program::random(seed, 300)));
}

/// Completions come before their commands are known, and handles of events are used at once again.
#[test]
fn programs_recorded_by_thapi_are_as_modelled() {
    (40..50).for_each(|seed| is_modelled_in_every_way(seed, &Program::early(seed, 300)));
}

fn is_modelled_in_every_way(seed: u64, program: &Program) {
    for layout in LAYOUTS {
        with_set(program, layout, |set| {
            let what = format!("seed {seed}, {layout:?}");
            let whole = report(set, 1, u64::MAX);
            is_as_modelled(&what, program, &whole);
            for (threads, bytes) in [(1, 1), (2, 500), (5, 1), (8, 4000)] {
                let found = report(set, threads, bytes);
                is_equal(
                    &format!("{what}: {threads} threads, chunks of {bytes}"),
                    &found,
                    &whole,
                );
            }
        });
    }
}

/// Commands that wait in a file, and devices whose times do not follow the order of calls.
#[test]
fn lines_are_sorted_in_files_and_without_a_bound() {
    for seed in 20..26 {
        let mut program = Program::random(seed, 300);
        let is_confused = seed % 2 == 0;
        if is_confused {
            program.confuse(seed);
        }
        with_set(&program, Layout::ByThread, |set| {
            for (threads, bytes, most) in [(1, u64::MAX, 1000), (2, 500, 0), (3, 1, 20)] {
                let what = format!("seed {seed}, {threads} threads, {most} in memory");
                let found = report_holding(set, threads, bytes, most);
                line::is_as_modelled(&what, &complete(0, &program), &found);
            }
        });
    }
}

/// Two processes on one device.
#[test]
fn processes_share_a_line() {
    for seed in 30..36 {
        let [one, other] = [seed, seed + 100].map(|of| Program::with_clock(seed, of, 150));
        with_sets(&[&one, &other], Layout::ByThread, |set| {
            let whole = report(set, 1, u64::MAX);
            let commands = [complete(0, &one), complete(1, &other)].concat();
            line::is_as_modelled(&format!("seed {seed}"), &commands, &whole);
            assert_eq!(whole["devices"].as_array().map(Vec::len), Some(1));
            for (threads, bytes) in [(2, 500), (5, 1)] {
                let found = report(set, threads, bytes);
                is_equal(
                    &format!("seed {seed}: {threads} threads, {bytes}"),
                    &found,
                    &whole,
                );
            }
        });
    }
}

/// Two processes in one trace, with equal handles.
#[test]
fn processes_of_one_trace_are_apart() {
    for seed in 60..64 {
        let [one, other] = [seed, seed + 100].map(|of| Program::with_clock(seed, of, 150));
        let directory = tempfile::tempdir().expect("a directory");
        trace::write_together(&[&one, &other], directory.path());
        let set = TraceSet::open(&[directory.path()]).expect("a trace");
        let whole = report(&set, 1, u64::MAX);
        let commands = [complete(0, &one), complete(1, &other)].concat();
        let what = format!("seed {seed}");
        line::is_as_modelled(&what, &commands, &whole);
        assert_eq!(whole["total"]["commands"], commands.len(), "{what}");
        for (number, program) in [&one, &other].into_iter().enumerate() {
            let mut found = whole.clone();
            let rows = found["queues"].as_array_mut().expect("rows");
            rows.retain(|row| row["pid"] == 1000 + number);
            let done: Vec<&Command> = program
                .commands
                .iter()
                .filter(|of| of.is_recorded)
                .collect();
            let of_queue = expected(&done, |of| Some(format!("{:#x}", of.queue)), |_| 1);
            let rows = sums(&found, "queues", "handle", "commands");
            assert_eq!(rows, of_queue, "{what}: {number}");
        }
        for (threads, bytes) in [(2, 500), (5, 1)] {
            let found = report(&set, threads, bytes);
            is_equal(
                &format!("{what}: {threads} threads, {bytes}"),
                &found,
                &whole,
            );
        }
    }
}

#[test]
fn clocks_are_recovered_within_their_bounds() {
    for seed in 100..200 {
        let program = Program::random(seed, 120);
        with_set(&program, Layout::ByThread, |set| {
            let what = format!("seed {seed}");
            clock_is_within_bounds(&what, &program, &report(set, 2, 1000));
        });
    }
}

/// Records that are lost or contain other bytes: nothing panics, and the report does not depend on
/// threads and chunks. With Level Zero, calls that lost records may execute a list that a slice does not know.
#[test]
fn damaged_traces_obey_the_law() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let programs = [
            ("OpenCL", trace::made_up(&Program::random(seed, 150))),
            (
                "OpenCL by THAPI",
                trace::made_up(&Program::early(seed, 150)),
            ),
            ("CUDA", cuda::made_up(seed)),
            ("CUDA by THAPI", durations::made_up(seed)),
            ("Level Zero", level_zero::made_up(seed)),
        ];
        for (api, (classes, events)) in programs {
            let events = trace::damaged(&events, &mut rng);
            for layout in LAYOUTS {
                let directory = tempfile::tempdir().expect("a directory");
                trace::write_events(&classes, &events, layout, directory.path());
                let set = TraceSet::open(&[directory.path()]).expect("a trace");
                let what = format!("seed {seed}, {api}, {layout:?}");
                let whole = report(&set, 1, u64::MAX);
                for (threads, bytes) in [(1, 1), (2, 500), (4, 3000)] {
                    let found = report(&set, threads, bytes);
                    if api != "Level Zero" {
                        let what = format!("{what}: {threads} threads, {bytes}");
                        is_equal(&what, &found, &whole);
                    }
                }
            }
        }
    }
}

/// Checks the report of event records in both layouts, and that it is the same for other threads and
/// chunks.
fn in_every_way(what: &str, classes: &str, events: &[trace::Event], check: impl Fn(&str, &Value)) {
    for layout in LAYOUTS {
        let directory = tempfile::tempdir().expect("a directory");
        trace::write_events(classes, events, layout, directory.path());
        let set = TraceSet::open(&[directory.path()]).expect("a trace");
        let what = format!("{what}, {layout:?}");
        let whole = report(&set, 1, u64::MAX);
        check(&what, &whole);
        for (threads, bytes) in [(1, 1), (2, 300), (3, 1000), (4, 5000)] {
            let found = report(&set, threads, bytes);
            let what = format!("{what}: {threads} threads, chunks of {bytes}");
            is_equal(&what, &found, &whole);
            assert_eq!(found, whole, "{what}");
        }
    }
}

/// Half of the time: calls and completions of the window, with commands that began before it.
#[test]
fn windows_count_what_ends_in_them() {
    let program = Program::random(7, 300);
    let middle = program.middle();
    with_set(&program, Layout::ByCpu, |set| {
        let count = |window: Window| {
            let analysis = DeviceAnalysis::new(set, window);
            let outcome = fold(set, &analysis, Options::default(), &Control::default());
            let found = outcome.expect("not cancelled").report;
            let report = analysis.report(&found, &HostDid::default());
            let report = serde_json::to_value(report).expect("JSON");
            ["commands", "calls"].map(|key| report["total"][key].as_u64().expect("a number"))
        };
        let at = Some(tracebraid_ctf::clock::Timestamp(
            middle as i64 + trace::ORIGIN,
        ));
        let before = count(Window { from: None, to: at });
        let after = count(Window { from: at, to: None });
        let all = count(Window::default());
        assert_eq!([before[0] + after[0], before[1] + after[1]], all);
        let done = program.commands.iter().filter(|of| of.is_recorded);
        let late = done.filter(|of| of.recorded >= middle).count();
        assert_eq!(after[0], late as u64);
        assert!(late > 50, "{late}");
    });
}
