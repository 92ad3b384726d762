//! `cpu` and `io` as users call them, on a recorded kernel trace.

use crate::support::{failure, recorded, recorded_trace, run, text, tracebraid};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(arguments)).expect("JSON")
}

#[test]
fn no_limit_is_all_rows() {
    let trace = recorded_trace("kernel-mix-small");
    let rows = |arguments: &[&str]| {
        text(&[arguments, &[trace.as_str()]].concat())
            .lines()
            .count()
    };
    for command in ["cpu", "io", "syscalls", "count"] {
        let (all, most) = (
            rows(&[command, "--top", "0"]),
            rows(&[command, "--top", "1000000"]),
        );
        assert_eq!(all, most, "{command}");
        assert!(all > rows(&[command, "--top", "3"]), "{command}");
    }
}

#[test]
fn cpu_shows_tables_json_and_csv() {
    let trace = trace();
    let table = text(&["cpu", "--top", "3", &trace]);
    assert!(table.starts_with(
        "4 CPUs over 2.640188 s: 85.22 % active, 12.64 % idle, 2.14 % unknown; 9,433 switches\n"
    ));
    for part in [
        "   284   284   ab ",
        " 1.471132 s      55.72 % ",
        "  ... and 242 more\n",
    ] {
        let line = part.trim_start();
        assert!(table.contains(line), "{part}\n{table}");
    }
    let report = json(&["cpu", "--format", "json", &trace]);
    assert_eq!(report["duration_ns"], 2_640_187_682u64);
    assert_eq!(report["cpus"][1]["unknown_ns"], 28_900_662);
    assert_eq!(report["threads"][0]["active_ns"], 1_471_131_630u64);
    assert_eq!(report["threads"].as_array().map(Vec::len), Some(245));
    assert_eq!(report["total"]["migrations"], 388);
    assert_eq!(report["threads"][0]["priorities"], serde_json::json!([120]));
    let csv = text(&["cpu", "--format", "csv", "--top", "1", &trace]);
    assert_eq!(
        csv.lines().next(),
        Some("host,pid,tid,name,active_ns,active_share,switches,migrations,priority,priorities")
    );
    assert!(
        csv.lines()
            .nth(1)
            .is_some_and(|line| line.starts_with(",284,284,ab,1471131630,")
                && line.ends_with(",1196,17,120,120")),
        "{csv}"
    );
    assert_eq!(csv.lines().count(), 2);
}

#[test]
fn cpu_counts_what_is_chosen() {
    let trace = trace();
    let whole = json(&["cpu", "--format", "json", &trace]);
    let one = json(&["cpu", "--format", "json", "--cpu", "2", &trace]);
    assert_eq!(one["cpus"].as_array().map(Vec::len), Some(1));
    assert_eq!(one["cpus"][0], whole["cpus"][2]);
    let sum = |report: &Value| -> u64 {
        let rows = report["threads"].as_array().expect("rows");
        rows.iter()
            .filter_map(|row| row["active_ns"].as_u64())
            .sum()
    };
    assert_eq!(Some(sum(&one)), one["cpus"][0]["active_ns"].as_u64());
    let chosen = json(&["cpu", "--format", "json", "--procname", "nginx*,ab", &trace]);
    let names: Vec<_> = chosen["threads"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row["name"].clone())
        .collect();
    assert_eq!(names, ["ab", "nginx", "nginx"]);
    // The two halves add up to the whole.
    let first = json(&["cpu", "--format", "json", "--to", "1795225395.5", &trace]);
    let second = json(&[
        "cpu",
        "--format",
        "json",
        "--from",
        "1795225395500000001ns",
        &trace,
    ]);
    assert_eq!(sum(&first) + sum(&second), sum(&whole));
}

/// The parent of a process is above it; all formats contain the same numbers.
#[test]
fn processes_show_a_tree_json_and_csv() {
    let trace = trace();
    let report = json(&["processes", "--format", "json", &trace]);
    let rows = report["processes"].as_array().expect("rows");
    let row = |tid: u64| {
        rows.iter()
            .find(|row| row["tid"] == tid)
            .expect("the process")
    };
    let (ab, shell) = (row(284), row(200));
    assert_eq!(
        (&ab["parent"], &ab["parent_pid"]),
        (&shell["id"], &shell["pid"])
    );
    assert_eq!(ab["active_ns"], 1_471_131_630u64);
    let names: Vec<_> = (ab["names"].as_array().expect("names").iter())
        .map(|name| {
            (
                name["name"].as_str().expect("a name"),
                name["by"].as_str().expect("a method"),
            )
        })
        .collect();
    assert_eq!(names, [("bash", "fork"), ("ab", "exec")]);
    assert!(ab["begin_ns"].as_u64() < ab["names"][1]["time_ns"].as_u64());
    let csv = text(&["processes", "--format", "csv", &trace]);
    assert_eq!(csv.lines().count(), 1 + rows.len());
    let line = csv
        .lines()
        .find(|line| line.contains(",284,284,ab,200,"))
        .expect("the line");
    assert!(
        line.contains(",bash → ab,1,1471131630,1471131630,10519,10519,"),
        "{line}"
    );
    // A shortened list keeps the ancestors of its processes.
    let few = json(&["processes", "--format", "json", "--top", "5", &trace]);
    let few = few["processes"].as_array().expect("rows");
    assert_eq!(few.len(), 5);
    for row in few.iter().filter(|row| !row["parent"].is_null()) {
        assert!(
            few.iter().any(|other| other["id"] == row["parent"]),
            "{row}"
        );
    }
    let table = text(&["processes", "--top", "9", &trace]);
    let line = table
        .lines()
        .find(|line| line.contains("─bash → ab "))
        .expect("the line");
    assert!(
        line.trim_start().starts_with("284 ") && line.contains("│ └─bash"),
        "{line}"
    );
    assert!(table.contains("\n  ... and 291 more\n"), "{table}");
}

#[test]
fn io_shows_tables_json_and_csv() {
    let trace = trace();
    let table = text(&["io", "--top", "2", &trace]);
    assert!(
        table.starts_with("62.71 MiB read and 42.92 MiB written by 11,566 calls in 2.640188 s\n"),
        "{table}"
    );
    let report = json(&["io", "--format", "json", &trace]);
    assert_eq!(report["total"]["read_bytes"], 65_758_391);
    assert_eq!(report["total"]["written_bytes"], 45_002_527);
    let pipe = report["types"]
        .as_array()
        .expect("rows")
        .iter()
        .find(|row| row["type"] == "pipe")
        .expect("pipes");
    assert_eq!(
        pipe["read_bytes"], pipe["written_bytes"],
        "the bytes written to pipes are read"
    );
    let csv = text(&["io", "--format", "csv", &trace]);
    assert!(csv.contains(",283,283,dd,file,"), "{csv}");
    let chosen = json(&["io", "--format", "json", "--tid", "283", &trace]);
    assert_eq!(chosen["total"]["written_bytes"], 4_194_401);
    assert_eq!(chosen["threads"].as_array().map(Vec::len), Some(1));
}

#[test]
fn threads_and_chunks_do_not_matter() {
    let trace = trace();
    for command in [
        "cpu",
        "io",
        "processes",
        "syscalls",
        "irq",
        "memory",
        "waits",
    ] {
        let expected = text(&[
            command,
            "--format",
            "json",
            "-j",
            "1",
            "--chunk-size",
            "1G",
            &trace,
        ]);
        for (threads, chunk) in [("1", "1"), ("2", "64K"), ("8", "300K")] {
            let found = text(&[
                command,
                "--format",
                "json",
                "-j",
                threads,
                "--chunk-size",
                chunk,
                &trace,
            ]);
            assert!(
                expected == found,
                "{command} with {threads} threads and chunks of {chunk}"
            );
        }
    }
}

#[test]
fn traces_that_tell_nothing_of_it() {
    let user_space = recorded("ust-cyg-profile").join("ust-cyg-profile");
    let path = user_space.to_str().expect("UTF-8");
    for (command, words) in [
        ("cpu", "enable sched_switch"),
        ("io", "enable system calls"),
        ("syscalls", "no system calls were recorded: enable them"),
        ("irq", "enable irq_handler_entry"),
        ("waits", "no system calls were recorded: enable them"),
        ("memory", "enable kmem_mm_page_alloc"),
        ("processes", "enable sched_process_fork"),
    ] {
        let output = run(&[command, path]);
        assert_eq!(output.status.code(), Some(0));
        assert!(
            String::from_utf8_lossy(&output.stderr).contains(words),
            "{command}"
        );
    }
    assert_eq!(failure(&["cpu", "/does/not/exist"]).0, 3);
    assert_eq!(failure(&["io", "--cpu", "x", path]).0, 2);
}

#[test]
fn several_machines_are_told_apart() {
    let both = ["twohost-server", "twohost-client"].map(|name| recorded("twohost").join(name));
    let [server, client] = both.each_ref().map(|path| path.to_str().expect("UTF-8"));
    let report = json(&["cpu", "--format", "json", server, client]);
    let hosts = report["hosts"].as_array().expect("rows");
    assert_eq!(hosts.len(), 2);
    assert_eq!(report["cpus"].as_array().map(Vec::len), Some(4));
    let table = text(&["io", "--procname", "worker*", server, client]);
    let name = |at: usize| hosts[at]["name"].as_str().expect("a name").to_owned();
    assert!(
        table.contains(&format!("@ {}", name(0))) || table.contains(&format!("@ {}", name(1))),
        "{table}"
    );
}

/// Output of a command in a terminal with this width.
fn shown(width: usize, arguments: &[&str], trace: &str) -> String {
    let output = tracebraid()
        .env("TRACEBRAID_COLUMNS", width.to_string())
        .args(arguments)
        .arg(trace)
        .output()
        .expect("the binary runs");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn everything_fits_narrow_terminals_and_no_number_is_cut() {
    let trace = trace();
    let number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    for arguments in [
        &["info", "--events"][..],
        &["count"],
        &["cpu"],
        &["io"],
        &["processes"],
        &["syscalls"],
    ] {
        let whole = text(&[arguments, &[&trace]].concat());
        for width in [80, 60] {
            let narrow = shown(width, arguments, &trace);
            for line in narrow.lines().filter(|line| !line.starts_with("Trace ")) {
                assert!(
                    line.chars().count() <= width,
                    "{arguments:?} at {width}: {line}"
                );
            }
            // With fewer bars, each bar stands for a longer part of the range.
            let rest = narrow.split("Over time").next().expect("text");
            for word in rest.split_whitespace().filter(|word| number(word)) {
                assert!(
                    whole.contains(word) || word.ends_with('…'),
                    "{arguments:?} at {width}: {word}"
                );
            }
        }
    }
    insta::assert_snapshot!("io-80", shown(80, &["io", "--top", "2"], &trace));
    insta::assert_snapshot!(
        "processes-100",
        shown(100, &["processes", "--clock-gmt"], &trace)
    );
    insta::assert_snapshot!("cpu-60", shown(60, &["cpu", "--top", "2"], &trace));
    insta::assert_snapshot!(
        "info-80",
        shown(80, &["info"], &trace)
            .lines()
            .skip(1)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn the_biggest_streams_are_shown() {
    let trace = trace();
    let report = json(&["count", "--format", "json", &trace]);
    let most = report["streams"]
        .as_array()
        .expect("rows")
        .iter()
        .max_by_key(|row| row["events"].as_u64());
    let most = most.and_then(|row| row["cpu"].as_u64()).expect("a CPU");
    assert_ne!(most, 0, "the first stream is no test");
    let table = text(&["count", "--top", "1", &trace]);
    let streams = table.split("Stream").nth(1).expect("a table");
    let names: Vec<_> = streams.lines().skip(2).take(2).collect();
    assert!(
        names[0].trim_start().starts_with(&format!("kchan_{most} ")),
        "{table}"
    );
    assert_eq!(names[1], "  ... and 3 more");
}

#[test]
fn traces_of_perf() {
    let trace = recorded("perf-mix").join("perf-mix");
    let trace = trace.to_str().expect("UTF-8");
    let cpu = text(&["cpu", trace]);
    assert!(
        cpu.starts_with(
            "2 CPUs over 9.507 ms: 69.94 % active, 28.79 % idle, 1.27 % unknown; 99 switches\n"
        ),
        "{cpu}"
    );
    let io = text(&["io", "--pid", "13864", trace]);
    assert!(
        io.starts_with("0 B read and 4.88 KiB written by 50 calls in 9.507 ms\n"),
        "{io}"
    );
    let io = text(&["io", trace]);
    assert!(
        io.contains("\nNot counted: 1 call without entry in the trace\n"),
        "{io}"
    );
}

/// The one-page summary; its numbers equal those of the reports that it combines.
#[test]
fn one_page() {
    let trace = trace();
    let page = |width| shown(width, &["report"], &trace).replace(&trace, "TRACE");
    insta::assert_snapshot!("report-80", page(80));
    insta::assert_snapshot!("report-120", page(120));
    let report = json(&["report", "--format", "json", "--top", "3", &trace]);
    let cpu = json(&["cpu", "--format", "json", &trace]);
    for (at, row) in report["cpu"].as_array().expect("rows").iter().enumerate() {
        for key in ["pid", "name", "active_ns"] {
            assert_eq!(row[key], cpu["processes"][at][key]);
        }
    }
    assert_eq!(report["cpu"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        report["total"]["active_share"],
        cpu["total"]["active_share"]
    );
    let sched = json(&["sched", "--format", "json", "--top", "1", &trace]);
    let worst = report["worst"].as_array().expect("rows");
    let wait = worst.iter().find(|row| row["kind"] == "CPU wait");
    assert_eq!(
        wait.map(|row| &row["duration_ns"]),
        Some(&sched["longest"][0]["latency_ns"])
    );
    for finding in report["findings"].as_array().expect("rows") {
        let command = finding["command"].as_str().expect("a command");
        let mut words: Vec<&str> = command.split(' ').skip(1).collect();
        words.push(&trace);
        assert!(!text(&words).is_empty(), "{command} can be run");
    }
    let lossy = recorded("kernel-discarded").join("kernel-discarded");
    let lossy = json(&["report", "--format", "json", lossy.to_str().expect("UTF-8")]);
    let lost = lossy["findings"].as_array().expect("rows");
    assert!(lost.iter().any(|row| {
        row["what"]
            .as_str()
            .is_some_and(|what| what.contains("lost 43966 event records"))
    }));
}
