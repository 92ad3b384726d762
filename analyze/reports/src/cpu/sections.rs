//! The report as a list of tables.

use crate::cpu::{CpuProcess, CpuReport, CpuThread, CpuUsage};
use tracebraid_tables::{Column, Report, Section, Total, Unit, Value};

const USAGE: [Column; 4] = [
    Column::new("active_ns", "Active", Unit::Duration),
    Column::new("active_share", "Share", Unit::Share),
    Column::new("switches", "Switches", Unit::Count),
    Column::new("migrations", "Migrations", Unit::Count),
];

impl From<&CpuReport> for Report {
    fn from(report: &CpuReport) -> Report {
        let total = &report.total;
        Report {
            head: report.head.clone(),
            totals: vec![
                Total::new("active_ns", "active", total.active_ns.into()).of(Unit::Duration),
                Total::new("idle_ns", "idle", total.idle_ns.into()).of(Unit::Duration),
                Total::new("unknown_ns", "unknown", total.unknown_ns.into()).of(Unit::Duration),
            ],
            sections: [cpus(report), processes(report), threads(report)]
                .into_iter()
                .chain(report.lists.sections.iter().cloned())
                .collect(),
            ..Report::default()
        }
    }
}

fn usage(usage: &CpuUsage) -> [Value; 4] {
    [
        usage.active_ns.into(),
        usage.active_share.into(),
        usage.switches.into(),
        usage.migrations.into(),
    ]
}

fn cpus(report: &CpuReport) -> Section {
    let columns = vec![
        Column::new("cpu", "CPU", Unit::Cpu),
        USAGE[0],
        USAGE[1],
        Column::new("idle_ns", "Idle", Unit::Duration),
        Column::new("unknown_ns", "Unknown", Unit::Duration),
        USAGE[2],
    ];
    let row = |cpu: &crate::cpu::CpuRow| {
        vec![
            u64::from(cpu.cpu).into(),
            cpu.active_ns.into(),
            cpu.active_share.into(),
            cpu.idle_ns.into(),
            cpu.unknown_ns.into(),
            cpu.switches.into(),
        ]
    };
    Section::new(
        "cpus",
        "CPU time by CPU",
        columns,
        report.cpus.iter().map(row).collect(),
    )
}

fn processes(report: &CpuReport) -> Section {
    let mut columns = vec![Column::new("process", "Process", Unit::Process)];
    columns.extend(USAGE);
    let row = |row: &CpuProcess| {
        let about = Value::from(&row.process);
        std::iter::once(about).chain(usage(&row.usage)).collect()
    };
    Section::new(
        "processes",
        "CPU time by process",
        columns,
        report.processes.iter().map(row).collect(),
    )
}

fn threads(report: &CpuReport) -> Section {
    let mut columns = vec![Column::new("thread", "Thread", Unit::Thread)];
    columns.extend(USAGE);
    columns.push(Column::new("priority", "Priority", Unit::Id));
    columns.push(Column::new("priorities", "Priorities", Unit::Text));
    let row = |row: &CpuThread| {
        let about = Value::from(row.thread.clone());
        let all: Vec<String> = row.priorities.iter().map(i32::to_string).collect();
        let priorities = [row.priority.map(i64::from).into(), Value::text(all.join(" "))];
        let cells = std::iter::once(about).chain(usage(&row.usage));
        cells.chain(priorities).collect()
    };
    Section::new(
        "threads",
        "CPU time by thread",
        columns,
        report.threads.iter().map(row).collect(),
    )
}
