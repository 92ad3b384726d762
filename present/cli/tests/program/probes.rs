//! Enabling and disabling the probes of a recorded program.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::support::{compiled_with, failure, run, succeeds, text, tracebraid};
use tempfile::TempDir;
use tracebraid_testkit::processes::{children, cpu_time, state, until, until_some};

/// Fires one event of each of two classes for each line that it reads, and answers.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <tracebraid/probe.h>
TB_EVENT(shop, order, TB_INT32(n));
TB_EVENT(shop, visit, TB_INT32(n));
int main(void) {
	int n = 0;
	for (int c; (c = getchar()) != EOF; n++) {
		tb_trace(shop, order, n);
		tb_trace(shop, visit, n);
		puts("done");
		fflush(stdout);
	}
	return 0;
}
"#;

/// A program with probes, compiled.
fn with_probes(directory: &Path, source: &str) -> PathBuf {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../record/probe/include");
    let libraries = crate::support::libraries().display().to_string();
    let include = format!("-I{}", include.display());
    let (places, found) = (format!("-L{libraries}"), format!("-Wl,-rpath,{libraries}"));
    compiled_with(
        directory,
        "shop",
        source,
        &[&include, &places, &found, "-ltracebraid_probe"],
    )
}

#[test]
fn classes_are_listed_and_switched_while_a_program_runs() {
    let directory = TempDir::new().unwrap();
    let trace = directory.path().join("trace").to_str().unwrap().to_owned();
    let mut record = tracebraid();
    record.args([
        "record",
        "--quiet",
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "-o",
        &trace,
        "--",
    ]);
    record
        .arg(with_probes(directory.path(), PROGRAM))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut record = record.spawn().unwrap();
    let (mut input, output) = (record.stdin.take().unwrap(), record.stdout.take().unwrap());
    let mut output = BufReader::new(output);
    let mut fire = || {
        input.write_all(b"x").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
    };
    fire();
    let listed = text(&["probes", &trace]);
    let is_on = |listed: &str, class: &str| {
        let line = listed
            .lines()
            .find(|line| line.contains(class))
            .unwrap_or_else(|| panic!("{listed}"));
        line.trim_end().ends_with("yes")
    };
    assert!(
        is_on(&listed, "shop:order") && is_on(&listed, "shop:visit"),
        "{listed}"
    );
    let listed = text(&[
        "probes",
        &trace,
        "--disable",
        "shop:*",
        "--enable",
        "shop:order",
    ]);
    assert!(
        is_on(&listed, "shop:order") && !is_on(&listed, "shop:visit"),
        "{listed}"
    );
    fire();
    text(&["probes", &trace, "--enable", "*"]);
    fire();
    drop(input);
    assert!(record.wait().unwrap().success());
    let printed = text(&["print", &trace]);
    let numbers = |class: &str| {
        let lines = printed.lines().filter(|line| line.contains(class));
        lines
            .filter_map(|line| line.split("n = ").nth(1)?.split(' ').next()?.parse().ok())
            .collect::<Vec<u32>>()
    };
    assert_eq!(numbers("shop:order"), [0, 1, 2]);
    assert_eq!(numbers("shop:visit"), [0, 2]);
    // No recorded program is running any more.
    assert!(text(&["probes", &trace]).contains("no program"));
    let (code, said) = failure(&["probes", directory.path().to_str().unwrap()]);
    assert!(
        code == 3 && said.contains("neither a recording of programs with probes"),
        "{code}: {said}"
    );
}

/// Fires N events, one per millisecond.
const TICKER: &str = r#"
#include <stdlib.h>
#include <unistd.h>
#include <tracebraid/probe.h>
TB_EVENT(shop, tick, TB_INT32(n));
int main(int count, char **words) {
	int most = count > 1 ? atoi(words[1]) : 0;
	for (int n = 0; n < most; n++) {
		tb_trace(shop, tick, n);
		usleep(1000);
	}
	return 0;
}
"#;

/// All files below a directory, with their contents.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => drop(found.insert(path.clone(), fs::read(&path).unwrap())),
        }
    }
    found
}

/// Traces until a file with the first name exists, forks children that do the same, and executes
/// programs. Writes its process id to the second file.
const BUSY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <tracebraid/probe.h>
TB_EVENT(shop, tick, TB_INT32(n));
static long now(void) {
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}
int main(int count, char **words) {
	FILE *number = fopen(words[count - 1], "w");
	fprintf(number, "%d\n", getpid());
	fclose(number);
	for (unsigned n = 0; n % 1000 || access(words[count - 2], F_OK) == 0; n++) {
		tb_trace(shop, tick, n);
		if (n % 5000000)
			continue;
		if (fork() == 0) {
			for (long most = now() + 20; now() < most; n++)
				tb_trace(shop, tick, n);
			_exit(0);
		}
		wait(NULL);
		if (system("true"))
			return 1;
	}
	return 0;
}
"#;

#[test]
fn what_goes_on_behind_its_recording_writes_nothing() {
    let directory = TempDir::new().unwrap();
    let busy = with_probes(directory.path(), BUSY);
    for (name, option) in [
        ("plain", "--quiet"),
        ("stacks", "--stacks"),
        ("newest", "--snapshot"),
    ] {
        // The program runs until `goes_on` is removed, by this test or together with its directory
        // if the test fails.
        let files = |attempt: &str| {
            ["trace", "goes_on", "number", "said"]
                .map(|file| directory.path().join(format!("{name}.{attempt}.{file}")))
        };
        // On a busy machine the program may not have traced in time: then record for longer.
        let has_traced = |duration: &&str| {
            let [trace, goes_on, number, said] = files(duration);
            fs::write(&goes_on, "").unwrap();
            let mut record = tracebraid();
            record.args(["record", "--kernel", "none", "--syscalls", "none"]);
            record
                .args(["--duration", duration, option, "-o"])
                .arg(&trace);
            record.arg("--").arg(&busy).args([&goes_on, &number]);
            // The command keeps these streams after the recording.
            record
                .stdout(Stdio::null())
                .stderr(fs::File::create(&said).unwrap());
            assert!(record.status().unwrap().success());
            let has_traced = contents(&trace)
                .keys()
                .any(|path| path.ends_with("metadata"));
            if !has_traced {
                fs::remove_file(&goes_on).unwrap();
            }
            has_traced
        };
        let attempt = ["400ms", "2s", "10s", "50s"].into_iter().find(has_traced);
        let [trace, goes_on, number, said] = files(attempt.expect("the program has traced"));
        // The recording may end when the libraries are tracing, but the program itself has not
        // started.
        let written = || fs::read_to_string(&number).unwrap_or_default();
        until("the program has written its number", || {
            written().ends_with('\n')
        });
        let process: u32 = written().trim().parse().unwrap();
        let used = || cpu_time(process).expect("the program goes on");
        let works = |milliseconds| {
            let since = used();
            until("the program has worked", || {
                used() - since >= Duration::from_millis(milliseconds)
            });
        };
        // A thread may have been within an event when the recording ended.
        works(50);
        let then = contents(&trace);
        works(300);
        let now = contents(&trace);
        let grown: Vec<&PathBuf> = now
            .keys()
            .filter(|&path| then.get(path) != now.get(path))
            .collect();
        assert!(grown.is_empty(), "{name}: {grown:?}");
        text(&["print", "--strict", trace.to_str().unwrap()]);
        if option != "--quiet" {
            let said = fs::read_to_string(said).unwrap();
            assert!(
                said.contains("is still running, but no longer recorded"),
                "{said}"
            );
        }
        let (_, said) = failure(&["probes", trace.to_str().unwrap(), "--enable", "*"]);
        assert!(said.contains("the recording is over"), "{said}");
        fs::remove_file(&goes_on).unwrap();
        until("the program has ended", || {
            matches!(state(process), None | Some('Z'))
        });
    }
}

#[test]
fn the_newest_of_a_program_that_goes_on_is_written() {
    let directory = TempDir::new().unwrap();
    let ticker = with_probes(directory.path(), TICKER);
    let session = |arguments: &[&str]| {
        let mut command = tracebraid();
        command.args(arguments).current_dir(directory.path());
        succeeds(
            &command
                .env("XDG_RUNTIME_DIR", directory.path())
                .output()
                .unwrap(),
        )
    };
    let options = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--snapshot",
        "-o",
        "last",
    ];
    let command = ["--", ticker.to_str().unwrap(), "1000000"];
    session(&[&["start", "ticks"], &options[..], &command].concat());
    let ticks = |name: &str| {
        let trace = directory.path().join(name);
        let printed = text(&["print", "--strict", trace.to_str().unwrap()]);
        printed
            .lines()
            .filter(|line| line.contains("shop:tick"))
            .count()
    };
    let mut copies = 0;
    let first = until_some("the program has ticked", || {
        copies += 1;
        let name = format!("copy{copies}");
        session(&["snapshot", "ticks", "-o", &name]);
        let is_there = directory.path().join(&name).exists();
        is_there.then(|| ticks(&name)).filter(|&ticks| ticks > 20)
    });
    let status: serde_json::Value =
        serde_json::from_str(&session(&["status", "ticks", "--format", "json"])).unwrap();
    let recorder = status["sessions"][0]["pid"].as_u64().unwrap() as u32;
    let programs = children(recorder);
    session(&["stop", "ticks"]);
    // The program is still running.
    let is_there = |&program: &u32| state(program).is_some_and(|state| state != 'Z');
    assert!(
        programs.len() == 1 && programs.iter().all(is_there),
        "{programs:?}"
    );
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &programs[0].to_string()])
        .status();
    assert!(killed.unwrap().success());
    let last = ticks("last");
    assert!(last >= first, "{first} and {last}");
}

/// Traces until it is killed.
const ENDLESS: &str = r"
#include <tracebraid/probe.h>
#include <unistd.h>
TB_EVENT(test, tick, TB_UINT64(number));
int main(void) {
    for (unsigned long number = 0;; number++) {
        tb_trace(test, tick, number);
        if (number % 1000 == 0) usleep(1000);
    }
}
";

#[test]
fn rings_of_a_recorder_that_was_killed_are_put_in_order() {
    let directory = TempDir::new().unwrap();
    let program = with_probes(directory.path(), ENDLESS);
    let trace = directory.path().join("trace");
    let mut record = tracebraid();
    record.args([
        "record",
        "--snapshot",
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "-o",
    ]);
    record.arg(&trace).arg("--").arg(&program);
    let mut recorder = record.spawn().unwrap();
    let has_traced =
        || fs::read_dir(trace.join("ust/pid")).is_ok_and(|mut traces| traces.next().is_some());
    let child = (0..600).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        // The program is the recorder's child.
        let children = format!("/proc/{0}/task/{0}/children", recorder.id());
        let children = std::fs::read_to_string(children).unwrap_or_default();
        let child = children.split_whitespace().next()?.parse::<i32>().ok()?;
        has_traced().then_some(child)
    });
    let child = child.expect("the program traces");
    until("the program has traced for a while", || {
        cpu_time(child as u32).is_some_and(|used| used >= Duration::from_millis(50))
    });
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", &child.to_string()])
        .status();
    assert!(killed.unwrap().success());
    let trace = trace.to_str().unwrap();
    let output = run(&["count", trace]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("tracebraid stop"), "{said}");
    text(&["stop", trace]);
    let count: serde_json::Value =
        serde_json::from_str(&text(&["count", "--format", "json", trace])).unwrap();
    assert!(
        count["by_name"]["test:tick"].as_u64().unwrap() > 100,
        "{count:#}"
    );
    let output = run(&["count", trace]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("tracebraid stop"));
}
