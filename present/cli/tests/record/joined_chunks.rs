//! Chunks of a recording under load (`--rotate`): each is a complete trace, and together they form
//! one trace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tracebraid_testkit::processes::until;

use crate::chunks::{ONLY_CALLS, chunks, counted, has_chunks, session, system};
use crate::record;
use crate::support::{compiled_with, recording_directory, run, skipped, succeeds, text};

/// Four threads make 1,000 calls in each round, and pause between rounds. Arguments: rounds, pause
/// in microseconds.
const CALLERS: &str = r"
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long rounds;
static struct timespec pause_time;
static void *call(void *none) {
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < 1000; i++) syscall(SYS_getppid);
        if (pause_time.tv_nsec) nanosleep(&pause_time, 0);
    }
    return none;
}
int main(int count, char **words) {
    pthread_t threads[4];
    rounds = atol(words[1]);
    pause_time.tv_nsec = atol(words[2]) * 1000;
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, call, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
";

/// An entry of the packet index of a stream.
#[derive(Clone, Copy, Debug)]
struct Packet {
    begin: u64,
    end: u64,
    lost: u64,
    sequence: u64,
}

/// The packets of a stream's index (LTTng's format 1.1).
fn packets(index: &Path) -> Vec<Packet> {
    const HEAD: usize = 16;
    const ENTRY: usize = 72;
    let bytes = fs::read(index).unwrap();
    let word =
        |entry: &[u8], at: usize| u64::from_be_bytes(*entry[8 * at..].first_chunk().unwrap());
    let packet = |entry: &[u8]| Packet {
        begin: word(entry, 3),
        end: word(entry, 4),
        lost: word(entry, 5),
        sequence: word(entry, 8),
    };
    bytes[HEAD..].chunks_exact(ENTRY).map(packet).collect()
}

/// Checks that the packets of each stream are contiguous across all chunks.
fn packets_go_on(chunks: &[PathBuf]) {
    let mut streams: BTreeMap<_, Vec<Packet>> = BTreeMap::new();
    for chunk in chunks {
        for entry in fs::read_dir(chunk.join("kernel/index")).unwrap() {
            let entry = entry.unwrap();
            let stream = streams.entry(entry.file_name()).or_default();
            stream.extend(packets(&entry.path()));
        }
    }
    for (stream, packets) in streams {
        for pair in packets.windows(2) {
            let [before, next] = *pair else { continue };
            // Readers order packets by their begin timestamps.
            let follows = before.begin < next.begin && before.end == next.begin;
            let goes_on = before.lost <= next.lost && before.sequence + 1 == next.sequence;
            assert!(follows && goes_on, "{stream:?}: {before:?} {next:?}");
        }
    }
}

/// The number of events that babeltrace2 reads from a trace, and the number that it reports as
/// lost. Losses of earlier chunks have an unknown number and count as 0. babeltrace2 must print no
/// other warning.
fn counted_by_peer(trace: &Path) -> Option<(u64, u64)> {
    let Ok(peer) = Command::new("babeltrace2").arg(trace).output() else {
        skipped("babeltrace2 does not run");
        return None;
    };
    let warned = String::from_utf8_lossy(&peer.stderr);
    assert!(
        peer.status.success(),
        "{}: {} {warned}",
        trace.display(),
        peer.status
    );
    let lost = warned.lines().map(|line| {
        let lost = line.strip_prefix("WARNING: Tracer ").unwrap_or(line);
        match lost.split(' ').collect::<Vec<_>>()[..] {
            ["may", "have", "discarded", "events", ..] => 0,
            ["discarded", count, "event" | "events", ..] => count.parse::<u64>().unwrap(),
            _ => panic!("{}: {line}", trace.display()),
        }
    });
    let lost = lost.sum();
    let events = peer.stdout.iter().filter(|byte| **byte == b'\n').count();
    Some((events as u64, lost))
}

/// Checks that tracebraid and babeltrace2 read the same events from all chunks together and from
/// single chunks; returns the number of events and of lost events.
fn is_one_trace(trace: &Path) -> (u64, u64) {
    let chunks = chunks(trace);
    // babeltrace2 takes 26 MB of memory for each chunk.
    assert!((3..400).contains(&chunks.len()), "{} chunks", chunks.len());
    packets_go_on(&chunks);
    let joined = counted(trace);
    if let Some(theirs) = counted_by_peer(trace) {
        assert_eq!(theirs, joined);
    }
    let alone: Vec<(u64, u64)> = chunks.iter().map(|chunk| counted(chunk)).collect();
    assert_eq!(
        alone.iter().map(|(events, _)| events).sum::<u64>(),
        joined.0
    );
    // Checking all chunks would take too long.
    for at in [0, 1, chunks.len() - 1] {
        if let Some(theirs) = counted_by_peer(&chunks[at]) {
            assert_eq!(theirs, alone[at], "{}", chunks[at].display());
        }
    }
    joined
}

/// The number that precedes `word` in the summary.
fn summed_up(output: &Output, word: &str) -> u64 {
    let said = String::from_utf8_lossy(&output.stderr).replace(',', "");
    let before = said.split(word).next().unwrap();
    before.split(' ').next_back().unwrap().parse().unwrap()
}

fn callers(directory: &Path) -> String {
    let callers = compiled_with(directory, "callers", CALLERS, &["-pthread"]);
    callers.to_str().unwrap().to_owned()
}

/// Records with rings that are too small for the calls, so that events are lost.
fn overloaded(options: &[&str], [rounds, pause]: [&str; 2]) {
    let Some(directory) = recording_directory() else {
        return;
    };
    let callers = callers(directory.path());
    let (output, trace) = record(directory.path(), options, &[&callers, rounds, pause]);
    succeeds(&output);
    let (events, lost) = is_one_trace(Path::new(&trace));
    assert!(lost > 0, "{}", String::from_utf8_lossy(&output.stderr));
    if !options.contains(&"--keep") {
        assert_eq!(events, summed_up(&output, " events in"));
        assert_eq!(lost, summed_up(&output, " events were lost because"));
    }
}

#[test]
fn chunks_with_losses_are_one_trace() {
    overloaded(&["--rotate", "1M", "--buffer-size", "256K"], ["700", "0"]);
}

#[test]
fn the_newest_chunks_with_losses_are_one_trace() {
    let options = [
        &ONLY_CALLS[..],
        &["--rotate", "1M", "--buffer-size", "256K"],
    ]
    .concat();
    overloaded(&[&options[..], &["--keep", "4"]].concat(), ["2000", "0"]);
}

#[test]
fn chunks_of_a_second_with_losses_are_one_trace() {
    overloaded(&["--rotate", "1s", "--buffer-size", "64K"], ["700", "5000"]);
}

#[test]
fn chunks_with_stacks_and_contexts_are_one_trace() {
    let options = [
        &[
            "--stacks",
            "--context",
            "vtid,procname,perf:cpu:page-faults",
        ][..],
        &["--rotate", "1M", "--buffer-size", "256K"],
    ]
    .concat();
    overloaded(&options, ["700", "0"]);
}

/// Chunks are read while others end and are removed. How many events a reader gets depends on the
/// machine, but it must not fail or report damage.
#[test]
fn the_newest_chunks_can_be_read_while_the_recording_goes_on() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let trace = directory.path().join("trace");
    let mut child = system(&trace, &["--rotate", "1s", "--keep", "3"]);
    for _ in 0..3 {
        has_chunks(&trace, 2);
        let newest = chunks(&trace).pop().unwrap();
        for command in ["count", "report", "info"] {
            let output = run(&[command, trace.to_str().unwrap()]);
            let warned = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{command}: {warned}");
            assert!(!output.stdout.is_empty(), "{command}: {warned}");
            for problem in ["no end mark", "damaged", "No such file"] {
                assert!(!warned.contains(problem), "{command}: {warned}");
            }
        }
        until("another chunk begins", || {
            chunks(&trace).pop().is_some_and(|chunk| chunk > newest)
        });
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// With `--rotate manual`, chunks are removed only at a request for a new one, so that all readers
/// read the same chunks.
#[test]
fn kept_chunks_are_one_trace_while_the_recording_goes_on() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let run = directory.path();
    let options = ["--rotate", "manual", "--keep", "3", "--buffer-size", "64K"];
    let start = [&["start", "one", "--system", "-o", "trace"][..], &options].concat();
    succeeds(&session(run, &start));
    let callers = callers(run);
    for number in 1..=4 {
        succeeds(&Command::new(&callers).args(["50", "0"]).output().unwrap());
        succeeds(&session(run, &["rotate", "one"]));
        let mut finished = chunks(&run.join("trace"));
        assert_eq!(finished.len(), (number + 1).min(3));
        finished.pop();
        packets_go_on(&finished);
        for chunk in &finished {
            let ours = counted(chunk);
            let theirs = counted_by_peer(chunk);
            assert!(
                theirs.is_none_or(|theirs| theirs == ours),
                "{ours:?} {theirs:?}"
            );
            assert!(!text(&["report", chunk.to_str().unwrap()]).is_empty());
        }
    }
    succeeds(&session(run, &["stop", "one"]));
    is_one_trace(&run.join("trace"));
}
