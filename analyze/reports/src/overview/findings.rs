//! Findings: conspicuous figures, and the command that shows more of each.

use crate::overview::{Defect, Parts};
use tracebraid_tables::{Column, Report, Section, Unit, Value};

struct Finding {
    what: String,
    command: &'static str,
}

pub(super) fn section(parts: &Parts, defects: &[Defect]) -> Section {
    let mut findings = Vec::new();
    findings.extend(defects.iter().map(|defect| Finding {
        what: defect.what.clone(),
        command: defect.command,
    }));
    processors(parts, &mut findings);
    waiting(parts, &mut findings);
    devices(parts, &mut findings);
    errors(parts, &mut findings);
    let row = |finding: Finding| vec![Value::Text(finding.what), finding.command.into()];
    let columns = vec![
        Column::new("what", "Finding", Unit::Text),
        Column::new("command", "Look closer", Unit::Command),
    ];
    Section::new(
        "findings",
        "Findings",
        columns,
        findings.into_iter().map(row).collect(),
    )
    .short()
}

/// Number in a cell.
fn number(section: &Section, row: &[Value], key: &str) -> f64 {
    let value = section.cell(row, key);
    value.and_then(Value::number).unwrap_or(0.0)
}

fn text<'s>(section: &'s Section, row: &'s [Value], key: &str) -> &'s str {
    match section.cell(row, key) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

fn rows<'r>(report: &'r Report, key: &str) -> impl Iterator<Item = (&'r Section, &'r Vec<Value>)> {
    let section = report.section(key);
    section
        .into_iter()
        .flat_map(|section| section.rows.iter().map(move |row| (section, row)))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn milliseconds(nanoseconds: f64) -> String {
    format!("{:.1} ms", nanoseconds / 1e6)
}

/// Share of the time from which CPUs are busy, ...
const BUSY: f64 = 0.9;
/// ... which is conspicuous while all CPUs together are busy for at most this share.
const IDLE: f64 = 0.5;
/// Conspicuous share of the time in interrupts.
const INTERRUPTED: f64 = 0.1;

fn processors(parts: &Parts, findings: &mut Vec<Finding>) {
    let all = parts.cpu.total("active_share").number().unwrap_or(0.0);
    if all >= BUSY {
        findings.push(Finding {
            what: format!("the CPUs are busy {} of the time", percent(all)),
            command: "cpu",
        });
    }
    let cpus = || parts.cpu.rows("cpus");
    let alone = cpus().filter(|cpu| all <= IDLE && cpu.number("active_share") >= BUSY);
    findings.extend(alone.map(|cpu| Finding {
        what: format!(
            "CPU {} is busy {} of the time, all CPUs together {}",
            cpu.unsigned("cpu"),
            percent(cpu.number("active_share")),
            percent(all)
        ),
        command: "cpu",
    }));
    let inconsistent: u64 = cpus()
        .map(|cpu| cpu.unsigned("inconsistent_switches"))
        .sum();
    if inconsistent > 0 {
        let switches = match inconsistent {
            1 => "1 switch contradicts".to_owned(),
            many => format!("{many} switches contradict"),
        };
        findings.push(Finding {
            what: format!("{switches} the previous switch: events are missing"),
            command: "cpu",
        });
    }
    for (section, row) in rows(&parts.irq, "cpus") {
        let share = number(section, row, "interrupt_share") + number(section, row, "softirq_share");
        if share >= INTERRUPTED {
            findings.push(Finding {
                what: format!(
                    "CPU {} spends {} of the time in interrupts and softirqs",
                    number(section, row, "cpu"),
                    percent(share)
                ),
                command: "irq",
            });
        }
    }
}

/// Conspicuous p99 wake-up latency, in nanoseconds.
const LONG_WAIT: f64 = 5e6;
/// Conspicuous average number of threads that wait for a CPU.
const LONG_QUEUE: f64 = 1.0;

fn waiting(parts: &Parts, findings: &mut Vec<Finding>) {
    for (section, row) in rows(&parts.sched, "latency") {
        let long = number(section, row, "p99_ns");
        if long >= LONG_WAIT {
            findings.push(Finding {
                what: format!("p99 wake-up latency is {}", milliseconds(long)),
                command: "sched",
            });
        }
    }
    for (section, row) in rows(&parts.sched, "queues") {
        let length = number(section, row, "average_length");
        if length >= LONG_QUEUE {
            findings.push(Finding {
                what: format!(
                    "on average {length:.1} threads wait for CPU {}",
                    number(section, row, "cpu")
                ),
                command: "sched",
            });
        }
    }
}

/// Conspicuous p99 latency of disk requests, in nanoseconds.
const SLOW_REQUEST: f64 = 50e6;
/// Conspicuous share of the time in which a disk is busy.
const BUSY_DISK: f64 = 0.8;

fn devices(parts: &Parts, findings: &mut Vec<Finding>) {
    for (section, row) in rows(&parts.disk, "latencies") {
        let slow = number(section, row, "p99_ns");
        if slow >= SLOW_REQUEST {
            findings.push(Finding {
                what: format!(
                    "p99 latency of requests to {} is {}",
                    text(section, row, "disk"),
                    milliseconds(slow)
                ),
                command: "disk",
            });
        }
    }
    for (section, row) in rows(&parts.disk, "depth") {
        let busy = number(section, row, "utilization");
        if busy >= BUSY_DISK {
            findings.push(Finding {
                what: format!(
                    "{} is busy {} of the time",
                    text(section, row, "disk"),
                    percent(busy)
                ),
                command: "disk",
            });
        }
    }
    let totals = [
        (&parts.disk, "errors", "disk requests failed", "disk"),
        (
            &parts.net,
            "retransmissions",
            "TCP segments were retransmitted",
            "net",
        ),
        (
            &parts.net,
            "reason_drops",
            "packets were dropped by the kernel",
            "net",
        ),
    ];
    for (report, key, what, command) in totals {
        if let Value::Unsigned(count @ 1..) = report.total(key) {
            let what = format!("{count} {what}");
            findings.push(Finding { what, command });
        }
    }
}

/// Errors of ordinary operation: data or a file that does not exist yet or any more.
const USUAL: [&str; 11] = [
    "EAGAIN",
    "ENODATA",
    "ESPIPE",
    "EINPROGRESS",
    "ENOENT",
    "ETIMEDOUT",
    "EINTR",
    "ECHILD",
    "ENOTTY",
    "ENOSYS",
    "ESRCH",
];
/// Smallest conspicuous number of errors of a kind, ...
const MANY_ERRORS: f64 = 10.0;
/// ... if they are at least this share of the calls.
const ERROR_SHARE: f64 = 0.05;

fn errors(parts: &Parts, findings: &mut Vec<Finding>) {
    for (section, row) in rows(&parts.syscalls, "errors") {
        let (call, error) = (text(section, row, "syscall"), text(section, row, "error"));
        let count = number(section, row, "count");
        let calls: f64 = rows(&parts.syscalls, "syscalls")
            .filter(|(section, row)| text(section, row, "syscall") == call)
            .map(|(section, row)| number(section, row, "count"))
            .sum();
        let is_usual = USUAL.contains(&error) || error.starts_with("ERESTART");
        if !is_usual && count >= MANY_ERRORS && count >= ERROR_SHARE * calls {
            findings.push(Finding {
                what: format!("{count} of {calls} {call} calls fail with {error}"),
                command: "syscalls",
            });
        }
    }
}
