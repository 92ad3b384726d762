//! Events chosen by name: what a program did, with values known from the program.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{self, compiled, recording_directory, succeeds, text, tracebraid};
use crate::{fields, record};

/// Options that record only the chosen events.
const ALONE: [&str; 4] = ["--kernel", "none", "--syscalls", "none"];

/// Records only chosen events of a command; returns the recorder's messages and the trace.
pub(crate) fn chosen(directory: &Path, events: &[&str], command: &[&str]) -> (String, String) {
    let events = events.iter().flat_map(|event| ["--event", event]);
    let options: Vec<&str> = ALONE.into_iter().chain(events).collect();
    let (output, trace) = record(directory, &options, command);
    succeeds(&output);
    (String::from_utf8_lossy(&output.stderr).into_owned(), trace)
}

/// The fields of all events with a name.
pub(crate) fn events(trace: &str, name: &str) -> Vec<BTreeMap<String, String>> {
    let printed = text(&["print", trace]);
    let mark = format!(" {name}: ");
    let lines = printed.lines().filter(|line| line.contains(&mark));
    lines.map(fields).collect()
}

/// The notes of `sys/sdt.h`, written by hand so that no package is needed: two locations of a
/// probe, with values in registers, in memory, by symbol and as constants; and a probe that fires
/// only while its counter is not zero.
const USDT: &str = r#"
#include <stdio.h>
#define NOTE(name, semaphore, arguments, ...) \
    __asm__ volatile( \
        "990: nop\n" \
        ".pushsection .note.stapsdt,\"?\",\"note\"\n" \
        ".balign 4\n" \
        ".4byte 992f-991f, 994f-993f, 3\n" \
        "991: .asciz \"stapsdt\"\n" \
        "992: .balign 4\n" \
        "993: .8byte 990b\n" \
        ".8byte _.stapsdt.base\n" \
        ".8byte " semaphore "\n" \
        ".asciz \"shop\"\n" \
        ".asciz \"" name "\"\n" \
        ".asciz \"" arguments "\"\n" \
        "994: .balign 4\n" \
        ".popsection\n" \
        ".ifndef _.stapsdt.base\n" \
        ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
        ".weak _.stapsdt.base\n" \
        ".hidden _.stapsdt.base\n" \
        "_.stapsdt.base: .space 1\n" \
        ".size _.stapsdt.base, 1\n" \
        ".popsection\n" \
        ".endif\n" :: __VA_ARGS__)
int counter;
volatile unsigned short wanted __attribute__((section(".probes"))) = 0;
struct item { long first; int second; } items[2] = {{1, -2}, {3, -4}};
int main(void) {
    long seen = 0;
    for (counter = 0; counter < 1000; counter++) {
        int value = -counter;
        struct item *item = &items[counter & 1];
        NOTE("item", "0", "-4@%0 4@counter(%%rip) 8@$77 8@(%1) -4@8(%1) 8f@%%xmm0",
             "r"(value), "r"(item) : "memory");
        if (wanted) {
            seen++;
            NOTE("optional", "wanted", "8@%0", "r"(seen));
        }
    }
    NOTE("item", "0", "-4@%0 4@counter(%%rip) 8@$78 8@(%1) -4@8(%1) 8f@%%xmm0",
         "r"(5), "r"(&items[0]) : "memory");
    NOTE("last", "0", "", "r"(0));
    printf("%ld\n", seen);
    return 0;
}
"#;

#[test]
fn usdt_probes_have_the_values_of_the_program() {
    if !cfg!(target_arch = "x86_64") {
        return support::skipped("the program with USDT probes is for x86-64");
    }
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "probed", USDT)
        .display()
        .to_string();
    let event = format!("usdt:{program}:shop:*");
    let (said, trace) = chosen(directory.path(), &[&event], &[&program]);
    assert!(
        said.contains("shop:item: values not recorded for 1 of the arguments `-4@%"),
        "{said}"
    );
    let items = events(&trace, "shop:item");
    assert_eq!(items.len(), 1001);
    for (number, item) in items.iter().enumerate() {
        let (value, constant) = match number {
            1000 => (5, 78),
            _ => (-(number as i64), 77),
        };
        let wanted = [
            ("arg0", value.to_string()),
            ("arg1", number.to_string()),
            ("arg2", constant.to_string()),
            ("arg3", (1 + 2 * (number & 1)).to_string()),
            ("arg4", (-2 - 2 * (number as i64 & 1)).to_string()),
        ];
        for (name, wanted) in wanted {
            assert_eq!(item[name], wanted, "{number}: {item:?}");
        }
        assert!(!item.contains_key("arg5"));
        assert_eq!(item["tid"], item["pid"]);
    }
    // The counter was incremented before the program began, and nowhere else.
    let optional = events(&trace, "shop:optional");
    assert_eq!(optional.len(), 1000);
    assert_eq!(optional[999]["arg0"], "1000");
    assert_eq!(events(&trace, "shop:last").len(), 1);
    support::reads_alike(&trace);
    let unrecorded = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&unrecorded.stdout), "0\n");
    let filter = r#"name == "shop:item" && arg0 == -7"#;
    assert_eq!(
        text(&["print", "--filter", filter, &trace]).lines().count(),
        1
    );
}

const FUNCTIONS: &str = r"
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) long add(long a, long b, long c, long d, long e, long f) {
    __asm__ volatile(``);
    return a + b + c + d + e + f;
}
int main(void) {
    long sum = 0;
    for (long i = 0; i < 500; i++)
        sum += add(i, 2, 3, 4, 5, -i);
    if (fork() == 0)
        _exit(add(1, 1, 1, 1, 1, 1) != 6);
    wait(0);
    return sum != 7000;
}
";

/// Runs a program repeatedly until dropped, also if the test fails.
struct Repeating(std::process::Child);

impl Repeating {
    fn new(program: &str) -> Repeating {
        let command = format!("while :; do {program}; done");
        Repeating(Command::new("sh").args(["-c", &command]).spawn().unwrap())
    }
}

impl Drop for Repeating {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn functions_have_their_arguments_and_results() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let source = FUNCTIONS.replace('`', "\"");
    let program = compiled(directory.path(), "functions", &source)
        .display()
        .to_string();
    let events_wanted = [
        format!("uprobe:{program}:add"),
        format!("uretprobe:{program}:add"),
    ];
    // Another process with the same program is not recorded.
    let other = Repeating::new(&program);
    let (_, trace) = chosen(
        directory.path(),
        &[&events_wanted[0], &events_wanted[1]],
        &[&program],
    );
    drop(other);
    let calls = events(&trace, "uprobe:add");
    assert_eq!(calls.len(), 501);
    for (number, call) in calls[..500].iter().enumerate() {
        assert_eq!(call["arg0"], format!("0x{number:X}"));
        assert_eq!(call["arg4"], "0x5");
        assert_eq!(call["arg5"], format!("0x{:X}", -(number as i64)));
    }
    // The child, which is followed, has another process id and the same function.
    assert_ne!(calls[500]["pid"], calls[0]["pid"]);
    assert_eq!(calls[500]["ip"], calls[0]["ip"]);
    let returns = events(&trace, "uretprobe:add");
    assert_eq!(returns.len(), 501);
    assert!(returns[..500].iter().all(|event| event["ret"] == "0xE"));
    assert_eq!(returns[500]["ret"], "0x6");
    support::reads_alike(&trace);
}

/// Maps pages, and touches each of the pages.
const PAGES: &str = r"
#include <string.h>
#include <sys/mman.h>
int main(void) {
    char *pages = mmap(0, 800 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(pages, 800 << 12, MADV_NOHUGEPAGE);
    for (int i = 0; i < 800; i++)
        pages[i << 12] = 1;
    return 0;
}
";

#[test]
fn tracepoints_have_the_fields_of_the_kernel() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let program = compiled(directory.path(), "pages", PAGES)
        .display()
        .to_string();
    let (_, trace) = chosen(
        directory.path(),
        &[
            "tracepoint:kmem:mm_page_alloc",
            "tracepoint:syscalls:sys_enter_madvise",
            "tracepoint:task:task_*",
        ],
        &[&program],
    );
    let pages = events(&trace, "mm_page_alloc");
    assert!((800..3000).contains(&pages.len()), "{}", pages.len());
    assert!(
        pages
            .iter()
            .all(|page| page["common_pid"] == page["common_tgid"])
    );
    assert!(pages.iter().filter(|page| page["order"] == "0").count() >= 800);
    assert!(pages.iter().all(|page| page["pfn"] != "0x0"));
    let advice = events(&trace, "sys_enter_madvise");
    let ours = advice
        .iter()
        .find(|call| call["len_in"] == (800 << 12).to_string());
    let ours = ours.unwrap_or_else(|| panic!("{advice:?}"));
    assert_eq!(ours["behavior"], "15");
    let rename = events(&trace, "task_rename");
    assert!(
        rename.iter().any(|event| event["newcomm"] == "\"pages\""),
        "{rename:?}"
    );
    support::reads_alike(&trace);
    // Reports on memory know the kernel's own name.
    let memory = text(&["memory", "--format", "csv", &trace]);
    assert!(
        memory.contains(&format!("allocated_pages,{}", pages.len())),
        "{memory}"
    );
}

#[test]
fn text_of_any_length_and_the_recorders_own_tracepoints() {
    let Some(directory) = recording_directory() else {
        return;
    };
    // The recorder's own tracepoints are recorded for the whole machine; no other program has this
    // path.
    let program = compiled(directory.path(), "ends", "int main(void) { return 0; }");
    let program = program.display().to_string();
    let (_, trace) = chosen(
        directory.path(),
        &["tracepoint:sched:*", "tracepoint:sched:sched_process_exec"],
        &["sh", "-c", &format!("{program}; {program}")],
    );
    let quoted = format!("\"{program}\"");
    // With the fields of lttng-modules, and only once each.
    let executed = events(&trace, "sched_process_exec");
    assert_eq!(
        executed
            .iter()
            .filter(|event| event["filename"] == quoted)
            .count(),
        2,
        "{executed:?}"
    );
    let switches = events(&trace, "sched_switch");
    assert!(switches.iter().all(|event| event.contains_key("prev_tid")) && !switches.is_empty());
    let prepared = events(&trace, "sched_prepare_exec");
    if !prepared.is_empty() {
        assert_eq!(
            prepared
                .iter()
                .filter(|event| event["filename"] == quoted)
                .count(),
            2,
            "{prepared:?}"
        );
    }
    support::reads_alike(&trace);
    let cpu = text(&["cpu", "--format", "csv", &trace]);
    assert!(cpu.contains("sh"), "{cpu}");
}

#[test]
fn what_the_kernel_refuses_is_left_out_of_patterns_only() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let refused = ["--event", "tracepoint:ftrace:bprint"];
    let (output, _) = record(
        directory.path(),
        &[&ALONE[..], &refused].concat(),
        &["true"],
    );
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("cannot record tracepoint ftrace:bprint"),
        "{said}"
    );
    for (number, patterns) in [
        &["tracepoint:ftrace:*", "tracepoint:task:task_rename"][..],
        &[
            "tracepoint:*:*print",
            "tracepoint:ftrace:bprin?",
            "tracepoint:task:*",
        ],
    ]
    .iter()
    .enumerate()
    {
        let directory = directory.path().join(number.to_string());
        std::fs::create_dir(&directory).unwrap();
        let (said, trace) = chosen(&directory, patterns, &["sh", "-c", "true"]);
        let warnings = said
            .lines()
            .filter(|line| line.contains("patterns of --event match"));
        let warnings: Vec<&str> = warnings.collect();
        assert_eq!(warnings.len(), 1, "{said}");
        assert!(
            warnings[0].contains("are not recorded, since the kernel rejects them")
                && warnings[0].contains("tracepoint ftrace:bprint"),
            "{said}"
        );
        assert!(!events(&trace, "task_rename").is_empty(), "{said}");
    }
    // A name that a pattern also matches is still a name.
    let refused = [&refused[..], &["--event", "tracepoint:ftrace:*"]].concat();
    let (output, _) = record(
        directory.path(),
        &[&ALONE[..], &refused].concat(),
        &["true"],
    );
    assert!(!output.status.success());
}

#[test]
fn unknown_names_have_near_ones() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let source = FUNCTIONS.replace('`', "\"");
    let program = compiled(directory.path(), "near", &source)
        .display()
        .to_string();
    for (event, wanted) in [
        (
            "tracepoint:kmem:mm_page_aloc",
            "did you mean 'kmem:mm_page_alloc'",
        ),
        ("tracepoint:kme:*", "did you mean 'kmem'"),
        (&format!("uprobe:{program}:ad"), "did you mean 'add'"),
        (&format!("usdt:{program}:a"), "has no USDT probes"),
        (&format!("go:{program}"), "not a Go program"),
        ("uprobe:/does/not/exist:f", "/does/not/exist"),
        ("uprobe:/etc/passwd:f", "not a 64-bit ELF file"),
        ("sched_switch", "tracepoint:CATEGORY:NAME"),
    ] {
        let mut record = tracebraid();
        record
            .args(["record", "--event", event, "-o"])
            .arg(directory.path().join("none"));
        let output = record.args(["--", "true"]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{event}: {said}");
        assert!(said.contains(wanted), "{event}: {said}");
        assert!(!directory.path().join("none").exists());
    }
    let mut record = tracebraid();
    record
        .args(["record", "--event", "kprobe:vfs_read", "-o"])
        .arg(directory.path().join("kprobe"));
    let output = record.args(["--", "cat", "/etc/passwd"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    match Path::new("/sys/bus/event_source/devices/kprobe").exists() {
        true => assert!(output.status.success(), "{said}"),
        false => assert!(said.contains("CONFIG_KPROBES"), "{said}"),
    }
}

#[test]
fn postgresql_has_its_probes() {
    let Some(directory) = recording_directory() else {
        return;
    };
    let installed = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let Some(postgres) = installed
        .map(|version| version.path().join("bin/postgres"))
        .find(|path| path.exists())
    else {
        return support::skipped("PostgreSQL is not installed");
    };
    let event = format!("usdt:{}:*", postgres.display());
    // Every probe of the program can be attached; the program itself does nothing.
    let (_, trace) = chosen(
        directory.path(),
        &[&event],
        &[postgres.to_str().unwrap(), "--version"],
    );
    support::reads_alike(&trace);
    let near = format!("usdt:{}:transaction__star", postgres.display());
    let mut record = tracebraid();
    record
        .args(["record", "--event", &near, "-o"])
        .arg(directory.path().join("none"));
    let output = record.args(["--", "true"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("did you mean 'transaction__start'"), "{said}");
}

/// One goroutine holds a mutex for 20 ms at a time; four others wait for it one after another.
const GO: &str = r#"
package main

import (
	"os"
	"sync"
	"time"
)

func main() {
	var mutex sync.Mutex
	var group sync.WaitGroup
	mutex.Lock()
	for range 4 {
		group.Add(1)
		go func() {
			mutex.Lock()
			os.Getpid()
			mutex.Unlock()
			group.Done()
		}()
	}
	time.Sleep(20 * time.Millisecond)
	mutex.Unlock()
	group.Wait()
}
"#;

/// A compiled Go program, if there is a compiler.
pub(crate) fn compiled_go(directory: &Path, text: &str, options: &[&str]) -> Option<PathBuf> {
    let source = directory.join("waits.go");
    std::fs::write(&source, text).unwrap();
    let program = directory.join("waits");
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/go/bin";
    let mut build = Command::new("go");
    build
        .arg("build")
        .args(options)
        .arg("-o")
        .arg(&program)
        .arg(&source);
    build
        .env("PATH", path)
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=mod");
    match build.output() {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            support::skipped(format_args!("no compiler of Go: {error}"));
            None
        }
    }
}

#[test]
fn goroutines_wait_for_a_mutex_and_are_made_ready() {
    let Some(directory) = recording_directory() else {
        return;
    };
    for (options, has_labels) in [(&[][..], true), (&["-ldflags=-s -w"][..], false)] {
        let Some(program) = compiled_go(directory.path(), GO, options) else {
            return;
        };
        let program = program.display().to_string();
        let _ = std::fs::remove_dir_all(directory.path().join("trace"));
        let (_, trace) = chosen(directory.path(), &[&format!("go:{program}")], &[&program]);
        let parks = events(&trace, "go_park");
        let is_mutex = |park: &&BTreeMap<String, String>| match has_labels {
            true => park["reason"].contains("sync.Mutex.Lock"),
            // The version is unknown, so only the number of the reason is recorded.
            false => true,
        };
        let waiting: Vec<&str> = parks
            .iter()
            .filter(is_mutex)
            .map(|park| &*park["goid"])
            .collect();
        assert!(waiting.len() >= 4, "{parks:?}");
        let readies = events(&trace, "go_ready");
        // The main goroutine has number 1. It made one waiting goroutine ready; each of the others
        // was made ready by the previous one.
        let by_main: Vec<_> = readies.iter().filter(|ready| ready["by"] == "1").collect();
        assert!(
            by_main
                .iter()
                .any(|ready| waiting.contains(&&*ready["goid"])),
            "{readies:?}"
        );
        // A runtime timer made the main goroutine ready after its sleep.
        assert!(
            readies.iter().any(|ready| ready["goid"] == "1"),
            "{readies:?}"
        );
        support::reads_alike(&trace);
        if !has_labels {
            continue;
        }
        let periods = text(&[
            "periods",
            "--period",
            "wait : name == go_park : name == go_ready && payload.pid == $begin.payload.pid && goid == $begin.goid",
            "--captures",
            "wait : goid = goid, reason = reason : by = by",
            "--view",
            "log",
            "--format",
            "csv",
            &trace,
        ]);
        let mutex: Vec<&str> = periods
            .lines()
            .filter(|line| line.contains("sync.Mutex.Lock"))
            .collect();
        assert!(mutex.len() >= 4, "{periods}");
    }
}
