//! Files of perf and trace-cmd: every event equals the output of their own tools, damage is
//! reported with its offset, and no temporary files are left.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{failure, recorded, recorded_trace, run, text, tracebraid};
use serde_json::Value;
use tempfile::TempDir;

fn perf_file(name: &str) -> PathBuf {
    recorded("perf-files").join("perf-files").join(name)
}

fn trace_cmd_file(name: &str) -> PathBuf {
    recorded("trace-cmd-files")
        .join("trace-cmd-files")
        .join(name)
}

/// Output of another tool for a file.
fn told(file: &Path, by: &str) -> String {
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{by}.txt"));
    fs::read_to_string(name).expect("the archive holds it")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[track_caller]
fn assert_same(mut ours: Vec<String>, mut theirs: Vec<String>) {
    ours.sort();
    theirs.sort();
    if let Some((ours, theirs)) = ours
        .iter()
        .zip(&theirs)
        .find(|(ours, theirs)| ours != theirs)
    {
        panic!("ours:   {ours}\ntheirs: {theirs}");
    }
    assert_eq!(ours.len(), theirs.len(), "events");
    assert!(!ours.is_empty());
}

/// The samples without host and thread name, which perf's conversion to CTF lacks.
fn samples(lines: &str) -> Vec<String> {
    let plain = |line: &str| {
        let (time, rest) = line.split_once("] ").expect("a time");
        let rest = rest.strip_prefix("vm ").unwrap_or(rest);
        let (before, rest) = match rest.split_once("{ procname = ") {
            Some((before, rest)) => (before, rest.split_once("}, ").expect("a payload").1),
            None => (rest, ""),
        };
        format!("{time}] {before}{rest}")
    };
    let is_sample = |line: &&str| !line.contains(" perf_comm:") && !line.contains(": { perf_start");
    let is_side = |line: &str| {
        ["comm", "fork", "exit", "mmap", "mmap2", "build_id"]
            .iter()
            .any(|name| line.contains(&format!("] perf_{name}: ")))
    };
    let all = lines.lines().filter(is_sample).map(plain);
    all.filter(|line| !is_side(line)).collect()
}

#[test]
fn samples_of_perf_are_those_of_perf_data_convert() {
    for name in [
        "tracepoints.data",
        "compressed.data",
        "lost.data",
        "samples.data",
    ] {
        let file = perf_file(name);
        let ours = text(&["print", "--clock-gmt", "--no-delta", path(&file)]);
        // perf assigns samples without a CPU to the first CPU.
        let theirs = told(&file, "convert");
        let theirs = match name {
            "samples.data" => theirs.replace("{ cpu_id = 0 }, ", ""),
            _ => theirs,
        };
        assert_same(samples(&ours), samples(&theirs));
    }
}

/// All event records as JSON.
fn events(file: &Path) -> Vec<Value> {
    let lines = text(&["print", "--format", "json", path(file)]);
    let parse = |line: &str| serde_json::from_str(line).expect("JSON");
    lines.lines().map(parse).collect()
}

fn name(event: &Value) -> &str {
    event["name"].as_str().expect("a name")
}

fn comm(event: &Value) -> &str {
    event["common_context"]["procname"]
        .as_str()
        .expect("a name")
}

fn seconds(nanoseconds: i64) -> String {
    format!(
        "{}.{:09}",
        nanoseconds / 1_000_000_000,
        nanoseconds % 1_000_000_000
    )
}

#[test]
fn threads_cpus_and_times_of_perf_are_those_of_perf_script() {
    for file in ["compressed.data", "lost.data", "pipe.data", "samples.data"] {
        let file = perf_file(file);
        let all = events(&file);
        let samples = all.iter().filter(|event| !name(event).starts_with("perf_"));
        let line = |event: &Value| {
            let time = seconds(event["timestamp"].as_i64().expect("a time"));
            let cpu = event["cpu"].as_i64().map(|cpu| format!("[{cpu:03}] "));
            let tid = &event["payload"]["perf_tid"];
            let (comm, cpu) = (comm(event), cpu.unwrap_or_default());
            format!("{comm} {tid} {cpu}{time}: {}: ", name(event))
        };
        let tidy = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let ours = samples.map(|event| tidy(&line(event))).collect();
        let theirs = told(&file, "script").lines().map(tidy).collect();
        assert_same(ours, theirs);
    }
}

/// `name=value` for each field, as `trace-cmd report -R` prints it; numbers are unsigned 64-bit.
fn fields(event: &Value) -> String {
    let payload = event["payload"].as_object().expect("a payload");
    let own = payload
        .iter()
        .filter(|(name, _)| !name.starts_with("common_"));
    let shown = own.map(|(name, value)| format!("{name}={}", shown(value)));
    shown.collect::<Vec<_>>().join(" ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(elements) => {
            let bytes = |element: &Value| element.as_u64().expect("a number").to_le_bytes();
            let bytes = elements.iter().flat_map(bytes);
            let bytes: Vec<_> = bytes.map(|byte| format!("{byte:02x}")).collect();
            format!("ARRAY[{}]", bytes.join(", "))
        }
        number => unsigned(&number.to_string()),
    }
}

/// A number in a uniform notation; other text is unchanged.
fn unsigned(text: &str) -> String {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text
            .parse()
            .ok()
            .or(text.parse::<i64>().ok().map(|number| number as u64)),
    };
    number.map_or_else(|| text.to_owned(), |number| number.to_string())
}

/// A line of `trace-cmd report -R -t`: thread, CPU, time, name and fields.
fn reported(line: &str) -> Option<String> {
    let line = line.strip_prefix("inst:").unwrap_or(line);
    let (thread, rest) = line.split_once(" [")?;
    let (cpu, rest) = rest.split_once("] ")?;
    let (time, rest) = rest.split_once(": ")?;
    let (name, rest) = rest.split_once(':')?;
    let mut fields = Vec::new();
    for word in rest.split(' ').filter(|word| !word.is_empty()) {
        match word.split_once('=') {
            Some((name, value)) => fields.push(format!("{name}={}", unsigned(value))),
            // Names of threads may contain blanks.
            None => {
                let last = fields.last_mut()?;
                *last = format!("{last} {word}");
            }
        }
    }
    Some(format!(
        "{} [{cpu}] {time} {name} {}",
        thread.trim(),
        fields.join(" ")
    ))
}

#[test]
fn events_of_trace_cmd_are_those_of_its_report() {
    for file in ["v6.dat", "v7.dat", "v7inst.dat", "lost.dat"] {
        let file = trace_cmd_file(file);
        let line = |event: &Value| {
            let time = seconds(event["timestamp"].as_i64().expect("a time"));
            let (_, name) = name(event).split_once(':').expect("a system");
            let cpu = event["cpu"].as_i64().expect("a CPU");
            let tid = &event["payload"]["common_pid"];
            format!(
                "{}-{tid} [{cpu:03}] {time} {name} {}",
                comm(event),
                fields(event)
            )
        };
        let ours = events(&file).iter().map(line).collect();
        let report = told(&file, "report");
        assert_same(ours, report.lines().filter_map(reported).collect());
    }
}

/// Losses by CPU, from `count`.
fn lost(file: &Path) -> u64 {
    let json = text(&["count", "--format", "json", path(file)]);
    let count: Value = serde_json::from_str(&json).expect("JSON");
    count["discarded_events"]
        .as_u64()
        .unwrap_or_else(|| panic!("no losses in {json}"))
}

#[test]
fn losses_are_those_that_the_files_tell() {
    let report = told(&trace_cmd_file("lost.dat"), "report");
    let number = |line: &str| {
        line.split_once('[')?
            .1
            .split_once(" EVENTS DROPPED")?
            .0
            .parse::<u64>()
            .ok()
    };
    let dropped: u64 = report.lines().filter_map(number).sum();
    assert_eq!(dropped, 1009 + 3864);
    assert_eq!(lost(&trace_cmd_file("lost.dat")), dropped);
    assert_eq!(lost(&perf_file("lost.data")), 898);
}

#[test]
fn every_command_takes_the_files() {
    for file in [
        perf_file("compressed.data"),
        trace_cmd_file("v7.dat"),
        trace_cmd_file("v6.dat"),
    ] {
        let file = path(&file);
        for command in [
            "info",
            "count",
            "cpu",
            "sched",
            "syscalls",
            "waits",
            "processes",
            "report",
        ] {
            let output = run(&[command, file]);
            assert!(output.status.success(), "{command} {file}");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("event records imported"), "{command}: {said}");
            assert!(!output.stdout.is_empty(), "{command} {file}");
        }
        let sched: Value =
            serde_json::from_str(&text(&["sched", "--format", "json", file])).expect("JSON");
        assert!(
            sched.to_string().contains("sleep"),
            "{file}: the workload's threads are known by name"
        );
    }
}

#[test]
fn an_imported_trace_is_the_same_as_the_file() {
    let directory = TempDir::new().expect("a directory");
    let to = directory.path().join("trace");
    let file = perf_file("tracepoints.data");
    let said = text(&["import", path(&file), "-o", path(&to)]);
    assert!(
        said.contains("perf.data, 721 event records imported"),
        "{said}"
    );
    let options = ["print", "--clock-gmt", "--no-delta"];
    let print = |path: &str| text(&[&options[..], &[path]].concat());
    assert_eq!(print(path(&to)), print(path(&file)));
    // The trace is not overwritten.
    let (code, said) = failure(&["import", path(&file), "-o", path(&to)]);
    assert_eq!(code, 1, "{said}");
    assert!(to.join("kernel/metadata").exists() && !directory.path().join("trace.part").exists());
}

#[test]
fn what_a_file_lacks_is_said() {
    let said =
        |file: &Path| String::from_utf8_lossy(&run(&["count", path(file)]).stderr).into_owned();
    let samples = said(&perf_file("samples.data"));
    for lack in [
        "no switches",
        "no wake-ups",
        "no system calls",
        "the time of day is unknown",
    ] {
        assert!(samples.contains(lack), "{samples}");
    }
    let tracepoints = said(&perf_file("tracepoints.data"));
    assert!(
        !tracepoints.contains("; no ") && !tracepoints.contains("time of day"),
        "{tracepoints}"
    );
    let dated = said(&trace_cmd_file("v7.dat"));
    assert!(!dated.contains("time of day"), "{dated}");
}

/// A copy of a file with an instance, in which the instance has a clock with this name.
fn with_clock(directory: &TempDir, clock: &[u8; 4]) -> PathBuf {
    let mut bytes = fs::read(trace_cmd_file("v7inst.dat")).expect("the file");
    // After the name of the instance.
    let at = bytes
        .windows(10)
        .rposition(|bytes| bytes == b"inst\0mono\0");
    let at = at.expect("an instance with a clock") + 5;
    bytes[at..at + 4].copy_from_slice(clock);
    let to = directory.path().join("two-clocks.dat");
    fs::write(&to, bytes).expect("written");
    to
}

#[test]
fn instances_with_one_clock_have_one_time() {
    let file = trace_cmd_file("v7inst.dat");
    let output = run(&["count", "--strict", path(&file)]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let directory = TempDir::new().expect("a directory");
    for (clock, code) in [(b"mono", 0), (b"boot", 1)] {
        let file = with_clock(&directory, clock);
        let output = run(&["count", "--strict", path(&file)]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        // Messages name the file, not the imported trace.
        let told = format!(
            "the clocks of {0}/instance-1-inst and {0}/kernel cannot",
            path(&file)
        );
        assert_eq!(said.contains(&told), code == 1, "{said}");
        assert_eq!(said.contains("cannot be aligned"), code == 1, "{said}");
    }
}

/// Temporary directories below the directory.
fn left(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[test]
fn nothing_is_left_behind() {
    let directory = TempDir::new().expect("a directory");
    for arguments in [["cpu", "v7.dat"], ["print", "v7.dat"], ["cpu", "truncated"]] {
        let file = match arguments[1] {
            "truncated" => {
                let cut = directory.path().with_extension("cut");
                let whole = fs::read(trace_cmd_file("v7.dat")).expect("the file");
                fs::write(&cut, &whole[..200]).expect("written");
                cut
            }
            name => trace_cmd_file(name),
        };
        let output = tracebraid()
            .args([arguments[0], path(&file)])
            .env("TMPDIR", directory.path())
            .output()
            .expect("the binary runs");
        assert_eq!(
            output.status.code(),
            Some(if arguments[1] == "truncated" { 3 } else { 0 })
        );
        assert_eq!(left(directory.path()), [] as [PathBuf; 0], "{arguments:?}");
    }
    let _ = fs::remove_file(directory.path().with_extension("cut"));
}

#[test]
fn nothing_is_left_behind_by_an_interruption() {
    let file = trace_cmd_file("lost.dat");
    let imports = (vec!["print", path(&file)], "lost.dat/kernel/metadata");
    let levels = recorded_trace("user-level");
    let merges = (vec!["print", "--levels", &levels], "user-level/metadata");
    for (arguments, made) in [imports, merges] {
        // An interrupt that arrives at the very end has no effect, which may happen on a busy machine.
        let codes: Vec<Option<i32>> = (0..5)
            .map(|_| interrupted_code(&arguments, made))
            .take_while(|code| *code != Some(130))
            .collect();
        assert!(
            codes.len() < 5 && codes.iter().all(|code| *code == Some(0)),
            "{arguments:?}: {codes:?}"
        );
    }
}

/// Exit code of a command that is interrupted once it has made this file in a temporary directory.
/// Asserts that the command leaves no files.
fn interrupted_code(arguments: &[&str], file: &str) -> Option<i32> {
    let directory = TempDir::new().expect("a directory");
    // The output is not read: the program blocks when the pipe is full.
    let child = tracebraid()
        .args(arguments)
        .env("TMPDIR", directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let is_there = || {
        left(directory.path())
            .iter()
            .any(|made| made.join(file).exists())
    };
    tracebraid_testkit::processes::until("the file in the temporary directory", is_there);
    let status = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(status.expect("kill runs").success());
    let ended = child.wait_with_output().expect("the binary ends");
    assert_eq!(left(directory.path()), [] as [PathBuf; 0]);
    ended.status.code()
}

/// Imports a damaged copy: exit code, printed lines and messages.
fn damaged(original: &Path, change: impl FnOnce(&mut Vec<u8>)) -> (i32, String, String) {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("damaged");
    let mut bytes = fs::read(original).expect("the file");
    change(&mut bytes);
    fs::write(&file, bytes).expect("written");
    let output = run(&["print", path(&file)]);
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn damage_is_told_with_its_place_and_hides_nothing_else() {
    let whole = text(&["print", path(&perf_file("lost.data"))])
        .lines()
        .count();
    let (code, printed, said) = damaged(&perf_file("lost.data"), |bytes| bytes.truncate(200_000));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("byte 200000: the file ends"), "{said}");
    let count = printed.lines().count();
    assert!(count > whole / 3 && count < whole, "{count} of {whole}");

    let whole = text(&["print", path(&trace_cmd_file("v6.dat"))])
        .lines()
        .count();
    let (code, printed, said) = damaged(&trace_cmd_file("v6.dat"), |bytes| bytes.truncate(60_000));
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("byte 60000: the file ends"), "{said}");
    assert!((1..whole).contains(&printed.lines().count()), "{said}");

    let (code, _, said) = damaged(&perf_file("lost.data"), |bytes| bytes[16..24].fill(0xff));
    assert_eq!(code, 3);
    assert!(said.contains("byte 16: "), "{said}");
    let (code, _, said) = damaged(&trace_cmd_file("v7.dat"), |bytes| {
        bytes[10..12].copy_from_slice(b"9\0")
    });
    assert_eq!(code, 3);
    assert!(
        said.contains("trace.dat version 9 is not supported"),
        "{said}"
    );
}

/// Messages name the user's file, not the directory of the import.
#[test]
fn messages_name_the_file_that_was_imported() {
    let directory = TempDir::new().expect("a directory");
    let file = directory.path().join("damaged");
    let bytes = fs::read(perf_file("lost.data")).expect("the file");
    fs::write(&file, &bytes[..200_000]).expect("written");
    for command in [
        &["info"][..],
        &["info", "--format", "json"],
        &["count"],
        &["print"],
    ] {
        let output = run(&[command, &[path(&file)]].concat());
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8_lossy(&text);
            assert!(!text.contains("/tracebraid-"), "{command:?}: {text}");
        }
    }
}

#[test]
fn no_damage_makes_it_panic() {
    let mut seed = 1u64;
    let mut random = move |below: usize| {
        seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (seed >> 33) as usize % below.max(1)
    };
    let mut codes = BTreeMap::new();
    for file in [
        perf_file("samples.data"),
        perf_file("compressed.data"),
        trace_cmd_file("v7.dat"),
    ] {
        for _ in 0..8 {
            let (code, _, said) = damaged(&file, |bytes| {
                for _ in 0..20 {
                    let length = bytes.len();
                    // Most fields that matter are at the beginning or the end.
                    let at = [random(512), length - 1 - random(4096), random(length)][random(3)];
                    bytes[at.min(length - 1)] = random(256) as u8;
                }
            });
            assert!(matches!(code, 0 | 3), "{code}: {said}");
            assert!(!said.contains("panicked"), "{said}");
            *codes.entry(code).or_insert(0) += 1;
        }
    }
}
