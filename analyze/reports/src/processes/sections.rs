//! The report as a list of tables.

use crate::processes::{ProcessRow, ProcessesReport};
use tracebraid_tables::{Column, Report, Section, Total, Unit, Value};

impl From<&ProcessesReport> for Report {
    fn from(report: &ProcessesReport) -> Report {
        let total = &report.total;
        Report {
            head: report.head.clone(),
            totals: vec![
                Total::new("processes", "processes", total.processes.into()),
                Total::new("active_ns", "active", total.active_ns.into()).of(Unit::Duration),
                Total::new("syscalls", "system calls", total.syscalls.into()),
                Total::new("read_bytes", "read", total.read_bytes.into()).of(Unit::Bytes),
                Total::new("written_bytes", "written", total.written_bytes.into()).of(Unit::Bytes),
            ],
            sections: std::iter::once(processes(report))
                .chain(report.lists.sections.iter().cloned())
                .collect(),
            ..Report::default()
        }
    }
}

fn processes(report: &ProcessesReport) -> Section {
    let columns = vec![
        Column::new("process", "Process", Unit::Process),
        Column::new("parent_pid", "Parent", Unit::Id),
        Column::new("begin_ns", "Begin", Unit::Time),
        Column::new("end_ns", "End", Unit::Time),
        Column::new("threads", "Threads", Unit::Count),
        Column::new("active_ns", "Active", Unit::Duration),
        Column::new("tree_active_ns", "Active with children", Unit::Duration),
        Column::new("syscalls", "System calls", Unit::Count),
        Column::new("tree_syscalls", "System calls with children", Unit::Count),
        Column::new("read_bytes", "Read", Unit::Bytes),
        Column::new("tree_read_bytes", "Read with children", Unit::Bytes),
        Column::new("written_bytes", "Written", Unit::Bytes),
        Column::new("tree_written_bytes", "Written with children", Unit::Bytes),
    ];
    let rows = report.processes.iter().map(values).collect();
    Section::new("processes", "Processes", columns, rows)
}

fn values(row: &ProcessRow) -> Vec<Value> {
    vec![
        row.thread().into(),
        row.parent_pid.map(i64::from).into(),
        row.begin.into(),
        row.end.into(),
        row.threads.into(),
        row.active_ns.into(),
        row.tree_active_ns.into(),
        row.syscalls.into(),
        row.tree_syscalls.into(),
        row.read_bytes.into(),
        row.tree_read_bytes.into(),
        row.written_bytes.into(),
        row.tree_written_bytes.into(),
    ]
}
