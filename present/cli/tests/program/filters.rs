//! Selecting event records: every option and the filter language, compared with the printed lines.

use crate::support::small::Small;
use crate::support::{failure, recorded, recorded_trace, run, text};

fn trace() -> String {
    recorded_trace("kernel-discarded")
}

/// Lines without deltas, which depend on the selection.
fn print(options: &[&str]) -> Vec<String> {
    let trace = trace();
    let mut arguments = vec!["print", "--no-delta"];
    arguments.extend(options);
    arguments.push(&trace);
    text(&arguments).lines().map(str::to_owned).collect()
}

fn field(line: &str, name: &str) -> Option<i64> {
    let rest = line.split(&format!(" {name} = ")).nth(1)?;
    let text = rest.split([',', ' ']).next()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16)
            .ok()
            .map(|number| number as i64),
        None => text.parse().ok(),
    }
}

#[track_caller]
fn same(options: &[&str], expected: impl Fn(&str) -> bool) {
    let all = print(&[]);
    let expected: Vec<_> = all.into_iter().filter(|line| expected(line)).collect();
    assert!(!expected.is_empty(), "{options:?}");
    assert!(print(options) == expected, "{options:?}");
}

#[test]
fn names() {
    same(&["--name", "sched_switch"], |line| {
        line.contains(" sched_switch: ")
    });
    same(&["--name", "syscall_entry_*,net_*"], |line| {
        line.contains(" syscall_entry_") || line.contains(" net_")
    });
    same(&["--filter", "irq_*"], |line| line.contains(" irq_"));
    same(
        &[
            "--filter",
            "name =~ '*_exit' && !(name == irq_softirq_exit)",
        ],
        |line| line.contains("_exit: ") && !line.contains(" irq_softirq_exit: "),
    );
}

#[test]
fn fields() {
    same(&["--filter", "sched_switch && next_tid == 0"], |line| {
        line.contains(" sched_switch: ") && field(line, "next_tid") == Some(0)
    });
    same(&["--filter", "ret < 0"], |line| {
        field(line, "ret").is_some_and(|ret| ret < 0)
    });
    same(
        &["--filter", "payload.ret >= 4096 || prev_prio != 20"],
        |line| {
            field(line, "ret").is_some_and(|ret| ret >= 4096)
                || field(line, "prev_prio").is_some_and(|prio| prio != 20)
        },
    );
    same(&["--filter", "next_comm ~ 'swapper/*'"], |line| {
        line.contains("next_comm = \"swapper/")
    });
    same(
        &["--filter", "has(next_comm) && next_comm !~ 'swapper/*'"],
        |line| line.contains("next_comm = ") && !line.contains("next_comm = \"swapper/"),
    );
    same(&["--filter", "packet.cpu_id == 2"], |line| {
        line.contains("{ cpu_id = 2 }")
    });
    same(&["--filter", "env.hostname == vm1 && cpu > 1"], |line| {
        line.contains("{ cpu_id = 2 }") || line.contains("{ cpu_id = 3 }")
    });
}

#[test]
fn cpus_and_limits() {
    same(&["--cpu", "1"], |line| line.contains("{ cpu_id = 1 }"));
    same(&["--cpu", "0,3"], |line| {
        line.contains("{ cpu_id = 0 }") || line.contains("{ cpu_id = 3 }")
    });
    assert_eq!(print(&["--limit", "7"]), print(&[])[..7]);
    assert_eq!(
        print(&["--head", "2", "--cpu", "1"]),
        print(&["--cpu", "1"])[..2]
    );
    assert!(print(&["--limit", "0"]).is_empty());
}

/// The running thread is the one of the last `sched_switch` on the CPU; a switch belongs to the
/// thread that ran before it.
#[test]
fn threads() {
    let all = print(&[]);
    let mut running: [Option<i64>; 4] = [None; 4];
    let wanted = 0;
    let mut expected = Vec::new();
    for line in all {
        let cpu = field(&line, "cpu_id").unwrap() as usize;
        let is_switch = line.contains(" sched_switch: ");
        let tid = if is_switch {
            field(&line, "prev_tid")
        } else {
            running[cpu]
        };
        if is_switch {
            running[cpu] = field(&line, "next_tid");
        }
        if tid == Some(wanted) {
            expected.push(line);
        }
    }
    assert!(expected.len() > 100);
    assert!(print(&["--tid", "0"]) == expected);
    assert!(print(&["--filter", "tid == 0"]) == expected);
    let named = print(&["--procname", "swapper/*"]);
    assert!(named == expected, "{} {}", named.len(), expected.len());
}

#[test]
fn threads_by_context() {
    let trace = recorded("ust-cyg-profile").join("ust-cyg-profile");
    let trace = trace.to_str().unwrap();
    let all = text(&["print", "--no-delta", trace]);
    let expected: String = all
        .lines()
        .filter(|line| line.contains("vtid = 266,"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(expected.len() > 1000);
    assert!(text(&["print", "--no-delta", "--tid", "266", trace]) == expected);
    assert_eq!(text(&["print", "--pid", "1", trace]), "");
    assert!(
        text(&[
            "print",
            "--no-delta",
            "--pid",
            "264",
            "--procname",
            "cyg*",
            trace
        ]) == all
    );
}

/// perf records the thread of every event record, but not in a context.
#[test]
fn threads_of_perf() {
    let trace = recorded("perf-mix").join("perf-mix");
    let trace = trace.to_str().unwrap();
    let all = text(&["print", "--no-delta", trace]);
    for (option, id, field) in [
        ("--tid", "13867", " common_pid = 13867,"),
        ("--tid", "0", " common_pid = 0,"),
        ("--pid", "13859", " perf_pid = 13859,"),
    ] {
        let expected: String = all
            .split_inclusive('\n')
            .filter(|line| line.contains(field))
            .collect();
        assert!(expected.len() > 1000, "{option} {id}");
        let found = text(&["print", "--no-delta", option, id, trace]);
        assert!(found == expected, "{option} {id}");
    }
    // Names come from switches.
    let named = text(&["print", "--no-delta", "--procname", "swapper/0", trace]);
    let idle = |line: &str| line.contains("{ cpu_id = 0 }") && line.contains(" common_pid = 0,");
    assert!(
        named.lines().count() > 40 && named.lines().all(idle),
        "{named}"
    );
}

#[test]
fn times() {
    let directory = tempfile::tempdir().unwrap();
    let trace = Small::default().write(&directory.path().join("small"));
    let trace = trace.to_str().unwrap();
    let count = |options: &[&str]| {
        let mut arguments = vec!["print"];
        arguments.extend(options);
        arguments.push(trace);
        text(&arguments).lines().count()
    };
    assert_eq!(count(&[]), 9);
    assert_eq!(count(&["--from", "+0.5s"]), 6);
    assert_eq!(count(&["--to", "+0.5s"]), 4);
    assert_eq!(
        count(&[
            "--from",
            "1700000001.000000001",
            "--to",
            "1700000001000000001"
        ]),
        2
    );
    assert_eq!(count(&["--from", "2023-11-14T22:14"]), 2);
    assert_eq!(
        count(&["--begin", "22:13:23", "--end", "22:13:24.000000123"]),
        2
    );
    assert_eq!(count(&["--timerange", "[22:13:23,22:13:24.000000123]"]), 2);
    assert_eq!(
        count(&[
            "--filter",
            "time > 22:13:23 && time <= 2023-11-14T22:13:24.000000123"
        ]),
        1
    );
    assert_eq!(count(&["--filter", "time < +2ns"]), 3);
    // An offset also shifts the times of options.
    assert_eq!(count(&["--clock-offset", "10", "--from", "22:13:33"]), 4);
}

#[test]
fn labels_floats_and_strings() {
    let directory = tempfile::tempdir().unwrap();
    let trace = Small::default().write(&directory.path().join("small"));
    let trace = trace.to_str().unwrap();
    let count = |filter: &str| text(&["print", "--filter", filter, trace]).lines().count();
    assert_eq!(count("label == zero"), 1);
    assert_eq!(count("label == 'two or three'"), 1);
    assert_eq!(count("label =~ '*three'"), 1);
    assert_eq!(count("label != zero"), 2);
    assert_eq!(count("label >= 3"), 2);
    assert_eq!(count("single > 0.2"), 2);
    assert_eq!(count("double < 1"), 1);
    assert_eq!(count("fixed == fix && counted == \"four\""), 3);
    assert_eq!(count("ctx.where ~ 'in *' && ctx.vtid < 105"), 2);
    assert_eq!(count("nested.inner.b == 2"), 3);
    assert_eq!(
        count("most == 0xffffffffffffffff && least == -9223372036854775808"),
        3
    );
    assert_eq!(count("odd == -2"), 3);
    for (filter, hopeless) in [
        ("label == 'no such'", true),
        ("label < zero", true),
        ("label =~ '*three'", false),
    ] {
        let message = String::from_utf8(run(&["print", "--filter", filter, trace]).stderr).unwrap();
        assert_eq!(
            message.contains("never holds"),
            hopeless,
            "{filter}: {message}"
        );
    }
    let output = run(&["print", "--filter", "label == 'two or thre'", trace]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let hint = "the field has no such value; did you mean 'two or three'?";
    assert!(message.contains(hint), "{message}");
}

#[test]
fn what_cannot_be_understood_is_shown_with_its_place() {
    let trace = trace();
    let (code, message) = failure(&["print", "--filter", "sched_switch && next_tid = 42", &trace]);
    assert_eq!(code, 2);
    insta::assert_snapshot!(message);
    let output = run(&["print", "--filter", "nxt_tid == 42", &trace]);
    assert_eq!(output.status.code(), Some(0));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("no event class has a field 'nxt_tid'"),
        "{message}"
    );
    let (code, message) = failure(&["print", "--filter", "sched_switch && time > foo", &trace]);
    assert_eq!(code, 2);
    assert!(
        message.starts_with("error: --filter: `foo` is not a time"),
        "{message}"
    );
    assert!(
        message.ends_with("\n  sched_switch && time > foo\n                         ^\n"),
        "{message}"
    );
    for (filter, hopeless) in [
        ("ret < abc", true),
        ("ret != abc || sched_switch", true),
        ("packet.cpu_id == x", true),
        ("next_comm < abc && ret < 3", false),
        ("packet.cpu_id == 1", false),
    ] {
        let output = run(&["print", "--limit", "1", "--filter", filter, &trace]);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            message.contains("never holds"),
            hopeless,
            "{filter}: {message}"
        );
    }
    for (option, word) in [
        ("--tid", "expected a thread id"),
        ("--pid", "expected a process id"),
        ("--cpu", "expected a CPU number"),
    ] {
        let (code, message) = failure(&["print", option, "x", &trace]);
        assert_eq!(code, 2);
        assert!(message.contains(word), "{message}");
    }
}

#[test]
fn who_recorded_is_left_out_only_where_the_trace_says_who() {
    same(&["--no-recorder"], |_| true);
    for report in ["print", "count", "cpu", "syscalls"] {
        let output = run(&[report, "--no-recorder", &trace()]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0));
        assert!(said.contains("no trace identifies its recorder"), "{said}");
    }
}
