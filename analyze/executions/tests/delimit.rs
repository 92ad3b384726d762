//! Delimited executions, compared with the reports on the same recorded traces.

use std::collections::BTreeMap;
use std::path::Path;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_executions::{DelimitedAnalysis, FunctionNames};
use tracebraid_follow::{CallNames, KernelAnalysis, Selection, View, Views, Window};
use tracebraid_language::Datum;
use tracebraid_language::executions::Definitions;
use tracebraid_language::glob::Glob;
use tracebraid_periods::{Ended, EndedPeriod};
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::syscalls::{SyscallAnalysis, SyscallOptions};
use tracebraid_symbols::Symbols;
use tracebraid_tables::{Row as TableRow, Value};

pub(crate) fn folded<A: Analysis>(set: &TraceSet, analysis: &A, options: Options) -> A::Report {
    fold(set, analysis, options, &Control::default())
        .expect("no cancellation")
        .report
}

/// A single thread with whole chunks, and ways that cut the trace into many chunks.
pub(crate) fn ways() -> [Options; 4] {
    let way = |threads, chunk_bytes| Options {
        threads,
        chunk_bytes,
        ..Options::default()
    };
    [way(1, 0), way(1, 1 << 12), way(4, 1 << 16), way(3, 1 << 14)]
}

pub(crate) fn traces(archive: &str, names: &[&str]) -> TraceSet {
    let directory = tracebraid_testkit::recorded::unpacked(archive);
    let paths: Vec<_> = names.iter().map(|name| directory.join(name)).collect();
    TraceSet::open(&paths).expect("traces")
}

pub(crate) fn defined(texts: &[&str]) -> Definitions {
    let mut definitions = Definitions::default();
    for text in texts {
        definitions.add(text).expect("a definition");
    }
    definitions
}

/// Executions, which must be the same for all ways to read the trace, with names of functions from
/// a directory of debug information.
fn found_with(set: &TraceSet, texts: &[&str], debug: &Path) -> Ended {
    let found = ways().map(|options| {
        let definitions = defined(texts);
        let mut symbols = Symbols::new(vec![debug.to_owned()]);
        let how = (options, &Control::default());
        let names =
            FunctionNames::new(set, &definitions, &mut symbols, &[], how).expect("no cancellation");
        let analysis =
            DelimitedAnalysis::new(set, &definitions, names, Window::default()).expect("a plan");
        assert_eq!(analysis.doubts(), [""; 0]);
        folded(set, &analysis, options)
    });
    let [first, others @ ..] = found;
    for other in others {
        assert_eq!(other, first);
    }
    first
}

/// Executions, which must be the same for all ways to read the trace.
pub(crate) fn found(set: &TraceSet, texts: &[&str], window: Window) -> Ended {
    let analysis = DelimitedAnalysis::new(set, &defined(texts), FunctionNames::default(), window)
        .expect("a plan");
    let [first, others @ ..] = ways().map(|options| folded(set, &analysis, options));
    for other in others {
        assert_eq!(other, first);
    }
    first
}

fn tid(period: &EndedPeriod) -> i128 {
    match period.begin.captures.last() {
        Some(Datum::Integer(tid)) => *tid,
        other => panic!("no thread: {other:?}"),
    }
}

fn text(datum: &Datum) -> String {
    String::from_utf8_lossy(datum.bytes().unwrap_or_default()).into_owned()
}

/// Begin, duration, call, thread.
type Row = (i64, u64, String, i128);

fn rows(ended: &Ended, kind: usize) -> Vec<Row> {
    let of_kind = ended.periods.iter().filter(|period| period.period == kind);
    let row = |period: &EndedPeriod| {
        (
            period.begin.time,
            period.begin.time.abs_diff(period.end.time),
            text(&period.begin.captures[0]),
            tid(period),
        )
    };
    let mut rows: Vec<Row> = of_kind.map(row).collect();
    rows.sort();
    rows
}

/// The list of the report on system calls, and its number of calls without an end.
fn listed(set: &TraceSet, glob: &str, window: Window) -> (Vec<(Row, Option<i64>)>, u64) {
    let selection = Selection {
        window,
        ..Selection::default()
    };
    let views = Views {
        views: vec![View::Log],
        ..Views::default()
    };
    let options = SyscallOptions {
        calls: CallNames(vec![Glob::new(glob)]),
        ..views.into()
    };
    let report = folded(
        set,
        &SyscallAnalysis::with(set, selection, options),
        Options::default(),
    );
    let row = |row: &Vec<Value>| match &row[..] {
        [
            Value::Time(begin),
            Value::Unsigned(duration),
            Value::Text(call),
            Value::Text(_),
            Value::Signed(result),
            error,
            Value::Thread(thread),
        ] => {
            let tid = thread.tid.expect("a thread").into();
            let result = (*error == Value::None).then_some(*result);
            ((begin.0, *duration, call.clone(), tid), result)
        }
        other => panic!("{other:?}"),
    };
    let log = report
        .sections
        .iter()
        .find(|section| section.key == "log")
        .expect("a log");
    let mut rows: Vec<_> = log.rows.iter().map(row).collect();
    rows.sort();
    let unfinished = report.totals.iter().find(|total| total.key == "unfinished");
    match unfinished.expect("a total").value {
        Value::Unsigned(unfinished) => (rows, unfinished),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn calls_are_those_of_the_report() {
    let recorded = [
        traces("kernel-mix-small", &["kernel-mix-small"]),
        traces("kernel-ust-requests", &["kernel-ust-requests"]),
        traces("twohost", &["twohost-client", "twohost-server"]),
    ];
    for set in &recorded {
        // A call belongs to each definition that matches it. The last pattern excludes
        // `rt_sigreturn`, of which some exits are not recorded.
        let globs = ["read", "futex", "[!r]*"];
        let ended = found(
            set,
            &["call read", "call f: futex", "call [!r]*"],
            Window::default(),
        );
        for (kind, glob) in globs.into_iter().enumerate() {
            let (listed, unfinished) = listed(set, glob, Window::default());
            let own = rows(&ended, kind);
            assert!(own.len() > 100, "{glob}: {}", own.len());
            let listed_rows: Vec<Row> = listed.iter().map(|(row, _)| row.clone()).collect();
            assert_eq!(own, listed_rows, "{glob}");
            assert_eq!(ended.unfinished[kind], unfinished, "{glob}");
        }
    }
}

/// All calls that the report counts are executions, under any name.
fn every_call_is_an_execution(set: &TraceSet, what: &str) {
    let definitions = defined(&["call *"]);
    let names = FunctionNames::default();
    let analysis =
        DelimitedAnalysis::new(set, &definitions, names, Window::default()).expect("a plan");
    let [.., way] = ways();
    let own = rows(&folded(set, &analysis, way), 0);
    let (listed, _) = listed(set, "*", Window::default());
    let listed: Vec<Row> = listed.into_iter().map(|(row, _)| row).collect();
    assert!(own.len() > 100, "{what}: {}", own.len());
    assert_eq!(own.len(), listed.len(), "{what}");
    assert_eq!(own, listed, "{what}");
}

#[test]
fn every_call_of_recorded_traces_is_an_execution() {
    for archive in [
        "kernel-mix-small",
        "kernel-ust-requests",
        "kernel-discarded",
        "twohost",
        "disk-contention",
        "perf-mix",
        "perf-queues",
    ] {
        let directory = tracebraid_testkit::recorded::unpacked(archive);
        let set = TraceSet::open(&[directory]).expect("traces");
        every_call_is_an_execution(&set, archive);
    }
}

/// The same trace with other names of calls: a call that only one architecture has, and a call that
/// is newer than the table.
#[test]
fn calls_that_the_table_lacks_are_called_as_the_trace_calls_them() {
    let from =
        tracebraid_testkit::recorded::unpacked("kernel-mix-small").join("kernel-mix-small/kernel");
    let to = tempfile::tempdir().expect("a directory");
    for file in std::fs::read_dir(&from).expect("a trace") {
        let path = file.expect("an entry").path();
        if path.is_file() {
            std::fs::copy(&path, to.path().join(path.file_name().expect("a name")))
                .expect("a copy");
        }
    }
    let metadata = to.path().join("metadata");
    let mut bytes = std::fs::read(&metadata).expect("the metadata");
    let renamed = [("futex", "arm_x"), ("fsync", "never"), ("statfs", "s390_s")];
    for (old, new) in renamed {
        // Names of the same length keep the offsets.
        for edge in ["entry", "exit"] {
            let [old, new] = [old, new].map(|name| format!("\"syscall_{edge}_{name}\""));
            let at = bytes
                .windows(old.len())
                .position(|window| window == old.as_bytes());
            let at = at.unwrap_or_else(|| panic!("{old} is there"));
            bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
        }
    }
    std::fs::write(&metadata, bytes).expect("the metadata can be written");
    let original = TraceSet::open(&[from]).expect("the trace");
    let set = TraceSet::open(&[to.path()]).expect("the trace");
    every_call_is_an_execution(&set, "renamed");
    for ((old, new), user) in renamed.into_iter().zip(["futex", "fsync", "statfs"]) {
        let (mut expected, unfinished) = listed(&original, old, Window::default());
        expected
            .iter_mut()
            .for_each(|row| assert_eq!(row.0.2, user));
        expected.iter_mut().for_each(|row| row.0.2 = new.to_owned());
        assert_eq!(
            listed(&set, new, Window::default()),
            (expected.clone(), unfinished),
            "{new}"
        );
        assert!(expected.len() > 2, "{old}: {}", expected.len());
        let own = rows(
            &found(&set, &[&format!("call {}*", &new[..3])], Window::default()),
            0,
        );
        let own: Vec<Row> = own.into_iter().filter(|row| row.2 == new).collect();
        assert_eq!(
            own,
            expected.into_iter().map(|row| row.0).collect::<Vec<_>>(),
            "{new}"
        );
    }
    let (all, _) = listed(&set, "*", Window::default());
    let (before, _) = listed(&original, "*", Window::default());
    assert_eq!(all.len(), before.len());
    assert!(all.iter().all(|(row, _)| row.2 != "other"));
}

#[test]
fn calls_keep_what_they_are_about_and_what_they_gave() {
    let set = traces("kernel-mix-small", &["kernel-mix-small"]);
    let ended = found(&set, &["call read"], Window::default());
    let (listed, _) = listed(&set, "read", Window::default());
    let results: BTreeMap<(i64, i128), Option<i64>> = listed
        .into_iter()
        .map(|((begin, _, _, tid), result)| ((begin, tid), result))
        .collect();
    let mut numbers: Vec<u64> = Vec::new();
    for period in &ended.periods {
        let [call, Datum::Integer(fd), _] = &period.begin.captures[..] else {
            panic!("{period:?}");
        };
        assert!(text(call) == "read" && (0..1024).contains(fd), "{period:?}");
        let Datum::Integer(ret) = period.end.captures[0] else {
            panic!("{period:?}");
        };
        // The report replaces error numbers by names.
        let expected = results[&(period.begin.time, tid(period))];
        assert_eq!(
            expected,
            i64::try_from(ret)
                .ok()
                .filter(|&ret| ret >= 0 || expected.is_some())
        );
        numbers.extend(&period.numbers);
    }
    assert!(numbers.is_sorted() && numbers.iter().all(|&number| number > 0));
}

#[test]
fn calls_are_cut_by_the_window() {
    let set = traces("kernel-mix-small", &["kernel-mix-small"]);
    let all = found(&set, &["call read"], Window::default());
    let at = |place: usize| tracebraid_ctf::clock::Timestamp(all.periods[place].begin.time);
    let (from, to) = (at(all.periods.len() / 3), at(all.periods.len() / 2));
    let window = Window {
        from: Some(from),
        to: Some(to),
    };
    let within = found(&set, &["call read"], window);
    let expected = all
        .periods
        .iter()
        .filter(|period| from.0 <= period.begin.time && period.end.time < to.0);
    let times = |period: &EndedPeriod| {
        (
            period.begin.time,
            period.end.time,
            period.begin.captures.clone(),
        )
    };
    assert_eq!(
        within.periods.iter().map(times).collect::<Vec<_>>(),
        expected.map(times).collect::<Vec<_>>()
    );
    let begun = all
        .periods
        .iter()
        .filter(|period| (from.0..to.0).contains(&period.begin.time));
    let open = begun.filter(|period| period.end.time >= to.0).count() as u64;
    // Calls that never end in the trace may be open as well.
    let never = all.unfinished[0];
    assert!((open..=open + never).contains(&within.unfinished[0]) && open > 0);
}

#[test]
fn processes_are_those_of_the_report() {
    let recorded = [
        traces("kernel-mix-small", &["kernel-mix-small"]),
        traces("kernel-ust-requests", &["kernel-ust-requests"]),
    ];
    for set in &recorded {
        let ended = found(set, &["process *"], Window::default());
        let report = folded(
            set,
            &ProcessAnalysis::new(set, Selection::default()),
            Options::default(),
        );
        let rows = || report.rows("processes");
        let id = |row: &TableRow<'_>, key| match row.value(key) {
            Value::Signed(id) => Some(*id),
            _ => None,
        };
        let time = |row: &TableRow<'_>, key| match row.value(key) {
            Value::Time(time) => Some(time.0),
            _ => None,
        };
        // Processes that were created in the trace and ended with their only thread.
        let of_report =
            rows().filter(|row| row.unsigned("threads") == 1 && id(row, "pid").is_some());
        let expected: Vec<_> = of_report
            .filter_map(|row| {
                let name = Some(row.text("name")).filter(|name| !name.is_empty())?;
                let times = (time(&row, "begin_ns")?, time(&row, "end_ns")?);
                Some((times.0, times.1, id(&row, "tid")?.into(), name.to_owned()))
            })
            .collect();
        let own: Vec<_> = ended
            .periods
            .iter()
            .map(|period| {
                let times = (period.begin.time, period.end.time);
                (times.0, times.1, tid(period), text(&period.end.captures[0]))
            })
            .collect();
        assert!(expected.len() > 3, "{}", expected.len());
        for row in &expected {
            assert!(own.contains(row), "{row:?}\n{own:?}");
        }
        let unfinished = rows()
            .filter(|row| id(row, "pid").is_some() && time(row, "end_ns").is_none())
            .count();
        assert_eq!(ended.unfinished[0], unfinished as u64);
    }
}

#[test]
fn processes_are_chosen_by_name() {
    let set = traces("kernel-mix-small", &["kernel-mix-small"]);
    let all = found(&set, &["process *"], Window::default());
    let name = |period: &&EndedPeriod| text(&period.end.captures[0]);
    for (pattern, count) in [("ls", 45), ("sync", 6), ("s[oy]*", 51)] {
        let ended = found(
            &set,
            &[&format!("process p : {pattern}")],
            Window::default(),
        );
        assert_eq!(ended.periods.len(), count, "{pattern}");
        let glob = Glob::new(pattern);
        let expected = all
            .periods
            .iter()
            .filter(|period| glob.matches(name(period).as_bytes()));
        let bounds = |period: &EndedPeriod| (period.begin.clone(), period.end.clone());
        assert!(
            expected.map(bounds).eq(ended.periods.iter().map(bounds)),
            "{pattern}"
        );
    }
}

/// A directory of debug information that contains the recorded program.
fn debug_of_cyg() -> tempfile::TempDir {
    let recorded = tracebraid_testkit::recorded::unpacked("ust-cyg-profile");
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join(".build-id/7a");
    std::fs::create_dir_all(&place).expect("a directory");
    let file = place.join("e12a1a1fc5f1e7d0b7deb34b2f7333892cf363.debug");
    std::fs::copy(recorded.join("ust-cyg-profile.truth/cyg.elf"), file).expect("the program");
    directory
}

/// Counts and total times that a script with a stack for each thread computed from babeltrace2's
/// text.
const FUNCTIONS: [(&str, usize, u64); 10] = [
    ("insert", 43_006, 9_920_192_148),
    ("fib", 13_133, 6_234_672_250),
    ("depth", 9_624, 3_338_379_032),
    ("free_tree", 9_624, 2_869_331_569),
    ("quick", 21_292, 9_331_492_018),
    ("cmp", 50_331, 1_102_678_924),
    ("io_step", 24, 132_609_733),
    ("nap", 24, 212_791_252),
    ("thread_main", 3, 6_821_546_890),
    ("main", 1, 2_693_992_946),
];

#[test]
fn functions_have_names_and_times() {
    let set = traces("ust-cyg-profile", &["ust-cyg-profile"]);
    let debug = debug_of_cyg();
    let texts = FUNCTIONS.map(|(name, ..)| format!("function {name}"));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let ended = found_with(&set, &texts, debug.path());
    for (kind, (name, count, total)) in FUNCTIONS.into_iter().enumerate() {
        let of_kind = rows(&ended, kind);
        let sum: u64 = of_kind.iter().map(|row| row.1).sum();
        assert!(of_kind.iter().all(|row| row.2 == name), "{name}");
        assert_eq!((of_kind.len(), sum), (count, total), "{name}");
    }
    assert_eq!((ended.unfinished, ended.refused), (vec![0; 10], 0));
}

#[test]
fn functions_lie_within_those_that_called_them() {
    let set = traces("ust-cyg-profile", &["ust-cyg-profile"]);
    let debug = debug_of_cyg();
    let ended = found_with(
        &set,
        &["function thread_main", "function [fi]*[be]*"],
        debug.path(),
    );
    let by_number: BTreeMap<u64, &EndedPeriod> = (ended.periods.iter())
        .map(|period| (*period.numbers.last().expect("its own"), period))
        .collect();
    assert_eq!(by_number.len(), ended.periods.len());
    let mut deepest = 0;
    for period in &ended.periods {
        deepest = deepest.max(period.numbers.len());
        let Some((_, around)) = period.numbers.split_last() else {
            panic!("{period:?}");
        };
        for outer in around {
            let outer = by_number[outer];
            assert!(tid(outer) == tid(period), "{outer:?} {period:?}");
            let is_within =
                outer.begin.time <= period.begin.time && period.end.time <= outer.end.time;
            assert!(is_within, "{outer:?} {period:?}");
        }
    }
    assert!(deepest > 5, "{deepest}");
}

#[test]
fn periods_begin_and_end_in_different_threads_and_processes() {
    let set = traces("kernel-ust-requests", &["kernel-ust-requests"]);
    let texts = [
        "period trip : $evt.$name == \"app:client_send\" : $evt.$name == \"app:client_recv\" && $evt.id == $begin.$evt.id",
        "captures trip : id = $evt.id",
        "period waits(trip) : $evt.$name == \"app:queue_push\" && $evt.id == $parent.$begin.$evt.id
            : $evt.$name == \"app:queue_pop\" && $evt.id == $begin.$evt.id",
        "period work(trip) : $evt.$name == \"app:request_begin\" && $evt.id == $parent.$begin.$evt.id
            : $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id",
        // Another kind of executions at the same time.
        "call futex",
    ];
    let ended = found(&set, &texts, Window::default());
    let of_kind = |kind| {
        ended
            .periods
            .iter()
            .filter(move |period| period.period == kind)
    };
    // Counts in the order of babeltrace2's text: some workers record the end after the client has
    // received the answer.
    let counts = [0, 1, 2].map(|kind| of_kind(kind).count());
    assert_eq!(counts, [2500, 2498, 2414]);
    assert!(of_kind(3).count() > 1000);
    let last = |captures: &[Datum]| captures.last().cloned().expect("a thread");
    for period in of_kind(0).chain(of_kind(1)) {
        assert_ne!(
            last(&period.begin.captures),
            last(&period.end.captures),
            "{period:?}"
        );
    }
    // Several are open at a time, and each ends with its own number.
    let trips: Vec<&EndedPeriod> = of_kind(0).collect();
    let overlaps = trips
        .windows(2)
        .filter(|two| two[1].begin.time < two[0].end.time);
    assert!(overlaps.count() > 100);
    let by_number: BTreeMap<u64, &EndedPeriod> =
        trips.iter().map(|trip| (trip.numbers[0], *trip)).collect();
    for inner in of_kind(1).chain(of_kind(2)) {
        let outer = by_number[&inner.numbers[0]];
        assert!(outer.begin.time <= inner.begin.time && inner.end.time <= outer.end.time);
    }
}

#[test]
fn periods_are_told_apart_by_descriptor() {
    let set = traces("twohost", &["twohost-client", "twohost-server"]);
    let texts = [
        // From the acceptance of a connection to its close, matched by the file descriptor.
        "period connection : $evt.$name =* \"syscall_exit_accept*\" && $evt.ret >= 0
            : $evt.$name == \"syscall_entry_close\" && $evt.fd == $begin.$evt.ret",
        "captures connection : fd = $evt.ret : closed = $evt.fd",
        "period reads : $evt.$name == \"syscall_entry_read\" : $evt.$name == \"syscall_entry_read\" && $evt.fd == $begin.$evt.fd",
        "captures reads : $evt.fd : again = $evt.fd",
    ];
    let ended = found(&set, &texts, Window::default());
    let mut count = [0; 2];
    for period in &ended.periods {
        count[period.period] += 1;
        assert_eq!(
            period.begin.captures[0], period.end.captures[0],
            "{period:?}"
        );
    }
    assert!(count[0] == 5 && count[1] > 1000, "{count:?}");
}

/// Periods from entry to exit of a system call, matched by the running thread, which the event
/// records do not contain. They must equal the system calls.
#[test]
fn periods_are_told_apart_by_the_thread_that_runs() {
    let set = traces("kernel-mix-small", &["kernel-mix-small"]);
    for call in ["openat", "clock_nanosleep", "read"] {
        let period = format!(
            "period p : $evt.$name == \"syscall_entry_{call}\" : $evt.$name == \"syscall_exit_{call}\" && $evt.tid == $begin.$evt.tid"
        );
        let texts = [
            &format!("call {call}")[..],
            &period,
            "captures p : from = $evt.tid : to = $evt.tid",
        ];
        let ended = found(&set, &texts, Window::default());
        let of_kind = |kind| {
            ended
                .periods
                .iter()
                .filter(move |period| period.period == kind)
        };
        let mut calls: Vec<(i64, i64, i128)> = of_kind(0)
            .map(|period| (period.begin.time, period.end.time, tid(period)))
            .collect();
        let captured = |captures: &[Datum]| match captures.first() {
            Some(Datum::Integer(tid)) => *tid,
            other => panic!("no thread: {other:?}"),
        };
        let mut periods: Vec<(i64, i64, i128)> = of_kind(1)
            .map(|period| {
                let thread = captured(&period.begin.captures);
                assert_eq!(thread, captured(&period.end.captures));
                (period.begin.time, period.end.time, thread)
            })
            .collect();
        calls.sort_unstable();
        periods.sort_unstable();
        assert!(calls.len() > 10, "{call}: {}", calls.len());
        assert_eq!(periods, calls, "{call}");
    }
}

/// Labels of enumerations are captured, also from the event record that began the period;
/// conditions compare numbers.
#[test]
fn labels_are_captured() {
    let set = traces("kernel-ust-requests", &["kernel-ust-requests"]);
    let texts = [
        "period all : $evt.$name == \"syscall_entry_epoll_ctl\"
            : $evt.$name == \"syscall_exit_epoll_ctl\" && $evt.tid == $begin.$evt.tid",
        "captures all : op = $evt.op_enum : began = $begin.$evt.op_enum, ret = $evt.ret",
        "period adds : $evt.$name == \"syscall_entry_epoll_ctl\" && $evt.op_enum == 1
            : $evt.$name == \"syscall_exit_epoll_ctl\" && $evt.tid == $begin.$evt.tid && $begin.$evt.op_enum == 1",
        "captures adds : op = $evt.op_enum",
    ];
    let ended = found(&set, &texts, Window::default());
    let mut counts: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for period in &ended.periods {
        let op = text(&period.begin.captures[0]);
        *counts.entry((period.period, op.clone())).or_default() += 1;
        if period.period == 0 {
            assert_eq!(text(&period.end.captures[0]), op);
            assert!(
                matches!(period.end.captures[1], Datum::Integer(_)),
                "{period:?}"
            );
        }
    }
    let of = |kind: usize, label: &str| counts.get(&(kind, label.to_owned())).copied().unwrap_or(0);
    let (adds, others) = (
        of(0, "EPOLL_CTL_ADD"),
        of(0, "EPOLL_CTL_DEL") + of(0, "EPOLL_CTL_MOD"),
    );
    assert!(adds > 5, "{counts:?}");
    assert_eq!(
        adds + others,
        ended
            .periods
            .iter()
            .filter(|period| period.period == 0)
            .count()
    );
    assert_eq!(of(1, "EPOLL_CTL_ADD"), adds, "{counts:?}");
    assert_eq!(counts.keys().filter(|(kind, _)| *kind == 1).count(), 1);
    // A number without a label stays a number.
    let set = traces("kernel-mix-small", &["kernel-mix-small"]);
    let texts = [
        "period drop : $evt.$name == \"skb_kfree\"",
        "captures drop : reason = $evt.reason",
    ];
    let ended = found(&set, &texts, Window::default());
    let reasons = ended.periods.iter().map(|period| &period.begin.captures[0]);
    let (labels, numbers): (Vec<&Datum>, Vec<&Datum>) =
        reasons.partition(|reason| reason.bytes().is_some());
    assert_eq!(numbers, [&Datum::Integer(27); 2]);
    assert!(
        labels.iter().any(|label| text(label) == "NOT_SPECIFIED"),
        "{labels:?}"
    );
}
