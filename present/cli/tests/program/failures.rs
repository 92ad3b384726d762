//! Messages and exit codes for bad input.

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::small::Small;
use crate::support::{failure, recorded, recorded_trace, run, skipped, text, tracebraid};

fn small(directory: &Path) -> String {
    Small::default()
        .write(&directory.join("small"))
        .to_str()
        .unwrap()
        .to_owned()
}

#[test]
fn wrong_usage_is_2() {
    for arguments in [
        &["print"][..],
        &["nonsense"],
        &["print", "--limit", "x", "/"],
        &["print", "--from", "noon", "/"],
    ] {
        assert_eq!(failure(arguments).0, 2, "{arguments:?}");
    }
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    for arguments in [
        ["waits", "--min", "2s", "--max", "1s"],
        ["cpu", "--min", "2s", "--max", "1s"],
        ["files", "--minsize", "2k", "--maxsize", "1k"],
    ] {
        let (code, message) = failure(&[&arguments[..], &[&trace]].concat());
        assert_eq!(code, 2, "{message}");
        assert!(message.contains("no value satisfies both"), "{message}");
    }
    for options in [
        ["--from", "+2s", "--to", "0"],
        ["--filter", "(", "--limit", "1"],
        ["--timerange", "1", "--limit", "1"],
    ] {
        let mut arguments = vec!["print"];
        arguments.extend(options);
        arguments.push(&trace);
        let (code, message) = failure(&arguments);
        assert_eq!(code, 2, "{message}");
        assert!(message.starts_with("error: "), "{message}");
    }
}

/// Reports explain why they are empty; `print` prints nothing, as babeltrace2.
#[test]
fn a_trace_without_packets_is_said_to_be_so() {
    let directory = tempfile::tempdir().unwrap();
    let metadata = Path::new(&recorded_trace("kernel-mix-small")).join("kernel/metadata");
    std::fs::copy(metadata, directory.path().join("metadata")).unwrap();
    let path = directory.path().to_str().unwrap();
    for command in ["cpu", "report", "count"] {
        let output = run(&[command, path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && said.contains("no stream has a packet"),
            "{command}: {said}"
        );
    }
    let output = run(&["print", path]);
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty());
}

#[test]
fn nothing_readable_is_3() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    for command in ["info", "print"] {
        let (code, message) = failure(&[command, path]);
        assert_eq!(code, 3);
        assert!(
            message.contains("no trace found") && message.contains(path),
            "{message}"
        );
        let (code, message) = failure(&[command, "/does/not/exist"]);
        assert_eq!(code, 3);
        assert!(message.contains("/does/not/exist"), "{message}");
    }
    std::fs::write(
        directory.path().join("metadata"),
        "/* CTF 1.8 */\ntrace {\n  major = 1; minor = ;\n};\n",
    )
    .unwrap();
    let (code, message) = failure(&["info", path]);
    assert_eq!(code, 3);
    assert!(message.contains("metadata:3:"), "{message}");
    assert!(message.contains('^'), "{message}");
}

#[test]
fn one_bad_trace_does_not_hide_the_others() {
    let directory = tempfile::tempdir().unwrap();
    small(directory.path());
    let bad = directory.path().join("bad");
    std::fs::create_dir(&bad).unwrap();
    std::fs::write(bad.join("metadata"), "/* CTF 1.8 */ trace {").unwrap();
    let output = run(&["print".as_ref(), directory.path().as_os_str()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        output.stdout.iter().filter(|&&byte| byte == b'\n').count(),
        9
    );
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("not read") && message.contains("bad/metadata"),
        "{message}"
    );
    let strict = run(&[
        "print".as_ref(),
        "--strict".as_ref(),
        directory.path().as_os_str(),
    ]);
    assert_eq!(strict.status.code(), Some(1));
    assert_eq!(strict.stdout, output.stdout);
}

#[test]
fn damage_is_told_and_everything_sound_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    let whole = text(&["print", &trace]);
    let stream = Path::new(&trace).join("stream_0");
    let mut bytes = std::fs::read(&stream).unwrap();
    bytes.truncate(bytes.len() - 10);
    std::fs::write(&stream, bytes).unwrap();
    let output = run(&["print", &trace]);
    assert_eq!(output.status.code(), Some(0));
    let sound: String = whole
        .lines()
        .take(8)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), sound);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("stream_0: byte "), "{message}");
    assert_eq!(run(&["print", "--strict", &trace]).status.code(), Some(1));
    assert_eq!(run(&["info", "--strict", &trace]).status.code(), Some(1));
    assert_eq!(run(&["info", &trace]).status.code(), Some(0));
}

#[test]
fn an_empty_stream_is_no_damage() {
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    std::fs::write(Path::new(&trace).join("empty"), "").unwrap();
    for command in ["print", "info", "count", "cpu", "io"] {
        let output = run(&[command, "--strict", &trace]);
        assert_eq!(output.status.code(), Some(0), "{command}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(
            message.contains("empty: the stream file is empty"),
            "{message}"
        );
    }
    let shown = text(&["info", &trace]);
    assert!(
        shown.contains("Notes\n") && shown.contains("small/empty: the stream file"),
        "{shown}"
    );
    (0..30).for_each(|more| {
        std::fs::write(Path::new(&trace).join(format!("more{more}")), "").unwrap()
    });
    let message = String::from_utf8(run(&["print", &trace]).stderr).unwrap();
    assert_eq!(
        message.matches("the stream file is empty").count(),
        20,
        "{message}"
    );
    assert!(
        message.contains("warning: 11 more of this kind"),
        "{message}"
    );
}

#[test]
fn clocks_that_cannot_be_related() {
    let directory = tempfile::tempdir().unwrap();
    let clock = |uuid: u8| {
        format!("uuid = \"00000000-0000-0000-0000-0000000000{uuid:02x}\"; absolute = FALSE;")
    };
    for uuid in [1, 2] {
        let clock = clock(uuid);
        Small {
            uuid,
            clock: &clock,
            ..Small::default()
        }
        .write(&directory.path().join(uuid.to_string()));
    }
    let output = run(&["print".as_ref(), directory.path().as_os_str()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        output.stdout.iter().filter(|&&byte| byte == b'\n').count(),
        18
    );
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("cannot be aligned"), "{message}");
    for command in ["print", "count"] {
        let strict = run(&[
            command.as_ref(),
            "--strict".as_ref(),
            directory.path().as_os_str(),
        ]);
        assert_eq!(strict.status.code(), Some(1), "{command}");
    }
}

#[test]
fn losses_are_told() {
    let trace = recorded("kernel-discarded").join("kernel-discarded");
    let output = run(&["print".as_ref(), "--limit=1".as_ref(), trace.as_os_str()]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("the tracer lost 43966 event records"),
        "{message}"
    );
}

#[test]
fn a_closed_pipe_is_no_error() {
    let trace = recorded("kernel-discarded").join("kernel-discarded");
    let mut child = tracebraid()
        .arg("print")
        .arg(trace)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut some = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("error"));
}

#[test]
fn what_is_neither_file_nor_directory_is_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    let made = Command::new("mkfifo").arg(at("fifo")).status();
    assert!(made.unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let commands: [&[&str]; 6] = [
        &["info"],
        &["print"],
        &["count"],
        &["report"],
        &["import"],
        &["history", "query", "--at", "+1s"],
    ];
    let pipes = [
        (at("fifo"), "is a pipe"),
        ("/dev/stdin".to_owned(), "is a pipe"),
    ];
    let others = [
        (at("socket"), "is a socket"),
        ("/dev/null".to_owned(), "is a character device"),
    ];
    for (path, what) in pipes.iter().chain(&others) {
        for command in commands {
            // The pipes never have a writer.
            let mut child = Command::new("timeout")
                .args(["-s", "KILL", "60", env!("CARGO_BIN_EXE_tracebraid")])
                .args(command)
                .arg(path)
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let input = child.stdin.take();
            let output = child.wait_with_output().unwrap();
            drop(input);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{command:?} {path}: {said}");
            assert!(
                said.contains(what) && said.contains(path),
                "{command:?} {path}: {said}"
            );
        }
    }
    assert!(!directory.path().join("fifo.ctf").exists());
}

#[test]
fn a_directory_that_may_not_be_read_is_told() {
    let mode =
        |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    small(directory.path());
    let locked = directory.path().join("other/locked");
    std::fs::create_dir_all(&locked).unwrap();
    mode(directory.path(), 0o755);
    mode(&locked, 0);
    // Root may read all files, so another user must run the program.
    let reads_all = std::fs::read_dir(&locked).is_ok();
    let program = env!("CARGO_BIN_EXE_tracebraid");
    let command = || match reads_all {
        true => {
            let mut nobody = Command::new("setpriv");
            nobody.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
            nobody
        }
        false => tracebraid(),
    };
    if !command()
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        return skipped("only root can run the program here: no test of unreadable directories");
    }
    let count = |options: &[&str], path: &Path| {
        let output = command()
            .arg("count")
            .args(options)
            .arg(path)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    for (options, expected) in [(&[][..], 0), (&["--strict"], 1)] {
        let (code, said) = count(options, directory.path());
        assert_eq!(code, Some(expected), "{said}");
        let told = format!("not read: {}: Permission denied", locked.display());
        assert!(said.contains(&told), "{said}");
    }
    // In that directory alone, nothing is readable.
    let (code, said) = count(&[], &directory.path().join("other"));
    assert!(
        code == Some(3) && said.contains("Permission denied"),
        "{said}"
    );
    mode(&locked, 0o755);
}

#[test]
fn a_full_disk_is_an_error() {
    if !Path::new("/dev/full").exists() {
        return skipped("there is no /dev/full");
    }
    let directory = tempfile::tempdir().unwrap();
    let trace = small(directory.path());
    let (code, message) = failure(&["print", "-w", "/dev/full", &trace]);
    assert_eq!(code, 1);
    assert!(message.contains("cannot be written"), "{message}");
}

/// A trace that takes a while, and Ctrl-C at increasing delays: one arrives while event records are
/// read. A count that is not interrupted in time exits with 0.
#[test]
fn ctrl_c_ends_a_count_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let times: Vec<u64> = (0..400_000).collect();
    let trace = Small {
        times: &times,
        ..Small::default()
    }
    .write(&directory.path().join("long"));
    let mut seen = Vec::new();
    // On a busy machine the count may end, or start, late: then try again.
    for milliseconds in (5..200).step_by(5).cycle().take(200) {
        let mut child = tracebraid()
            .args(["count", "--procname", "nosuch"])
            .arg(&trace)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(milliseconds));
        let pid = child.id().to_string();
        let kill = Command::new("kill")
            .args(["-INT", &pid])
            .stderr(Stdio::null())
            .status();
        kill.unwrap();
        let status = child.wait().unwrap();
        if status.code() == Some(130) {
            let mut message = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut message)
                .unwrap();
            assert!(message.contains("interrupted"), "{message}");
            return;
        }
        seen.push(status);
    }
    panic!("Ctrl-C never gave 130: {seen:?}");
}

#[test]
fn a_selection_of_nothing_says_why() {
    let trace = recorded("kernel-mix-small").join("kernel-mix-small");
    let trace = trace.to_str().unwrap();
    for command in ["print", "count", "cpu", "io"] {
        for (options, reason) in [
            (&["--cpu", "99"][..], "the trace has CPUs 0-3"),
            (&["--tid", "7777777"], "no thread with the id 7777777 ran"),
            (
                &["--procname", "nosuch"],
                "no thread matches --procname 'nosuch'",
            ),
            (
                &["--from", "+1h"],
                "which lasts from 2026-11-21 01:43:14.135134325 to 2026-11-21 01:43:16.775322007",
            ),
            (&["--to", "1795225300"], "the range is outside the trace"),
        ] {
            let arguments = [&[command][..], options, &[trace]].concat();
            let output = run(&arguments);
            assert_eq!(output.status.code(), Some(0));
            let message = String::from_utf8(output.stderr).unwrap();
            assert!(
                message.contains("no event record is selected") && message.contains(reason),
                "{arguments:?}: {message}"
            );
            assert!(
                !message.contains("not recorded"),
                "{arguments:?}: {message}"
            );
        }
        for options in [&["--cpu", "1"][..], &["--to", "+1s"]] {
            let output = run(&[&[command][..], options, &[trace]].concat());
            assert!(!String::from_utf8_lossy(&output.stderr).contains("no event record"));
        }
    }
}

/// A process with few file descriptors reads a trace of many streams.
#[test]
fn few_files_may_be_open() {
    let traces = ["kernel-mix-small", "kernel-ust-requests"].map(recorded_trace);
    let program = tracebraid().get_program().to_owned();
    let limited = |limit: &str, command: &[&str]| {
        let shell = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &shell])
            .arg(&program)
            .args(command)
            .args(&traces)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        // The two recordings are of different boots.
        let is_other = |line: &&str| !line.contains("several hosts");
        assert!(
            output.status.success() && said.lines().filter(is_other).count() == 0,
            "{command:?}: {said}"
        );
        output.stdout
    };
    for command in [&["print"][..], &["cpu", "-j", "2"], &["count"]] {
        assert_eq!(
            limited("9", command),
            limited("1024", command),
            "{command:?}"
        );
    }
}
