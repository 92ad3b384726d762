//! The tables, the summary and the totals of the report.

use tracebraid_kernel_model::Syscall;

use crate::io::report::{IoProcess, IoStats, IoSyscall, IoThread, IoType};
use tracebraid_follow::Head;
use tracebraid_tables::{Column, Forms, Section, Sentence, Total, Unit, Value};

const JSON: Forms = Forms::JSON;
/// JSON has the sums in another order than text and LAMI.
const SHOWN: Forms = Forms::TEXT.and(Forms::LAMI);
const TABLES: Forms = SHOWN.and(Forms::JSON);

/// The sentences above the tables.
pub(super) fn summary(head: &Head, total: &IoStats) -> Vec<Sentence> {
    let sums = &total.sums;
    let whole = Sentence::default()
        .value(Unit::Bytes, sums.read)
        .words(" read and ")
        .value(Unit::Bytes, sums.written)
        .words(" written by ")
        .number(sums.calls, "call", "calls")
        .words(" in ")
        .value(Unit::Duration, head.duration_ns);
    std::iter::once(whole).chain(incomplete(total)).collect()
}

/// A sentence about calls whose entry or exit is missing.
fn incomplete(total: &IoStats) -> Option<Sentence> {
    let losses = &total.losses;
    let lost = [(losses.unfinished, "exit"), (losses.unstarted, "entry")];
    let lost = lost.into_iter().filter(|(number, _)| *number > 0);
    let (mut sentence, mut before) = (Sentence::default(), "Not counted: ");
    for (number, what) in lost {
        sentence = sentence
            .words(before)
            .number(number, "call", "calls")
            .words(" without ")
            .words(what);
        before = " and ";
    }
    (sentence != Sentence::default()).then(|| sentence.words(" in the trace"))
}

pub(super) fn totals(total: &IoStats) -> Vec<Total> {
    let (sums, losses) = (&total.sums, &total.losses);
    let number = |key, title, number: u64| Total::new(key, title, number.into());
    let of = |key, title, value: u64, unit| Total::new(key, title, value.into()).of(unit);
    let duration = |key, title, value| of(key, title, value, Unit::Duration);
    vec![
        number("calls", "calls", sums.calls).or_one("call"),
        number("errors", "errors", sums.errors).or_one("error"),
        of("read_bytes", "read", sums.read, Unit::Bytes),
        of("written_bytes", "written", sums.written, Unit::Bytes),
        duration("latency_ns", "of latency", sums.latency),
        duration("average_latency_ns", "on average", total.average_latency()),
        duration("longest_latency_ns", "at most", sums.longest),
        number("unfinished", "calls without exit", losses.unfinished).or_one("call without exit"),
        number("unstarted", "calls without entry", losses.unstarted).or_one("call without entry"),
    ]
}

const CALLS: Column = Column::new("calls", "Calls", Unit::Count);
const ERRORS: Column = Column::new("errors", "Errors", Unit::Count);
const READ: Column = Column::new("read_bytes", "Read", Unit::Bytes);
const WRITTEN: Column = Column::new("written_bytes", "Written", Unit::Bytes);
const LATENCY: Column = Column::new("latency_ns", "Latency", Unit::Duration);
const AVERAGE: Column = Column::new("average_latency_ns", "Average", Unit::Duration);
const LONGEST: Column = Column::new("longest_latency_ns", "Longest", Unit::Duration);

const STATS: [Column; 11] = [
    CALLS.only(JSON),
    ERRORS.only(JSON),
    READ.only(TABLES),
    WRITTEN.only(TABLES),
    CALLS.only(SHOWN),
    ERRORS.only(SHOWN).left_out(2),
    LATENCY.only(JSON),
    AVERAGE.only(TABLES).left_out(1),
    LONGEST.only(TABLES).left_out(3),
    Column::json("unfinished", Unit::Count),
    Column::json("unstarted", Unit::Count),
];

fn stats(stats: &IoStats) -> [Value; 11] {
    let (sums, losses) = (&stats.sums, &stats.losses);
    [
        sums.calls,
        sums.errors,
        sums.read,
        sums.written,
        sums.calls,
        sums.errors,
        sums.latency,
        stats.average_latency(),
        sums.longest,
        losses.unfinished,
        losses.unstarted,
    ]
    .map(Value::from)
}

/// Sums by type of descriptor, in the rows of processes and threads.
const TYPES: &[Column] = &[
    Column::new("type", "Type", Unit::Text),
    CALLS,
    ERRORS,
    READ,
    WRITTEN,
    LATENCY,
    AVERAGE.only(JSON),
    LONGEST,
    Column::json("unfinished", Unit::Count),
    Column::json("unstarted", Unit::Count),
];

fn by_type(types: &[IoType]) -> Value {
    let row = |of_type: &IoType| {
        let (sums, losses) = (&of_type.stats.sums, &of_type.stats.losses);
        let numbers = [
            sums.calls,
            sums.errors,
            sums.read,
            sums.written,
            sums.latency,
            of_type.stats.average_latency(),
            sums.longest,
            losses.unfinished,
            losses.unstarted,
        ];
        let numbers = numbers.map(Value::from).into_iter();
        std::iter::once(of_type.kind.name().into())
            .chain(numbers)
            .collect()
    };
    Value::Rows(types.iter().map(row).collect())
}

pub(super) fn types(types: &[IoType]) -> Section {
    let about = Column::new("type", "Type", Unit::Text).headed("Descriptor");
    let columns = std::iter::once(about).chain(STATS).collect();
    let row = |row: &IoType| {
        let about = std::iter::once(row.kind.name().into());
        about.chain(stats(&row.stats)).collect()
    };
    let rows = types.iter().map(row).collect();
    Section::new("types", "I/O by type of descriptor", columns, rows)
        .short()
        .only(TABLES)
        .untitled()
}

/// LAMI uses the names of calls in programs.
pub(super) fn syscalls(calls: &[IoSyscall]) -> Section {
    let own = Column::new("name", "System call", Unit::Syscall).only(JSON.and(Forms::TEXT));
    let lami = Column::new("syscall", "System call", Unit::Syscall).only(Forms::LAMI);
    let columns = [own, lami].into_iter().chain(STATS).collect();
    let user_name = |name| Syscall::by_name(name).map_or("other", Syscall::user_name);
    let row = |row: &IoSyscall| {
        let name = row.call.name();
        let about = [name.into(), user_name(name).into()].into_iter();
        about.chain(stats(&row.stats)).collect()
    };
    let rows = calls.iter().map(row).collect();
    Section::new("syscalls", "I/O by system call", columns, rows)
        .only(TABLES)
        .untitled()
}

pub(super) fn processes(processes: Vec<IoProcess>) -> Section {
    let about = [
        Column::new("process", "Process", Unit::Process),
        Column::json("threads", Unit::Count),
    ];
    let types = Column::of_tables("types", TYPES).only(JSON);
    let columns = about.into_iter().chain(STATS).chain([types]).collect();
    let row = |row: IoProcess| {
        let threads = row.process.threads;
        let about = [row.process.into(), threads.into()].into_iter();
        about
            .chain(stats(&row.stats))
            .chain([by_type(&row.types)])
            .collect()
    };
    let rows = processes.into_iter().map(row).collect();
    Section::new("processes", "I/O by process", columns, rows)
        .only(TABLES)
        .untitled()
}

/// CSV has a row for each type of descriptor of a thread.
pub(super) fn threads(threads: Vec<IoThread>) -> Section {
    let about = std::iter::once(Column::new("thread", "Thread", Unit::Thread));
    let types = Column::of_tables("types", TYPES).only(JSON.and(Forms::CSV));
    let columns = about.chain(STATS).chain([types]).collect();
    let row = |row: IoThread| {
        let about = std::iter::once(row.thread.into());
        about
            .chain(stats(&row.stats))
            .chain([by_type(&row.types)])
            .collect()
    };
    let rows = threads.into_iter().map(row).collect();
    Section::new("threads", "I/O by thread", columns, rows).untitled()
}
