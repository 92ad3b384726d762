//! Recordings in chunks (`--rotate`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tracebraid_testkit::processes::until;

use crate::limits::{STORM, Small};
use crate::record;
use crate::support::{compiled, reads_alike, recording_directory, run, succeeds, text, tracebraid};

const NO_END: &str = "the trace has no end mark";

/// Options that record only the calls of `STORM` and end marks.
pub(crate) const ONLY_CALLS: [&str; 5] = [
    "--kernel",
    "none",
    "--syscalls",
    "getppid",
    "--no-state-dump",
];

/// Events of `STORM`: entry and exit of each call.
const CALLS: u64 = 600_000;

/// The same in two concurrent processes. No shell starts them, because shells also call getppid.
const TWO_STORMS: &str = r"
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    int other = fork();
    for (int i = 0; i < 300000; i++) syscall(SYS_getppid);
    if (other > 0) wait(0);
    return 0;
}
";

pub(crate) fn chunks(trace: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(trace).unwrap().flatten();
    let mut chunks: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    let is_chunk = |path: &PathBuf| {
        path.file_name()
            .unwrap()
            .to_string_lossy()
            .starts_with("chunk-")
    };
    chunks.retain(is_chunk);
    chunks.sort();
    chunks
}

fn json(options: &[&str], trace: &Path) -> Value {
    let options = [options, &["--format", "json", trace.to_str().unwrap()]].concat();
    serde_json::from_str(&text(&options)).unwrap()
}

/// Number of events in a trace, and number of lost events. The trace must not be damaged.
pub(crate) fn counted(trace: &Path) -> (u64, u64) {
    let counted = json(&["count", "--strict"], trace);
    let number = |name: &str| counted[name].as_u64().unwrap();
    (number("events"), number("discarded_events"))
}

/// Reason of the end, and whether the trace is growing.
fn end(trace: &Path) -> (Value, bool) {
    let info = json(&["info"], trace);
    assert_eq!(
        info["traces"].as_array().unwrap().len(),
        1,
        "{}",
        trace.display()
    );
    let of = &info["traces"][0];
    (of["end_reason"].clone(), of["is_growing"] == true)
}

fn said(options: &[&str], trace: &Path) -> String {
    let output = run(&[options, &[trace.to_str().unwrap()]].concat());
    succeeds(&output);
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn chunks_have_each_event_once() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storms = compiled(directory.path(), "storms", TWO_STORMS);
    let options = [&ONLY_CALLS[..], &["--rotate", "2M", "--buffer-size", "64M"]].concat();
    let (output, trace) = record(directory.path(), &options, &[storms.to_str().unwrap()]);
    succeeds(&output);
    let trace = Path::new(&trace);
    let chunks = chunks(trace);
    assert!(
        chunks.len() > 2,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(&format!("({} chunks)", chunks.len())),
        "{said}"
    );
    // Together, the chunks are one trace, with an end mark for each chunk.
    let (events, lost) = counted(trace);
    assert_eq!(events + lost, 2 * CALLS + chunks.len() as u64);
    assert_eq!(end(trace), ("command_ended".into(), false));
    let joined = reads_alike(trace.to_str().unwrap());
    if let Some(joined) = joined {
        assert_eq!(joined.lines().count() as u64, events);
    }
    let (mut sum, mut last) = (0, 0);
    for (at, chunk) in chunks.iter().enumerate() {
        let (events, _) = counted(chunk);
        sum += events;
        let reason = if at + 1 < chunks.len() {
            "rotated"
        } else {
            "command_ended"
        };
        assert_eq!(end(chunk), (reason.into(), false), "{}", chunk.display());
        let bytes = crate::limits::file_bytes(chunk);
        assert!(bytes <= 2 << 20, "{} has {bytes} bytes", chunk.display());
        // All CPUs end at the same time, and no chunk begins before the previous one ends.
        let info = json(&["info"], chunk);
        let streams = info["traces"][0]["streams"].as_array().unwrap();
        let times = |name: &str| -> Vec<u64> {
            let times = streams.iter().map(|stream| stream[name].as_u64().unwrap());
            times.collect()
        };
        let (begins, ends) = (times("begin"), times("end"));
        assert!(
            begins.iter().all(|begin| *begin >= last),
            "{begins:?} {last}"
        );
        last = ends[0];
        assert!(ends.iter().all(|end| *end == last), "{ends:?}");
    }
    assert_eq!(sum, events);
    if lost == 0 {
        reads_alike(chunks[1].to_str().unwrap());
    }
}

#[test]
fn each_chunk_has_the_state_at_its_beginning() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let script = "exec 7< /etc/passwd; for i in $(seq 40); do sleep 0.05; done";
    let options = ["--rotate", "500ms", "--stacks"];
    let (output, trace) = record(directory.path(), &options, &["bash", "-c", script]);
    succeeds(&output);
    let chunks = chunks(Path::new(&trace));
    assert!(chunks.len() >= 3, "{chunks:?}");
    // The first chunk begins before the command, and the state of the last one may be that after
    // the command's end.
    for chunk in chunks.iter().take(chunks.len() - 1).skip(1) {
        let chunk = chunk.to_str().unwrap();
        let print = |event: &str, what: &str| {
            let printed = text(&["print", "--name", event, chunk]);
            assert!(printed.contains(what), "{chunk}: {event} lacks {what}");
        };
        print("lttng_statedump_process_state", "name = \"bash\"");
        print("lttng_statedump_file_descriptor", "/etc/passwd");
        print("tracebraid_map_load", "bash");
        print("tracebraid_stacks_state", "period_ns");
        assert!(
            !said(&["report"], Path::new(chunk)).contains(NO_END),
            "{chunk}"
        );
    }
    reads_alike(&trace);
}

#[test]
fn the_newest_chunks_stay() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let options = [&ONLY_CALLS[..], &["--rotate", "1M", "--keep", "3"]].concat();
    let (output, trace) = record(directory.path(), &options, &[storm.to_str().unwrap()]);
    succeeds(&output);
    let trace = Path::new(&trace);
    let names: Vec<String> = fs::read_dir(trace)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("chunk"))
        .collect();
    assert_eq!(names.len(), 3, "nothing hidden is left: {names:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the newest 3 are kept"), "{said}");
    // A chunk exceeds 1 MiB only if the state of a busy machine takes most of it.
    assert!(crate::limits::file_bytes(trace) <= 6 << 20);
    let (events, _) = counted(trace);
    assert!(events > 10_000 && events < CALLS, "{events}");
    assert_eq!(end(trace), ("command_ended".into(), false));
}

/// Starts recording the machine in chunks.
pub(crate) fn system(trace: &Path, options: &[&str]) -> Child {
    let mut record = tracebraid();
    record
        .args(["record", "--system", "-o"])
        .arg(trace)
        .args(options);
    record.stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until there are `count` chunks, all but the last of which have ended.
pub(crate) fn has_chunks(trace: &Path, count: usize) {
    until("there are chunks", || {
        let chunks = if trace.is_dir() {
            chunks(trace)
        } else {
            Vec::new()
        };
        let last = chunks
            .last()
            .is_some_and(|chunk| chunk.join("kernel/metadata").exists());
        let before = chunks.iter().rev().nth(1);
        // The index gets its name when the chunk ends.
        let has_ended = |chunk: &PathBuf| chunk.join("kernel/index/channel0_0.idx").exists();
        chunks.len() >= count && last && before.is_none_or(has_ended)
    });
}

#[test]
fn chunks_can_be_read_while_the_recording_goes_on_and_when_it_was_killed() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut child = system(&trace, &["--rotate", "2s"]);
    has_chunks(&trace, 1);
    until("the trace grows", || end(&trace) == (Value::Null, true));
    has_chunks(&trace, 3);
    let (finished, reason) = (&chunks(&trace)[0], Value::from("rotated"));
    assert_eq!(end(finished), (reason.clone(), false));
    // The reader may find the newest chunk and see it end before the next one exists.
    until("the trace grows", || end(&trace) == (Value::Null, true));
    // A busy machine may lose events, which causes a warning; but no chunk is damaged.
    assert!(!said(&["count", "--strict"], &trace).contains(NO_END));
    has_chunks(&trace, chunks(&trace).len() + 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let chunks = chunks(&trace);
    let (last, finished) = chunks.split_last().unwrap();
    for chunk in finished {
        assert_eq!(end(chunk), (reason.clone(), false));
        assert!(!said(&["count"], chunk).contains(NO_END));
    }
    assert_eq!(end(last), (Value::Null, false));
    // Together, they are one trace, with one warning about the last chunk.
    for command in ["count", "info", "report", "cpu"] {
        let said = said(&[command], &trace);
        assert_eq!(said.matches(NO_END).count(), 1, "{command}: {said}");
        assert!(said.contains(last.to_str().unwrap()), "{command}: {said}");
    }
}

#[test]
fn a_signal_ends_the_last_chunk_only() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let child = system(&trace, &["--rotate", "200ms", "--keep", "2"]);
    has_chunks(&trace, 2);
    let pid = child.id().to_string();
    let interrupted = Command::new("kill").args(["-INT", &pid]).status();
    assert!(interrupted.unwrap().success());
    let output = child.wait_with_output().unwrap();
    succeeds(&output);
    let chunks = chunks(&trace);
    assert_eq!(chunks.len(), 2);
    assert_eq!(end(&chunks[0]), ("rotated".into(), false));
    assert_eq!(end(&chunks[1]), ("interrupted".into(), false));
    assert_eq!(end(&trace), ("interrupted".into(), false));
}

#[test]
fn chunks_begin_by_time_even_if_nothing_happens() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let mut sleeps = Command::new("sleep").arg("60").spawn().unwrap();
    let trace = directory.path().join("trace");
    let pid = sleeps.id().to_string();
    let mut record = tracebraid();
    record
        .args(["record", "--pid", &pid, "--duration", "2s", "-o"])
        .arg(&trace);
    let output = record
        .args(ONLY_CALLS)
        .args(["--rotate", "300ms"])
        .output()
        .unwrap();
    sleeps.kill().unwrap();
    sleeps.wait().unwrap();
    succeeds(&output);
    let chunks = chunks(&trace);
    assert!((3..=7).contains(&chunks.len()), "{chunks:?}");
    // Only the end marks.
    assert_eq!(counted(&trace), (chunks.len() as u64, 0));
}

#[test]
fn a_full_disk_ends_a_recording_of_chunks() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let storm = compiled(directory.path(), "storm", STORM);
    let shell = "for i in 1 2 3 4; do $0 & done; wait";
    for (name, size) in [("small", "size=5M"), ("odd", "size=6400K")] {
        let Some(small) = Small::mount(directory.path().join(name), size) else {
            return;
        };
        let options = [&ONLY_CALLS[..], &["--rotate", "1M"]].concat();
        let (output, trace) = record(
            &small.0,
            &options,
            &["sh", "-c", shell, storm.to_str().unwrap()],
        );
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("the disk is full"), "{said}");
        let trace = Path::new(&trace);
        assert_eq!(end(trace), ("disk_full".into(), false));
        let chunks = chunks(trace);
        assert!(chunks.len() > 1, "{chunks:?}");
        for chunk in &chunks {
            assert!(end(chunk).0.is_string(), "{}", chunk.display());
        }
        let (events, lost) = counted(trace);
        assert!(events > 10_000, "{events} {lost}");
        // With `--keep` the disk does not fill up.
        fs::remove_dir_all(trace).unwrap();
        let options = [&options[..], &["--keep", "2"]].concat();
        let (output, _) = record(
            &small.0,
            &options,
            &["sh", "-c", shell, storm.to_str().unwrap()],
        );
        succeeds(&output);
    }
}

/// Runs a command on sessions in the directory.
pub(crate) fn session(run: &Path, arguments: &[&str]) -> Output {
    let mut command = tracebraid();
    command
        .env("XDG_RUNTIME_DIR", run)
        .current_dir(run)
        .args(arguments);
    command.output().unwrap()
}

#[test]
fn sessions_in_the_background_rotate_when_asked() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    let start = [
        "start", "one", "--system", "--rotate", "manual", "--keep", "3", "-o", "trace",
    ];
    succeeds(&session(run, &start));
    for number in 1..=4 {
        // With a single session, its name may be omitted.
        let rotated = succeeds(&session(
            run,
            &["rotate", "one"][..if number == 1 { 1 } else { 2 }],
        ));
        let chunk = PathBuf::from(rotated.trim());
        let name = chunk.file_name().unwrap().to_string_lossy().into_owned();
        assert!(name.starts_with(&format!("chunk-00000{number}-")), "{name}");
        assert_eq!(end(&chunk), ("rotated".into(), false));
    }
    let status = succeeds(&session(run, &["status", "--format", "json"]));
    let status: Value = serde_json::from_str(&status).unwrap();
    let status = &status["sessions"][0];
    assert_eq!(status["chunks"], 5);
    assert_eq!(status["kept_chunks"].as_array().unwrap().len(), 3);
    let table = succeeds(&session(run, &["list"]));
    assert!(table.contains("3 of 5"), "{table}");
    // A pending request for rotation does not prevent the end from being written.
    let mut rotate = tracebraid();
    rotate.env("XDG_RUNTIME_DIR", run).args(["rotate", "one"]);
    let mut rotate = rotate
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    succeeds(&session(run, &["stop", "one"]));
    rotate.wait().unwrap();
    let trace = run.join("trace");
    assert_eq!(end(&trace), ("asked_to_stop".into(), false));
    assert_eq!(chunks(&trace).len(), 3);
    assert!(counted(&trace).0 > 0);
}

#[test]
fn a_recording_without_chunks_does_not_rotate() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    assert_eq!(session(run, &["rotate"]).status.code(), Some(3));
    succeeds(&session(run, &["start", "one", "--system", "-o", "trace"]));
    let refused = session(run, &["rotate", "one"]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("start it with --rotate"), "{said}");
    succeeds(&session(run, &["stop", "one"]));
    for wrong in [
        &["--rotate", "1K"][..],
        &["--rotate", "soon"],
        &["--keep", "3"],
        &["--rotate", "1M", "--keep", "0"],
        &["--rotate", "1M", "--snapshot"],
    ] {
        let output = session(run, &[&["record", "--system"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    // A recording that could not begin leaves no files.
    let output = session(
        run,
        &[
            "record",
            "--rotate",
            "1M",
            "-o",
            "none",
            "--",
            "/there/is/none",
        ],
    );
    assert_eq!(output.status.code(), Some(127));
    assert!(!run.join("none").exists());
}
