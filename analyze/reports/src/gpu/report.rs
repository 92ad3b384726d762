//! Builds the report from the sums.

use std::cmp::Reverse;

use crate::gpu::GpuPartial;
use crate::gpu::ring::RingName;
use crate::gpu::sums::{JobSums, RingSums};
use tracebraid_follow::{Head, Input, People, Process, Thread, share};
use tracebraid_statistics::Distribution;
use tracebraid_tables::{Column, Forms, Report, Section, Total, Unit, Value};

const DEVICE: Column = Column::new("device", "Device", Unit::Text).left_out(3);
const RING: Column = Column::new("ring", "Ring", Unit::Text);
const JOBS: Column = Column::new("jobs", "Jobs", Unit::Count);
const HELD: Column = Column::new("held", "Held", Unit::Count).left_out(2);
const PROCESS: Column = Column::new("process", "Process", Unit::Process);

/// Names of the rows.
struct Names<'a> {
    head: Head,
    people: &'a People,
}

impl Names<'_> {
    fn device(&self, ring: &RingName) -> String {
        self.head.of_host(ring.trace, ring.device.clone())
    }

    /// Jobs of a ring by process.
    fn jobs_of(&self, ring: &RingSums) -> Vec<(Process, JobSums)> {
        let threads = ring.threads.entries();
        let threads = threads.map(|(key, of)| (self.people.thread(key), of));
        self.people.processes(threads, JobSums::merge)
    }
}

pub(super) fn report(input: &Input, partial: &GpuPartial) -> Report {
    let names = Names {
        head: input.head(),
        people: &partial.people,
    };
    Report {
        head: input.head(),
        totals: totals(partial),
        sections: vec![
            of_rings(&names, partial),
            of_jobs(&names, partial),
            of_waits(&names, partial),
        ],
        ..Report::default()
    }
}

fn totals(partial: &GpuPartial) -> Vec<Total> {
    let rings = partial.sums.rings.iter();
    let jobs: u64 = rings.map(|ring| ring.all().jobs()).sum();
    let unfinished = partial.sums.unfinished + partial.machine.open_jobs();
    vec![
        Total::new("jobs", "jobs of the driver", jobs.into()).or_one("job of the driver"),
        Total::new("unfinished_jobs", "unfinished jobs", unfinished.into())
            .or_one("unfinished job"),
        Total::new(
            "jobs_not_begun",
            "jobs without a beginning",
            partial.sums.not_begun.into(),
        )
        .or_one("job without a beginning"),
    ]
}

fn total(durations: &Distribution) -> u64 {
    u64::try_from(durations.summary().sum()).unwrap_or(u64::MAX)
}

/// Columns of times of jobs.
fn time_columns() -> Vec<Column> {
    vec![
        Column::new("host_queue_ns", "In host queue", Unit::Duration),
        Column::new("device_queue_ns", "In device queue", Unit::Duration),
        Column::new("execution_ns", "Executing", Unit::Duration),
        Column::new("host_queue_p99_ns", "Host p99", Unit::Duration)
            .optional()
            .left_out(4),
        Column::new("device_queue_p99_ns", "Device p99", Unit::Duration)
            .optional()
            .left_out(5),
        Column::new("average_ns", "Average", Unit::Duration)
            .optional()
            .left_out(6),
        Column::new("p99_ns", "p99", Unit::Duration)
            .optional()
            .left_out(7),
        Column::new("max_ns", "Max", Unit::Duration)
            .optional()
            .left_out(8),
        HELD,
    ]
}

fn times(of: &JobSums) -> Vec<Value> {
    vec![
        total(&of.host).into(),
        total(&of.device).into(),
        total(&of.execution).into(),
        of.host.quantile(990).into(),
        of.device.quantile(990).into(),
        of.execution.summary().mean().into(),
        of.execution.quantile(990).into(),
        of.execution.summary().max().into(),
        of.held.into(),
    ]
}

fn of_rings(names: &Names<'_>, partial: &GpuPartial) -> Section {
    let mut rows: Vec<(&RingSums, JobSums)> = (partial.sums.rings.iter())
        .map(|ring| (ring, ring.all()))
        .filter(|(_, all)| all.jobs() > 0)
        .collect();
    rows.sort_by_cached_key(|(ring, all)| (Reverse(total(&all.execution)), ring.ring.clone()));
    let row = |(ring, all): (&RingSums, JobSums)| {
        let span = ring.extent.map_or(0, |(begin, end)| begin.abs_diff(end));
        let busy = total(&all.execution);
        let mut row = vec![
            Value::Text(names.device(ring.ring.name())),
            Value::Text(ring.ring.name().name.clone()),
            (names.jobs_of(ring).len() as u64).into(),
            all.jobs().into(),
            share(busy, span).into(),
            span.saturating_sub(busy).into(),
            span.into(),
        ];
        row.extend(times(&all));
        row
    };
    let mut columns = vec![
        DEVICE,
        RING,
        Column::new("processes", "Processes", Unit::Count).left_out(1),
        JOBS,
        Column::new("busy", "Busy", Unit::Share),
        Column::new("idle_ns", "Idle", Unit::Duration),
        Column::new("span_ns", "First to last", Unit::Duration).only(Forms::JSON.and(Forms::CSV)),
    ];
    columns.extend(time_columns());
    let rows = rows.into_iter().map(row).collect();
    Section::new("rings", "Rings of the driver", columns, rows)
}

fn of_jobs(names: &Names<'_>, partial: &GpuPartial) -> Section {
    let of_ring = |ring: &RingSums| {
        let name = ring.ring.name().clone();
        let processes = names.jobs_of(ring).into_iter();
        processes
            .map(move |(process, of)| (name.clone(), process, of))
            .collect::<Vec<_>>()
    };
    let mut rows: Vec<_> = partial.sums.rings.iter().flat_map(of_ring).collect();
    rows.sort_by_cached_key(|(ring, process, of)| {
        let id = (process.trace, process.pid, process.tid);
        (Reverse(total(&of.execution)), id, ring.clone())
    });
    let row = |(ring, process, of): (RingName, Process, JobSums)| {
        let mut row = vec![
            Thread::from(&process).into(),
            Value::Text(names.device(&ring)),
            Value::Text(ring.name),
            of.jobs().into(),
        ];
        row.extend(times(&of));
        row
    };
    let mut columns = vec![PROCESS, DEVICE, RING, JOBS];
    columns.extend(time_columns());
    let rows = rows.into_iter().map(row).collect();
    Section::new("jobs", "Jobs of processes", columns, rows)
}

fn of_waits(names: &Names<'_>, partial: &GpuPartial) -> Section {
    let waits = partial.sums.waits.entries();
    let waits = waits.map(|(key, waits)| (names.people.thread(key), waits));
    let mut rows: Vec<(Process, Distribution)> = names.people.processes(waits, Distribution::merge);
    rows.retain(|(_, waits)| waits.summary().count() > 0);
    rows.sort_by_cached_key(|(process, waits)| {
        let id = (process.trace, process.pid, process.tid);
        (Reverse(total(waits)), id)
    });
    let row = |(process, waits): (Process, Distribution)| {
        vec![
            Thread::from(&process).into(),
            waits.summary().count().into(),
            total(&waits).into(),
            waits.summary().mean().into(),
            waits.quantile(990).into(),
            waits.summary().max().into(),
        ]
    };
    let columns = vec![
        PROCESS,
        Column::new("waits", "Waits", Unit::Count),
        Column::new("total_ns", "Total", Unit::Duration),
        Column::new("average_ns", "Average", Unit::Duration).optional(),
        Column::new("p99_ns", "p99", Unit::Duration)
            .optional()
            .left_out(1),
        Column::new("max_ns", "Max", Unit::Duration).optional(),
    ];
    let rows = rows.into_iter().map(row).collect();
    Section::new("fence_waits", "Waits for jobs", columns, rows)
}
