//! Names of functions in call stacks: of compiled and interpreted programs, and of files that no
//! longer exist.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::recorded_stacks::{ONLY_STACKS, error, events, of, profile, record, samples_in};
use crate::support::{can_record_kernel, compiled_with, skipped, succeeds, text, tracebraid};
use serde_json::Value;
use tempfile::TempDir;

#[test]
fn what_was_compiled_while_a_program_ran_has_its_names() {
    let directory = TempDir::new().unwrap();
    let script = "
function burntAway(n) { let x = 0; for (let i = 0; i < n; i++) x += Math.sqrt(i ^ x); return x; }
const end = process.cpuUsage().user + 500000;
let x = 0; while (process.cpuUsage().user < end) x += burntAway(100000);";
    let node = Command::new("node").arg("--version").output();
    if !node.is_ok_and(|output| output.status.success()) {
        return skipped("there is no node: names of compiled functions are not tried");
    }
    let command = ["node", "--perf-basic-prof", "-e", script];
    let options = ["--kernel", "none", "--syscalls", "none", "--stacks"];
    let (output, trace) = record(directory.path(), &options, &command);
    assert!(output.status.success(), "{}", error(&output));
    let all = profile(&trace)["cpu_samples"].as_u64().unwrap();
    if all == 0 {
        return skipped("perf events are refused here: no stacks");
    }
    // The program itself uses 500 ms of CPU time, however the function is compiled.
    let folded = text(&["stacks", "--format", "folded", &trace]);
    let samples = samples_in(&folded, "burntAway");
    assert!(samples >= 250, "{samples} of {all}: {folded}");
}

/// Interpreters whose functions are visible in stacks.
const PYTHONS: [&str; 4] = ["python3", "python3.11", "python3.12", "python3.13"];

#[test]
fn functions_of_python_are_seen() {
    if !can_record_kernel() {
        return;
    }
    let script = "
import sys, threading, time
def inner(n):
    return sum(i * i for i in range(n))
class Shop:
    def serve(self):
        return inner(20000)
def naïve(n):
    return sorted(range(n), key=lambda value: inner(20))
def doze():
    time.sleep(0.005)
def work():
    end = time.thread_time() + 0.3
    while time.thread_time() < end:
        Shop().serve(); naïve(500); doze()
thread = threading.Thread(target=work)
thread.start(); work(); thread.join()
print(sys.version_info[1])";
    let mut tried = 0;
    for python in PYTHONS {
        let directory = TempDir::new().unwrap();
        let file = directory.path().join("shop.py");
        fs::write(&file, script).unwrap();
        let command = [python, file.to_str().unwrap()];
        let runs = Command::new(python)
            .arg("-c")
            .arg("import sys; print(sys.version_info[1])")
            .output();
        let minor = runs.ok().and_then(|output| {
            String::from_utf8(output.stdout)
                .ok()?
                .trim()
                .parse::<u32>()
                .ok()
        });
        if !minor.is_some_and(|minor| (11..=13).contains(&minor)) {
            continue;
        }
        tried += 1;
        let (output, trace) = record(directory.path(), &ONLY_STACKS, &command);
        assert!(output.status.success(), "{python}: {}", error(&output));
        let folded = text(&["stacks", "--format", "folded", &trace]);
        let serves = |begin: &str| {
            let parts = [
                begin,
                "work (shop.py:12);Shop.serve (shop.py:6);",
                "inner (shop.py:3)",
            ];
            let has_all = |line: &&str| parts.iter().all(|part| line.contains(part));
            let counts = folded
                .lines()
                .filter(has_all)
                .filter_map(|line| line.rsplit_once(' '));
            counts
                .map(|(_, count)| count.parse::<u64>().unwrap())
                .sum::<u64>()
        };
        // In the main thread and in the other thread.
        assert!(serves("<module> (shop.py:") >= 30, "{python}: {folded}");
        assert!(
            serves("Thread.run (threading.py:") >= 30,
            "{python}: {folded}"
        );
        assert!(folded.contains("naïve (shop.py:8);"), "{python}: {folded}");
        let waits = text(&["stacks", "--waits", "--format", "folded", &trace]);
        assert!(
            waits.contains("work (shop.py:12);doze (shop.py:10)"),
            "{python}: {waits}"
        );
        let all = events(&trace, "tracebraid_cpu_stack").len();
        let broken = events(&trace, "tracebraid_cpu_stack")
            .iter()
            .filter(|line| line.contains("status = 2,"))
            .count();
        assert!(broken * 100 <= all, "{python}: {broken} of {all}");
    }
    if tried == 0 {
        skipped("there is no Python 3.11 to 3.13: its functions are not tried");
    }
}

#[test]
fn the_library_that_is_no_file_has_names() {
    let directory = TempDir::new().unwrap();
    let source = "#include <time.h>
int main(void) { struct timespec t; for (int i = 0; i < 10000000; i++) clock_gettime(CLOCK_MONOTONIC, &t); return 0; }";
    let program = compiled_with(directory.path(), "clock", source, &[]);
    let options = ["--kernel", "none", "--syscalls", "none", "--stacks"];
    let (output, trace) = record(directory.path(), &options, &[program.to_str().unwrap()]);
    assert!(output.status.success(), "{}", error(&output));
    let profile = profile(&trace);
    let all = profile["cpu_samples"].as_u64().unwrap();
    if all == 0 {
        return skipped("perf events are refused here: no stacks");
    }
    let functions = profile["functions"].as_array().unwrap();
    let named = |row: &&Value| row["name"].as_str().unwrap().contains("vdso.so");
    assert_eq!(functions.iter().find(named), None, "{profile:#}");
    // The program does nothing else. The division of its time between itself, the C library, the
    // vDSO and (where the vDSO cannot read the clock) the kernel depends on the machine, but all
    // functions called from `main` have names.
    let folded = text(&["stacks", "--format", "folded", &trace]);
    let below = folded.lines().filter(|line| line.contains(";main"));
    let unnamed: Vec<&str> = below
        .filter(|line| line.contains("0x") || line.contains("[unknown]"))
        .collect();
    assert!(unnamed.is_empty(), "{unnamed:?}");
    let (main, clock) = (
        samples_in(&folded, ";main"),
        samples_in(&folded, "clock_gettime"),
    );
    assert!(
        main * 10 >= all * 8 && clock * 2 >= main,
        "{clock} of {main} of {all}: {folded}"
    );
}

#[test]
fn names_are_kept_for_the_next_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = compiled_with(directory.path(), "spins", SPINS, &["-g", "-O1"]);
    let (said, trace) = record(
        directory.path(),
        &["--stacks"],
        &[&program.to_string_lossy()],
    );
    if !can_record_kernel() {
        return;
    }
    assert!(said.status.success(), "{}", error(&said));
    let kept = directory.path().join("kept");
    let stacks = || {
        let mut stacks = tracebraid();
        stacks.env("TRACEBRAID_CACHE", &kept);
        crate::support::succeeds(
            &stacks
                .args(["stacks", &trace])
                .output()
                .expect("the binary runs"),
        )
    };
    let without = text(&["stacks", &trace]);
    assert!(without.contains("spins_inside"), "{without}");
    assert_eq!(stacks(), without);
    // The cache contains the names that were shown.
    let mut files = fs::read_dir(&kept)
        .expect("names are kept")
        .map(|entry| entry.expect("a file").path());
    let is_ours = |file: &PathBuf| {
        fs::read_to_string(file)
            .expect("text")
            .contains("spins_inside")
    };
    let file = files.find(is_ours).expect("names of the program");
    let names = fs::read_to_string(&file)
        .expect("text")
        .replace("spins_inside", "spins_within");
    fs::write(&file, names).expect("written");
    assert_eq!(stacks(), without.replace("spins_inside", "spins_within"));
}

/// Uses CPU time in a function that is inlined into another one.
const SPINS: &str = "
    #include <time.h>
    __attribute__((always_inline)) static inline void spins_inside(volatile long *sum)
    {
        for (long at = 0; at < 1000000; at++)
            *sum += at;
    }
    int main(void)
    {
        volatile long sum = 0;
        while (clock() < CLOCKS_PER_SEC / 5)
            spins_inside(&sum);
        return 0;
    }
";

#[test]
fn a_program_that_was_replaced_has_no_names() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let source = |name: &str| {
        format!(
            "__attribute__((noinline)) long {name}(long n) {{ volatile long sum = 0; while (n--) sum += n; return sum; }}\n\
             int main(void) {{ return {name}(100000000) == 7; }}"
        )
    };
    let options = ["-O1", "-fno-omit-frame-pointer", "-Wl,--build-id=none"];
    let compile = |name: &str| compiled_with(directory.path(), name, &source(name), &options);
    let (program, other) = (compile("first"), compile("second"));
    let recorded = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--stacks=waits=off",
        "--snapshot",
    ];
    let (output, trace) = record(directory.path(), &recorded, &[program.to_str().unwrap()]);
    succeeds(&output);
    let profile_before = profile(&trace);
    assert!(
        of(&profile_before, "first", "own", "cpu_ns") > 0,
        "{profile_before:#}"
    );
    fs::copy(other, &program).unwrap();
    let profile = profile(&trace);
    assert_eq!(of(&profile, "first", "own", "cpu_ns"), 0);
    assert_eq!(of(&profile, "second", "own", "cpu_ns"), 0);
    let changed = &profile["changed_files"][0];
    assert!(
        changed["path"].as_str().unwrap().ends_with("/first"),
        "{changed}"
    );
    assert!(changed["frames"].as_u64().unwrap() > 0);
}

#[test]
fn frames_of_files_that_do_not_exist_are_counted_with_a_remedy() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let options = ["-O1", "-fno-omit-frame-pointer", "-Wl,--build-id"];
    let program = compiled_with(directory.path(), "gone", SPINS, &options);
    let copy = directory.path().join("copy");
    fs::copy(&program, &copy).unwrap();
    let recorded = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--stacks=waits=off",
    ];
    let (output, trace) = record(directory.path(), &recorded, &[program.to_str().unwrap()]);
    succeeds(&output);
    assert!(profile(&trace)["missing_files"].is_null());
    fs::remove_file(&program).unwrap();
    let profile = profile(&trace);
    let missing = &profile["missing_files"][0];
    assert_eq!(missing["path"].as_str(), program.to_str(), "{missing}");
    assert!(missing["frames"].as_u64().unwrap() > 0);
    assert!(profile["changed_files"].is_null(), "{profile:#}");
    let shown = one_line(&text(&["stacks", &trace]));
    assert!(
        shown.contains("have no names: the file does not exist or cannot be read: restore it there (cp -p), or copy it to"),
        "{shown}"
    );
    // The remedy works: the file is found by its build id.
    let (first, rest) = missing["build_id"].as_str().unwrap().split_at(2);
    let advice = format!("DIR/.build-id/{first}/{rest}.debug");
    assert!(shown.contains(&advice), "{shown}");
    let by_id = directory.path().join(advice.replacen("DIR", "debug", 1));
    fs::create_dir_all(by_id.parent().unwrap()).unwrap();
    fs::copy(&copy, &by_id).unwrap();
    let debug = directory.path().join("debug");
    let again = text(&["stacks", "--debug-dir", debug.to_str().unwrap(), &trace]);
    assert!(
        !again.contains("does not exist") && again.contains("main"),
        "{again}"
    );
}

/// A program that executes itself from memory.
const IN_MEMORY: &str = "
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <sys/mman.h>
    #include <sys/sendfile.h>
    #include <time.h>
    #include <unistd.h>
    extern char **environ;
    int main(int count, char **words)
    {
        volatile long sum = 0;
        if (count > 1) {
            int from = open(words[0], O_RDONLY), to = memfd_create(\"hidden\", 0);
            while (sendfile(to, from, 0, 1 << 20) > 0)
                ;
            char *again[] = {words[0], 0};
            return fexecve(to, again, environ);
        }
        while (clock() < CLOCKS_PER_SEC / 5)
            sum++;
        return 0;
    }
";

#[test]
fn frames_of_programs_in_memory_are_counted_with_a_remedy() {
    if !can_record_kernel() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let options = ["-O1", "-static", "-Wl,--build-id"];
    let program = compiled_with(directory.path(), "program", IN_MEMORY, &options);
    let recorded = [
        "--kernel",
        "none",
        "--syscalls",
        "none",
        "--stacks=waits=off",
    ];
    let (output, trace) = record(
        directory.path(),
        &recorded,
        &[program.to_str().unwrap(), "again"],
    );
    succeeds(&output);
    let shown = one_line(&text(&["stacks", &trace]));
    assert!(
        shown.contains(" in /memfd:hidden")
            && shown.contains(": a file in memory (memfd): copy it to DIR/.build-id/"),
        "{shown}"
    );
}

/// The text with its line breaks removed.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
