//! Builds the report from the sums.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use tracebraid_ctf::clock::Timestamp;

use crate::disk::device::{Disk, Done};
use crate::disk::request::{DiskKey, Request, RequestKind, SECTOR};
use crate::disk::sums::{Issues, Remap};
use crate::disk::{DiskPartial, DiskRules, GROUPINGS};
use crate::groups::{self, Groups, OfThreads};
use tracebraid_follow::{By, Head, Input, People, Thread, ThreadKey, share};
use tracebraid_statistics::{Powers, Ranges};
use tracebraid_tables::{
    Column, Group, Report, Section, Total, Unit, Value, View, distribution_columns,
    distribution_values, is_named, unmatched,
};

const DISK: Column = Column::new("disk", "Disk", Unit::Disk);
const KIND: Column = Column::new("kind", "Kind", Unit::Text);
const THREAD: Column = Column::new("thread", "Thread", Unit::Thread);
const READ: Column = Column::new("read_bytes", "Read", Unit::Bytes);
const WRITTEN: Column = Column::new("written_bytes", "Written", Unit::Bytes);
const DISCARDED: Column = Column::new("discarded_bytes", "Discarded", Unit::Bytes).left_out(2);
const REQUESTS: Column = Column::new("requests", "Requests", Unit::Count);

/// Names of disks, and the selection by name.
struct Names<'a> {
    rules: &'a DiskRules,
    head: Head,
    named: Vec<(DiskKey, Option<String>)>,
}

impl Names<'_> {
    /// The disk's name alone.
    fn short(&self, key: DiskKey) -> String {
        let named = self.named.iter().find(|(of, _)| *of == key);
        let name = named.and_then(|(_, name)| name.as_deref());
        key.device.name(name)
    }

    /// The disk's name, with its host if there are several.
    fn name(&self, key: DiskKey) -> String {
        self.head.of_host(key.trace, self.short(key))
    }

    fn shows(&self, key: DiskKey) -> bool {
        is_named(&self.rules.options.disks, &self.short(key))
            || is_named(&self.rules.options.disks, &self.name(key))
    }

    fn unmatched(&self) -> Vec<String> {
        let disks: Vec<_> = self
            .named
            .iter()
            .map(|(key, _)| vec![self.short(*key), self.name(*key)])
            .collect();
        unmatched("--disk", &self.rules.options.disks, &disks)
    }
}

pub(super) fn report(rules: &DiskRules, input: &Input, mut partial: DiskPartial) -> Report {
    for disk in partial.names.iter().map(|(disk, _)| *disk) {
        // A disk in the state dump has a row even if its activity is unknown.
        partial.sums.disk(disk);
    }
    partial.sums.disks.sort_by_key(|disk| disk.key);
    let names = Names {
        rules,
        head: input.head(),
        named: (partial.names.iter())
            .map(|(disk, name)| (*disk, Some(name.value.clone())))
            .collect(),
    };
    let disks: Vec<&Disk> = partial
        .sums
        .disks
        .iter()
        .filter(|disk| names.shows(disk.key))
        .collect();
    if rules.ranges.is_some() {
        return frequencies(rules, &names, &disks);
    }
    let mut sections = vec![
        of_disks(&names, &disks),
        of_latencies(&names, &disks),
        of_kinds(&names, &disks),
        of_queues(&names, &disks),
        of_depths(rules, &names, &partial, &disks),
        of_threads(rules, &names, &partial),
        of_remaps(&names, &partial),
    ];
    sections.extend(lists(rules, &names, &partial));
    let groups = |by| groups(&names, &partial.people, &disks, by);
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        DISK,
        groups,
    ));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        head: input.head(),
        totals: totals(rules, &partial, &disks),
        sections,
        ranges: ranges(&disks),
        notes: names.unmatched(),
        ..Report::default()
    }
}

fn totals(rules: &DiskRules, partial: &DiskPartial, disks: &[&Disk]) -> Vec<Total> {
    let sum = |of: &dyn Fn(&Disk) -> u64| -> Value {
        disks.iter().map(|disk| of(disk)).sum::<u64>().into()
    };
    let is_shown = |key: DiskKey| disks.iter().any(|disk| disk.key == key);
    let open = partial
        .machine
        .requests
        .open_keys()
        .filter(|(key, _)| is_shown(*key));
    let replaced: u64 = disks.iter().map(|disk| disk.counts.replaced).sum();
    let unfinished = replaced + open.count() as u64;
    let done = |disk: &Disk| disk.with_data().latencies.summary().count();
    // The other end of a request may be on a CPU that was not recorded.
    let is_whole = disks
        .iter()
        .all(|disk| rules.recorded.is_whole(disk.key.trace));
    let known = |value: Value| if is_whole { value } else { Value::None };
    vec![
        Total::new("requests", "requests", sum(&done)).or_one("request"),
        Total::new("errors", "errors", sum(&|disk| disk.counts.errors)).or_one("error"),
        Total::new(
            "unfinished",
            "unfinished requests",
            known(unfinished.into()),
        )
        .or_one("unfinished request")
        .optional(),
        Total::new(
            "not_begun",
            "completions without a recorded issue",
            known(sum(&|disk| disk.counts.not_begun)),
        )
        .or_one("completion without a recorded issue")
        .optional(),
    ]
}

/// The disks with activity.
fn used<'a>(disks: &'a [&Disk]) -> impl Iterator<Item = &'a Disk> {
    let is_used = |disk: &Disk| {
        let counts = &disk.counts;
        let events = counts.errors + counts.requeues + counts.merged_bios + counts.merged_requests;
        let done = RequestKind::ALL
            .iter()
            .any(|kind| disk.of(*kind).latencies.summary().count() > 0);
        done || events + counts.sequences + counts.not_begun > 0
    };
    disks.iter().copied().filter(move |disk| is_used(disk))
}

fn of_disks(names: &Names<'_>, disks: &[&Disk]) -> Section {
    let row = |disk: &Disk| {
        let requests = disk.with_data();
        let bytes = |kind| Value::from(disk.of(kind).sectors.saturating_mul(SECTOR));
        let counts = &disk.counts;
        let number = |kind| disk.of(kind).latencies.summary().count();
        let mut row = vec![
            names.name(disk.key).as_str().into(),
            requests.latencies.summary().count().into(),
            requests.sectors.into(),
            bytes(RequestKind::Read),
            bytes(RequestKind::Write),
            bytes(RequestKind::Discard),
        ];
        let numbers = [
            number(RequestKind::Flush),
            counts.sequences,
            counts.merged_bios,
            counts.merged_requests,
            counts.parts,
            counts.requeues,
            counts.errors,
        ];
        row.extend(numbers.map(Value::from));
        let is_whole = names.rules.recorded.is_whole(disk.key.trace);
        row.push(is_whole.then_some(counts.not_begun).into());
        row
    };
    Section {
        key: "disks",
        title: "By disk".to_owned(),
        view: View::Stats,
        columns: columns_of_disks(),
        rows: used(disks).map(row).collect(),
        is_long: false,
        ..Section::default()
    }
}

fn columns_of_disks() -> Vec<Column> {
    let count = |key, title| Column::new(key, title, Unit::Count);
    vec![
        DISK,
        REQUESTS,
        count("sectors", "Sectors").left_out(3),
        READ,
        WRITTEN,
        DISCARDED,
        count("flushes", "Flushes").left_out(8),
        count("flush_sequences", "Sequences").left_out(1),
        count("merged_bios", "Merged").left_out(7),
        count("merged_requests", "Rq merged").left_out(4),
        count("in_parts", "In parts").left_out(5),
        count("requeues", "Requeued").left_out(6),
        count("errors", "Errors").left_out(10),
        count("not_begun", "Unmatched").optional().left_out(9),
    ]
}

/// A table of distributions.
fn distributions(
    (key, title): (&'static str, &str),
    about: &[Column],
    rows: impl IntoIterator<Item = (Vec<Value>, [Value; 10])>,
) -> Section {
    let rows = rows.into_iter().map(|(mut row, values)| {
        row.extend(values);
        row
    });
    Section {
        key,
        title: title.to_owned(),
        view: View::Stats,
        columns: about
            .iter()
            .copied()
            .chain(distribution_columns())
            .collect(),
        rows: rows.collect(),
        is_long: false,
        ..Section::default()
    }
}

fn of_latencies(names: &Names<'_>, disks: &[&Disk]) -> Section {
    let rows = disks.iter().filter_map(|disk| {
        let done = disk.with_data();
        let about = vec![names.name(disk.key).as_str().into()];
        (done.latencies.summary().count() > 0)
            .then(|| (about, distribution_values(&done.latencies)))
    });
    distributions(("latencies", "From issue to completion"), &[DISK], rows)
}

fn of_kinds(names: &Names<'_>, disks: &[&Disk]) -> Section {
    let all = disks
        .iter()
        .flat_map(|disk| RequestKind::ALL.map(|kind| (disk, kind, disk.of(kind))));
    let rows = all.filter(|(_, _, done)| done.latencies.summary().count() > 0);
    let rows = rows.map(|(disk, kind, done): (&&Disk, RequestKind, &Done)| {
        let about = vec![names.name(disk.key).as_str().into(), kind.name().into()];
        (about, distribution_values(&done.latencies))
    });
    distributions(
        ("kinds", "From issue to completion, by kind"),
        &[DISK, KIND],
        rows,
    )
}

fn of_queues(names: &Names<'_>, disks: &[&Disk]) -> Section {
    let rows = disks.iter().filter(|disk| disk.waits.summary().count() > 0);
    let rows = rows.map(|disk| {
        let about = vec![names.name(disk.key).as_str().into()];
        (about, distribution_values(&disk.waits))
    });
    distributions(("queue", "In the queue until issue"), &[DISK], rows)
}

fn of_depths(
    rules: &DiskRules,
    names: &Names<'_>,
    partial: &DiskPartial,
    disks: &[&Disk],
) -> Section {
    let range = names.head.begin.zip(names.head.end);
    let row = |disk: &&Disk| {
        let (begin, end) = range?;
        let level = partial
            .machine
            .depth(disk.key)?
            .clone()
            .within((begin.0, end.0), rules.selection.window)?;
        let is_known = rules.recorded.is_whole(disk.key.trace)
            && partial.lossy.binary_search(&disk.key.trace).is_err();
        let known = |value: Value| if is_known { value } else { Value::None };
        let busy = level.time - level.zero;
        let average = if level.time == 0 {
            0.0
        } else {
            level.area as f64 / level.time as f64
        };
        Some(vec![
            names.name(disk.key).as_str().into(),
            known(average.into()),
            known(level.max.into()),
            known(busy.into()),
            known(share(busy, level.time).into()),
        ])
    };
    Section {
        key: "depth",
        title: "Requests in flight".to_owned(),
        view: View::Stats,
        columns: vec![
            DISK,
            Column::new("average_depth", "Average", Unit::Number).optional(),
            Column::new("max_depth", "Max", Unit::Count).optional(),
            Column::new("busy_ns", "Busy", Unit::Duration).optional(),
            Column::new("utilization", "Utilization", Unit::Share).optional(),
        ],
        rows: disks.iter().filter_map(row).collect(),
        is_long: false,
        ..Section::default()
    }
}

fn of_threads(rules: &DiskRules, names: &Names<'_>, partial: &DiskPartial) -> Section {
    let mut rows: Vec<(Thread, Issues)> = Vec::new();
    for (thread, disks) in partial.sums.threads.entries() {
        let thread = partial.people.thread(thread);
        let shown = disks.iter().filter(|(disk, _)| names.shows(*disk));
        let sums = shown.fold(Issues::default(), |mut all, (_, sums)| {
            all.merge(sums);
            all
        });
        if sums.requests > 0 && rules.selection.threads.shows(&thread) {
            rows.push((thread, sums));
        }
    }
    let bytes = |sums: &Issues, kind: RequestKind| sums.bytes[kind as usize];
    rows.sort_by_key(|(thread, sums)| {
        let all = bytes(sums, RequestKind::Read).saturating_add(bytes(sums, RequestKind::Write));
        (Reverse((all, sums.requests)), thread.trace, thread.tid)
    });
    let row = |(thread, sums): (Thread, Issues)| {
        let bytes = [RequestKind::Read, RequestKind::Write, RequestKind::Discard]
            .map(|kind| bytes(&sums, kind).into());
        let mut row = vec![thread.into(), sums.requests.into()];
        row.extend::<[Value; 3]>(bytes);
        row
    };
    Section {
        key: "threads",
        title: "By thread that issued requests".to_owned(),
        view: View::Stats,
        columns: vec![THREAD, REQUESTS, READ, WRITTEN, DISCARDED],
        rows: rows.into_iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

fn of_remaps(names: &Names<'_>, partial: &DiskPartial) -> Section {
    let mut remaps = partial.sums.remaps.clone();
    remaps.retain(|(remap, _, _)| names.shows(remap.from) || names.shows(remap.to));
    remaps.sort_unstable();
    let row = |(remap, bios, bytes): (Remap, u64, u64)| {
        let name = |key| Value::Text(names.name(key));
        vec![name(remap.from), name(remap.to), bios.into(), bytes.into()]
    };
    Section {
        key: "remaps",
        title: "To other devices".to_owned(),
        view: View::Stats,
        columns: vec![
            Column::new("from", "From", Unit::Disk),
            Column::new("to", "To", Unit::Disk),
            Column::new("bios", "Bios", Unit::Count),
            Column::new("bytes", "Bytes", Unit::Bytes),
        ],
        rows: remaps.into_iter().map(row).collect(),
        is_long: false,
        ..Section::default()
    }
}

/// The slowest requests, and the log.
fn lists(rules: &DiskRules, names: &Names<'_>, partial: &DiskPartial) -> [Section; 2] {
    let people = &partial.people;
    let thread = |request: &Request| {
        let trace = request.disk.trace;
        let thread = request.thread.map(|tid| ThreadKey { trace, tid });
        thread.map(|thread| people.thread(thread))
    };
    let shows = |request: &Request| {
        let thread = thread(request).unwrap_or_default();
        names.shows(request.disk) && rules.selection.threads.shows(&thread)
    };
    let most = rules.options.views.top();
    let top =
        (partial.sums.disks.iter()).flat_map(|disk| disk.top.clone().into_sorted(rules.top()));
    let mut top: Vec<Request> = top.filter(shows).collect();
    top.sort_by_key(|request| {
        (
            Reverse(request.latency),
            request.issued,
            request.disk,
            request.place,
        )
    });
    top.truncate(most);
    let mut log = partial.sums.log.clone();
    log.retain(shows);
    log.sort_by_key(|request| (request.end(), request.issued, request.disk, request.place));
    let list = |key, title: &str, view, requests: &[Request]| Section {
        key,
        title: title.to_owned(),
        view,
        columns: vec![
            Column::new("issued_ns", "Issued", Unit::Time),
            Column::new("latency_ns", "Latency", Unit::Duration),
            DISK,
            KIND,
            Column::new("rwbs", "RWBS", Unit::Text).left_out(1),
            Column::new("sector", "Sector", Unit::Id)
                .optional()
                .left_out(2),
            Column::new("bytes", "Size", Unit::Bytes),
            THREAD.optional(),
        ],
        rows: requests
            .iter()
            .map(|request| one(names, request, thread(request)))
            .collect(),
        is_long: true,
        ..Section::default()
    };
    [
        list("slowest", "Slowest requests", View::Top, &top),
        list("log", "Requests", View::Log, &log),
    ]
}

fn one(names: &Names<'_>, request: &Request, thread: Option<Thread>) -> Vec<Value> {
    let has_data = request.place.sectors > 0;
    vec![
        Timestamp(request.issued).into(),
        request.latency.into(),
        Value::Text(names.name(request.disk)),
        request.kind().name().into(),
        Value::Text(request.rwbs.letters()),
        has_data.then_some(request.place.sector).into(),
        request.place.bytes().into(),
        thread.into(),
    ]
}

fn ranges(disks: &[&Disk]) -> Ranges {
    let range = |disk: &&Disk| {
        let done = disk.with_data();
        let summary = done.latencies.summary();
        Some((disk.key.to_name(), (summary.min()?, summary.max()?)))
    };
    disks.iter().filter_map(range).collect()
}

/// Latencies of requests with data.
fn groups(names: &Names<'_>, people: &People, disks: &[&Disk], by: By) -> Groups {
    let of_disk = |disk: &&Disk| {
        (
            Group::from(names.name(disk.key)),
            disk.with_data().latencies.powers(),
        )
    };
    let of_disks = || disks.iter().map(of_disk).filter(|of| of.1.count() > 0);
    match by {
        By::All => return groups::all(of_disks().map(|(_, powers)| powers)),
        By::Disk => {
            let mut groups: Groups = of_disks().collect();
            groups.sort_by(|a, b| a.0.name.cmp(&b.0.name));
            return groups;
        }
        _ => {}
    }
    let mut threads: BTreeMap<ThreadKey, Powers> = BTreeMap::new();
    for (thread, latencies) in disks.iter().flat_map(|disk| disk.threads.entries()) {
        let own = threads.entry(thread).or_default();
        own.merge(&latencies.powers());
    }
    let threads = threads.into_iter();
    let threads = threads.map(|(key, powers)| (people.thread(key), powers));
    let filter = &names.rules.selection.threads;
    OfThreads {
        head: &names.head,
        people,
        threads: threads.filter(|(thread, _)| filter.shows(thread)).collect(),
    }
    .groups(by)
}

/// The report of the second pass: histograms of latencies.
fn frequencies(rules: &DiskRules, names: &Names<'_>, disks: &[&Disk]) -> Report {
    let ranges = rules.ranges.iter().flatten();
    let groups = ranges.filter_map(|(key, range)| {
        let disk = disks.iter().find(|disk| disk.key == *key)?;
        Some((names.name(*key), *range, &disk.bins))
    });
    let mut groups: Vec<_> = groups.collect();
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    Report {
        head: names.head.clone(),
        sections: vec![tracebraid_tables::frequencies(DISK, groups)],
        ..Report::default()
    }
}
