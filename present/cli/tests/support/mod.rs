//! Shared parts of the end-to-end tests: the binary, the traces, babeltrace2.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod recording;
pub mod small;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, OnceLock};

use tempfile::TempDir;
use tracebraid_testkit::recorded as testkit;
pub use tracebraid_testkit::skip::skipped;

/// A command of the binary, independent of the user's settings.
pub fn tracebraid() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tracebraid"));
    command
        .env("TZ", "UTC")
        .env("LC_ALL", "C.UTF-8")
        .env("TRACEBRAID_LIBRARIES", libraries())
        // Names of functions are not cached.
        .env("TRACEBRAID_CACHE", "")
        // Cargo's path would lead to older libraries of a normal build.
        .env_remove("LD_LIBRARY_PATH")
        .env_remove("NO_COLOR")
        .env_remove("TRACEBRAID_COLUMNS");
    command
}

pub fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    tracebraid()
        .args(arguments)
        .output()
        .expect("the binary runs")
}

/// Standard output of the binary, which must succeed.
pub fn text<S: AsRef<OsStr>>(arguments: &[S]) -> String {
    succeeds(&run(arguments))
}

/// Standard output of a program that must have succeeded.
pub fn succeeds(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Exit code and standard error of the binary.
pub fn failure<S: AsRef<OsStr>>(arguments: &[S]) -> (i32, String) {
    let output = run(arguments);
    (
        output.status.code().unwrap_or(-1),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// A directory with an unpacked archive of `tests/data`; unpacked once for all tests of a program.
pub fn recorded(archive: &str) -> PathBuf {
    static UNPACKED: OnceLock<TempDir> = OnceLock::new();
    static DONE: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let root = UNPACKED.get_or_init(|| TempDir::new().expect("a temporary directory"));
    let mut done = DONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !done.iter().any(|other| other == archive) {
        testkit::unpack(&testkit::archive(archive), root.path());
        done.push(archive.to_owned());
    }
    root.path().to_owned()
}

/// The path of the trace in the archive with the same name.
pub fn recorded_trace(archive: &str) -> String {
    let path = recorded(archive).join(archive);
    path.to_str().expect("UTF-8").to_owned()
}

/// Standard error of a command on a real kernel trace; the command must succeed.
#[track_caller]
pub fn said(options: &[&str]) -> String {
    let trace = recorded_trace("kernel-mix-small");
    let mut arguments = options.to_vec();
    arguments.push(&trace);
    let output = run(&arguments);
    let message = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{options:?}: {message}");
    message
}

/// Checks that a command prints a message that is not damage: `--strict` changes nothing.
#[track_caller]
pub fn says(options: &[&str], expected: &str) {
    let message = said(options);
    assert!(message.contains(expected), "{options:?}\n{message}");
    let mut strict = options.to_vec();
    strict.push("--strict");
    assert_eq!(said(&strict), message);
}

/// A directory of published traces beside the repository, if it exists.
pub fn published(below: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/traces")
        .join(below);
    if path.exists() {
        return Some(path);
    }
    skipped(format_args!("{} is not there", path.display()));
    None
}

/// Cargo's directory of libraries that programs load: beside the program, or that of test builds.
pub fn libraries() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_tracebraid"))
        .parent()
        .expect("a directory");
    let built = beside.join("deps");
    match built.join("libtracebraid_probe.a").is_file() {
        true => built,
        false => beside.to_owned(),
    }
}

/// True if kernel events can be recorded here, which requires privileges and a kernel with BTF;
/// prints a message otherwise.
pub fn can_record_kernel() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let directory = TempDir::new().expect("a temporary directory");
        let mut record = tracebraid();
        record
            .args(["record", "-o"])
            .arg(directory.path().join("trace"))
            .args(["--", "true"]);
        let output = record.output().expect("the binary runs");
        if !output.status.success() {
            skipped(format_args!(
                "kernel events cannot be recorded: {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        output.status.success()
    })
}

/// A directory for a recording, if kernel events can be recorded here.
pub fn recording_directory() -> Option<TempDir> {
    can_record_kernel().then(|| TempDir::new().expect("a temporary directory"))
}

/// A compiled C program.
pub fn compiled(directory: &Path, name: &str, source: &str) -> PathBuf {
    compiled_with(directory, name, source, &[])
}

/// As [`compiled`], with further compiler options after the name of the source.
pub fn compiled_with(directory: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    compiled_by("cc", directory, &format!("{name}.c"), source, options)
}

/// Compiles a source file, whose extension selects the language; returns the program.
pub fn compiled_by(
    compiler: &str,
    directory: &Path,
    name: &str,
    source: &str,
    options: &[&str],
) -> PathBuf {
    let file = directory.join(name);
    let path = file.with_extension("");
    std::fs::write(&file, source).expect("the source can be written");
    let mut compile = Command::new(compiler);
    compile
        .args(["-O2", "-pthread", "-o"])
        .arg(&path)
        .arg(&file);
    compile.args(options);
    let output = compile.output().expect("the compiler runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    path
}

/// Checks that the text of a trace equals that of babeltrace2, which must print no warning; returns
/// the text, or `None` without babeltrace2.
pub fn reads_alike(trace: &str) -> Option<String> {
    let peer = Command::new("babeltrace2")
        .env("TZ", "UTC")
        .arg(trace)
        .output();
    let Ok(peer) = peer else {
        skipped("babeltrace2 does not run");
        return None;
    };
    assert_eq!(String::from_utf8_lossy(&peer.stderr), "");
    let ours = text(&["print", trace]);
    let theirs = without_known_faults(ours.as_bytes(), &peer.stdout);
    assert_eq!(first_difference(ours.as_bytes(), &theirs), None);
    Some(ours)
}

/// SHA-256 of the bytes, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let mut child = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum runs");
    child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(bytes)
        .expect("sha256sum reads");
    let output = child.wait_with_output().expect("sha256sum ends");
    String::from_utf8_lossy(&output.stdout)
        .chars()
        .take(64)
        .collect()
}

/// Output of babeltrace2; `None`, with a message, if it is not installed.
pub fn babeltrace2<S: AsRef<OsStr>>(arguments: &[S]) -> Option<Vec<u8>> {
    let coloured = arguments
        .iter()
        .any(|argument| argument.as_ref() == OsStr::new("--color=always"));
    let mut command = Command::new("babeltrace2");
    command.env(
        "BABELTRACE_TERM_COLOR",
        if coloured { "always" } else { "never" },
    );
    command
        .env("TZ", "UTC")
        .env("TERM", "xterm")
        .args(arguments);
    match command.stderr(Stdio::null()).output() {
        Ok(output) => Some(output.stdout),
        Err(error) => {
            skipped(format_args!("babeltrace2 does not run: {error}"));
            None
        }
    }
}

/// The first difference of two texts.
pub fn first_difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    if ours == theirs {
        return None;
    }
    let lines = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (ours, theirs) = (lines(ours), lines(theirs));
    let at = ours.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
    let line = |lines: &[String]| {
        lines
            .get(at)
            .cloned()
            .unwrap_or_else(|| "(nothing)".to_owned())
    };
    Some(format!(
        "line {}:\n  ours:   {}\n  theirs: {}",
        at + 1,
        line(&ours),
        line(&theirs)
    ))
}

/// Debian's babeltrace2 2.0.4 shows an earlier string in place of an empty one, and 0x0 for
/// hexadecimal integers of 61 to 63 bits. Such places are taken from our text, so that the rest can
/// be compared.
pub fn without_known_faults(ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    let (mut ours, mut theirs) = (ours, theirs);
    let mut repaired = Vec::new();
    while let Some(&byte) = theirs.first() {
        let (our_token, our_rest) = token(ours);
        let (token, rest) = token(theirs);
        let empty = byte == b'"' && our_token == b"\"\"";
        let long_digits = token == b"0x0" && our_token.starts_with(b"0x");
        repaired.extend(if empty || long_digits {
            our_token
        } else {
            token
        });
        (ours, theirs) = (our_rest, rest);
    }
    repaired
}

/// Splits off a quoted string, a hexadecimal number or a byte.
fn token(text: &[u8]) -> (&[u8], &[u8]) {
    let length = match text {
        [b'"', rest @ ..] => {
            let mut escaped = false;
            let end = rest.iter().position(|&byte| {
                let end = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                end
            });
            end.map_or(text.len(), |end| end + 2)
        }
        [b'0', b'x', rest @ ..] => {
            2 + rest
                .iter()
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count()
        }
        rest => rest.len().min(1),
    };
    text.split_at(length)
}
