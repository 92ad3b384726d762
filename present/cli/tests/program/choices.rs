//! Options that select: ranges of numbers, and warnings about selections that match nothing.

use crate::support::{failure, recorded_trace, said, says, text};

#[test]
fn a_filter_that_matches_nothing_is_named_with_what_there_is() {
    says(
        &["disk", "--disk", "nvme*"],
        "warning: --disk nvme* matches nothing: the trace has vd",
    );
    says(
        &["disk", "--disk", "vd*,sda"],
        "warning: --disk sda matches nothing: the trace has vd",
    );
    says(
        &["net", "--interface", "wlan0"],
        "warning: --interface wlan0 matches nothing: the trace has ",
    );
    says(
        &["irq", "--irq", "nvme0"],
        "warning: --irq nvme0 matches nothing: the trace has ",
    );
    says(
        &["irq", "--softirq", "net"],
        "warning: --softirq NET matches nothing: the trace has NET_",
    );
    says(
        &["files", "--path", "/no/such/*"],
        "warning: --path /no/such/* matches nothing: the trace has /",
    );
    says(
        &["files", "--type", "disk"],
        "warning: --type disk matches nothing: known are ",
    );
    says(
        &["files", "--type", "soket"],
        "warning: --type soket matches nothing: known are socket, ",
    );
    says(
        &["waits", "--why", "futx,timer"],
        "warning: --why futx matches nothing: known are futex, ",
    );
    says(
        &["waits", "--why", "user-input"],
        "warning: --why user-input matches no wait of a call that ended in the selection",
    );
    says(
        &["sched", "--prio", "50-60"],
        "warning: --prio matches no selected latency",
    );
    says(
        &["cpu", "--prio", "50-60"],
        "warning: --prio matches no selected thread",
    );
    for command in ["syscalls", "waits", "io"] {
        let none = "warning: --syscall opne matches nothing: Linux has no such system call";
        says(&[command, "--syscall", "opne,read"], none);
        let none = "warning: --syscall swapon matches no system call that ended in the selection";
        says(&[command, "--syscall", "swapon"], none);
    }
    let none = "warning: --syscall opne matches nothing: Linux has no such system call";
    says(&["files", "--syscall", "opne"], none);
    let none = "warning: --syscall preadv2 matches no system call that ended in the selection";
    says(&["files", "--syscall", "preadv2"], none);
}

#[test]
fn a_filter_that_matches_something_is_not_named() {
    for options in [
        ["disk", "--disk", "vd*"],
        ["net", "--interface", "*"],
        ["irq", "--irq", "virtio*"],
        ["irq", "--softirq", "net_rx"],
        ["files", "--path", "/*"],
        ["sched", "--prio", "100-139"],
        ["syscalls", "--syscall", "read"],
        ["io", "--syscall", "read,write*"],
        ["files", "--syscall", "f*sync,read"],
        ["cpu", "--prio", "100-139"],
        ["waits", "--syscall", "pread64,pread*,read"],
        ["files", "--type", "net*,file"],
        ["waits", "--why", "block-*,futex"],
        ["sched", "--cpu", "0-3"],
        ["disk", "--procname", "*"],
    ] {
        assert_eq!(said(&options), "", "{options:?}");
    }
}

/// Warned of even where tables of CPUs, disks or interfaces have rows for any selection.
#[test]
fn threads_and_cpus_that_are_not_there_are_named() {
    for command in [
        "cpu",
        "io",
        "sched",
        "disk",
        "net",
        "syscalls",
        "waits",
        "processes",
        "memory",
        "files",
        "report",
    ] {
        for (option, value, expected) in [
            ("--tid", "4000000", "no thread with the id 4000000 ran"),
            ("--pid", "4000000", "no process with the id 4000000 ran"),
            (
                "--procname",
                "no-such-name",
                "no thread matches --procname 'no-such-name'",
            ),
        ] {
            says(&[command, option, value], expected);
        }
        says(&[command, "--cpu", "99"], "the trace has CPUs 0-3");
    }
    says(&["irq", "--cpu", "99"], "the trace has CPUs 0-3");
}

#[test]
fn softirqs_are_chosen_in_either_case() {
    let trace = recorded_trace("kernel-mix-small");
    let json = |name: &str| text(&["irq", "--softirq", name, "--format", "json", &trace]);
    let table = text(&["irq", "--softirq", "net_rx", "--table", "cpus", &trace]);
    assert!(
        table.contains("By CPU (all interrupts and softirqs)"),
        "{table}"
    );
    let upper = json("NET_RX,R*");
    assert!(
        upper.contains("\"NET_RX\"") && upper.contains("\"RCU\""),
        "{upper}"
    );
    assert_eq!(json("net_rx,r*"), upper);
}

#[test]
fn numbers_may_be_ranges() {
    let trace = recorded_trace("kernel-mix-small");
    let json = |options: &[&str]| {
        let mut arguments = options.to_vec();
        arguments.extend(["--format", "json", &trace]);
        text(&arguments)
    };
    for command in ["cpu", "sched", "count", "print"] {
        let some = json(&[command, "--cpu", "0-1,3"]);
        assert!(some == json(&[command, "--cpu", "0,1,3"]), "{command}");
        assert!(some != json(&[command, "--cpu", "0-3"]), "{command}");
    }
    let all = json(&["sched"]);
    let some = json(&["sched", "--prio", "99-119,-1-98"]);
    assert!(some == json(&["sched", "--prio=-1-119"]));
    assert!(some != all);
    assert!(json(&["sched", "--prio", "0-139"]) == all);
    for (options, expected) in [
        (
            ["sched", "--prio", "99-0"],
            "expected a priority from -1 to 139 or a range such as 0-99",
        ),
        (
            ["sched", "--cpu", "3-0"],
            "expected a CPU number or a range such as 0-3",
        ),
        (
            ["print", "--cpu", "0-99999"],
            "the range has more than 16384 CPUs",
        ),
    ] {
        let mut arguments = options.to_vec();
        arguments.push(&trace);
        let (code, message) = failure(&arguments);
        assert_eq!(code, 2);
        assert!(message.contains(expected), "{message}");
    }
}

/// Packets may begin long before their first event record, which is the first line of `print`.
#[test]
fn a_range_outside_of_the_trace_is_told_the_times_of_its_events() {
    let events = "no event record is selected: the range is outside the trace, which lasts from \
                  2026-11-21 01:43:14.135134325 to 2026-11-21 01:43:16.775322007";
    for range in [
        ["--to", "01:43:14.1"],
        ["--from", "01:43:16.78"],
        ["--from", "2030-01-01"],
    ] {
        for command in [
            "cpu", "syscalls", "sched", "irq", "report", "count", "print",
        ] {
            says(&[command, range[0], range[1]], events);
        }
    }
    assert_eq!(said(&["cpu", "--to", "01:43:14.14"]), "");
}
