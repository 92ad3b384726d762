//! The tables.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_descriptors::{NO_FD, Texts};
use tracebraid_kernel_model::{FdType, errno_of};

use crate::files::report::ByProcess;
use crate::files::stats::{ClassStats, Told, Use};
use crate::returned;
use tracebraid_files::{Class, FileId, Files, bytes};
use tracebraid_follow::{Head, Process, Thread};
use tracebraid_tables::{
    Column, Section, Unit, Value, View, distribution_columns, distribution_values,
};

pub(super) const CLASS: Column = Column::new("class", "Class", Unit::Text);
const PROCESS: Column = Column::new("process", "Process", Unit::Process);
const PATH: Column = Column::new("path", "Path", Unit::Path);
const READ: Column = Column::new("read_bytes", "Read", Unit::Bytes);
const WRITTEN: Column = Column::new("written_bytes", "Written", Unit::Bytes);
const CALLS: Column = Column::new("calls", "Calls", Unit::Count);
const ERRORS: Column = Column::new("errors", "Errors", Unit::Count).left_out(5);
const OPENS: Column = Column::new("opens", "Opens", Unit::Count).left_out(6);
const TYPE: Column = Column::new("type", "Type", Unit::Text).left_out(1);

/// Names of files in rows.
pub(super) struct Names<'a> {
    files: &'a Files,
    texts: &'a Texts,
    head: Head,
}

impl<'a> Names<'a> {
    pub(super) fn new(files: &'a Files, texts: &'a Texts, head: Head) -> Names<'a> {
        Names { files, texts, head }
    }

    /// The file's name, with its host if there are several.
    fn name(&self, file: FileId) -> String {
        let Some(file) = self.files.get(file) else {
            return String::new();
        };
        let name = self.texts.get(file.name).unwrap_or_default().to_owned();
        if self.head.hosts.len() < 2 {
            return name;
        }
        let host = self.head.hosts.iter().find(|host| host.trace == file.trace);
        match host.and_then(|host| host.name.as_ref()) {
            Some(host) => format!("{name} @ {host}"),
            None => format!("{name} @ trace {}", file.trace),
        }
    }

    /// The type of the file's descriptors.
    fn kind(&self, file: FileId) -> &'static str {
        self.files
            .get(file)
            .map_or("unknown", |file| file.kind.name())
    }

    fn sums_of<'p>(
        &self,
        (process, uses): &'p (Process, BTreeMap<FileId, Use>),
    ) -> ProcessSums<'p> {
        let (mut of_files, mut of_all) = (Use::default(), Use::default());
        for (&file, sums) in uses {
            of_all.merge(sums);
            if self
                .files
                .get(file)
                .is_some_and(|file| file.kind == FdType::File)
            {
                of_files.merge(sums);
            }
        }
        ProcessSums {
            process,
            of_files,
            of_all,
        }
    }

    /// A sort key for files that does not depend on chunks.
    fn key(&self, file: FileId) -> (String, u32, &'static str) {
        let trace = self.files.get(file).map_or(0, |file| file.trace);
        (self.name(file), trace, self.kind(file))
    }
}

/// Greatest use first.
fn order(sums: &Use) -> Reverse<(u64, u64, u64)> {
    Reverse((sums.bytes(), sums.calls(), sums.opens + sums.closes))
}

/// The use of a file by all processes, the process with the greatest use, and the number of
/// processes.
struct Users<'a> {
    sums: Use,
    most: (&'a Process, &'a Use),
    processes: u64,
}

/// Bytes and calls of a process: of files, and of all types of descriptors.
struct ProcessSums<'a> {
    process: &'a Process,
    of_files: Use,
    of_all: Use,
}

pub(super) fn files(names: &Names<'_>, by_process: &ByProcess) -> Section {
    let mut files: Vec<_> = users(by_process).into_iter().collect();
    files.sort_by_cached_key(|(file, users)| (order(&users.sums), names.key(*file)));
    let row = |(file, users): (FileId, Users<'_>)| {
        let sums = &users.sums;
        let summary = sums.durations.summary();
        vec![
            names.name(file).as_str().into(),
            names.kind(file).into(),
            sums.read.into(),
            sums.written.into(),
            sums.calls().into(),
            sums.errors.into(),
            sums.opens.into(),
            summary.mean().into(),
            sums.durations.quantile(990).into(),
            summary.max().into(),
            users.processes.into(),
            Thread::from(users.most.0).into(),
        ]
    };
    let columns = vec![
        PATH,
        TYPE,
        READ,
        WRITTEN,
        CALLS,
        ERRORS,
        OPENS,
        Column::new("average_ns", "Average", Unit::Duration)
            .optional()
            .left_out(7),
        Column::new("p99_ns", "p99", Unit::Duration)
            .optional()
            .left_out(3),
        Column::new("max_ns", "Max", Unit::Duration)
            .optional()
            .left_out(4),
        Column::new("processes", "Processes", Unit::Count).left_out(2),
        Column::new("user", "Most by", Unit::Process).left_out(8),
    ];
    Section::new(
        "files",
        "By file",
        columns,
        files.into_iter().map(row).collect(),
    )
}

/// By file: its users.
fn users(by_process: &ByProcess) -> BTreeMap<FileId, Users<'_>> {
    let mut files: BTreeMap<FileId, Users<'_>> = BTreeMap::new();
    // Processes are in the order of their ids; of equal uses, the first stays.
    for (process, uses) in by_process {
        for (&file, sums) in uses {
            let users = files.entry(file).or_insert_with(|| Users {
                sums: Use::default(),
                most: (process, sums),
                processes: 0,
            });
            users.sums.merge(sums);
            users.processes += 1;
            if order(sums) < order(users.most.1) {
                users.most = (process, sums);
            }
        }
    }
    files
}

pub(super) fn classes(by_class: &BTreeMap<Class, ClassStats>) -> Section {
    let row = |(class, stats): (&Class, &ClassStats)| {
        let mut row = vec![class.name().into()];
        row.extend(distribution_values(&stats.durations));
        row.extend([stats.errors.into(), stats.bytes.into()]);
        row
    };
    let mut columns = vec![CLASS];
    columns.extend(distribution_columns());
    columns.push(Column::new("errors", "Errors", Unit::Count).left_out(8));
    columns.push(Column::new("bytes", "Bytes", Unit::Bytes).left_out(9));
    let rows = by_class.iter().map(row).collect();
    Section::new("classes", "Latency of I/O calls", columns, rows).short()
}

pub(super) fn processes(names: &Names<'_>, by_process: &ByProcess) -> Section {
    let mut lines: Vec<_> = by_process.iter().map(|of| names.sums_of(of)).collect();
    lines.sort_by_cached_key(|line| {
        let process = line.process;
        let moved = (Reverse(line.of_files.bytes()), order(&line.of_all));
        (moved, (process.trace, process.pid, process.tid))
    });
    let row = |line: &ProcessSums<'_>| {
        vec![
            Thread::from(line.process).into(),
            line.of_files.read.into(),
            line.of_files.written.into(),
            line.of_all.read.into(),
            line.of_all.written.into(),
            line.of_all.calls().into(),
            line.of_all.errors.into(),
            line.of_all.opens.into(),
        ]
    };
    let columns = vec![
        PROCESS,
        Column::new("file_read_bytes", "File read", Unit::Bytes),
        Column::new("file_written_bytes", "File written", Unit::Bytes),
        Column::new("read_bytes", "All read", Unit::Bytes),
        Column::new("written_bytes", "All written", Unit::Bytes),
        CALLS,
        ERRORS,
        OPENS,
    ];
    let rows = lines.iter().map(row).collect();
    Section::new(
        "processes",
        "By process, most bytes of files first",
        columns,
        rows,
    )
}

pub(super) fn process_files(names: &Names<'_>, by_process: &ByProcess) -> Section {
    let lines = by_process
        .iter()
        .flat_map(|(process, uses)| uses.iter().map(move |(file, sums)| (process, *file, sums)));
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_cached_key(|(process, file, sums)| {
        let process = (process.trace, process.pid, process.tid);
        (order(sums), process, names.key(*file))
    });
    let row = |(process, file, sums): (&Process, FileId, &Use)| {
        let total = sums.durations.summary().sum();
        vec![
            Thread::from(process).into(),
            names.name(file).as_str().into(),
            names.kind(file).into(),
            sums.read.into(),
            sums.written.into(),
            sums.calls().into(),
            sums.errors.into(),
            sums.opens.into(),
            u64::try_from(total).unwrap_or(u64::MAX).into(),
        ]
    };
    Section::new(
        "process_files",
        "By process and file",
        vec![
            PROCESS,
            PATH,
            TYPE,
            READ,
            WRITTEN,
            CALLS,
            ERRORS,
            OPENS,
            Column::new("total_ns", "Total", Unit::Duration).left_out(3),
        ],
        lines.into_iter().map(row).collect(),
    )
}

/// Columns of a single call; the log also has the class.
fn columns_of_calls(with_class: bool) -> Vec<Column> {
    let class = with_class.then_some(CLASS.left_out(2));
    let mut columns = vec![
        Column::new("begin_ns", "Begin", Unit::Time).left_out(6),
        Column::new("duration_ns", "Duration", Unit::Duration),
    ];
    columns.extend(class);
    columns.extend([
        Column::new("syscall", "System call", Unit::Syscall).left_out(5),
        Column::new("bytes", "Size", Unit::Bytes)
            .optional()
            .left_out(4),
    ]);
    columns.extend(returned::COLUMNS);
    columns.extend([
        PATH.optional(),
        Column::new("fd", "FD", Unit::Descriptor)
            .optional()
            .left_out(3),
        Column::new("thread", "Thread", Unit::Thread),
    ]);
    columns
}

fn one(names: &Names<'_>, told: &Told, thread: &Thread, with_class: bool) -> Vec<Value> {
    let class = with_class.then(|| told.class.name().into());
    let mut row: Vec<Value> = vec![Timestamp(told.begin).into(), told.duration.into()];
    row.extend(class);
    row.extend([
        told.call.user_name().into(),
        bytes(told.call, told.result).into(),
    ]);
    row.extend(returned::values(told.result, errno_of(told.result)));
    row.extend([
        told.file.map(|file| Value::Text(names.name(file))).into(),
        (told.fd != NO_FD).then_some(i64::from(told.fd)).into(),
        thread.clone().into(),
    ]);
    row
}

fn list(
    names: &Names<'_>,
    threads: &[Option<Thread>],
    calls: &[Told],
    (key, title, view): (&'static str, String, View),
) -> Section {
    let with_class = view == View::Log;
    let row = |told: &Told| {
        let thread = threads.get(told.place as usize)?.as_ref()?;
        Some(one(names, told, thread, with_class))
    };
    Section {
        key,
        title,
        view,
        columns: columns_of_calls(with_class),
        rows: calls.iter().filter_map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

pub(super) fn slowest(
    names: &Names<'_>,
    threads: &[Option<Thread>],
    class: Class,
    calls: &[Told],
) -> Section {
    let key = match class {
        Class::Open => "slowest_open",
        Class::Accept => "slowest_accept",
        Class::Read => "slowest_read",
        Class::Write => "slowest_write",
        Class::Copy => "slowest_copy",
        Class::Sync => "slowest_sync",
        Class::Close => "slowest_close",
    };
    let title = format!("Slowest calls: {}", class.name());
    list(names, threads, calls, (key, title, View::Top))
}

pub(super) fn log(names: &Names<'_>, threads: &[Option<Thread>], calls: &[Told]) -> Section {
    let title = "I/O calls".to_owned();
    list(names, threads, calls, ("log", title, View::Log))
}
