//! Traces that were not ended by their recorder, and incomplete call stacks: all commands report
//! both.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::recording::{
    END, FILE, MAP, Recording, STACK, STATE, end, file, map, stack, state,
};
use crate::support::{compiled_with, run, succeeds, text};

const NO_END: &str = "the trace has no end mark";

/// Standard error of a command.
fn said(options: &[&str]) -> String {
    let output = run(options);
    succeeds(&output);
    String::from_utf8(output.stderr).unwrap()
}

fn json(options: &[&str]) -> Value {
    serde_json::from_str(&text(options)).unwrap()
}

/// The text without the temporary directory, which differs in each run.
fn without(directory: &TempDir, text: &str) -> String {
    text.replace(directory.path().to_str().unwrap(), "DIR")
}

#[test]
fn all_commands_report_a_trace_without_its_end() {
    let directory = TempDir::new().unwrap();
    let trace = Recording::of_two_seconds().write(directory.path());
    let trace = trace.to_str().unwrap();
    let database = directory.path().join("d.db");
    let (history, database) = (
        directory.path().join("h.history"),
        database.to_str().unwrap(),
    );
    let commands: &[&[&str]] = &[
        &["info"],
        &["report"],
        &["count"],
        &["count", "--format", "json"],
        &["print"],
        &["cpu"],
        &["cpu", "--format", "csv"],
        &["sched"],
        &["waits"],
        &["io"],
        &["periods", "--period", "p : sched_switch : sched_switch"],
        &["critical-path", "--tid", "7"],
        &["history", "build", "-o", history.to_str().unwrap()],
        &["executions", "build", "-o", database, "--call", "read"],
    ];
    for command in commands {
        let output = run(&[command, &[trace][..]].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(said.matches(NO_END).count(), 1, "{command:?}: {said}");
    }
    let said = without(&directory, &said(&["count", trace]));
    let expected = "warning: DIR/kernel: the trace has no end mark because the recorder was killed or the trace was cut: it contains the \
                    first 2.000000 s, and up to 1 s of events at the end is missing (end recordings with Ctrl-C, `tracebraid \
                    stop`, --duration or --max-size)\n";
    assert_eq!(said, expected);
    insta::assert_snapshot!(without(&directory, &text(&["info", "--clock-gmt", trace])));
    let info = json(&["info", "--format", "json", trace]);
    assert_eq!(info["traces"][0]["ended"], false);
    assert!(
        info["notes"][0]["message"]
            .as_str()
            .unwrap()
            .contains(NO_END)
    );
    let cpu = json(&["cpu", "--format", "json", trace]);
    assert_eq!(
        cpu["unended"][0]["recorded_until_ns"],
        1_700_000_003_000_000_000u64
    );
}

#[test]
fn an_ended_trace_is_not_reported() {
    let directory = TempDir::new().unwrap();
    let mut recording = Recording::of_two_seconds();
    recording.events.push((3_000_000_000, END, end(1)));
    let trace = recording.write(directory.path());
    let trace = trace.to_str().unwrap();
    assert_eq!(said(&["count", trace]), "");
    let info = json(&["info", "--format", "json", trace]);
    let of_trace = &info["traces"][0];
    assert_eq!(
        (&of_trace["ended"], &of_trace["end_reason"]),
        (&Value::from(true), &"command_ended".into())
    );
    assert!(text(&["info", trace]).contains("Ended          yes (command ended)"));
    // The mark does not change any time.
    let cpu = json(&["cpu", "--format", "json", trace]);
    assert_eq!(cpu["duration_ns"], 2_000_000_000u64);
    assert_eq!(cpu.get("unended"), None);
}

#[test]
fn a_trace_that_promises_no_mark_is_not_reported() {
    let old = Recording {
        environment: "",
        ..Recording::of_two_seconds()
    };
    // Other programs copy the environment, but not classes without event records.
    let copied = Recording {
        has_end_class: false,
        ..Recording::of_two_seconds()
    };
    for recording in [old, copied] {
        let directory = TempDir::new().unwrap();
        let trace = recording.write(directory.path());
        let trace = trace.to_str().unwrap();
        assert_eq!(said(&["count", trace]), "");
        let info = json(&["info", "--format", "json", trace]);
        assert_eq!(info["traces"][0].get("ended"), None);
    }
}

#[test]
fn a_growing_trace_is_not_reported() {
    let directory = TempDir::new().unwrap();
    let trace = Recording::of_two_seconds().write(directory.path());
    let lock = fs::File::open(&trace).unwrap();
    lock.lock().unwrap();
    let trace = trace.to_str().unwrap();
    assert_eq!(said(&["count", trace]), "");
    let info = json(&["info", "--format", "json", trace]);
    let of_trace = &info["traces"][0];
    assert_eq!(
        (&of_trace["ended"], &of_trace["is_growing"]),
        (&false.into(), &true.into())
    );
    assert!(text(&["info", trace]).contains("Ended          no, the recording is still running"));
}

/// Stacks of two Java processes, of Python 3.11 and 3.12, and of a compiled program.
fn stacks() -> Recording {
    let mut recording = Recording::of_two_seconds();
    recording.events.clear();
    let mut add = |id, payload| {
        let time = 1_000_000_000 + recording.events.len() as u64 * 1_000_000;
        recording.events.push((time, id, payload));
    };
    add(STATE, state(64));
    let programs = [
        (10, "java", "/no/jvm/lib/server/libjvm.so", [1, 0, 40]),
        (11, "java", "/no/jvm/lib/server/libjvm.so", [1, 0, 9]),
        (12, "python3", "/no/bin/python3.11", [1, 0, 20]),
        (13, "python3", "/no/lib/libpython3.12.so.1.0", [1, 0, 10]),
        (14, "program", "/no/program", [100, 15, 5]),
    ];
    for (pid, comm, path, statuses) in programs {
        add(MAP, map(pid, 0x1000, 0, path));
        for (status, count) in statuses.into_iter().enumerate() {
            for _ in 0..count {
                add(STACK, stack(pid, comm, status as u32, &[0x1010]));
            }
        }
    }
    // A kernel thread, whose stack has no part of a program.
    add(STACK, stack(15, "kworker/0:1", 2, &[]));
    let last = recording.events.last().map_or(0, |(time, ..)| *time);
    recording.events.push((last, END, end(0)));
    recording
}

#[test]
fn stacks_that_are_not_whole_are_counted_with_a_remedy() {
    let directory = TempDir::new().unwrap();
    let trace = stacks().write(directory.path());
    let trace = trace.to_str().unwrap();
    insta::assert_snapshot!(text(&["stacks", trace]));
    let profile = json(&["stacks", "--format", "json", trace]);
    let numbers = |of: &Value| {
        ["whole", "cut", "broken"].map(|key| of["completeness"][key].as_u64().unwrap())
    };
    assert_eq!(numbers(&profile), [104, 15, 84]);
    let processes = profile["processes"].as_array().unwrap();
    let java = processes
        .iter()
        .find(|process| process["pid"] == 10)
        .unwrap();
    assert_eq!(numbers(java), [1, 0, 40]);
    let remedies: Vec<(&str, u64)> = profile["remedies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|remedy| {
            (
                remedy["runtime"].as_str().unwrap(),
                remedy["broken"].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("Java", 49),
        ("Python 3.11", 20),
        ("Python 3.12", 10),
        ("compiled programs", 5),
    ];
    assert_eq!(remedies, expected);
    // One line for each runtime, in all formats and commands.
    let database = directory.path().join("d.db");
    let builds = [
        "executions",
        "build",
        "-o",
        database.to_str().unwrap(),
        "--call",
        "read",
        trace,
    ];
    let report = text(&["report", "--format", "csv", trace]);
    let built = String::from_utf8(run(&builds).stderr).unwrap();
    for text in [
        said(&["stacks", "--format", "folded", trace]),
        report,
        built,
    ] {
        assert_eq!(text.matches("are cut at 64 frames").count(), 1, "{text}");
        for remedy in [
            "PreserveFramePointer",
            "use Python 3.12",
            "start python with -X perf",
            "-fno-omit",
        ] {
            assert_eq!(text.matches(remedy).count(), 1, "{remedy}: {text}");
        }
    }
    // Only selected processes count.
    let report = text(&["report", "--pid", "12", trace]);
    assert!(
        report.contains("20 of 21 call stacks") && !report.contains("Java"),
        "{report}"
    );
}

#[test]
fn a_replaced_file_gives_no_names() {
    let directory = TempDir::new().unwrap();
    let source = |name: &str| {
        format!("int {name}(int x) {{ return x * 3; }} int main(void) {{ return {name}(2); }}")
    };
    let compile = |name: &str, build_id: &str| {
        let options = ["-O0", build_id];
        compiled_with(directory.path(), name, &source(name), &options)
    };
    let (program, other) = (
        compile("first", "-Wl,--build-id=none"),
        compile("second", "-Wl,--build-id=none"),
    );
    let path = program.to_str().unwrap().to_owned();
    let (offset, code) = place_of_code(&program);
    let about = fs::metadata(&program).unwrap();
    let identity = |hash| {
        let mtime_ns = about.mtime() * 1_000_000_000 + about.mtime_nsec();
        file(&path, about.len(), mtime_ns, hash)
    };
    let recording = |identities: Vec<Vec<u8>>| {
        let mut recording = Recording::of_two_seconds();
        recording.events = vec![
            (1_000, STATE, state(64)),
            (1_001, MAP, map(7, 0x40_0000, offset, &path)),
        ];
        recording
            .events
            .extend(identities.into_iter().map(|payload| (1_002, FILE, payload)));
        recording
            .events
            .push((1_003, STACK, stack(7, "first", 0, &[0x40_0000 + code])));
        recording.events.push((1_003, END, end(0)));
        let trace = recording.write(directory.path());
        let profile = json(&["stacks", "--format", "json", trace.to_str().unwrap()]);
        let name = profile["functions"][0]["name"].as_str().unwrap().to_owned();
        (name, profile["changed_files"][0]["frames"].as_u64())
    };
    let hash = fnv1a(&fs::read(&program).unwrap());
    assert!(about.len() <= 128 << 10, "all of it is hashed");
    assert_eq!(recording(vec![identity(hash)]), ("first".to_owned(), None));
    assert_eq!(recording(vec![identity(hash), identity(hash)]).1, None);
    let unnamed = recording(vec![identity(hash + 1)]);
    assert!(unnamed.0.starts_with("[first+0x"), "{unnamed:?}");
    assert_eq!(unnamed.1, Some(1));
    // If a file changed during the recording, its contents are ambiguous, as are those of a file
    // that was not identified.
    assert_eq!(
        recording(vec![identity(hash), identity(hash + 1)]).1,
        Some(1)
    );
    assert_eq!(recording(vec![]).1, Some(1));
    fs::copy(&other, &program).unwrap();
    let replaced = recording(vec![identity(hash)]);
    assert!(
        replaced.0.starts_with("[first+0x") && replaced.1 == Some(1),
        "{replaced:?}"
    );
    let trace = directory.path().join("kernel");
    let shown = text(&["stacks", trace.to_str().unwrap()]);
    assert!(
        shown.contains(
            "has no name: the file changed since the recording, or was not identified in it"
        ),
        "{shown}"
    );
}

/// Offsets of the executable part of a program in its file, and of its first function in that part.
fn place_of_code(program: &Path) -> (u64, u64) {
    let output = |command: &str, options: &[&str]| {
        let output = std::process::Command::new(command)
            .args(options)
            .arg(program)
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let hexadecimal = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let segments = output("readelf", &["-lW"]);
    let executed = segments
        .lines()
        .find(|line| line.contains("LOAD") && line.contains("R E"))
        .unwrap();
    let numbers: Vec<&str> = executed.split_whitespace().collect();
    let (offset, address) = (hexadecimal(numbers[1]), hexadecimal(numbers[2]));
    let symbols = output("nm", &[]);
    let first = symbols
        .lines()
        .find(|line| line.ends_with(" T first"))
        .unwrap();
    let function = hexadecimal(first.split_whitespace().next().unwrap());
    (offset, function - address)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
