//! Completeness of call stacks in programs whose runtimes compile while they run, or have stacks of
//! their own.

use std::fs;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::checks::{json, number};
use crate::programs::program;
use crate::support::{self, can_record_kernel, skipped, text};

/// Records the stacks of a command; returns the report of `stacks` and the folded stacks.
fn stacks(directory: &TempDir, command: &[&str]) -> (Value, String) {
    let trace = directory
        .path()
        .join("trace")
        .to_str()
        .expect("UTF-8")
        .to_owned();
    let mut record = support::tracebraid();
    record.current_dir(directory.path());
    record.args([
        "record",
        "--quiet",
        "--stacks",
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "-o",
        &trace,
        "--",
    ]);
    let output = record.args(command).output().expect("the binary runs");
    support::succeeds(&output);
    (
        json("stacks", &trace),
        text(&["stacks", "--format", "folded", &trace]),
    )
}

/// Samples of folded stacks that contain all parts.
fn samples(folded: &str, parts: &[&str]) -> u64 {
    let lines = folded.lines().filter_map(|line| line.rsplit_once(' '));
    let lines = lines.filter(|(stack, _)| parts.iter().all(|part| stack.contains(part)));
    lines
        .map(|(_, count)| count.parse::<u64>().expect("a number"))
        .sum()
}

/// Percentage of broken stacks.
fn broken_percent(report: &Value) -> u64 {
    let count = |name: &str| number(&report["completeness"][name]);
    let all = count("whole") + count("cut") + count("broken");
    assert!(all >= 200, "{report:#}");
    count("broken") * 100 / all
}

const GO: &str = r#"package main
import ("fmt"; "sync"; "time")
//go:noinline
func inner(n int) int { x := 0; for i := 0; i < n; i++ { x += i*i ^ x }; return x }
//go:noinline
func outer(n int) int { s := 0; for i := 0; i < 10; i++ { s += inner(n) }; return s }
func main() {
	var all sync.WaitGroup
	for g := 0; g < 3; g++ {
		all.Add(1)
		go func() {
			defer all.Done()
			s := 0
			for i := 0; i < 400; i++ { s += outer(100000); if i % 4 == 0 { time.Sleep(time.Millisecond) } }
			fmt.Println(s)
		}()
	}
	all.Wait()
}
"#;

#[test]
fn goroutines_have_whole_stacks() {
    if !can_record_kernel() {
        return;
    }
    let Some(go) = program("go") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let source = directory.path().join("burn.go");
    fs::write(&source, GO).unwrap();
    let built = Command::new(go.name())
        .current_dir(directory.path())
        .env("GOCACHE", directory.path().join("cache"))
        .args(["build", "-o", "burn", "burn.go"])
        .output()
        .unwrap();
    support::succeeds(&built);
    let (report, folded) = stacks(&directory, &["./burn"]);
    assert!(broken_percent(&report) <= 2, "{report:#}");
    // The caller of a leaf function, which has no frame of its own, is missing.
    assert!(
        samples(&folded, &["runtime.goexit;main.main.func1;", "main.inner"]) >= 100,
        "{folded}"
    );
}

const JAVA: &str = "public class Burn {
    static long inner(long n) { long x = 0; for (long i = 0; i < n; i++) x += i * i ^ x; return x; }
    static long outer(long n) { long s = 0; for (int i = 0; i < 10; i++) s += inner(n); return s; }
    public static void main(String[] words) throws Exception {
        long s = 0;
        for (int i = 0; i < 600; i++) { s += outer(100000); if (i % 4 == 0) Thread.sleep(1); }
        System.out.println(s);
    }
}
";

#[test]
fn java_has_whole_stacks_if_it_keeps_frame_pointers() {
    if !can_record_kernel() {
        return;
    }
    let Some(java) = program("java") else {
        return;
    };
    let source = |directory: &TempDir| {
        let source = directory.path().join("Burn.java");
        fs::write(&source, JAVA).unwrap();
        source.to_str().unwrap().to_owned()
    };
    let directory = TempDir::new().unwrap();
    let file = source(&directory);
    let (report, _) = stacks(
        &directory,
        &[java.name(), "-XX:+PreserveFramePointer", &file],
    );
    assert!(broken_percent(&report) <= 3, "{report:#}");
    // Without frame pointers, the output contains the remedy.
    let directory = TempDir::new().unwrap();
    let file = source(&directory);
    let (report, _) = stacks(&directory, &[java.name(), &file]);
    let remedies = report["remedies"].to_string();
    assert!(
        broken_percent(&report) == 0 || remedies.contains("-XX:+PreserveFramePointer"),
        "{report:#}"
    );
}

const NODE: &str = "
function innermost(n) { let x = 0; for (let i = 0; i < n; i++) x += i * i ^ x; return x; }
function outermost(n) { let s = 0; for (let i = 0; i < 10; i++) s += innermost(n); return s; }
let s = 0; const end = process.cpuUsage().user + 600000;
while (process.cpuUsage().user < end) s += outermost(20000);
console.log(s);
";

#[test]
fn node_has_whole_stacks_with_names() {
    if !can_record_kernel() {
        return;
    }
    let Some(node) = program("node") else {
        return;
    };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("burn.js");
    fs::write(&file, NODE).unwrap();
    let command = [
        node.name(),
        "--perf-basic-prof",
        "--no-use-osr",
        file.to_str().unwrap(),
    ];
    let (report, folded) = stacks(&directory, &command);
    assert!(broken_percent(&report) <= 2, "{report:#}");
    // One of the functions may be inlined into the other.
    let named = samples(&folded, &["_start;", "ermost "]);
    if named == 0 && samples(&folded, &["ermost "]) == 0 {
        return skipped("this node writes no map of its functions");
    }
    assert!(named >= 200, "{folded}");
}
