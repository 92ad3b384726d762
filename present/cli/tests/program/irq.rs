//! `irq` as users call it, on a recorded trace.

use crate::support::{failure, recorded, recorded_trace, text, tracebraid};
use serde_json::Value;

fn trace() -> String {
    recorded_trace("kernel-mix-small")
}

fn json(arguments: &[&str]) -> Value {
    let trace = trace();
    let arguments = [&["irq", "--format", "json"], arguments, &[trace.as_str()]].concat();
    serde_json::from_str(&text(&arguments)).expect("JSON")
}

fn rows<'r>(report: &'r Value, section: &str) -> &'r Vec<Value> {
    report[section].as_array().expect("rows")
}

fn sum(rows: &[Value], key: &str) -> u64 {
    rows.iter()
        .map(|row| row[key].as_u64().expect("a number"))
        .sum()
}

#[test]
fn tables() {
    for view in ["stats", "top", "log"] {
        let mut command = tracebraid();
        command.env("TRACEBRAID_COLUMNS", "80");
        let output = command
            .args(["irq", "--top", "3", "--view", view])
            .arg(trace())
            .output();
        let text = String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(format!("irq-{view}"), text);
    }
    let bars = text(&["irq", "--view", "freq", "--irq", "40", &trace()]);
    insta::assert_snapshot!("irq-freq", bars);
}

#[test]
fn tables_and_log_are_the_same_handlers() {
    let report = json(&["--view", "stats,log"]);
    assert_eq!(report["total"]["interrupts"], 888);
    assert_eq!(report["total"]["softirqs"], 8119);
    assert_eq!(sum(rows(&report, "interrupts"), "count"), 888);
    assert_eq!(sum(rows(&report, "cpus"), "interrupts"), 888);
    assert_eq!(sum(rows(&report, "cpus"), "softirqs"), 8119);
    let all =
        ["interrupts", "softirqs", "functions"].map(|section| sum(rows(&report, section), "count"));
    assert_eq!(rows(&report, "log").len() as u64, all.iter().sum::<u64>());
    let times = ["interrupts", "softirqs", "functions"]
        .map(|section| sum(rows(&report, section), "total_ns"));
    assert_eq!(
        sum(rows(&report, "log"), "duration_ns"),
        times.iter().sum::<u64>()
    );
}

#[test]
fn what_is_chosen() {
    let one = json(&["--irq", "26", "--view", "stats,log"]);
    assert_eq!(rows(&one, "interrupts").len(), 1);
    assert_eq!(rows(&one, "interrupts")[0]["name"], "virtio1-req.1");
    assert_eq!(rows(&one, "interrupts")[0]["count"], 55);
    assert_eq!(rows(&one, "log").len(), 55);
    assert!(rows(&one, "softirqs").is_empty());
    let soft = json(&["--softirq", "NET_*,RCU", "--min", "1ms"]);
    let names: Vec<_> = rows(&soft, "softirqs")
        .iter()
        .map(|row| row["name"].clone())
        .collect();
    assert_eq!(names, ["NET_RX", "RCU"]);
    assert!(
        rows(&soft, "softirqs")
            .iter()
            .all(|row| row["min_ns"].as_u64() >= Some(1_000_000))
    );
    // The range includes both ends.
    let end = json(&["--irq", "26", "--view", "log"])["log"][7]["begin_ns"]
        .as_i64()
        .expect("a time");
    let end = end + one["log"][7]["duration_ns"].as_i64().expect("a time");
    let count = |from: i64, to: i64| {
        let (from, to) = (format!("{from}ns"), format!("{to}ns"));
        rows(
            &json(&["--irq", "26", "--view", "log", "--from", &from, "--to", &to]),
            "log",
        )
        .len()
    };
    assert_eq!([count(end, end), count(end + 1, end + 1)], [1, 0]);
    assert_eq!(failure(&["irq", "--min", "x", &trace()]).0, 2);
}

#[test]
fn csv() {
    let csv = text(&["irq", "--format", "csv", "--view", "stats,log", &trace()]);
    let heads: Vec<&str> = csv
        .split("\n\n")
        .filter_map(|section| section.lines().next())
        .collect();
    assert_eq!(heads.len(), 6, "{csv}");
    assert!(heads[0].starts_with("host,kind,number,name,count,total_ns,min_ns,average_ns,"));
    assert!(heads[2].starts_with("host,kind,number,name,raises,count,"));
    assert_eq!(
        heads[5],
        "begin_ns,duration_ns,latency_ns,host,cpu,kind,number,name"
    );
    assert!(csv.contains("\nvm1,irq,25,virtio1-req.0,46,"), "{csv}");
}

#[test]
fn several_machines_are_told_apart() {
    let both = ["twohost-server", "twohost-client"].map(|name| recorded("twohost").join(name));
    let [server, client] = both.each_ref().map(|path| path.to_str().expect("UTF-8"));
    let report: Value =
        serde_json::from_str(&text(&["irq", "--format", "json", server, client])).expect("JSON");
    let of_36: Vec<_> = rows(&report, "interrupts")
        .iter()
        .filter(|row| row["number"] == 36)
        .map(|row| (row["host"].as_str().expect("a name"), row["count"].as_u64()))
        .collect();
    assert_eq!(of_36.len(), 2);
    assert_ne!(of_36[0].0, of_36[1].0);
    let mut counts = [of_36[0].1, of_36[1].1];
    counts.sort_unstable();
    assert_eq!(counts, [Some(2375), Some(3108)]);
}
