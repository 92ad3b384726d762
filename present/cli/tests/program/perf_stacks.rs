//! `stacks` of perf's call chains, compared with `perf script` on the same file and with the
//! recorded program's work.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use crate::support::{failure, recorded, text};
use serde_json::Value;

/// Number of samples, number of waits, and nanoseconds of waits.
type Sums = (u64, u64, u64);

/// By the functions of the program, the innermost first, and the number of kernel functions. The
/// names of kernel functions are those of the recorded kernel, which another machine does not know.
type Stacks = BTreeMap<(Vec<String>, usize), Sums>;

fn file(name: &str) -> PathBuf {
    recorded("perf-chains").join("perf-chains").join(name)
}

fn path(file: &str) -> String {
    self::file(file).to_str().expect("UTF-8").to_owned()
}

/// `SECONDS.NANOSECONDS:` in nanoseconds.
fn nanoseconds(time: &str) -> u64 {
    time.trim_end_matches(':')
        .replace('.', "")
        .parse()
        .expect("a time")
}

/// An event in the output of `perf script`.
struct Scripted {
    head: String,
    thread: String,
    time: u64,
    /// Functions of the program, and number of kernel functions.
    stack: (Vec<String>, usize),
}

fn scripted() -> Vec<Scripted> {
    let text = fs::read_to_string(file("chains.data.script.txt")).expect("the text");
    let mut events: Vec<Scripted> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if line.starts_with("chains ") {
            events.push(Scripted {
                head: line.to_owned(),
                thread: words[1].to_owned(),
                time: nanoseconds(words[2]),
                stack: (Vec::new(), 0),
            });
        } else if let (Some(event), [_, function, object]) = (events.last_mut(), &words[..]) {
            match *object {
                "([kernel.kallsyms])" => event.stack.1 += 1,
                _ => event.stack.0.push((*function).to_owned()),
            }
        }
    }
    events
}

/// A plain model: a wait lasts from a switch after which the thread is not runnable to the record
/// of its return.
fn of_perf_script() -> Stacks {
    let mut stacks = Stacks::new();
    let mut asleep = BTreeMap::new();
    for event in scripted() {
        let is = |text: &str| event.head.contains(text);
        if is(" cpu-clock:") {
            stacks.entry(event.stack).or_default().0 += 1;
        } else if is(" sched:sched_switch:") && !is("prev_state=R") {
            asleep.insert(event.thread, (event.time, event.stack));
        } else if is("PERF_RECORD_SWITCH IN")
            && let Some((since, stack)) = asleep.remove(&event.thread)
        {
            let sums = stacks.entry(stack).or_default();
            sums.1 += 1;
            sums.2 += event.time - since;
        }
    }
    stacks
}

fn profile(options: &[&str]) -> Value {
    let (debug, data) = (path("debug"), path("chains.data"));
    let arguments = [
        &["stacks", "--format", "json", "--debug-dir", &debug, &data],
        options,
    ]
    .concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn of_stacks(profile: &Value) -> Stacks {
    let mut stacks = Stacks::new();
    for stack in profile["stacks"].as_array().expect("stacks") {
        let names = stack["functions"].as_array().expect("functions").iter();
        let names = names.rev().map(|name| name.as_str().expect("a name"));
        let (kernel, user): (Vec<&str>, Vec<&str>) = names.partition(|name| name.ends_with("_[k]"));
        let user = user.into_iter().map(str::to_owned).collect();
        let sums = stacks.entry((user, kernel.len())).or_default();
        let number = |name: &str| stack[name].as_u64().expect("a number");
        sums.0 += number("cpu_samples");
        sums.1 += number("waits");
        sums.2 += number("wait_ns");
    }
    stacks
}

#[test]
fn stacks_are_those_of_perf_script() {
    let found = profile(&[]);
    let (found_stacks, expected) = (of_stacks(&found), of_perf_script());
    assert_eq!(expected.len(), 8, "{expected:?}");
    assert_eq!(found_stacks, expected);
    // Samples of a clock stand for their periods.
    assert_eq!(found["cpu_samples"], 377);
    assert_eq!(found["cpu_ns"], 377 * 250_000);
}

#[test]
fn stacks_are_the_same_for_all_threads_and_chunks() {
    let of_one = profile(&["-j", "1"]);
    for options in [
        ["-j", "2", "--chunk-size", "1K"],
        ["-j", "5", "--chunk-size", "4K"],
    ] {
        assert_eq!(profile(&options), of_one, "{options:?}");
    }
    let trace = recorded("disk-contention").join("disk-contention");
    let trace = trace.to_str().expect("UTF-8");
    let folded =
        |options: &[&str]| text(&[&["stacks", trace, "--format", "json"], options].concat());
    let of_one = folded(&["-j", "1"]);
    for options in [
        ["-j", "2", "--chunk-size", "10K"],
        ["-j", "5", "--chunk-size", "100K"],
    ] {
        assert_eq!(folded(&options), of_one, "{options:?}");
    }
}

#[test]
fn functions_used_and_waited_what_the_program_does() {
    let found = profile(&[]);
    let of = |function: &str, which: &str| {
        let functions = found["functions"].as_array().expect("functions");
        let row = functions.iter().find(|row| row["name"] == function);
        row.map_or(0, |row| row["total"][which].as_u64().expect("a number"))
    };
    // The program calls `leaf` with 30 million rounds once, and with 10 million rounds in each of
    // two processes.
    let (much, little) = (of("burns_much", "cpu_ns"), of("burns_little", "cpu_ns"));
    assert!(
        (much as f64 / little as f64 - 1.5).abs() < 0.2,
        "{much} {little}"
    );
    // Five naps of 2 ms, and one of 3 ms in the child, whose mappings are its parent's.
    assert_eq!((of("naps", "waits"), of("child", "waits")), (6, 1));
    assert!((13_000_000..15_000_000).contains(&of("naps", "wait_ns")));
    // The parent waits for the child.
    assert_eq!(of("parent", "waits"), 7);
    let processes = found["processes"].as_array().expect("processes");
    assert_eq!(processes.len(), 2);
}

#[test]
fn folded_stacks_have_both_kinds() {
    let folded = |options: &[&str]| {
        let (debug, data) = (path("debug"), path("chains.data"));
        let arguments = [
            &["stacks", "--format", "folded", "--debug-dir", &debug, &data],
            options,
        ]
        .concat();
        text(&arguments)
    };
    let cpu = folded(&[]);
    let much = "chains;_start;start;parent;works;burns_much;leaf ";
    assert!(cpu.lines().any(|line| line.starts_with(much)), "{cpu}");
    let sum = |text: &str| -> u64 {
        let numbers = text
            .lines()
            .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
        numbers.sum()
    };
    assert_eq!(sum(&cpu), 377);
    let waits = folded(&["--waits"]);
    let naps = "chains;_start;start;parent;works;naps;";
    assert!(
        waits
            .lines()
            .any(|line| line.starts_with(naps) && line.contains("_[k]")),
        "{waits}"
    );
    assert_eq!(sum(&waits) / 1000, 34);
    // The usual options select these stacks.
    let child = profile(&["--tid", "11194"]);
    assert_eq!(
        (&child["cpu_samples"], &child["waits"]),
        (&72.into(), &1.into())
    );
}

#[test]
fn without_the_program_addresses_are_of_its_file() {
    let data = path("chains.data");
    let folded = text(&["stacks", "--format", "folded", &data]);
    // Its build id is known, so another file at its path provides no names.
    assert!(folded.contains("[chains+0x"), "{folded}");
}

fn other(name: &str) -> String {
    let file = recorded("perf-files").join("perf-files").join(name);
    file.to_str().expect("UTF-8").to_owned()
}

fn profile_of(trace: &str) -> Value {
    serde_json::from_str(&text(&["stacks", "--format", "json", trace])).expect("JSON")
}

/// A recording of one program with only the switches away from it.
#[test]
fn waits_without_an_end_are_counted() {
    let trace = other("tracepoints.data");
    let found = profile_of(&trace);
    let number = |name: &str| found[name].as_u64().expect("a number");
    assert_eq!(
        (
            number("cpu_samples"),
            number("waits"),
            number("unended_waits")
        ),
        (0, 1, 1)
    );
    let table = text(&["stacks", &trace]);
    assert!(
        table.contains("1 wait is left out: no switch back"),
        "{table}"
    );
}

#[test]
fn the_period_of_a_recording_without_periods_is_that_of_its_head() {
    let trace = other("samples.data");
    let found = profile_of(&trace);
    // 39 samples of the clock. Page faults, if any, would not be CPU time.
    assert_eq!(found["cpu_samples"], 39);
    assert_eq!(found["cpu_ns"], 39 * 100_000);
    // An imported trace gives the same answers.
    let directory = tempfile::tempdir().expect("a directory");
    let to = directory.path().join("trace");
    let to = to.to_str().expect("UTF-8");
    text(&["import", &trace, "-o", to]);
    assert_eq!(profile_of(to), found);
}

#[test]
fn a_recording_without_call_chains_has_no_stacks() {
    let (code, message) = failure(&["stacks", &other("lost.data")]);
    assert!(code == 3 && message.contains("no call stacks"), "{message}");
}
