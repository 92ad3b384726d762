//! The tables of devices' timelines: how busy devices were, and why they were idle.

use std::collections::BTreeMap;

use tracebraid_clocks::Path;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_statistics::Distribution;
use tracebraid_tables::{Column, Forms, Section, Sentence, Unit, Value};
use tracebraid_threads::WaitReason;

use crate::item::Handle;
use crate::late::{HostDid, host_time};
use crate::line::{Cause, Gap, LineSums};
use crate::tables::{Of, PROCESS};

const DEVICE: Column = Column::new("device", "Device", Unit::Text);

/// Least share of idle time, in percent, at which there is advice.
const IDLE: u64 = 20;

/// Least share of the time of transfers and of kernels, in percent, at which there is advice on both.
const SERIAL: u64 = 10;

/// Advice on an idle device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// Transfers and kernels run one after the other.
    Overlap,
    /// The device waits for the host.
    Ahead,
}

impl Advice {
    const fn key(self) -> &'static str {
        match self {
            Advice::Overlap => "overlap",
            Advice::Ahead => "enqueue-ahead",
        }
    }

    fn of(sums: &LineSums) -> Option<Advice> {
        let (begin, end) = sums.extent?;
        let whole = end - begin;
        let is_part = |part: u64, percent| u128::from(part) * 100 >= u128::from(whole) * percent;
        let serial = u128::from(SERIAL);
        if is_part(sums.kernels, serial)
            && is_part(sums.transfers, serial)
            && sums.overlap < sums.kernels.min(sums.transfers) / 10
        {
            return Some(Advice::Overlap);
        }
        let late: u128 = sums.gaps.values().map(|of| sum(&of.causes[0])).sum();
        let late = u64::try_from(late).unwrap_or(u64::MAX);
        is_part(late, u128::from(IDLE)).then_some(Advice::Ahead)
    }

    /// Source: D. Couturier, M. Dagenais: LTTng CLUST, 2015, section 4.8.1.
    const fn words(self) -> &'static str {
        match self {
            Advice::Overlap => {
                ": transfers and kernels hardly ever run at the same time. Several queues, each with a \
                 part of the work, let them overlap."
            }
            Advice::Ahead => {
                " waits for the host. Enqueue the next commands before the previous ones are complete, \
                 or use several queues, each with a part of the work."
            }
        }
    }
}

fn sum(of: &Distribution) -> u128 {
    of.summary().sum()
}

fn nanoseconds(of: &Distribution) -> u64 {
    u64::try_from(sum(of)).unwrap_or(u64::MAX)
}

const fn name(cause: Cause) -> &'static str {
    match cause {
        Cause::HostLate => "host late",
        Cause::Dependency => "dependency",
        Cause::HostQueue => "host queue",
        Cause::DeviceQueue => "device queue",
    }
}

/// Advice for threads that are late because they had no CPU.
fn without_cpu(did: &HostDid) -> Option<Sentence> {
    let lacks_cpu = |reason| matches!(reason, WaitReason::Preempted | WaitReason::Runnable);
    let rows = did.rows.iter();
    let of_cpu = rows
        .clone()
        .filter(|((_, _, reason, _), _)| lacks_cpu(*reason));
    let lacking: u64 = of_cpu.map(|(_, (time, _))| time).sum();
    let all: u64 = rows.map(|(_, (time, _))| time).sum();
    let is_much = lacking > 0 && lacking * 100 >= all * IDLE;
    is_much.then(|| {
        Sentence::default()
            .words("The threads that enqueue commands had no CPU for ")
            .value(Unit::Share, Value::Part(lacking, all))
            .words(" of this time. Give them a higher priority, or keep other work off their CPUs.")
    })
}

impl Of<'_> {
    fn name_of(&self, line: Handle) -> Value {
        Value::Text(self.state.device_name(line))
    }

    /// The column of devices; text needs none if there is one device.
    pub(crate) fn device_column(&self) -> Column {
        match self.state.devices.len() {
            0 | 1 => DEVICE.only(Forms::JSON.and(Forms::CSV)),
            _ => DEVICE.left_out(1),
        }
    }

    /// The timelines, those that were busy for the longest time first.
    fn lines(&self) -> Vec<(Handle, &LineSums)> {
        let lines = self.state.lines.iter();
        let mut lines: Vec<_> = lines.map(|(line, of)| (*line, &of.sums)).collect();
        lines.sort_by_key(|(line, of)| (std::cmp::Reverse(of.busy), *line));
        lines
    }

    pub(crate) fn devices(&self) -> Section {
        let mut notes = Vec::new();
        let lines = self.lines();
        let rows = lines.iter().filter_map(|(line, sums)| {
            let (begin, end) = sums.extent?;
            let whole = end - begin;
            let advice = Advice::of(sums);
            if let Some(advice) = advice {
                let of_device = Sentence::default().value(Unit::Text, self.name_of(*line));
                notes.push(of_device.words(advice.words()));
            }
            Some(vec![
                self.name_of(*line),
                (sums.processes.len() as u64).into(),
                whole.into(),
                Value::Part(sums.busy, whole),
                sums.busy.into(),
                whole.saturating_sub(sums.busy).into(),
                sums.kernels.into(),
                sums.several_kernels.into(),
                sums.transfers.into(),
                sums.overlap.into(),
                advice.map_or(Value::None, |advice| advice.key().into()),
            ])
        });
        let rows = rows.collect();
        let columns = vec![
            DEVICE,
            Column::new("processes", "Processes", Unit::Count).left_out(2),
            Column::new("span_ns", "First to last", Unit::Duration).left_out(1),
            Column::new("busy", "Busy", Unit::Share),
            Column::new("busy_ns", "Busy time", Unit::Duration).only(Forms::JSON.and(Forms::CSV)),
            Column::new("idle_ns", "Idle", Unit::Duration),
            Column::new("kernels_ns", "Kernels", Unit::Duration),
            Column::new("several_kernels_ns", "Several", Unit::Duration)
                .only(Forms::JSON.and(Forms::CSV)),
            Column::new("transfers_ns", "Transfers", Unit::Duration),
            Column::new("overlap_ns", "Both", Unit::Duration),
            Column::new("advice", "Advice", Unit::Text)
                .optional()
                .only(Forms::JSON.and(Forms::CSV)),
        ];
        let section = Section::new("devices", "Devices", columns, rows);
        notes
            .into_iter()
            .fold(section, |section, note| section.noted(Some(note)))
    }

    pub(crate) fn idle(&self) -> Section {
        let mut rows = Vec::new();
        for (line, sums) in self.lines() {
            let all = sums.gaps.values().map(|of| sum(&of.lengths)).sum::<u128>();
            let all = u64::try_from(all).unwrap_or(u64::MAX);
            let mut causes = Vec::new();
            for (process, gaps) in &sums.gaps {
                for (cause, of) in Cause::ALL.into_iter().zip(&gaps.causes) {
                    if of.summary().count() > 0 {
                        causes.push((*process, cause, of));
                    }
                }
            }
            causes
                .sort_by_key(|(process, cause, of)| (std::cmp::Reverse(sum(of)), *process, *cause));
            for (process, cause, of) in causes {
                rows.push(vec![
                    self.name_of(line),
                    self.process(process),
                    name(cause).into(),
                    nanoseconds(of).into(),
                    Value::Part(nanoseconds(of), all),
                    of.summary().count().into(),
                    of.summary().mean().into(),
                    of.summary().max().into(),
                ]);
            }
        }
        let columns = vec![
            self.device_column(),
            PROCESS,
            Column::new("cause", "Cause", Unit::Text),
            Column::new("idle_ns", "Idle", Unit::Duration),
            Column::new("share", "Share", Unit::Share),
            Column::new("parts", "Parts", Unit::Count),
            Column::new("average_ns", "Average", Unit::Duration).optional(),
            Column::new("max_ns", "Max", Unit::Duration).optional(),
        ];
        Section::new("idle", "Idle time of devices by cause", columns, rows)
    }

    /// The table of reasons for which threads were late.
    pub(crate) fn host(&self, did: &HostDid) -> Section {
        let mut all: BTreeMap<Handle, u64> = BTreeMap::new();
        for ((line, ..), (time, _)) in &did.rows {
            *all.entry(*line).or_default() += time;
        }
        let mut sorted: Vec<_> = did.rows.iter().collect();
        sorted.sort_by_key(|(key, (time, _))| (std::cmp::Reverse(*time), *key));
        let row = |((line, process, reason, detail), (time, parts)): (
            &(Handle, u32, WaitReason, String),
            &(u64, u64),
        )| {
            let whole = all.get(line).copied().unwrap_or(0);
            vec![
                self.name_of(*line),
                self.process(*process),
                reason.name().into(),
                Value::Text(detail.clone()),
                (*time).into(),
                Value::Part(*time, whole),
                (*parts).into(),
            ]
        };
        let rows = sorted.into_iter().map(row).collect();
        let columns = vec![
            self.device_column(),
            PROCESS,
            Column::new("reason", "Reason", Unit::Text),
            Column::new("detail", "Detail", Unit::Text),
            Column::new("time_ns", "Time", Unit::Duration),
            Column::new("share", "Share", Unit::Share),
            Column::new("parts", "Parts", Unit::Count).left_out(2),
        ];
        let title = "Activity of the host while it was late";
        Section::new("host", title, columns, rows).noted(without_cpu(did))
    }

    pub(crate) fn shared(&self) -> Section {
        let mut rows = Vec::new();
        for (line, sums) in self.lines() {
            let mut pairs: Vec<_> = sums.shared.iter().collect();
            pairs.sort_by_key(|(pair, time)| (std::cmp::Reverse(**time), **pair));
            for ((process, other), time) in pairs {
                rows.push(vec![
                    self.name_of(line),
                    self.process(*process),
                    self.process(*other),
                    (*time).into(),
                ]);
            }
        }
        let columns = vec![
            self.device_column(),
            PROCESS,
            Column::new("other", "Commands of", Unit::Process),
            Column::new("time_ns", "Time", Unit::Duration),
        ];
        let title = "Waiting for commands of other processes";
        Section::new("shared", title, columns, rows)
    }

    pub(crate) fn gaps(&self, paths: &BTreeMap<Handle, Path>) -> Section {
        let mut gaps: Vec<(Handle, Gap)> = Vec::new();
        for (line, sums) in self.lines() {
            gaps.extend(sums.longest().into_iter().map(|gap| (line, gap)));
        }
        gaps.sort_by_key(|(line, gap)| (std::cmp::Reverse(*gap), *line));
        let row = |(line, gap): (Handle, Gap)| {
            let at = paths.get(&line).and_then(|path| host_time(path, gap.begin));
            let causes = Cause::split(gap.begin, &gap.command);
            let largest = Cause::ALL.into_iter().zip(causes);
            let largest = largest.max_by_key(|(cause, time)| (*time, std::cmp::Reverse(*cause)));
            let mut row = vec![
                self.name_of(line),
                at.map_or(Value::None, |at| Value::Time(Timestamp(at))),
                gap.length.into(),
                self.analysis
                    .thread_of(gap.command.process, gap.command.tid)
                    .into(),
                u64::try_from(gap.command.tid).map_or(Value::None, Value::from),
                Value::Text(self.what(&gap)),
                largest.map_or(Value::None, |(cause, _)| name(cause).into()),
            ];
            row.extend(causes.map(Value::from));
            row
        };
        let rows = gaps.into_iter().map(row).collect();
        let part = |key| Column::new(key, "", Unit::Duration).only(Forms::JSON.and(Forms::CSV));
        let columns = vec![
            self.device_column(),
            Column::new("begin", "Begin", Unit::Time).optional(),
            Column::new("idle_ns", "Idle", Unit::Duration),
            PROCESS,
            // In other forms, the process has the thread.
            Column::new("tid", "TID", Unit::Id)
                .optional()
                .left_out(2)
                .only(Forms::TEXT),
            Column::new("next", "Next command", Unit::Text),
            Column::new("cause", "Cause", Unit::Text),
            part("host_late_ns"),
            part("dependency_ns"),
            part("host_queue_ns"),
            part("device_queue_ns"),
        ];
        Section::new("gaps", "Longest idle times", columns, rows)
    }

    /// The command that ends an idle time: its kernel, or its kind.
    fn what(&self, gap: &Gap) -> String {
        let name = self.state.names.get(gap.command.name);
        match name.is_empty() {
            true => gap.command.kind.name().to_owned(),
            false => name.to_owned(),
        }
    }
}
