//! Background recordings, with the real binary.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{recording_directory, succeeds, text, tracebraid};
use tempfile::TempDir;
use tracebraid_testkit::processes::{state, until};

/// Runs a command whose sessions are those of the directory `run`.
fn command(run: &Path, arguments: &[&str]) -> Output {
    let mut command = tracebraid();
    command
        .env("XDG_RUNTIME_DIR", run)
        .current_dir(run)
        .args(arguments);
    command.output().expect("the binary runs")
}

fn fails(output: &Output) -> (i32, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().expect("an exit code"), said)
}

#[test]
fn a_session_is_started_asked_and_stopped() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    succeeds(&command(run, &["start", "one", "--system", "-o", "trace"]));
    let (code, said) = fails(&command(run, &["start", "one", "--system", "-o", "other"]));
    assert_eq!(code, 2);
    assert!(said.contains("session `one` exists already"), "{said}");
    let listed: serde_json::Value =
        serde_json::from_str(&succeeds(&command(run, &["list", "--format", "json"]))).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(listed["sessions"][0]["name"], "one");
    Command::new("/bin/true").status().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let status = succeeds(&command(run, &["status", "one"]));
    assert!(
        status.contains("Session") && status.contains("one"),
        "{status}"
    );
    let (code, said) = fails(&command(run, &["snapshot", "one", "-o", "no"]));
    assert_eq!(code, 1);
    assert!(
        said.contains("keeps none in memory: start it with --snapshot"),
        "{said}"
    );
    assert!(!run.join("no").exists());
    let stopped = succeeds(&command(run, &["stop", "one"]));
    assert!(stopped.contains("Recorded"), "{stopped}");
    let trace = run.join("trace");
    let executed = text(&[
        "print",
        "--name",
        "sched_process_exec",
        trace.to_str().unwrap(),
    ]);
    assert!(executed.contains("/bin/true\""), "{executed}");
    let (code, said) = fails(&command(run, &["stop", "one"]));
    assert_eq!(code, 3);
    assert!(said.contains("no session is named `one`"), "{said}");
    assert!(succeeds(&command(run, &["list"])).starts_with("No background recording"));
    // The session had no message, so it leaves no log.
    until("nothing is left", || {
        std::fs::read_dir(run.join("tracebraid"))
            .unwrap()
            .next()
            .is_none()
    });
}

#[test]
fn what_probes_have_written_is_told_while_they_go_on() {
    let directory = TempDir::new().unwrap();
    let run = directory.path();
    let source = "
int work(int n) { return n + 1; }
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 500; i++)
		sum += work(i);
	return getchar() == sum;
}
";
    let source = format!("#include <stdio.h>\n{source}");
    let program =
        crate::support::compiled_with(run, "program", &source, &["-O0", "-finstrument-functions"]);
    let pipe = run.join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let shell = format!("{} < {}", program.display(), pipe.display());
    let mut start = tracebraid();
    start
        .env("XDG_RUNTIME_DIR", run)
        .env("TRACEBRAID_LIBRARIES", crate::support::libraries())
        .current_dir(run)
        .args([
            "start",
            "one",
            "--kernel",
            "none",
            "--syscalls",
            "none",
            "-o",
            "trace",
        ])
        .args([
            "--probes",
            "lttng_ust_cyg_profile:*",
            "--",
            "sh",
            "-c",
            &shell,
        ]);
    succeeds(&start.output().expect("the binary runs"));
    // The program waits until the pipe is opened, and then for input.
    let open = std::fs::File::options().write(true).open(&pipe).unwrap();
    let told = || -> serde_json::Value {
        let status = succeeds(&command(run, &["status", "one", "--format", "json"]));
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["sessions"][0]["probes"]["events"].clone()
    };
    until("its events are reported", || {
        told().as_u64().is_some_and(|events| events >= 1001)
    });
    let listed = succeeds(&command(run, &["list"]));
    assert!(
        listed.contains("Probe events") && listed.contains(" 1,0"),
        "{listed}"
    );
    drop(open);
    // The command may have ended the session already.
    command(run, &["stop", "one"]);
}

#[test]
fn what_is_in_rings_is_not_told_as_nothing() {
    let directory = TempDir::new().unwrap();
    let run = directory.path();
    for (options, keeps) in [(&["--snapshot"][..], true), (&[], false)] {
        let name = if keeps { "box" } else { "all" };
        let start = [
            "start",
            name,
            "--kernel",
            "none",
            "--syscalls",
            "none",
            "-o",
            name,
        ];
        let sleep = ["--", "sh", "-c", "exec sleep 60 > /dev/null 2>&1"];
        succeeds(&command(run, &[&start, options, &sleep].concat()));
        // As a program with probes would start its trace.
        let trace = run.join(name).join("ust/pid/x-1-2");
        std::fs::create_dir_all(&trace).unwrap();
        std::fs::write(
            trace.join("metadata"),
            "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n",
        )
        .unwrap();
        let status = succeeds(&command(run, &["status", name, "--format", "json"]));
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let status = &status["sessions"][0];
        assert_eq!(status["keeps_newest"], keeps, "{status}");
        match keeps {
            true => assert!(status["probes"].is_null(), "{status}"),
            false => assert_eq!(status["probes"]["events"], 0, "{status}"),
        }
        let listed = succeeds(&command(run, &["status", name]));
        let row = listed
            .lines()
            .find(|line| line.contains(name))
            .unwrap()
            .to_owned();
        assert_eq!(
            row.split_whitespace().any(|word| word == "-"),
            keeps,
            "{row}"
        );
        let pid = status["pid"].to_string();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        command(run, &["stop", name]);
        for child in children.split_whitespace() {
            Command::new("kill")
                .args(["-KILL", child])
                .status()
                .unwrap();
        }
    }
}

#[test]
fn nobody_has_to_read_what_is_said() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    let unread = |arguments: &[&str]| {
        let mut command = tracebraid();
        command
            .env("XDG_RUNTIME_DIR", run)
            .current_dir(run)
            .args(arguments);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        child.wait().unwrap().code()
    };
    assert_eq!(unread(&["list"]), Some(0));
    assert_eq!(unread(&["status", "--format", "json"]), Some(0));
    assert_eq!(
        unread(&["start", "one", "--system", "--snapshot", "-o", "trace"]),
        Some(0)
    );
    assert_eq!(unread(&["list"]), Some(0));
    assert_eq!(unread(&["snapshot", "one"]), Some(0));
    assert_eq!(unread(&["stop", "one"]), Some(0));
    assert_eq!(unread(&["stop", "one"]), Some(3));
    assert_eq!(unread(&["report", "--mi-version"]), Some(0));
    text(&["info", "--strict", run.join("trace").to_str().unwrap()]);
}

#[test]
fn a_snapshot_has_the_newest_and_what_is_there() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    let size = ["--snapshot", "--max-size", "4M"];
    let options = [&["start", "box", "--system", "-o", "last"][..], &size].concat();
    succeeds(&command(run, &options));
    for _ in 0..30 {
        Command::new("find")
            .args(["/usr/share/doc", "-name", "x"])
            .output()
            .unwrap();
    }
    // On a busy machine, more events than are kept may occur before the snapshot.
    for attempt in 0..10 {
        let _ = fs::remove_dir_all(run.join("first"));
        Command::new("/bin/true").status().unwrap();
        succeeds(&command(run, &["snapshot", "box", "-o", "first"]));
        let first = run.join("first");
        let executed = text(&[
            "print",
            "--name",
            "sched_process_exec",
            first.to_str().unwrap(),
        ]);
        if executed.contains("/bin/true\"") {
            break;
        }
        assert!(attempt < 9, "{executed}");
    }
    succeeds(&command(run, &["stop", "box"]));
    for (name, reason) in [("first", "snapshot"), ("last", "asked_to_stop")] {
        let trace = run.join(name);
        let trace = trace.to_str().unwrap();
        let info: serde_json::Value =
            serde_json::from_str(&text(&["info", "--strict", "--format", "json", trace])).unwrap();
        assert_eq!(info["traces"][0]["end_reason"], reason);
        let bytes = info["bytes"].as_u64().unwrap();
        assert!((100_000..=4 << 20).contains(&bytes), "{bytes}");
        let dumped = text(&["print", "--name", "lttng_statedump_end", trace]);
        assert!(dumped.lines().count() >= 1);
    }
    let first = run.join("first");
    // No event is moved to a common time.
    let printed = text(&["print", "--clock-cycles", first.to_str().unwrap()]);
    let mut times = std::collections::HashMap::new();
    for line in printed.lines() {
        *times
            .entry(line.split(']').next().unwrap().to_owned())
            .or_insert(0) += 1;
    }
    let (most, count) = times.iter().max_by_key(|(_, count)| **count).unwrap();
    let moved: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with(most))
        .collect();
    assert!(*count < 100, "{count} events: {:#?}", &moved[..20]);
}

#[test]
fn what_cannot_be_started_says_why() {
    let directory = TempDir::new().unwrap();
    let run = directory.path();
    for (arguments, expected) in [
        (&["start", "a/b", "--system"][..], "invalid session name"),
        (&["start", ".x", "--system"], "invalid session name"),
        (
            &["start", "x", "--system", "--syscalls", "reed"],
            "no system call `reed`",
        ),
        (&["start", "x"], "choose what to record"),
    ] {
        let (code, said) = fails(&command(run, arguments));
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_session_that_was_killed_is_no_more() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    succeeds(&command(
        run,
        &["start", "doomed", "--system", "-o", "trace"],
    ));
    let listed: serde_json::Value =
        serde_json::from_str(&succeeds(&command(run, &["list", "--format", "json"]))).unwrap();
    let pid = listed["sessions"][0]["pid"].to_string();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(
        Command::new("kill")
            .args(["-KILL", &pid])
            .status()
            .unwrap()
            .success()
    );
    let process = pid.parse().unwrap();
    until("the session has ended", || {
        matches!(state(process), None | Some('Z'))
    });
    let (code, said) = fails(&command(run, &["status", "doomed"]));
    assert_eq!(code, 3);
    assert!(
        said.contains("if its recorder was killed, `tracebraid stop DIR`"),
        "{said}"
    );
    // The packets written until then are readable and complete.
    let trace = run.join("trace");
    text(&["info", "--strict", trace.to_str().unwrap()]);
    succeeds(&command(
        run,
        &["start", "doomed", "--system", "-o", "again"],
    ));
    succeeds(&command(run, &["stop", "doomed"]));
}

#[test]
fn a_command_that_is_not_there_begins_no_session() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    for (name, program, expected) in [
        ("absent", "/there/is/no/such/program", 127),
        ("unfit", "/etc/passwd", 126),
    ] {
        let (code, said) = fails(&command(
            run,
            &["start", name, "-o", "trace", "--", program],
        ));
        assert_eq!(code, expected, "{said}");
        assert!(said.starts_with(&format!("error: {program}: ")), "{said}");
        let left: Vec<_> = std::fs::read_dir(run.join("tracebraid")).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        assert!(!run.join("trace").exists());
    }
}

#[test]
fn a_snapshot_goes_into_a_directory_of_its_own() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    let size = ["--snapshot", "--max-size", "1M"];
    succeeds(&command(
        run,
        &[&["start", "box", "--system", "-o", "last"][..], &size].concat(),
    ));
    std::fs::create_dir(run.join("full")).unwrap();
    std::fs::write(run.join("full/file"), "mine").unwrap();
    let (code, said) = fails(&command(run, &["snapshot", "box", "-o", "full"]));
    assert_eq!(code, 1);
    assert!(
        said.contains("the directory is not empty: choose another with -o"),
        "{said}"
    );
    assert_eq!(std::fs::read_dir(run.join("full")).unwrap().count(), 1);
    // The session's own trace will be in this directory at its end.
    let (code, said) = fails(&command(run, &["snapshot", "box", "-o", "last"]));
    assert!(
        code == 1 && said.contains("the session writes its own trace"),
        "{code}: {said}"
    );
    // The session continues.
    std::fs::create_dir(run.join("empty")).unwrap();
    let kept = succeeds(&command(run, &["snapshot", "box", "-o", "empty"]));
    let count = text(&[
        "count",
        "--format",
        "json",
        run.join("empty").to_str().unwrap(),
    ]);
    let count: serde_json::Value = serde_json::from_str(&count).unwrap();
    let events = count["events"].as_u64().unwrap();
    let told = kept
        .trim_start_matches("Kept: ")
        .split(' ')
        .next()
        .unwrap()
        .replace(',', "");
    assert_eq!(told, events.to_string(), "{kept}");
    text(&["info", "--strict", run.join("empty").to_str().unwrap()]);
    succeeds(&command(run, &["stop", "box"]));
}

#[test]
fn who_connects_and_says_nothing_keeps_nobody_waiting() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    succeeds(&command(run, &["start", "one", "--system", "-o", "trace"]));
    let socket = run.join("tracebraid/one.sock");
    let connect = || UnixStream::connect(&socket).unwrap();
    let silent: Vec<UnixStream> = (0..3).map(|_| connect()).collect();
    let mut slow = connect();
    slow.write_all(b"\"sta").unwrap();
    // The client has the same timeout as silent callers, so serving them one after another would
    // take too long.
    succeeds(&command(run, &["status", "one"]));
    // The rest of a line may arrive later.
    slow.write_all(b"tus\"\n").unwrap();
    let mut answer = String::new();
    BufReader::new(&slow).read_line(&mut answer).unwrap();
    assert!(answer.starts_with("{\"done\":"), "{answer}");
    let mut mad = connect();
    mad.write_all(b"nonsense\n").unwrap();
    assert_eq!(mad.read(&mut [0; 8]).unwrap(), 0);
    succeeds(&command(run, &["stop", "one"]));
    drop(silent);
}
