//! Builds the report from the sums.

use crate::irq::IrqOptions;
use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_ctf::clock::Timestamp;

use crate::groups::{self, Groups};
use crate::irq::lane::IrqCpu;
use crate::irq::run::{DURATION, LATENCY, Run, Stats};
use crate::irq::source::{HandlerKind, Source};
use crate::irq::{GROUPINGS, IrqPartial, IrqRules};
use tracebraid_follow::{By, ByCpu, CpuKey, Head, Input, Limits, share};
use tracebraid_statistics::{Bins, Distribution, Ranges};
use tracebraid_tables::{
    Column, Report, Section, Total, Unit, Value, View, distribution_columns, distribution_values,
};

const HOST: Column = Column::new("host", "Host", Unit::Text);
const KIND: Column = Column::new("kind", "Kind", Unit::Text);
const NUMBER: Column = Column::new("number", "Number", Unit::Id).optional();
const NAME: Column = Column::new("name", "Name", Unit::Irq);
const CPU: Column = Column::new("cpu", "CPU", Unit::Cpu);
const RAISES: Column = Column::new("raises", "Raises", Unit::Count);

/// The selected sources and their sums.
type Rows<'a> = Vec<(&'a Source, &'a Stats)>;

pub(super) fn report(rules: &IrqRules, input: &Input, partial: IrqPartial) -> Report {
    let head = input.head();
    let sources = partial.sources.iter().zip(&partial.stats);
    let mut rows: Rows<'_> = sources
        .filter(|(source, _)| source.is_chosen(&rules.options))
        .collect();
    rows.sort_by_key(|(source, _)| source.key);
    if rules.options.views.ranges.is_some() {
        return frequencies(rules, head, &rows);
    }
    let mut sections = statistics(&head, &rows);
    sections.push(cpus(rules, input, &partial.lanes));
    let longest = longest(rules, &partial, &rows);
    sections.push(list(
        &partial,
        &head,
        "longest",
        "Longest handlers",
        View::Top,
        &longest,
    ));
    let log = log(rules, &partial);
    sections.push(list(&partial, &head, "log", "Handlers", View::Log, &log));
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        NAME,
        |by| match by {
            By::Cpu => groups::by_cpu(&head, rows.iter().flat_map(|(_, stats)| &stats.cpus)),
            _ => by_name(&head, &rows),
        },
    ));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        totals: totals(rules, &partial, &rows),
        sections,
        ranges: ranges(&rows),
        notes: unmatched(&rules.options, &partial),
        head,
        ..Report::default()
    }
}

/// Notes for patterns that match no source.
fn unmatched(options: &IrqOptions, partial: &IrqPartial) -> Vec<String> {
    let called = |source: &Source| {
        // Addresses of functions are no useful suggestions.
        let is_shown = source.key.kind.is_hard() || source.key.kind == HandlerKind::Softirq;
        let nameless = (!is_shown).then(String::new).into_iter();
        nameless.chain(source.called()).collect()
    };
    let of = |is_soft: bool| -> Vec<Vec<String>> {
        let sources = partial.sources.iter();
        let sources = sources.filter(|source| (source.key.kind == HandlerKind::Softirq) == is_soft);
        sources.map(called).collect()
    };
    let mut notes = tracebraid_tables::unmatched("--irq", &options.interrupts, &of(false));
    notes.extend(tracebraid_tables::unmatched(
        "--softirq",
        &options.softirqs,
        &of(true),
    ));
    notes
}

fn totals(rules: &IrqRules, partial: &IrqPartial, rows: &Rows<'_>) -> Vec<Total> {
    let count = |is_wanted: fn(HandlerKind) -> bool| -> u64 {
        let rows = rows.iter().filter(|(source, _)| is_wanted(source.key.kind));
        rows.map(|(_, stats)| stats.durations.summary().count())
            .sum()
    };
    let lanes = || {
        let chosen = |cpu: &CpuKey| rules.selection.cpus.contains(cpu.cpu);
        partial.lanes.iter().filter(move |(cpu, _)| chosen(cpu))
    };
    let running: usize = lanes().map(|(_, lane)| lane.running()).sum();
    let orphans =
        |(cpu, lane): &(CpuKey, IrqCpu)| lane.orphans(|time| rules.selection.counts(time, cpu.cpu));
    let orphans: u64 = lanes().map(orphans).sum();
    vec![
        Total::new(
            "interrupts",
            "interrupts",
            count(HandlerKind::is_hard).into(),
        )
        .or_one("interrupt"),
        Total::new(
            "softirqs",
            "softirqs",
            count(|kind| kind == HandlerKind::Softirq).into(),
        )
        .or_one("softirq"),
        Total::new("unfinished", "unfinished handlers", (running as u64).into())
            .or_one("unfinished handler"),
        Total::new(
            "unknown_begin",
            "handlers without a recorded start",
            orphans.into(),
        )
        .or_one("handler without a recorded start"),
    ]
}

/// The host, shown if there are several.
fn host(head: &Head, trace: u32) -> Value {
    Value::Text(head.host(trace))
}

/// The tables of durations and of latencies.
fn statistics(head: &Head, rows: &Rows<'_>) -> Vec<Section> {
    let of = |is_wanted: fn(HandlerKind) -> bool| -> Rows<'_> {
        let rows = rows.iter().filter(|(source, _)| is_wanted(source.key.kind));
        rows.copied().collect()
    };
    let durations = |key, title: &str, about: &[Column], rows: Rows<'_>| {
        let rows = rows
            .into_iter()
            .filter(|(_, stats)| stats.durations.summary().count() > 0);
        let row =
            |(source, stats): (&Source, &Stats)| row(head, about, source, stats, &stats.durations);
        section(key, title, about, rows.map(row).collect())
    };
    let is_softirq = |kind| kind == HandlerKind::Softirq;
    let others = of(|kind| !kind.is_hard() && kind != HandlerKind::Softirq);
    let with_raises = of(|kind| matches!(kind, HandlerKind::Softirq | HandlerKind::Ipi));
    let raised = with_raises
        .into_iter()
        .filter(|(_, stats)| stats.raises > 0 || stats.latencies.summary().count() > 0);
    let latency =
        |(source, stats): (&Source, &Stats)| row(head, LATENCIES, source, stats, &stats.latencies);
    vec![
        durations(
            "interrupts",
            "Interrupts",
            &[KIND, NUMBER, NAME],
            of(HandlerKind::is_hard),
        ),
        durations("softirqs", "Softirqs", &[NUMBER, NAME], of(is_softirq)),
        section(
            "raises",
            "From raise to start",
            LATENCIES,
            raised.map(latency).collect(),
        ),
        durations("functions", "Tasklets and timers", &[KIND, NAME], others),
    ]
}

const LATENCIES: &[Column] = &[KIND, NUMBER, NAME, RAISES];

fn section(key: &'static str, title: &str, about: &[Column], rows: Vec<Vec<Value>>) -> Section {
    let about = [HOST].into_iter().chain(about.iter().copied());
    Section {
        key,
        title: title.to_owned(),
        view: View::Stats,
        columns: about.chain(distribution_columns()).collect(),
        rows,
        is_long: false,
        ..Section::default()
    }
}

fn row(
    head: &Head,
    about: &[Column],
    source: &Source,
    stats: &Stats,
    distribution: &Distribution,
) -> Vec<Value> {
    let value = |column: &Column| match column.key {
        "kind" => source.key.kind.name().into(),
        "number" => source.number().into(),
        "raises" => stats.raises.into(),
        _ => Value::Text(source.name()),
    };
    let about = std::iter::once(host(head, source.key.trace)).chain(about.iter().map(value));
    about.chain(distribution_values(distribution)).collect()
}

/// Time that each CPU spent in interrupts and softirqs.
fn cpus(rules: &IrqRules, input: &Input, lanes: &ByCpu<IrqCpu>) -> Section {
    let head = input.head();
    let idle = input.sources.cpus().map(|cpu| (cpu, Default::default()));
    let mut cpus: BTreeMap<CpuKey, _> = idle.collect();
    cpus.extend(
        lanes
            .iter()
            .map(|(cpu, lane)| (*cpu, (lane.hard, lane.soft))),
    );
    cpus.retain(|cpu, _| rules.selection.cpus.contains(cpu.cpu));
    let row =
        |(cpu, (hard, soft)): (CpuKey, (crate::irq::lane::Usage, crate::irq::lane::Usage))| {
            let share = |time| Value::Float(share(time, head.duration_ns));
            let mut values = vec![host(&head, cpu.trace), u64::from(cpu.cpu).into()];
            for usage in [hard, soft] {
                values.extend([usage.count.into(), usage.time.into(), share(usage.time)]);
            }
            values
        };
    let columns = [
        CPU,
        Column::new("interrupts", "Interrupts", Unit::Count),
        Column::new("interrupt_ns", "Time", Unit::Duration),
        Column::new("interrupt_share", "Of range", Unit::Share),
        Column::new("softirqs", "Softirqs", Unit::Count),
        Column::new("softirq_ns", "Time", Unit::Duration),
        Column::new("softirq_share", "Of range", Unit::Share),
    ];
    let options = &rules.options;
    let is_all = options.interrupts.is_empty()
        && options.softirqs.is_empty()
        && options.views.limits == Limits::default();
    let title = match is_all {
        true => "By CPU",
        false => "By CPU (all interrupts and softirqs)",
    };
    Section {
        key: "cpus",
        title: title.to_owned(),
        view: View::Stats,
        columns: [HOST].into_iter().chain(columns).collect(),
        rows: cpus.into_iter().map(row).collect(),
        is_long: false,
        ..Section::default()
    }
}

fn longest(rules: &IrqRules, partial: &IrqPartial, rows: &Rows<'_>) -> Vec<Run> {
    let most = rules.options.views.top();
    let mut runs: Vec<Run> = rows.iter().flat_map(|(_, stats)| stats.top(most)).collect();
    let key = |run: &Run| partial.sources.at(run.place).map(|source| source.key);
    runs.sort_by_key(|run| {
        let anywhere = Run { place: 0, ..*run };
        (
            Reverse(run.duration),
            run.begin,
            run.cpu,
            key(run),
            anywhere,
        )
    });
    runs.truncate(most);
    runs
}

/// The runs in the order of their ends.
fn log(rules: &IrqRules, partial: &IrqPartial) -> Vec<Run> {
    let source = |run: &Run| partial.sources.at(run.place);
    let is_chosen: Vec<bool> = partial
        .sources
        .iter()
        .map(|source| source.is_chosen(&rules.options))
        .collect();
    let chosen = partial
        .log
        .iter()
        .filter(|run| is_chosen.get(run.place) == Some(&true));
    let mut log: Vec<Run> = chosen.copied().collect();
    log.sort_by_key(|run| {
        let anywhere = Run { place: 0, ..*run };
        let key = source(run).map(|source| source.key);
        (run.end(), run.cpu, Reverse(run.begin), key, anywhere)
    });
    log
}

fn list(
    partial: &IrqPartial,
    head: &Head,
    key: &'static str,
    title: &str,
    view: View,
    runs: &[Run],
) -> Section {
    let row = |run: &Run| {
        let source = partial.sources.at(run.place)?;
        let mut values = vec![
            Timestamp(run.begin).into(),
            run.duration.into(),
            run.latency().into(),
        ];
        values.extend([
            host(head, run.cpu.trace),
            u64::from(run.cpu.cpu).into(),
            source.key.kind.name().into(),
            source.number().into(),
            Value::Text(source.name()),
        ]);
        Some(values)
    };
    let columns = [
        Column::new("begin_ns", "Begin", Unit::Time),
        Column::new("duration_ns", "Duration", Unit::Duration),
        Column::new("latency_ns", "After raise", Unit::Duration).optional(),
    ];
    let columns = columns.into_iter().chain([HOST]);
    Section {
        key,
        title: title.to_owned(),
        view,
        columns: columns.chain([CPU, KIND, NUMBER, NAME]).collect(),
        rows: runs.iter().filter_map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

/// Bounds of the durations and the latencies of each source.
fn ranges(rows: &Rows<'_>) -> Ranges {
    let mut ranges = Ranges::new();
    for (source, stats) in rows {
        for (what, distribution) in [(DURATION, &stats.durations), (LATENCY, &stats.latencies)] {
            let summary = distribution.summary();
            if let (Some(min), Some(max)) = (summary.min(), summary.max()) {
                ranges.insert(source.key.group(what), (min, max));
            }
        }
    }
    ranges
}

/// The group of a source's durations, and that of its latencies.
fn labels(head: &Head, source: &Source) -> [(&'static str, String); 2] {
    let label = match head.hosts.len() {
        0 | 1 => source.label(),
        _ => format!("{}, {}", head.host(source.key.trace), source.label()),
    };
    let latency = format!("{label}, from raise to start");
    [(DURATION, label), (LATENCY, latency)]
}

fn by_name(head: &Head, rows: &Rows<'_>) -> Groups {
    let of_source = |(source, stats): &(&Source, &Stats)| {
        let values = [stats.durations.powers(), stats.latencies.powers()];
        let labels = labels(head, source).map(|(_, label)| label.into());
        labels.into_iter().zip(values).collect::<Groups>()
    };
    let groups = rows.iter().flat_map(of_source);
    groups.filter(|(_, powers)| powers.count() > 0).collect()
}

/// The report of the second pass: histograms of durations and latencies.
fn frequencies(rules: &IrqRules, head: Head, rows: &Rows<'_>) -> Report {
    let ranges = rules.options.views.ranges.as_ref();
    let mut groups: Vec<(String, (u64, u64), &Bins)> = Vec::new();
    for (source, stats) in rows {
        for ((what, label), bins) in labels(&head, source).into_iter().zip(&stats.bins) {
            if let Some(&range) = ranges.and_then(|ranges| ranges.get(&source.key.group(what))) {
                groups.push((label, range, bins));
            }
        }
    }
    Report {
        sections: vec![tracebraid_tables::frequencies(NAME, groups)],
        head,
        ..Report::default()
    }
}
