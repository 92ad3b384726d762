//! The report as a list of tables.

use tracebraid_kernel_model::Syscall;

use crate::io::{IoReport, IoStats};
use tracebraid_tables::{Column, Report, Section, Total, Unit, Value, View};

const STATS: [Column; 6] = [
    Column::new("read_bytes", "Read", Unit::Bytes),
    Column::new("written_bytes", "Written", Unit::Bytes),
    Column::new("calls", "Calls", Unit::Count),
    Column::new("errors", "Errors", Unit::Count),
    Column::new("average_latency_ns", "Average", Unit::Duration),
    Column::new("longest_latency_ns", "Longest", Unit::Duration),
];

impl From<&IoReport> for Report {
    fn from(report: &IoReport) -> Report {
        let total = &report.total;
        let about = |key, title: &'static str, unit| Column::new(key, title, unit);
        let types = report
            .types
            .iter()
            .map(|row| (row.kind.name().into(), &row.stats));
        let name = |name: &str| Syscall::by_name(name).map_or("other", Syscall::user_name).into();
        let calls = report.syscalls.iter().map(|row| (name(row.name), &row.stats));
        let processes = (report.processes.iter()).map(|row| (Value::from(&row.process), &row.stats));
        let threads = (report.threads.iter()).map(|row| (Value::from(row.thread.clone()), &row.stats));
        Report {
            head: report.head.clone(),
            totals: vec![
                Total::new("read_bytes", "bytes read", total.read_bytes.into()),
                Total::new("written_bytes", "bytes written", total.written_bytes.into()),
            ],
            sections: [
                section(
                    "types",
                    "I/O by type of descriptor",
                    about("type", "Type", Unit::Text),
                    types,
                ),
                section(
                    "syscalls",
                    "I/O by system call",
                    about("syscall", "System call", Unit::Syscall),
                    calls,
                ),
                section(
                    "processes",
                    "I/O by process",
                    about("process", "Process", Unit::Process),
                    processes,
                ),
                section(
                    "threads",
                    "I/O by thread",
                    about("thread", "Thread", Unit::Thread),
                    threads,
                ),
            ]
            .into_iter()
            .chain(report.lists.sections.iter().cloned())
            .collect(),
            ..Report::default()
        }
    }
}

fn section<'r>(
    key: &'static str,
    title: &str,
    about: Column,
    rows: impl Iterator<Item = (Value, &'r IoStats)>,
) -> Section {
    let row = |(about, stats): (Value, &IoStats)| {
        vec![
            about,
            stats.read_bytes.into(),
            stats.written_bytes.into(),
            stats.calls.into(),
            stats.errors.into(),
            stats.average_latency_ns.into(),
            stats.longest_latency_ns.into(),
        ]
    };
    Section {
        key,
        title: title.to_owned(),
        view: View::Stats,
        columns: std::iter::once(about).chain(STATS).collect(),
        rows: rows.map(row).collect(),
        is_long: true,
    }
}
