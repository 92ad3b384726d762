//! The tables.

use std::collections::BTreeMap;

use tracebraid_clocks::{Accuracy, Machines, Path, Timeline};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{Head, Host, Window};
use tracebraid_statistics::Distribution;
use tracebraid_tables::{Column, Forms, Report, Section, Total, Unit, Value};

use crate::DeviceAnalysis;
use crate::classes::Classes;
use crate::item::Handle;
use crate::kind::Kind;
use crate::late::{HostDid, paths};
use crate::state::{Queue, State};
use crate::sums::{Calls, Commands, Name, QueueSums};

/// The time range and the hosts of the traces that have commands.
pub(crate) fn head(set: &TraceSet, classes: &Classes, window: Window) -> Head {
    let is_read = |trace: usize| {
        let streams = set
            .traces
            .get(trace)
            .map_or(0, |of| of.layout.streams.len());
        (0..streams).any(|stream| classes.reads(trace, stream))
    };
    let mut head = Head::of_events(set, is_read, window);
    // Traces of one machine are processes, which rows name anyway.
    let machines = Machines::of(set);
    let of = |host: &Host| machines.of_trace(host.trace as usize);
    if let Some(first) = head.hosts.first()
        && head.hosts.iter().all(|host| of(host) == of(first))
    {
        let class = set
            .traces
            .get(first.trace as usize)
            .map(|of| &of.layout.class);
        let name = class.and_then(|class| class.env_str("hostname"));
        head.hosts = vec![Host {
            trace: first.trace,
            name: name.map(str::to_owned),
        }];
    }
    head
}

/// How far the clock of the trace is ahead of that of a device.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// The time of the device for which this holds.
    at: i64,
    offset: i64,
    /// The largest possible error.
    error: u64,
}

pub(crate) const PROCESS: Column = Column::new("process", "Process", Unit::Process);
const QUEUE: Column = Column::new("queue", "Queue", Unit::Id).optional();
const KIND: Column = Column::new("kind", "Kind", Unit::Text);
const COMMANDS: Column = Column::new("commands", "Commands", Unit::Count);
const ERRORS: Column = Column::new("errors", "Errors", Unit::Count).left_out(2);

pub(crate) fn report(analysis: &DeviceAnalysis, state: &State, did: &HostDid) -> Report {
    let of = Of { analysis, state };
    Report {
        head: analysis.head.clone(),
        totals: of.totals(),
        sections: vec![
            of.devices(),
            of.idle(),
            of.host(did),
            of.shared(),
            of.gaps(&paths(analysis, state)),
            of.queues(),
            of.kernels(),
            of.transfers(),
            of.calls(),
            of.clocks(),
        ],
        ..Report::default()
    }
}

/// The analysis and its final state.
pub(crate) struct Of<'a> {
    pub(crate) analysis: &'a DeviceAnalysis,
    pub(crate) state: &'a State,
}

/// Greatest time of execution first.
fn greatest<K: Ord + Clone>(sums: BTreeMap<K, Commands>) -> Vec<(K, Commands)> {
    let mut rows: Vec<_> = sums.into_iter().collect();
    rows.sort_by_cached_key(|(key, of)| {
        let time = of.execution.summary().sum();
        (std::cmp::Reverse((time, of.count)), key.clone())
    });
    rows
}

fn total(durations: &Distribution) -> Value {
    u64::try_from(durations.summary().sum())
        .unwrap_or(u64::MAX)
        .into()
}

/// Columns of a distribution of execution times.
fn execution_columns() -> Vec<Column> {
    vec![
        Column::new("total_ns", "Total", Unit::Duration),
        Column::new("min_ns", "Min", Unit::Duration)
            .optional()
            .left_out(3),
        Column::new("average_ns", "Average", Unit::Duration).optional(),
        Column::new("p99_ns", "p99", Unit::Duration)
            .optional()
            .left_out(4),
        Column::new("max_ns", "Max", Unit::Duration).optional(),
    ]
}

fn execution_values(durations: &Distribution) -> Vec<Value> {
    let summary = durations.summary();
    vec![
        total(durations),
        summary.min().into(),
        summary.mean().into(),
        durations.quantile(990).into(),
        summary.max().into(),
    ]
}

impl Of<'_> {
    pub(crate) fn process(&self, process: u32) -> Value {
        self.analysis.processes.get(process).into()
    }

    fn queue(&self, queue: Handle) -> Option<&Queue> {
        self.state.queues.get(&queue)
    }

    fn sums<K: Ord>(&self, key: impl Fn(u32, Kind, &Name) -> Option<K>) -> BTreeMap<K, Commands> {
        let mut sums: BTreeMap<K, Commands> = BTreeMap::new();
        for (row, commands) in &self.state.sums.commands {
            if let Some(key) = key(row.process, row.kind, &row.name) {
                sums.entry(key).or_default().merge(commands);
            }
        }
        sums
    }

    fn totals(&self) -> Vec<Total> {
        let all = self.state.sums.commands.values();
        let sum = |of: fn(&Commands) -> u64| -> Value { all.clone().map(of).sum::<u64>().into() };
        let calls = self.state.sums.calls.values();
        let calls: u64 = calls.map(|of| of.durations.summary().count()).sum();
        vec![
            Total::new("commands", "commands", sum(|of| of.count)).or_one("command"),
            Total::new("calls", "calls", calls.into()).or_one("call"),
            Total::new("errors", "failed commands", sum(|of| of.errors)).or_one("failed command"),
            Total::new(
                "unfinished",
                "not complete at the end",
                self.state.waiting().into(),
            ),
            Total::new("unprofiled", "without times", sum(|of| of.unprofiled)),
            Total::new(
                "only_durations",
                "with durations only",
                sum(|of| of.only_durations),
            ),
            Total::new(
                "without_call",
                "completions without a call",
                self.state.without_call(&self.analysis.rules).into(),
            )
            .or_one("completion without a call"),
        ]
    }

    fn queues(&self) -> Section {
        let mut queues: Vec<_> = self.state.sums.queues.iter().collect();
        queues.sort_by_key(|(queue, of)| {
            let [.., execution] = of.times;
            (std::cmp::Reverse((execution, of.count)), **queue)
        });
        let row = |(queue, of): (&Handle, &QueueSums)| {
            let queue = *queue;
            let [host, in_device, execution] = of.times;
            // An unknown queue has no device, not that of handle 0.
            let known = self.queue(queue).map(|_| self.state.device_of(queue));
            let device = known.map_or_else(String::new, |of| self.state.device_name(of));
            vec![
                self.process(queue.process),
                self.queue(queue).map(|of| u64::from(of.number)).into(),
                Value::Text(format!("{:#x}", queue.handle)),
                Value::Text(device),
                of.count.into(),
                host.into(),
                in_device.into(),
                execution.into(),
                of.errors.into(),
            ]
        };
        let columns = vec![
            PROCESS,
            QUEUE,
            Column::new("handle", "Handle", Unit::Text).only(Forms::JSON.and(Forms::CSV)),
            self.device_column(),
            COMMANDS,
            Column::new("host_queue_ns", "In host queue", Unit::Duration),
            Column::new("device_queue_ns", "In device queue", Unit::Duration),
            Column::new("execution_ns", "Executing", Unit::Duration),
            ERRORS,
        ];
        let rows = queues.into_iter().map(row).collect();
        Section::new("queues", "Queues", columns, rows)
    }

    fn kernels(&self) -> Section {
        let rows = greatest(self.sums(|process, kind, name| {
            let kernel = match name {
                _ if !matches!(kind, Kind::Kernel | Kind::CommandBuffer) => return None,
                Name::Known(name) => name.clone(),
                Name::None => format!("({})", kind.without_name()),
                Name::Inherited(_) => String::new(),
            };
            Some((process, kernel))
        }));
        let row = |((process, kernel), of): ((u32, String), Commands)| {
            let mut row = vec![self.process(process), Value::Text(kernel), of.count.into()];
            row.extend(execution_values(&of.execution));
            row.extend([
                of.host.mean().into(),
                of.device.mean().into(),
                of.items.into(),
            ]);
            row
        };
        let mut columns = vec![
            PROCESS,
            Column::new("kernel", "Kernel", Unit::Text),
            COMMANDS,
        ];
        columns.extend(execution_columns());
        columns.extend([
            Column::new("average_host_queue_ns", "Host queue", Unit::Duration)
                .optional()
                .left_out(5),
            Column::new("average_device_queue_ns", "Device queue", Unit::Duration)
                .optional()
                .left_out(6),
            Column::new("items", "Work items", Unit::Count).left_out(2),
        ]);
        let rows = rows.into_iter().map(row).collect();
        Section::new("kernels", "Kernels", columns, rows)
    }

    fn transfers(&self) -> Section {
        let rows =
            greatest(self.sums(|process, kind, _| kind.is_transfer().then_some((process, kind))));
        let row = |((process, kind), of): ((u32, Kind), Commands)| {
            let speed = (of.moving > 0)
                .then(|| u128::from(of.bytes) * 1_000_000_000 / u128::from(of.moving));
            let speed = speed.and_then(|speed| u64::try_from(speed).ok());
            let mut row = vec![
                self.process(process),
                kind.name().into(),
                of.count.into(),
                of.bytes.into(),
                speed.into(),
            ];
            row.extend(execution_values(&of.execution));
            row
        };
        let mut columns = vec![
            PROCESS,
            KIND,
            COMMANDS,
            Column::new("bytes", "Bytes", Unit::Bytes),
            Column::new("bytes_per_second", "Per second", Unit::Bytes).optional(),
        ];
        columns.extend(execution_columns());
        let rows = rows.into_iter().map(row).collect();
        Section::new("transfers", "Transfers", columns, rows)
    }

    fn calls(&self) -> Section {
        let functions = self.analysis.rules.classes.functions();
        let mut rows: Vec<(u32, &str, &Calls)> = Vec::new();
        for ((process, function), calls) in &self.state.sums.calls {
            if let Some(function) = functions.get(*function as usize) {
                rows.push((*process, &function.name, calls));
            }
        }
        rows.sort_by_cached_key(|(process, name, calls)| {
            let time = calls.durations.summary().sum();
            (std::cmp::Reverse(time), *process, (*name).to_owned())
        });
        let row = |(process, name, calls): (u32, &str, &Calls)| {
            let mut row = vec![
                self.process(process),
                name.into(),
                calls.durations.summary().count().into(),
            ];
            row.extend(execution_values(&calls.durations));
            row.push(calls.errors.into());
            row
        };
        let mut columns = vec![
            PROCESS,
            Column::new("function", "Function", Unit::Text),
            Column::new("calls", "Calls", Unit::Count),
        ];
        columns.extend(execution_columns());
        columns.push(ERRORS);
        let rows = rows.into_iter().map(row).collect();
        Section::new("functions", "Calls by function", columns, rows)
    }

    /// Relations of the clocks of devices to those of the traces, by process and device.
    fn clocks(&self) -> Section {
        let mut clocks = self.state.clocks.clone();
        for (device, clock) in &self.state.sums.readings {
            if let Some(of_device) = clocks.get_mut(device) {
                of_device.merge(clock.clone());
            }
        }
        let row = |(handle, clock): (&Handle, &Timeline)| {
            let device = self.state.devices.get(handle);
            let path = Path::of(clock);
            let (accuracy, bounds) = match &path {
                Ok(Some(path)) => (path.accuracy(), self.bounds(path)),
                Ok(None) => (Accuracy::Absent, None),
                Err(_) => (Accuracy::Fail, None),
            };
            // Without bounds for the drift, the slopes are those of assumed clocks.
            let path = path
                .ok()
                .flatten()
                .filter(|of| of.accuracy() == Accuracy::Accurate);
            let drift = path.and_then(|path| path.slopes());
            let drift = drift.map(|(low, high)| (low.drift_ppm() + high.drift_ppm()) / 2.0);
            let at = bounds.map(|bounds| bounds.at);
            let offset = bounds.map(|bounds| bounds.offset);
            let error = bounds.map(|bounds| bounds.error);
            vec![
                self.process(handle.process),
                Value::Text(self.state.device_name(*handle)),
                Value::Text(
                    device.map_or_else(String::new, |device| device.properties.platform.clone()),
                ),
                Value::Text(format!("{accuracy:?}").to_lowercase()),
                offset.into(),
                at.into(),
                error.into(),
                drift.into(),
            ]
        };
        let columns = vec![
            PROCESS,
            Column::new("device", "Device", Unit::Text),
            Column::new("platform", "Platform", Unit::Text).left_out(1),
            Column::new("relation", "Clock", Unit::Text),
            // Between a clock of the device and the time since 1970.
            Column::new("offset_ns", "Offset", Unit::Id)
                .optional()
                .only(Forms::JSON.and(Forms::CSV)),
            Column::new("at_device_ns", "At device time", Unit::Id)
                .optional()
                .only(Forms::JSON.and(Forms::CSV)),
            Column::new("error_ns", "Known within", Unit::Duration).optional(),
            Column::new("drift_ppm", "Drift (ppm)", Unit::Number).optional(),
        ];
        let rows = clocks.iter().map(row).collect();
        Section::new("clocks", "Clocks of devices", columns, rows).short()
    }

    /// The relation of the clocks in the middle of the recording.
    fn bounds(&self, path: &Path) -> Option<Bounds> {
        let (first, last) = path.extent();
        let middle = first + (last - first) / 2;
        let at = path.at(middle)?.round();
        let (low, high) = path.bounds(middle);
        let (low, high) = (low?.round(), high?.round());
        // The line need not be in the middle of its bounds.
        let error = high.abs_diff(at).max(at.abs_diff(low));
        Some(Bounds {
            at: middle,
            offset: at.checked_sub(middle)?,
            error,
        })
    }
}
