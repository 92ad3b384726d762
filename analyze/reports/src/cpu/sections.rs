//! The tables, the summary and the totals of the report.

use crate::cpu::report::{CpuProcess, CpuRow, CpuThread, CpuTotal, CpuUsage};
use tracebraid_follow::Head;
use tracebraid_tables::{Column, Forms, Section, Sentence, Total, Unit, Value, lengths};

const ACTIVE: Column = Column::new("active_ns", "Active", Unit::Duration);
const SHARE: Column = Column::new("active_share", "Of one CPU", Unit::Share);
const SHARE_OF_RANGE: Column = Column::new("active_share", "Of range", Unit::Share);
const IDLE: Column = Column::new("idle_ns", "Idle", Unit::Duration);
const UNKNOWN: Column = Column::new("unknown_ns", "Unknown", Unit::Duration);
const SWITCHES: Column = Column::new("switches", "Switches", Unit::Count);
const MIGRATIONS: Column = Column::new("migrations", "Migrations", Unit::Count).optional();

/// JSON has the columns of the CPU table in another order than text and LAMI.
const SHOWN: Forms = Forms::TEXT.and(Forms::LAMI);

pub(super) fn summary(head: &Head, total: &CpuTotal) -> Sentence {
    let all = head.duration_ns.saturating_mul(total.cpus);
    let share = |part| Value::Part(part, all);
    Sentence::default()
        .number(total.cpus, "CPU", "CPUs")
        .words(" over ")
        .value(Unit::Duration, head.duration_ns)
        .words(": ")
        .value(Unit::Share, share(total.active))
        .words(" active, ")
        .value(Unit::Share, share(total.idle))
        .words(" idle, ")
        .value(Unit::Share, share(total.unknown))
        .words(" unknown; ")
        .number(total.switches, "switch", "switches")
}

/// Totals of CPU time.
pub(super) fn times(total: &CpuTotal) -> Vec<Total> {
    vec![
        Total::new("active_ns", "active", total.active.into()).of(Unit::Duration),
        Total::new("idle_ns", "idle", total.idle.into()).of(Unit::Duration),
        Total::new("unknown_ns", "unknown", total.unknown.into()).of(Unit::Duration),
    ]
}

/// All totals.
pub(super) fn totals(head: &Head, total: &CpuTotal) -> Vec<Total> {
    let all = head.duration_ns.saturating_mul(total.cpus);
    let share = Value::Part(total.active, all);
    let mut totals = vec![Total::new("cpus", "CPUs", total.cpus.into()).or_one("CPU")];
    totals.extend(times(total));
    totals.push(Total::new("active_share", "active", share).of(Unit::Share));
    totals.push(Total::new("switches", "switches", total.switches.into()).or_one("switch"));
    totals.push(
        Total::new("migrations", "migrations", total.migrations.into())
            .or_one("migration")
            .optional(),
    );
    totals
}

/// A CPU's first switch.
const FIRST_SWITCH: &[Column] = &[
    Column::json("time_ns", Unit::Time),
    Column::json("prev_tid", Unit::Id),
];

const CPUS: [Column; 12] = [
    Column::json("trace", Unit::Id),
    // With several hosts, text includes the host.
    Column::new("", "CPU", Unit::Cpu).only(Forms::TEXT),
    Column::new("cpu", "CPU", Unit::Cpu).only(Forms::JSON.and(Forms::LAMI)),
    ACTIVE,
    SHARE_OF_RANGE.only(SHOWN).left_out(2),
    IDLE,
    UNKNOWN,
    Column::json("active_share", Unit::Share),
    SWITCHES.left_out(1),
    Column::json("inconsistent_switches", Unit::Count),
    Column::json("losses", Unit::Count),
    Column {
        forms: Forms::JSON,
        ..Column::of_row("first_switch", FIRST_SWITCH).optional()
    },
];

pub(super) fn cpus(head: &Head, total: &CpuTotal, cpus: &[CpuRow], lists: &[Section]) -> Section {
    let row = |cpu: &CpuRow| {
        let share = Value::Part(cpu.active, head.duration_ns);
        let first = cpu.first_switch.map(|(time, tid)| {
            let values = [time.into(), i64::from(tid).into()];
            Value::Row(values.into())
        });
        vec![
            u64::from(cpu.key.trace).into(),
            Value::Text(head.of_host(cpu.key.trace, cpu.key.cpu.to_string())),
            u64::from(cpu.key.cpu).into(),
            cpu.active.into(),
            share.clone(),
            cpu.idle.into(),
            cpu.unknown.into(),
            share,
            cpu.switches.into(),
            cpu.inconsistent.into(),
            cpu.losses.into(),
            first.unwrap_or(Value::None),
        ]
    };
    let rows = cpus.iter().map(row).collect();
    let columns = CPUS.to_vec();
    let stretches = lists.iter().find(|section| section.key == "stretches");
    Section::new("cpus", "CPU time by CPU", columns, rows)
        .short()
        .only(SHOWN.and(Forms::JSON))
        .untitled()
        .of_all_threads()
        .noted(missing(total))
        .noted(stretches.and_then(|all| {
            lengths(
                all,
                ("running interval", "running intervals"),
                "switch to switch",
            )
        }))
}

fn missing(total: &CpuTotal) -> Option<Sentence> {
    let sentence = Sentence::default()
        .words("  ")
        .number(
            total.inconsistent,
            "switch contradicts",
            "switches contradict",
        )
        .words(" the previous switch: events are missing");
    (total.inconsistent > 0).then_some(sentence)
}

fn usage(head: &Head, usage: &CpuUsage) -> [Value; 4] {
    [
        usage.active.into(),
        Value::Part(usage.active, head.duration_ns),
        usage.switches.into(),
        usage.migrations.into(),
    ]
}

pub(super) fn processes(head: &Head, processes: Vec<CpuProcess>) -> Section {
    let columns = vec![
        Column::new("process", "Process", Unit::Process),
        Column::new("threads", "Threads", Unit::Count)
            .only(Forms::JSON.and(Forms::TEXT))
            .left_out(4),
        ACTIVE,
        SHARE.left_out(3),
        SWITCHES.left_out(2),
        MIGRATIONS.left_out(1),
    ];
    let row = |row: CpuProcess| {
        let threads = row.process.threads;
        let about = [row.process.into(), threads.into()].into_iter();
        about.chain(usage(head, &row.usage)).collect()
    };
    let rows = processes.into_iter().map(row).collect();
    Section::new("processes", "CPU time by process", columns, rows)
        .only(SHOWN.and(Forms::JSON))
        .untitled()
}

pub(super) fn threads(head: &Head, threads: Vec<CpuThread>) -> Section {
    let columns = vec![
        Column::new("thread", "Thread", Unit::ProcessThread),
        ACTIVE,
        SHARE.left_out(4),
        SWITCHES.left_out(3),
        MIGRATIONS.left_out(2),
        Column::new("priority", "Priority", Unit::Priority)
            .optional()
            .headed("Prio")
            .left_out(1),
        Column::new("priorities", "Priorities", Unit::List)
            .only(Forms::JSON.and(Forms::CSV).and(Forms::LAMI)),
    ];
    let row = |row: CpuThread| {
        let all = row.priorities.iter();
        let all: Vec<Value> = all.map(|&priority| i64::from(priority).into()).collect();
        let priorities = [row.priority.map(i64::from).into(), Value::List(all.into())];
        let about = std::iter::once(row.thread.into());
        about
            .chain(usage(head, &row.usage))
            .chain(priorities)
            .collect()
    };
    let rows = threads.into_iter().map(row).collect();
    Section::new("threads", "CPU time by thread", columns, rows).untitled()
}
