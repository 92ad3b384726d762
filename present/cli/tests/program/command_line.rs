//! Options and habits that all commands share.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::support::{failure, recorded_trace, run, succeeds, text, tracebraid};

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

#[test]
fn help_has_groups_and_lines_of_eighty_columns() {
    let help = text(&["--help"]);
    for heading in ["Record:", "Look:", "Explain:", "Convert and set up:"] {
        assert!(help.lines().any(|line| line == heading), "{help}");
    }
    // Descriptions of options are as wide as the terminal, or 100 columns.
    let mut lines = help.lines().take_while(|line| !line.starts_with("Options"));
    assert!(lines.all(|line| line.chars().count() <= 80), "{help}");
}

#[test]
fn quiet_commands_print_errors_only() {
    let trace = trace();
    let noisy = ["print", "--filter", "sched_swich", &trace];
    assert!(!run(&noisy).stderr.is_empty());
    let quiet = run(&[&noisy[..], &["--quiet"]].concat());
    assert!(quiet.stderr.is_empty() && quiet.status.success());
    let (code, said) = failure(&["count", "-q", "/nonexistent"]);
    assert!(code == 3 && said.starts_with("error: "), "{said}");
}

#[test]
fn locales_without_utf_8_get_ascii() {
    let trace = trace();
    let of = |locale: &str| {
        let mut command = tracebraid();
        command.env("LC_ALL", locale);
        let output = command
            .args(["syscalls", "--view", "stats,freq", &trace])
            .output();
        succeeds(&output.expect("the binary runs"))
    };
    assert!(!of("C.UTF-8").is_ascii());
    assert!(of("C").is_ascii());
}

#[test]
fn tables_are_as_wide_as_asked_for() {
    let table = text(&["sched", "--width", "72", &trace()]);
    assert!(
        table.lines().all(|line| line.chars().count() <= 72),
        "{table}"
    );
    assert!(table.contains("(hidden at this width: "), "{table}");
    let wide = text(&["sched", &trace()]);
    assert!(!wide.contains("hidden at this width"), "{wide}");
}

#[test]
fn colors_mark_what_matters_where_they_are_asked_for() {
    let trace = trace();
    let plain = text(&["syscalls", &trace]);
    assert!(!plain.contains('\u{1b}'));
    let coloured = text(&["syscalls", "--color", "always", &trace]);
    // Errors are red, the largest is bold.
    assert!(coloured.contains("\u{1b}[31m") && coloured.contains("\u{1b}[1m"));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        stripped += before;
        rest = after.split_once('m').map_or("", |(_, rest)| rest);
    }
    assert_eq!(stripped + rest, plain);
}

#[test]
fn the_end_of_a_range_counts_from_its_beginning() {
    let trace = trace();
    let count = |from: &str, to: &str| {
        text(&[
            "count", "--from", from, "--to", to, "--format", "csv", &trace,
        ])
    };
    assert_eq!(count("+1s", "+500ms"), count("+1s", "01:43:15.635134325"));
    let (code, said) = failure(&["count", "--from", "01:43:16", "--to", "01:43:15", &trace]);
    assert_eq!(code, 2);
    for part in [
        "the time range is empty",
        "lasts from 2026-11-21 01:43:14.135134325 to",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn counts_are_of_filtered_records() {
    let trace = trace();
    let filter = ["--filter", "syscall_exit_* && ret < 0", "--from", "+1s"];
    let printed = text(&[&["print", &trace], &filter[..]].concat());
    let counted = text(&[&["count", "--format", "json", &trace], &filter[..]].concat());
    let counted: serde_json::Value = serde_json::from_str(&counted).expect("JSON");
    assert!(printed.lines().count() > 100);
    assert_eq!(counted["events"], printed.lines().count());
    let named = text(&["count", "--name", "sched_switch", "--format", "csv", &trace]);
    assert_eq!(named.lines().count(), 2, "{named}");
}

/// Durations without a unit are microseconds to some tools and seconds to others.
#[test]
fn durations_need_a_unit() {
    let (code, said) = failure(&["syscalls", "--min", "10", &trace()]);
    assert!(code == 2 && said.contains("10us, 10ms or 10s?"), "{said}");
}

#[test]
fn queries_go_to_a_trace_directly() {
    let query = "SELECT count(*) AS n FROM events";
    let of_directory = text(&["sql", &trace(), query, "--format", "csv"]);
    assert!(of_directory.starts_with("n\n233991"), "{of_directory}");
    let of_option = text(&["sql", "--trace", &trace(), query, "--format", "csv"]);
    assert_eq!(of_option, of_directory);
}

#[test]
fn commands_of_the_summary_can_be_run() {
    let trace = trace();
    let summary = text(&["report", &trace]);
    let commands = summary
        .lines()
        .filter_map(|line| line.split_once("tracebraid "));
    let commands: Vec<Vec<&str>> = commands
        .map(|(_, arguments)| arguments.split_whitespace().collect())
        .collect();
    assert!(commands.len() >= 5, "{summary}");
    for arguments in commands {
        let output = run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && said.is_empty(),
            "{arguments:?}: {said}"
        );
        assert!(!output.stdout.is_empty(), "{arguments:?}");
    }
    assert!(
        summary.contains("; the tracer reports no lost event records"),
        "{summary}"
    );
}

/// An interrupted `print -w` leaves neither the file nor a part of it.
#[test]
fn interrupted_output_leaves_no_file() {
    let directory = TempDir::new().expect("a temporary directory");
    let file = directory.path().join("lines.txt");
    let trace = trace();
    for attempt in 0..20 {
        let mut print = tracebraid()
            .args(["print", &trace, &trace, "-w"])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        std::thread::sleep(Duration::from_millis(5 * attempt));
        let pid = i32::try_from(print.id()).expect("a process id");
        let killed = Command::new("kill")
            .args(["-INT", &pid.to_string()])
            .status();
        let _ = killed.expect("kill runs");
        let code = print.wait().expect("it ends").code();
        let names: Vec<_> = std::fs::read_dir(directory.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        match code {
            Some(0) => {
                assert_eq!(names, ["lines.txt"]);
                std::fs::remove_file(&file).expect("removed");
            }
            _ => assert!(names.is_empty(), "{code:?}: {names:?}"),
        }
    }
}

/// A command whose output is not read any more ends without an error.
#[test]
fn a_closed_pipe_ends_a_command() {
    let begun = Instant::now();
    let mut print = tracebraid()
        .args(["print", &trace()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(print.stdout.take());
    assert!(print.wait().expect("it ends").success());
    assert!(begun.elapsed() < Duration::from_secs(60));
}
