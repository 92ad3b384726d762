//! `sched` as users call it, on a recorded kernel trace.

use crate::support::{failure, recorded, recorded_trace, run, text, tracebraid};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&text(arguments)).expect("JSON")
}

fn rows<'a>(report: &'a Value, list: &str) -> &'a [Value] {
    report[list]
        .as_array()
        .unwrap_or_else(|| panic!("a list of {list}"))
}

fn sum(report: &Value, list: &str, field: &str) -> u64 {
    rows(report, list)
        .iter()
        .filter_map(|row| row[field].as_u64())
        .sum()
}

#[test]
fn tables_fit_terminals() {
    let trace = trace();
    for width in [120, 80] {
        let output = tracebraid()
            .env("TRACEBRAID_COLUMNS", width.to_string())
            .args(["sched", "--clock-gmt", "--top", "2", &trace])
            .output()
            .expect("the binary runs");
        assert!(output.status.success());
        let table = String::from_utf8(output.stdout).expect("UTF-8");
        for line in table.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        if width == 120 {
            insta::assert_snapshot!("sched-120", table);
        }
    }
}

#[test]
fn json_and_csv_have_everything() {
    let trace = trace();
    let report = json(&[
        "sched",
        "--format",
        "json",
        "--view",
        "stats,top,log",
        &trace,
    ]);
    // lttng-analyses has the same numbers.
    assert_eq!(report["total"]["latencies"], 5080);
    assert_eq!(report["latency"][0]["max_ns"], 32_704_164);
    assert_eq!(rows(&report, "threads").len(), 245);
    assert_eq!(rows(&report, "log").len(), 5080);
    assert_eq!(rows(&report, "longest")[0]["waker"]["tid"], 36);
    // All tables cover the same latencies, switches, waits and migrations.
    for list in ["threads", "priorities", "wakers"] {
        assert_eq!(sum(&report, list, "count"), 5080, "{list}");
        assert_eq!(sum(&report, list, "total_ns"), 2_662_960_613, "{list}");
    }
    for (list, field, total) in [
        ("reasons", "switches", "switches"),
        ("thread_switches", "switches", "switches"),
        ("thread_switches", "voluntary", "voluntary"),
        ("thread_switches", "involuntary", "involuntary"),
        ("thread_migrations", "migrations", "migrations"),
        ("migrations", "migrations", "migrations"),
    ] {
        let total = report["total"][total].as_u64();
        assert_eq!(Some(sum(&report, list, field)), total, "{list}");
    }
    for field in ["waits", "wait_ns"] {
        assert_eq!(
            sum(&report, "queues", field),
            sum(&report, "thread_waits", field),
            "{field}"
        );
    }
    let csv = text(&["sched", "--format", "csv", "--top", "1", &trace]);
    assert!(
        csv.starts_with("count,total_ns,min_ns,average_ns,max_ns,"),
        "{csv}"
    );
    assert!(
        csv.contains(
            "\nwaker_context,waker_host,waker_pid,waker_tid,waker_name,host,pid,tid,name,count,"
        ),
        "{csv}"
    );
    assert!(csv.contains("\n1795225394627179985,1795225394659884149,32704164,120,2,,281,281,dd,thread,,36,36,kworker/u8:2\n"), "{csv}");
}

#[test]
fn what_is_chosen_counts() {
    let trace = trace();
    let whole = json(&["sched", "--format", "json", &trace]);
    let real_time = json(&["sched", "--format", "json", "--prio", "0,100", &trace]);
    assert_eq!(real_time["total"]["latencies"], 140);
    assert_eq!(
        rows(&real_time, "priorities"),
        &rows(&whole, "priorities")[..2]
    );
    assert_eq!(real_time["total"]["switches"], whole["total"]["switches"]);
    let of = |cpu: &str| json(&["sched", "--format", "json", "--cpu", cpu, &trace]);
    let each = ["0", "1", "2", "3"].map(of);
    let latencies: u64 = each.iter().map(|part| sum(part, "threads", "count")).sum();
    assert_eq!(latencies, 5080);
    assert_eq!(each[2]["queues"][0], whole["queues"][2]);
    let nginx = json(&[
        "sched",
        "--format",
        "json",
        "--procname",
        "nginx",
        "--view",
        "stats,log",
        &trace,
    ]);
    assert_eq!(nginx["total"]["latencies"], 771);
    assert!(rows(&nginx, "log").iter().all(|row| row["name"] == "nginx"));
    let long = json(&[
        "sched", "--format", "json", "--min", "10ms", "--view", "log", &trace,
    ]);
    let least = rows(&long, "log")
        .iter()
        .filter_map(|row| row["latency_ns"].as_u64())
        .min();
    assert!(least.is_some_and(|least| least >= 10_000_000), "{least:?}");
    let freq = json(&[
        "sched", "--format", "json", "--view", "freq", "--tid", "249", &trace,
    ]);
    let of = |row: &&Value| row["of"] == "nginx (249)";
    let count = rows(&freq, "distribution")
        .iter()
        .filter(of)
        .filter_map(|row| row["count"].as_u64());
    assert_eq!(count.sum::<u64>(), 355);
}

#[test]
fn threads_and_chunks_do_not_matter() {
    let trace = trace();
    let report = |threads, chunk| {
        let views = ["--view", "stats,top,log,freq", "--format", "json"];
        let way = ["-j", threads, "--chunk-size", chunk, &trace];
        text(&[&["sched"][..], &views, &way].concat())
    };
    let expected = report("1", "1G");
    for (threads, chunk) in [("1", "1"), ("2", "64K"), ("8", "300K")] {
        assert!(
            expected == report(threads, chunk),
            "{threads} threads, chunks of {chunk}"
        );
    }
}

#[test]
fn traces_that_tell_nothing_of_it() {
    let user_space = recorded("ust-cyg-profile").join("ust-cyg-profile");
    let output = run(&["sched".as_ref(), user_space.as_os_str()]);
    assert_eq!(output.status.code(), Some(0));
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(warning.contains("enable sched_switch"), "{warning}");
    assert_eq!(failure(&["sched", "--prio", "x", &trace()]).0, 2);
}

#[test]
fn traces_of_perf() {
    let trace = recorded("perf-mix").join("perf-mix");
    let report = json(&["sched", "--format", "json", trace.to_str().expect("UTF-8")]);
    let switches = sum(&report, "reasons", "switches");
    assert_eq!(report["total"]["switches"].as_u64(), Some(switches));
    assert!(switches > 0);
}
