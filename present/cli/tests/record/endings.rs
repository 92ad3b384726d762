//! Ends of recordings, and the files that they leave.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use tracebraid_testkit::processes::until;

use crate::record;
use crate::support::{
    can_record_kernel, compiled_with, recording_directory, run, succeeds, text, tracebraid,
};

#[test]
fn the_exit_code_is_the_command_s() {
    if !can_record_kernel() {
        return;
    }
    let code = |command: &[&str]| {
        let directory = TempDir::new().unwrap();
        record(directory.path(), &[], command).0.status.code()
    };
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    assert_eq!(code(&["/there/is/no/such/program"]), Some(127));
    assert_eq!(code(&["/etc/passwd"]), Some(126));
}

#[test]
fn a_recording_ends_with_the_processes_that_it_is_about() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (trace, end) = (directory.path().join("trace"), directory.path().join("end"));
    // The command makes system calls until the file `end` exists or its directory is removed: it
    // must not outlive a failed test.
    let script = "while [ -d \"${0%/*}\" ] && [ ! -e \"$0\" ]; do read -t 0.01 < /dev/zero; done";
    let mut process = Command::new("bash")
        .args(["-c", script])
        .arg(&end)
        .spawn()
        .unwrap();
    let mut record = recorder();
    record.args([
        "record",
        "--kernel",
        "none",
        "--pid",
        &process.id().to_string(),
        "-o",
    ]);
    let mut record = record.arg(&trace).spawn().unwrap();
    begun(&trace);
    fs::write(&end, "").unwrap();
    // The exit code of the process is not collected in the meantime.
    let mut status = None;
    until("the recording ends", || {
        status = record.try_wait().unwrap();
        status.is_some()
    });
    assert!(status.unwrap().success());
    assert!(text(&["print", trace.to_str().unwrap()]).contains("syscall_entry_exit_group"));
    process.wait().unwrap();
}

/// Waits until events have been written, which happens at least once a second.
fn begun(trace: &Path) {
    until("events are recorded", || {
        let streams = fs::read_dir(trace.join("kernel"))
            .into_iter()
            .flatten()
            .flatten();
        let mut streams =
            streams.filter(|file| file.file_name().to_string_lossy().starts_with("channel0_"));
        streams.any(|file| file.metadata().is_ok_and(|file| file.len() > 0))
    });
}

/// Checks that the trace is readable and undamaged, and contains events.
fn is_whole(trace: &Path) {
    let counted = text(&[
        "count",
        "--strict",
        "--format",
        "json",
        trace.to_str().unwrap(),
    ]);
    let counted: serde_json::Value = serde_json::from_str(&counted).unwrap();
    assert!(counted["events"].as_u64().unwrap() > 0);
}

#[test]
fn an_interrupted_recording_is_whole() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut record = recorder();
    record
        .arg("record")
        .args(["--system", "--syscalls", "none", "-o"])
        .arg(&trace);
    let mut child = record.spawn().unwrap();
    begun(&trace);
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupt.success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let trace = trace.to_str().unwrap();
    let output = run(&["count", "--strict", trace]);
    succeeds(&output);
}

#[test]
fn a_command_that_goes_on_is_told_of() {
    let directory = TempDir::new().unwrap();
    for ending in ["-INT", "--duration"] {
        let trace = directory.path().join(ending.trim_start_matches('-'));
        let mut record = recorder();
        record.args(["record", "--kernel", "none", "--syscalls", "none"]);
        if ending == "--duration" {
            record.args([ending, "100ms"]);
        }
        // The command holds no descriptor that would be waited for, and ignores the signal.
        let sleep = "trap '' INT; exec sleep 60 > /dev/null 2>&1";
        record.arg("-o").arg(&trace).args(["--", "sh", "-c", sleep]);
        let child = record.stderr(std::process::Stdio::piped()).spawn().unwrap();
        if ending != "--duration" {
            until("the recording has begun", || {
                trace.join("probe.conf").exists() && !trace.join(".gate").exists()
            });
            std::thread::sleep(std::time::Duration::from_millis(300));
            let sent = Command::new("kill")
                .args([ending, &child.id().to_string()])
                .status();
            assert!(sent.unwrap().success());
        }
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let told = said
            .split_once("The command is still running (process ")
            .and_then(|(_, rest)| rest.split_once(')'));
        let (process, _) = told.unwrap_or_else(|| panic!("{said}"));
        let killed = Command::new("kill").args(["-KILL", process]).status();
        assert!(killed.unwrap().success(), "the process is running: {said}");
    }
    // A command that has ended is not reported.
    let (output, _) = record(
        &directory.path().join("other"),
        &["--kernel", "none", "--syscalls", "none"],
        &["true"],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("still running"), "{said}");
}

#[test]
fn a_recording_that_is_terminated_is_whole() {
    if !can_record_kernel() {
        return;
    }
    for signal in ["-TERM", "-HUP"] {
        let directory = TempDir::new().unwrap();
        let trace = directory.path().join("trace");
        let mut record = recorder();
        record
            .arg("record")
            .args(["--system", "--syscalls", "none", "-o"])
            .arg(&trace);
        let mut child = record.spawn().unwrap();
        begun(&trace);
        let sent = Command::new("kill")
            .args([signal, &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{signal}");
        is_whole(&trace);
    }
}

#[test]
fn a_killed_recorder_leaves_what_it_had_written() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut record = recorder();
    record.arg("record").args(["--system", "-o"]).arg(&trace);
    let mut child = record.spawn().unwrap();
    begun(&trace);
    // The trace goes on without its recorder, which is no damage.
    let kernel = trace.join("kernel");
    let kernel = kernel.to_str().unwrap();
    assert_eq!(ended(kernel), (false.into(), Value::Null, true));
    assert!(!said(&["count", kernel]).contains(NO_END));
    child.kill().unwrap();
    child.wait().unwrap();
    is_whole(&trace);
    assert_eq!(ended(kernel), (false.into(), Value::Null, false));
    for command in ["info", "report", "count", "print", "cpu", "waits"] {
        let said = said(&[command, trace.to_str().unwrap()]);
        assert_eq!(said.matches(NO_END).count(), 1, "{command}: {said}");
    }
}

const NO_END: &str = "the trace has no end mark";

/// Standard error of a command.
fn said(options: &[&str]) -> String {
    let output = run(options);
    succeeds(&output);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Whether a trace has ended, why, and whether it is growing.
fn ended(trace: &str) -> (Value, Value, bool) {
    let info = text(&["info", "--format", "json", trace]);
    let info: Value = serde_json::from_str(&info).unwrap();
    let of = &info["traces"][0];
    (
        of["ended"].clone(),
        of["end_reason"].clone(),
        of["is_growing"] == true,
    )
}

#[test]
fn a_trace_contains_the_reason_of_its_end() {
    let Some(directory) = recording_directory() else {
        return;
    };
    // The command continues when the trace is full, and ends by itself.
    let calls = [
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=1",
        "count=200000",
        "status=none",
    ];
    let cases: [(&[&str], &[&str], &str); 5] = [
        (&[], &["true"], "command_ended"),
        (&["--ctf2"], &["true"], "command_ended"),
        (&["--snapshot"], &["true"], "command_ended"),
        (&["--duration", "100ms"], &["sleep", "1"], "limit"),
        (&["--max-size", "1M"], &calls, "limit"),
    ];
    for (number, (options, command, reason)) in cases.into_iter().enumerate() {
        let parent = directory.path().join(number.to_string());
        fs::create_dir(&parent).unwrap();
        let (output, trace) = record(&parent, options, command);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let kernel = format!("{trace}/kernel");
        assert_eq!(
            ended(&kernel),
            (true.into(), reason.into(), false),
            "{options:?}: {errors}"
        );
        assert!(!said(&["count", &kernel]).contains(NO_END), "{options:?}");
        // The mark is the last event, counts the events before it, and is one nanosecond after
        // them.
        let printed = text(&["print", "--format", "json", &kernel]);
        let marks = printed.matches("tracebraid_end").count();
        assert_eq!(marks, 1, "{options:?}");
        let last = text(&["print", &kernel]);
        let last = last.lines().last().unwrap();
        assert!(
            last.contains("tracebraid_end") && last.contains("(+0.000000001)"),
            "{last}"
        );
        let counted = text(&["count", "--format", "json", &kernel]);
        let counted: Value = serde_json::from_str(&counted).unwrap();
        if !options.contains(&"--snapshot") {
            let before = counted["events"].as_u64().unwrap() - 1;
            assert!(
                last.contains(&format!("events = {before},")),
                "{last}: {before}"
            );
        }
    }
}

#[test]
fn a_recording_of_probes_without_its_end_is_told_of() {
    let directory = TempDir::new().unwrap();
    let (trace, end) = (directory.path().join("trace"), directory.path().join("end"));
    let source = "#include <unistd.h>\nint step(void) { return usleep(1000); }\nint main(int count, char **words) { \
                  while (access(words[count - 1], F_OK)) step(); }";
    let options = ["-O0", "-finstrument-functions"];
    let program = compiled_with(directory.path(), "program", source, &options);
    let mut record = recorder();
    record.args(["record", "--kernel", "none", "--syscalls", "none"]);
    record
        .args(["--probes", "lttng_ust_cyg_profile:*", "-o"])
        .arg(&trace);
    let mut child = record.arg("--").arg(&program).arg(&end).spawn().unwrap();
    let shown = trace.to_str().unwrap();
    until("the program records", || {
        run(&["count", shown]).status.success()
    });
    let warning = "the recorder was killed before it ended the recording of programs with probes";
    assert!(!said(&["count", shown]).contains(warning));
    assert_eq!(ended(shown), (false.into(), Value::Null, true));
    child.kill().unwrap();
    child.wait().unwrap();
    fs::write(&end, "").unwrap();
    for command in ["info", "report", "count", "print"] {
        assert_eq!(
            said(&[command, shown]).matches(warning).count(),
            1,
            "{command}"
        );
    }
    assert_eq!(ended(shown), (false.into(), Value::Null, false));
    succeeds(&run(&["stop", shown]));
    assert!(!said(&["count", shown]).contains(warning));
    assert_eq!(ended(shown), (true.into(), Value::Null, false));
}

#[test]
fn of_a_recorder_that_was_killed_at_once_nothing_is_complained_of() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut record = recorder();
    record.arg("record").args(["--system", "-o"]).arg(&trace);
    let mut child = record.spawn().unwrap();
    // The first file that the recorder creates in the trace.
    until("the recording has begun", || {
        trace.join("kernel/channel0_0").exists()
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let output = run(&["print", trace.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr);
    // If the recorder had written packets before it was killed, perhaps without events, CPUs
    // without packets cause a warning.
    let is_of_empty = |line: &str| {
        line.ends_with("the stream file is empty: it has no packets") || line.contains(NO_END)
    };
    assert!(said.lines().all(is_of_empty), "{said}");
    assert!(said.contains(NO_END), "{said}");
    succeeds(&output);
}

#[test]
fn each_of_several_recordings_of_a_second_has_a_directory() {
    let directory = TempDir::new().unwrap();
    let source = "#include <stdio.h>\nint main(int count, char **words) { return !fopen(words[count - 1], \"w\"); }";
    let program = compiled_with(
        directory.path(),
        "program",
        source,
        &["-O0", "-finstrument-functions"],
    );
    let record = |number: u32| {
        let mut record = recorder();
        record.args([
            "record",
            "--quiet",
            "--kernel",
            "none",
            "--syscalls",
            "none",
            "--probes",
            "lttng_ust_cyg_profile:*",
            "--",
        ]);
        record.arg(&program).arg(number.to_string());
        record.current_dir(directory.path()).spawn().unwrap()
    };
    let recordings: Vec<_> = (0..4).map(record).collect();
    for mut recording in recordings {
        assert!(recording.wait().unwrap().success());
    }
    let entries = fs::read_dir(directory.path()).unwrap().flatten();
    let count = entries
        .filter(|entry| entry.file_type().unwrap().is_dir())
        .count();
    assert_eq!(count, 4);
    for number in 0..4 {
        assert!(directory.path().join(number.to_string()).is_file());
    }
}

#[test]
fn of_nothing_nothing_is_left() {
    for was_there in [false, true] {
        let directory = TempDir::new().unwrap();
        let trace = directory.path().join("trace");
        if was_there {
            fs::create_dir(&trace).unwrap();
        }
        for options in [&[][..], &["--probes", "my:*"], &["--snapshot"]] {
            let nothing = ["--kernel", "none", "--syscalls", "none"];
            let (output, _) = record(directory.path(), &[&nothing, options].concat(), &["true"]);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            succeeds(&output);
            assert!(said.contains("Nothing was recorded"), "{said}");
            assert_eq!(trace.exists(), was_there, "{said}");
            if was_there {
                assert_eq!(fs::read_dir(&trace).unwrap().count(), 0);
            }
        }
    }
}

#[test]
fn nobody_waits_for_a_recorder_that_was_killed() {
    let directory = TempDir::new().unwrap();
    let gate = directory.path().join(".gate");
    assert!(
        Command::new("mkfifo")
            .arg(&gate)
            .status()
            .unwrap()
            .success()
    );
    // A shell launches a command as the recorder does, and is killed before it releases it.
    let script = r#""$0" __launch "$1" $$ 0 0 = true & echo $!; wait"#;
    let mut recorder = Command::new("sh");
    recorder
        .args(["-c", script, env!("CARGO_BIN_EXE_tracebraid")])
        .arg(&gate);
    let mut recorder = recorder
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut number = String::new();
    let said = recorder.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(said), &mut number).unwrap();
    let waits = || {
        let status =
            fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
        // The launcher has the name of the command. A zombie does not wait.
        status.contains("(true)") && !status.contains(") Z ")
    };
    until("the launcher waits", waits);
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(waits());
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    until("the launcher has ended", || !waits());
}

/// The program with default signal actions: tests that run in the background or under `nohup`
/// inherit ignored signals.
fn recorder() -> Command {
    let mut record = Command::new("env");
    record.args([
        "--default-signal=INT,HUP,QUIT",
        env!("CARGO_BIN_EXE_tracebraid"),
    ]);
    for (name, value) in tracebraid().get_envs() {
        match value {
            Some(value) => record.env(name, value),
            None => record.env_remove(name),
        };
    }
    record
}

/// A recording of a shell command that has begun.
struct Begun {
    _directory: TempDir,
    trace: std::path::PathBuf,
    recorder: std::process::Child,
}

impl Begun {
    /// The command creates the file `$0` when it is ready.
    fn new(options: &[&str], command: &[&str], script: &str) -> Begun {
        let directory = TempDir::new().unwrap();
        let (trace, ready) = (
            directory.path().join("trace"),
            directory.path().join("ready"),
        );
        let mut record = recorder();
        record
            .arg("record")
            .args(options)
            .arg("-o")
            .arg(&trace)
            .arg("--");
        record.args(command).args(["sh", "-c", script]).arg(&ready);
        record.stderr(std::process::Stdio::piped());
        let recorder = record.spawn().unwrap();
        until("the command is ready", || ready.exists());
        Begun {
            _directory: directory,
            trace,
            recorder,
        }
    }

    fn signal(&self, signal: &str) {
        let process = self.recorder.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &process])
                .status()
                .unwrap()
                .success()
        );
    }

    /// Exit code and messages of the recorder; the trace must be complete.
    fn end(self) -> (Option<i32>, String) {
        let output = self.recorder.wait_with_output().unwrap();
        is_whole(&self.trace);
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    }
}

#[test]
fn a_signal_to_the_recorder_goes_on_to_the_command() {
    if !can_record_kernel() {
        return;
    }
    for (signal, code) in [("-TERM", 143), ("-HUP", 129), ("-INT", 130)] {
        let recording = Begun::new(&[], &[], ": > \"$0\"; exec sleep 60 > /dev/null 2>&1");
        recording.signal(signal);
        let (ended, said) = recording.end();
        assert_eq!(ended, Some(code), "{signal}: {said}");
        assert!(
            !said.contains("still running") && !said.contains("still run"),
            "{signal}: {said}"
        );
    }
    // A command that handles the signal keeps its own exit code.
    let script = "trap 'exit 7' TERM; : > \"$0\"; while :; do sleep 0.01; done > /dev/null 2>&1";
    let recording = Begun::new(&[], &[], script);
    recording.signal("-TERM");
    let (ended, said) = recording.end();
    assert_eq!(ended, Some(7), "{said}");
}

/// Java prints a thread dump at SIGQUIT, nginx reopens its log files at SIGUSR1.
#[test]
fn a_signal_that_is_an_order_goes_to_the_command_and_ends_nothing() {
    if !can_record_kernel() {
        return;
    }
    let script =
        "got=0; trap 'got=$((got + 1))' QUIT; trap 'got=$((got + 10))' USR1; trap 'got=$((got + 100))' USR2
        : > \"$0\"; while [ $got -lt 111 ]; do sleep 0.01; done > /dev/null 2>&1; exit $got";
    let recording = Begun::new(&[], &[], script);
    for signal in ["-QUIT", "-USR1", "-USR2"] {
        recording.signal(signal);
    }
    let (ended, said) = recording.end();
    assert_eq!(ended, Some(111), "{said}");
}

#[test]
fn a_recording_without_a_command_ends_by_such_a_signal() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut record = recorder();
    record
        .args(["record", "--system", "--duration", "60s", "-o"])
        .arg(&trace);
    let recorder = record.stderr(std::process::Stdio::null()).spawn().unwrap();
    until("the recorder has blocked the signal", || {
        let status =
            fs::read_to_string(format!("/proc/{}/status", recorder.id())).unwrap_or_default();
        let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        // The bit of SIGQUIT.
        blocked.is_some_and(|mask| u64::from_str_radix(mask.trim(), 16).unwrap() & 4 != 0)
    });
    let process = recorder.id().to_string();
    let kill = Command::new("kill").args(["-QUIT", &process]).status();
    assert!(kill.unwrap().success());
    assert_eq!(recorder.wait_with_output().unwrap().status.code(), Some(0));
    is_whole(&trace);
}

/// The command reports with its exit code that it cannot write to the closed stream.
#[test]
fn a_stream_that_is_closed_is_closed_for_the_command() {
    let Some(directory) = recording_directory() else {
        return;
    };
    for (closed, expected) in [("", 0), (">&-", 1)] {
        let trace = directory.path().join(format!("trace{expected}"));
        let script =
            format!(r#""$0" record -q -o "$1" -- sh -c 'echo said 2> /dev/null' {closed}"#);
        let mut shell = Command::new("sh");
        shell
            .args(["-c", &script, env!("CARGO_BIN_EXE_tracebraid")])
            .arg(&trace);
        assert_eq!(
            shell.output().unwrap().status.code(),
            Some(expected),
            "{closed}"
        );
    }
}

/// Otherwise the search of the launcher would be recorded as the command's: an execve for each
/// directory of `PATH`.
#[test]
fn a_recorded_command_is_found_before_the_recording_begins() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let options = ["--kernel", "none", "--syscalls", "all"];
    let (output, trace) = record(directory.path(), &options, &["true"]);
    succeeds(&output);
    let printed = text(&["print", &trace]);
    assert_eq!(
        printed.matches(" syscall_entry_execve: ").count(),
        1,
        "{printed}"
    );
}

#[test]
fn the_process_group_of_a_command_gets_the_signal_as_well() {
    if !can_record_kernel() {
        return;
    }
    // The process of this test is in the recorder's group, which must not get the signal.
    let script = "sleep 60 > /dev/null 2>&1 & : > \"$0\"; wait";
    let recording = Begun::new(&[], &["setsid"], script);
    recording.signal("-TERM");
    let (ended, said) = recording.end();
    assert_eq!(ended, Some(143), "{said}");
    assert!(!said.contains("still run"), "{said}");
}

#[test]
fn a_second_signal_ends_a_recording_at_once_and_loses_nothing() {
    if !can_record_kernel() {
        return;
    }
    // SIGHUP is ignored too, because it may reach the command before the recorder has ended.
    let script = "trap '' TERM HUP; : > \"$0\"; exec sleep 60 > /dev/null 2>&1";
    let recording = Begun::new(&[], &[], script);
    let since = std::time::Instant::now();
    recording.signal("-TERM");
    std::thread::sleep(std::time::Duration::from_millis(300));
    recording.signal("-TERM");
    recording.signal("-HUP");
    let (ended, said) = recording.end();
    assert!(matches!(ended, Some(143 | 129)), "{ended:?} {said}");
    assert!(
        since.elapsed() < std::time::Duration::from_secs(30),
        "{:?}",
        since.elapsed()
    );
    let process = said
        .split_once("The command is still running (process ")
        .and_then(|(_, rest)| rest.split_once(')'));
    let (process, _) = process.unwrap_or_else(|| panic!("{said}"));
    assert!(
        Command::new("kill")
            .args(["-KILL", process])
            .status()
            .unwrap()
            .success()
    );
}

#[test]
fn a_recorder_under_nohup_survives_its_terminal() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("trace");
    let mut record = Command::new("sh");
    record.args([
        "-c",
        "trap '' HUP; exec \"$0\" record --system --syscalls none -o \"$1\"",
    ]);
    record.arg(env!("CARGO_BIN_EXE_tracebraid")).arg(&trace);
    let mut recorder = record.spawn().unwrap();
    begun(&trace);
    let process = recorder.id().to_string();
    let send = |signal: &str| {
        assert!(
            Command::new("kill")
                .args([signal, &process])
                .status()
                .unwrap()
                .success()
        );
    };
    send("-HUP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(recorder.try_wait().unwrap().is_none());
    send("-TERM");
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    is_whole(&trace);
}

/// Leaves a background process that makes system calls until the file `$1` exists or its directory
/// is removed: a test may remove both before the process looks.
const DAEMON: &str = "setsid bash -c 'while [ -d \"${0%/*}\" ] && [ ! -e \"$0\" ]; do read -t 0.01 < /dev/zero; done' \
                      \"$1\" < /dev/null > /dev/null 2>&1 &";

/// Number of calls in a trace.
fn calls(trace: &str, call: &str) -> usize {
    text(&["print", "--name", call, trace]).lines().count()
}

#[test]
fn daemons_are_named_where_they_are_not_followed() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let end = directory.path().join("end");
    let command = ["sh", "-c", DAEMON, "sh", end.to_str().unwrap()];
    for options in [&[][..], &["--system"]] {
        let (output, _) = record(
            &directory.path().join(options.len().to_string()),
            options,
            &command,
        );
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        succeeds(&output);
        assert!(
            said.contains(
                "1 process started by the command still runs and is no longer recorded; record"
            ) && said.contains("--follow-daemons"),
            "{said}"
        );
    }
    fs::write(end, "").unwrap();
    let (output, _) = record(
        directory.path(),
        &[],
        &["sh", "-c", "true & wait; true | cat"],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("still run"), "{said}");
}

/// A recorder that follows the daemons of a shell command, whose `$1` is `end`; the command has run
/// when this returns.
fn follows(trace: &Path, command: &str, end: &Path) -> std::process::Child {
    let mut recorder = tracebraid();
    recorder
        .args(["record", "--follow-daemons", "-o"])
        .arg(trace);
    recorder.args(["--", "sh", "-c", command, "sh"]).arg(end);
    let recorder = recorder
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    begun(trace);
    std::thread::sleep(std::time::Duration::from_millis(500));
    recorder
}

#[test]
fn daemons_are_recorded_to_their_end_on_request() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (trace, end) = (directory.path().join("trace"), directory.path().join("end"));
    let recorder = follows(&trace, &format!("{DAEMON} exit 5"), &end);
    fs::write(end, "").unwrap();
    let output = recorder.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(!said.contains("still run"), "{said}");
    let trace = trace.to_str().unwrap();
    // The shell, and the daemon, which ends last.
    assert!(calls(trace, "syscall_entry_exit_group") >= 2, "{said}");
    let (output, _) = record(
        &directory.path().join("none"),
        &["--follow-daemons", "--kernel", "none", "--syscalls", "none"],
        &["true"],
    );
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_recording_that_follows_daemons_ends_by_a_signal() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let (trace, end) = (directory.path().join("trace"), directory.path().join("end"));
    let recorder = follows(&trace, DAEMON, &end);
    let process = recorder.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &process])
            .status()
            .unwrap()
            .success()
    );
    let output = recorder.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("1 process started by the command still runs"),
        "{said}"
    );
    is_whole(&trace);
    fs::write(end, "").unwrap();
}

#[test]
fn a_command_has_its_own_name_from_the_first_event_on() {
    let Some(directory) = recording_directory() else {
        return;
    };
    // Executions of all processes are recorded, also those of tests beside this one: no other
    // program has this name.
    let program = directory.path().join("slumber");
    fs::copy("/bin/sleep", &program).unwrap();
    let (output, trace) = record(directory.path(), &[], &[program.to_str().unwrap(), "0.01"]);
    succeeds(&output);
    let executed = text(&["print", "--name", "sched_process_exec", &trace]);
    let executed = executed.lines().find(|line| line.contains("/slumber\""));
    let tid = crate::fields(executed.expect("the command is executed"))["tid"].clone();
    let names = "sched_switch,sched_wak*,sched_process_*,lttng_statedump_process_state";
    let printed = text(&["print", "--name", names, &trace]);
    let mut known = 0;
    for line in printed.lines() {
        let fields = crate::fields(line);
        for (name, number) in [
            ("prev_comm", "prev_tid"),
            ("next_comm", "next_tid"),
            ("comm", "tid"),
            ("name", "tid"),
        ] {
            if let (Some(name), true) = (fields.get(name), fields.get(number) == Some(&tid)) {
                assert_eq!(name, "\"slumber\"", "{line}");
                known += 1;
            }
        }
    }
    assert!(known > 3, "{known}");
}
