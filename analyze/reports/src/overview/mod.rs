//! The one-page summary: largest users, longest operations, findings.
//!
//! The reports that it combines are folded in one pass.

mod findings;
mod worst;

use serde::Serialize;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_kernel_model::FdType;

use crate::cpu::CpuAnalysis;
use crate::disk::DiskAnalysis;
use crate::io::IoAnalysis;
use crate::irq::{IrqAnalysis, IrqOptions};
use crate::net::{NetAnalysis, NetOptions};
use crate::sched::{SchedAnalysis, SchedOptions};
use crate::syscalls::{SyscallAnalysis, SyscallOptions};
use tracebraid_follow::{Selection, Together, Views};
use tracebraid_tables::{Column, Report, Row, Section, Total, Unit, Value};

/// The analyses, in one pass.
pub type OverviewAnalysis = Together<(
    CpuAnalysis,
    IoAnalysis,
    SyscallAnalysis,
    SchedAnalysis,
    IrqAnalysis,
    DiskAnalysis,
    NetAnalysis,
)>;

/// The reports that the summary combines.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Parts {
    /// CPU time.
    pub cpu: Report,
    /// Bytes read and written.
    pub io: Report,
    /// System calls.
    pub syscalls: Report,
    /// Scheduling.
    pub sched: Report,
    /// Interrupts.
    pub irq: Report,
    /// Disks.
    pub disk: Report,
    /// Network interfaces.
    pub net: Report,
}

/// The analyses of the selected part of the traces.
pub fn analysis(set: &TraceSet, selection: &Selection) -> OverviewAnalysis {
    // Only the longest operation of each kind is shown.
    let views = || Views {
        rows: 1,
        ..Views::default()
    };
    let is_summary = true;
    let options = (
        views().into(),
        views().into(),
        SyscallOptions {
            is_summary,
            ..views().into()
        },
        SchedOptions {
            is_summary,
            ..views().into()
        },
        IrqOptions {
            is_summary,
            ..views().into()
        },
        views().into(),
        NetOptions {
            is_summary,
            ..views().into()
        },
    );
    OverviewAnalysis::new(set, selection, options)
}

/// The reports of the analyses.
type Reports = (Report, Report, Report, Report, Report, Report, Report);

impl From<Reports> for Parts {
    fn from((cpu, io, syscalls, sched, irq, disk, net): Reports) -> Parts {
        Parts {
            cpu,
            io,
            syscalls,
            sched,
            irq,
            disk,
            net,
        }
    }
}

/// A defect of the recording.
#[derive(Clone, Debug)]
pub struct Defect {
    /// A sentence about the missing part.
    pub what: String,
    /// The arguments of tracebraid that show more of it.
    pub command: &'static str,
}

/// Facts about the traces that the reports do not contain.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Defects, such as losses.
    pub defects: Vec<Defect>,
    /// Start of the traces in nanoseconds from the clock's origin, to which `--from +TIME` in
    /// commands is relative.
    pub origin: Option<i64>,
}

/// The summary, with at most that number of rows in each list. Commands are the arguments of
/// tracebraid without the paths of the traces.
pub fn overview(parts: &Parts, recording: &Recording, rows: usize) -> Report {
    let cpu = &parts.cpu;
    let all = cpu.head.duration_ns.saturating_mul(cpu.unsigned("cpus"));
    let share = |key| Value::Float(tracebraid_follow::share(cpu.unsigned(key), all));
    Report {
        head: parts.cpu.head.clone(),
        totals: vec![
            Total::new("cpus", "CPUs", cpu.unsigned("cpus").into()).or_one("CPU"),
            Total::new("active_share", "active", share("active_ns")).of(Unit::Share),
            Total::new("idle_share", "idle", share("idle_ns")).of(Unit::Share),
            Total::new("unknown_share", "unknown", share("unknown_ns")).of(Unit::Share),
            Total::new("syscalls", "system calls", parts.syscalls.total("calls"))
                .or_one("system call"),
            Total::new("read_bytes", "read", parts.io.total("read_bytes")).of(Unit::Bytes),
            Total::new("written_bytes", "written", parts.io.total("written_bytes")).of(Unit::Bytes),
        ],
        sections: vec![
            processes(&parts.cpu, rows),
            files(
                &parts.io,
                FdType::File,
                ("disk", "File I/O by process"),
                rows,
            ),
            files(
                &parts.io,
                FdType::Network,
                ("network", "Network I/O by process"),
                rows,
            ),
            worst::section(parts, recording.origin),
            findings::section(parts, &recording.defects),
        ],
        ..Report::default()
    }
}

const PROCESS: Column = Column::new("process", "Process", Unit::Process);

fn processes(cpu: &Report, rows: usize) -> Section {
    let columns = vec![
        PROCESS,
        Column::new("active_ns", "Active", Unit::Duration),
        Column::new("active_share", "Of one CPU", Unit::Share),
    ];
    let row = |row: Row<'_>| {
        vec![
            row.thread().into(),
            row.unsigned("active_ns").into(),
            row.number("active_share").into(),
        ]
    };
    let rows = cpu.rows("processes").take(rows).map(row).collect();
    Section::new("cpu", "CPU time by process", columns, rows).short()
}

/// Processes by the bytes that they moved through descriptors of a type.
fn files(io: &Report, kind: FdType, (key, title): (&'static str, &str), rows: usize) -> Section {
    let bytes = |process: &Row<'_>| {
        let of_type = process
            .rows("types")
            .find(|row| row.text("type") == kind.name())?;
        let (read, written) = (
            of_type.unsigned("read_bytes"),
            of_type.unsigned("written_bytes"),
        );
        (read + written > 0).then_some((read, written))
    };
    let mut list: Vec<_> = (io.rows("processes"))
        .filter_map(|process| Some((bytes(&process)?, process)))
        .collect();
    // Stable: processes with the same number of bytes keep their order.
    list.sort_by_key(|((read, written), _)| std::cmp::Reverse(read.saturating_add(*written)));
    let columns = vec![
        PROCESS,
        Column::new("read_bytes", "Read", Unit::Bytes),
        Column::new("written_bytes", "Written", Unit::Bytes),
    ];
    let row = |((read, written), process): ((u64, u64), Row<'_>)| {
        vec![process.thread().into(), read.into(), written.into()]
    };
    Section::new(
        key,
        title,
        columns,
        list.into_iter().take(rows).map(row).collect(),
    )
    .short()
}
