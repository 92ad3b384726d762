//! Names that do not occur in the trace: a valid query without results exits with 0 and a warning
//! with the reason.

use crate::support::small::Small;

use crate::support::{failure, recorded_trace, run, said, says, text};

#[test]
fn unknown_events_are_told_with_the_nearest_names() {
    let event = "warning: no event class matches 'sched_swich'; did you mean 'sched_switch'?";
    for options in [
        ["print", "--filter", "sched_swich"],
        ["print", "--filter", "name == sched_swich && next_tid > 0"],
        ["print", "--name", "sched_swich"],
    ] {
        says(&options, event);
    }
    // Beside names that occur, within `!`, and as patterns.
    says(
        &[
            "print",
            "--limit",
            "1",
            "--name",
            "sched_swich,sched_wakeup",
        ],
        event,
    );
    says(
        &[
            "print",
            "--limit",
            "1",
            "--filter",
            "!(sched_swich || irq_*)",
        ],
        event,
    );
    says(
        &["print", "--name", "shced_*"],
        "warning: no event class matches 'shced_*'; did you mean 'sched_",
    );
    says(&["print", "--name", "openat"], "; did you mean '*openat'?");
    says(
        &["print", "--name", "zzzzz"],
        "no event class matches 'zzzzz'\n",
    );
    let period = "warning: no event class matches 'sched_swich'; did you mean 'sched_switch'?";
    says(&["periods", "--period", "p : sched_swich"], period);
}

#[test]
fn unknown_fields_are_told_of_the_events_that_are_chosen() {
    let of = |filter: &str, expected: &str| {
        says(&["print", "--limit", "1", "--filter", filter], expected)
    };
    of(
        "nxt_tid == 42",
        "warning: no event class has a field 'nxt_tid'; did you mean 'next_tid'?",
    );
    // Other events have the field.
    of(
        "sched_switch && ret < 0",
        "warning: 'sched_switch' has no field 'ret'",
    );
    of(
        "(sched_switch || sched_wakeup) && next_tidd > 0",
        "warning: neither 'sched_switch' nor 'sched_wakeup' has a field 'next_tidd'; did you mean 'next_tid'?",
    );
    of("sched_* && has(irq)", " event classes ('sched_");
    of("nxt_tid =* 'x'", "did you mean 'next_tid'?");
    assert_eq!(
        said(&[
            "print",
            "--limit",
            "1",
            "--filter",
            "sched_switch && next_tid > 0"
        ]),
        ""
    );
    assert_eq!(
        said(&[
            "print",
            "--limit",
            "1",
            "--filter",
            "sched_switch && ret < 0 || sched_wakeup"
        ])
        .lines()
        .count(),
        1
    );
}

/// An unknown field in the begin condition of a period is reported, even if other events have it.
#[test]
fn fields_of_periods_are_looked_for_in_the_events_that_their_conditions_name() {
    let begin = ["periods", "--period", "p : sched_switch && ret == 3"];
    says(&begin, "warning: 'sched_switch' has no field 'ret'");
    says(
        &begin,
        "warning: no event class of the traces can begin the period p",
    );
    let end = "p : sched_switch : sched_switch && prev_tid == $begin.next_tidd";
    says(
        &["periods", "--period", end],
        "warning: 'sched_switch' has no field 'next_tidd'; did you mean 'next_tid'?",
    );
    let captures = [
        "periods",
        "--period",
        "p : sched_switch",
        "--captures",
        "p : c = next_com",
    ];
    says(
        &captures,
        "'sched_switch' has no field 'next_com'; did you mean 'next_comm'",
    );
    says(
        &["periods", "--period", "p : sched_switch && procname == x"],
        "no event class has the context 'procname', which periods need",
    );
}

/// The same periods in the filter language and in that of lttng-analyses, with the thread of the
/// context or of switches.
#[test]
fn filters_and_periods_are_one_language() {
    let trace = recorded_trace("kernel-mix-small");
    let periods =
        |text_of: &str| text(&["periods", "--period", text_of, "--format", "json", &trace]);
    let one = periods("run : sched_switch : sched_swit* && cpu == $begin.cpu");
    assert!(one.contains("\"run\""), "{one}");
    assert_eq!(
        one,
        periods("run : sched_switch : name ~ 'sched_swit*' && cpu == $begin.cpu")
    );
    let one =
        periods("w : syscall_entry_write && fd != 1 : syscall_exit_write && tid == $begin.tid");
    assert_eq!(
        one,
        periods("w : syscall_entry_write && !(fd == 1) : syscall_exit_write && tid == $begin.tid")
    );
    let print = |filter: &str| text(&["print", "--filter", filter, &trace]);
    let lines = print("name =* 'sched_wak*' && cpu == 1");
    assert!(lines.lines().count() > 10);
    assert_eq!(lines, print("sched_wak* && cpu == 1"));
}

#[test]
fn unknown_threads_are_told_with_the_nearest_names() {
    for command in ["print", "count", "cpu", "syscalls", "report"] {
        says(
            &[command, "--procname", "stress-ng-fuxet"],
            "no thread matches --procname 'stress-ng-fuxet'; did you mean 'stress-ng-futex'?",
        );
        says(
            &[command, "--procname", "stress"],
            "no thread matches --procname 'stress'; did you mean 'stress*'?",
        );
        says(
            &[command, "--tid", "4000000"],
            "no thread with the id 4000000 ran",
        );
        says(
            &[command, "--pid", "4000000"],
            "no process with the id 4000000 ran",
        );
        says(
            &[command, "--cpu", "0,99"],
            "--cpu 99 matches nothing: the trace has CPUs 0-3",
        );
    }
    // Both exist, but not together.
    says(
        &["print", "--procname", "lttng-consumerd", "--tid", "339"],
        "no event record in the range belongs to the selected threads (--tid, --procname)",
    );
    says(
        &["syscalls", "--syscall", "opne"],
        "Linux has no such system call; did you mean 'open'",
    );
    says(
        &["critical-path", "--longest", "opne"],
        "Linux has no system call opne; did you mean 'open'",
    );
}

/// Contexts also contain names of threads.
#[test]
fn threads_of_contexts_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let trace = Small::default().write(&directory.path().join("small"));
    let output = run(&["print", "--tid", "4000000", trace.to_str().unwrap()]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("no thread with the id 4000000 ran"),
        "{message}"
    );
}

#[test]
fn seconds_of_1970_are_refused() {
    let trace = recorded_trace("kernel-mix-small");
    for options in [
        &["print", "--from", "1s"][..],
        &["count", "--to", "1s"],
        &["cpu", "--from", "0.5"],
        &["report", "--timerange", "1,2"],
        &["stacks", "--from", "1s"],
        &["critical-path", "--tid", "1", "--from", "1s"],
        &["periods", "--period", "p : sched_switch", "--from", "1s"],
        &["print", "--filter", "time > 1s"],
    ] {
        let mut arguments = options.to_vec();
        arguments.push(&trace);
        let (code, message) = failure(&arguments);
        assert_eq!(code, 2, "{options:?}: {message}");
        assert!(
            message.contains("before the trace begins; did you mean +"),
            "{options:?}: {message}"
        );
    }
    let (code, message) = failure(&["print", "--to", "500ms", &trace]);
    assert!(
        code == 2 && message.contains("did you mean +500ms (from"),
        "{message}"
    );
    let (code, message) = failure(&["print", "--from", "-1s", &trace]);
    let hint = "-1s is before the clock's origin; did you mean +1s (from the beginning";
    assert!(code == 2 && message.contains(hint), "{message}");
    // Times from the beginning are still accepted; 0 is the whole trace.
    assert_eq!(said(&["count", "--to", "+500ms"]), "");
    assert_eq!(said(&["count", "--from", "0"]), "");
}

#[test]
fn what_chooses_nothing_says_why() {
    says(
        &[
            "periods",
            "--period",
            "p : sched_switch",
            "--from",
            "2030-01-01",
        ],
        "the range is outside the trace, which lasts from 2026-11-21",
    );
    let output = run(&[
        "report",
        "--from",
        "+1min",
        &recorded_trace("kernel-mix-small"),
    ]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(
        message.contains("the range is outside the trace, which lasts from"),
        "{message}"
    );
    says(
        &["print", "--filter", "sched_switch && next_tid == 123456"],
        "no event record matches --filter",
    );
    says(
        &["count", "--from", "+0.0000001s", "--to", "+0.0000001s"],
        "no event record lies in the time range; the trace lasts from 2026",
    );
}
