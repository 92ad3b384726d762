//! Builds the report from the sums.

use std::cmp::Reverse;

use tracebraid_ctf::clock::Timestamp;

use crate::groups::{self, Groups};
use crate::net::connections::Sum;
use crate::net::interface::{Interface, InterfaceKey, Passed};
use crate::net::{GROUPINGS, NetPartial, NetRules};
use tracebraid_follow::{By, Head, Input, Thread};
use tracebraid_statistics::Ranges;
use tracebraid_tables::{
    Column, Report, Section, Total, Unit, Value, View, distribution_columns, distribution_values,
    is_named, unmatched,
};

const INTERFACE: Column = Column::new("interface", "Interface", Unit::Interface);
const THREAD: Column = Column::new("thread", "Thread", Unit::Thread);
const PACKETS: Column = Column::new("packets", "Packets", Unit::Count);
const BYTES: Column = Column::new("bytes", "Bytes", Unit::Bytes);

/// Names of interfaces, and the selection by name.
struct Names<'a> {
    rules: &'a NetRules,
    head: Head,
}

impl Names<'_> {
    /// The interface's name, with its host if there are several.
    fn name(&self, key: InterfaceKey) -> String {
        self.of_host(key.trace, key.name.text())
    }

    fn of_host(&self, trace: u32, name: String) -> String {
        self.head.of_host(trace, name)
    }

    fn shows(&self, key: InterfaceKey) -> bool {
        is_named(&self.rules.options.interfaces, &key.name.text())
            || is_named(&self.rules.options.interfaces, &self.name(key))
    }

    fn unmatched(&self, partial: &NetPartial) -> Vec<String> {
        let interfaces = partial.sums.interfaces.iter();
        let names: Vec<_> = interfaces
            .map(|interface| vec![interface.key.name.text(), self.name(interface.key)])
            .collect();
        unmatched("--interface", &self.rules.options.interfaces, &names)
    }
}

pub(super) fn report(rules: &NetRules, input: &Input, partial: &NetPartial) -> Report {
    let head = input.head();
    let names = Names { rules, head };
    let mut interfaces: Vec<&Interface> = partial.sums.interfaces.iter().collect();
    interfaces.retain(|interface| names.shows(interface.key));
    interfaces.sort_by_key(|interface| interface.key);
    if rules.ranges.is_some() {
        return frequencies(rules, &names, &interfaces);
    }
    let mut sections = vec![
        of_interfaces(&names, &interfaces),
        of_durations(&names, &interfaces),
        of_threads(rules, &names, partial),
        of_connections(&names, partial),
        of_ports(&names, partial),
    ];
    sections.extend(lists(rules, &names, partial, &interfaces));
    sections.extend(groups::section(
        &rules.options.views,
        GROUPINGS,
        INTERFACE,
        |by| {
            let of = |of: &&Interface| (names.name(of.key).into(), of.durations.powers());
            let mut groups: Groups = interfaces.iter().map(of).collect();
            groups.retain(|(_, powers)| powers.count() > 0);
            groups.sort_by(|a, b| a.0.name.cmp(&b.0.name));
            match by {
                By::Interface => groups,
                _ => groups::all(groups.iter().map(|(_, powers)| powers)),
            }
        },
    ));
    sections.retain(|section| rules.options.views.shows(section.view));
    Report {
        head: input.head(),
        totals: totals(partial, &interfaces),
        sections,
        ranges: ranges(&interfaces),
        notes: names.unmatched(partial),
        ..Report::default()
    }
}

fn whole(sum: u128) -> Value {
    u64::try_from(sum).unwrap_or(u64::MAX).into()
}

fn totals(partial: &NetPartial, interfaces: &[&Interface]) -> Vec<Total> {
    let sum = |of: &dyn Fn(&Interface) -> u64| -> Value {
        interfaces
            .iter()
            .map(|interface| of(interface))
            .sum::<u64>()
            .into()
    };
    let ports = |of: &dyn Fn(&super::sums::PortCounts) -> u64| -> Value {
        partial
            .sums
            .ports
            .iter()
            .map(|(_, counts)| of(counts))
            .sum::<u64>()
            .into()
    };
    vec![
        Total::new(
            "sent",
            "packets sent",
            sum(&|interface| interface.sent.count()),
        )
        .or_one("packet sent"),
        Total::new(
            "received",
            "packets received",
            sum(&|interface| interface.received.count()),
        )
        .or_one("packet received"),
        Total::new(
            "dropped",
            "packets dropped",
            sum(&|interface| interface.sent_drops + interface.received_drops + interface.errors),
        )
        .or_one("packet dropped"),
        Total::new(
            "reason_drops",
            "with a drop reason",
            sum(&|interface| interface.reason_drops + interface.errors),
        ),
        Total::new(
            "retransmissions",
            "retransmissions",
            ports(&|counts| counts.retransmissions),
        )
        .or_one("retransmission"),
    ]
}

fn of_interfaces(names: &Names<'_>, interfaces: &[&Interface]) -> Section {
    let row = |interface: &&Interface| {
        let mut row = vec![Value::Text(names.name(interface.key))];
        for lengths in [&interface.sent, &interface.received] {
            row.push(lengths.count().into());
            row.push(whole(lengths.sum()));
            row.push(lengths.mean().into());
            row.push(lengths.max().into());
        }
        let counts = [
            interface.sent_drops,
            interface.errors,
            interface.busy,
            interface.received_drops,
            interface.reason_drops,
        ];
        row.extend(counts.map(Value::from));
        row
    };
    let count = |key, title| Column::new(key, title, Unit::Count);
    let bytes = |key, title| Column::new(key, title, Unit::Bytes);
    Section {
        key: "interfaces",
        title: "By interface".to_owned(),
        view: View::Stats,
        columns: vec![
            INTERFACE,
            count("sent_packets", "Sent"),
            bytes("sent_bytes", "Sent bytes"),
            bytes("sent_average_bytes", "Sent avg")
                .optional()
                .left_out(5),
            bytes("sent_max_bytes", "Sent max").optional().left_out(3),
            count("received_packets", "Received"),
            bytes("received_bytes", "Recv bytes"),
            bytes("received_average_bytes", "Recv avg")
                .optional()
                .left_out(6),
            bytes("received_max_bytes", "Recv max")
                .optional()
                .left_out(4),
            count("sent_drops", "Tx drops").left_out(8),
            count("errors", "Tx errors").left_out(2),
            count("busy", "Tx busy").left_out(1),
            count("received_drops", "Rx drops").left_out(7),
            count("reason_drops", "Reasons").left_out(1),
        ],
        rows: interfaces.iter().map(row).collect(),
        is_long: false,
        ..Section::default()
    }
}

fn of_durations(names: &Names<'_>, interfaces: &[&Interface]) -> Section {
    let timed = interfaces
        .iter()
        .filter(|interface| interface.durations.summary().count() > 0);
    let row = |interface: &&Interface| {
        let mut row = vec![Value::Text(names.name(interface.key))];
        row.extend(distribution_values(&interface.durations));
        row
    };
    let mut columns = vec![INTERFACE];
    columns.extend(distribution_columns());
    Section {
        key: "durations",
        title: "From the queue to the driver".to_owned(),
        view: View::Stats,
        columns,
        rows: timed.map(row).collect(),
        is_long: false,
        ..Section::default()
    }
}

/// The senders: threads, and softirqs whichever thread they interrupt.
fn of_threads(rules: &NetRules, names: &Names<'_>, partial: &NetPartial) -> Section {
    let all = |sums: &[(InterfaceKey, Sum)]| {
        let mut all = Sum::default();
        let shown = sums.iter().filter(|(key, _)| names.shows(*key));
        shown.for_each(|(_, sum)| all.add(*sum));
        all
    };
    let filter = &rules.selection.threads;
    let mut rows: Vec<(Option<Thread>, Sum)> = Vec::new();
    for (thread, sums) in partial.sums.threads.entries() {
        let thread = partial.people.thread(thread);
        if filter.shows(&thread) {
            rows.push((Some(thread), all(sums)));
        }
    }
    if filter.shows(&Thread::default()) {
        rows.push((None, all(&partial.sums.softirqs)));
    }
    rows.retain(|(_, sum)| sum.packets > 0);
    let order = |thread: &Option<Thread>| thread.as_ref().map(|thread| (thread.trace, thread.tid));
    rows.sort_by_key(|(thread, sum)| (Reverse((sum.bytes, sum.packets)), order(thread)));
    let row = |(thread, sum): (Option<Thread>, Sum)| {
        let context = match thread.as_ref().map(|thread| thread.tid) {
            None => "softirq",
            Some(None) => "unknown",
            Some(Some(0)) => "idle",
            Some(Some(_)) => "thread",
        };
        vec![
            thread.into(),
            context.into(),
            sum.packets.into(),
            sum.bytes.into(),
        ]
    };
    Section {
        key: "threads",
        title: "By thread that queued packets".to_owned(),
        view: View::Stats,
        columns: vec![
            THREAD.optional(),
            Column::new("context", "Context", Unit::Text),
            PACKETS,
            BYTES,
        ],
        rows: rows.into_iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

fn of_connections(names: &Names<'_>, partial: &NetPartial) -> Section {
    let mut rows: Vec<_> = partial.sums.connections.entries().to_vec();
    let bytes = |ways: &[super::connections::Way; 2]| ways[0].sum().bytes + ways[1].sum().bytes;
    rows.sort_by_key(|(key, connection)| (Reverse(bytes(&connection.ways)), *key));
    let row = |(key, connection): &(
        super::connections::ConnectionKey,
        super::connections::Connection,
    )| {
        let [there, back] = connection.ways.map(|way| way.sum());
        vec![
            Value::Text(names.of_host(key.trace, key.a.text())),
            Value::Text(key.b.text()),
            there.packets.into(),
            there.bytes.into(),
            back.packets.into(),
            back.bytes.into(),
            connection.resets().into(),
        ]
    };
    let count = |key, title| Column::new(key, title, Unit::Count);
    Section {
        key: "connections",
        title: "By TCP connection".to_owned(),
        view: View::Stats,
        columns: vec![
            Column::new("a", "A", Unit::Text),
            Column::new("b", "B", Unit::Text),
            count("a_to_b_packets", "A to B").left_out(2),
            Column::new("a_to_b_bytes", "Bytes", Unit::Bytes),
            count("b_to_a_packets", "B to A").left_out(3),
            Column::new("b_to_a_bytes", "Bytes", Unit::Bytes),
            count("resets", "Resets").left_out(1),
        ],
        rows: rows.iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

fn of_ports(names: &Names<'_>, partial: &NetPartial) -> Section {
    let mut rows = partial.sums.ports.clone();
    rows.sort_by_key(|(ports, counts)| (Reverse(counts.retransmissions), *ports));
    let row = |(ports, counts): (super::Ports, super::sums::PortCounts)| {
        vec![
            Value::Text(names.of_host(ports.trace, ports.own.to_string())),
            u64::from(ports.other).into(),
            counts.retransmissions.into(),
            counts.resets_sent.into(),
            counts.resets_received.into(),
        ]
    };
    let count = |key, title| Column::new(key, title, Unit::Count);
    Section {
        key: "ports",
        title: "TCP, by ports".to_owned(),
        view: View::Stats,
        columns: vec![
            Column::new("own_port", "Own", Unit::Text),
            Column::new("other_port", "Other", Unit::Id),
            count("retransmissions", "Retransmissions"),
            count("resets_sent", "Resets sent"),
            count("resets_received", "Resets received"),
        ],
        rows: rows.into_iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    }
}

const PASSED: [Column; 5] = [
    Column::new("queued_ns", "Queued", Unit::Time),
    Column::new("duration_ns", "Duration", Unit::Duration),
    INTERFACE,
    Column::new("bytes", "Size", Unit::Bytes),
    Column::new("buffer", "Buffer", Unit::Text).left_out(1),
];

/// The slowest sent packets, and the log of all.
fn lists(
    rules: &NetRules,
    names: &Names<'_>,
    partial: &NetPartial,
    interfaces: &[&Interface],
) -> [Section; 2] {
    let most = rules.options.views.top();
    let top = interfaces
        .iter()
        .flat_map(|interface| interface.top.clone().into_sorted(most));
    let mut top: Vec<Passed> = top.collect();
    top.sort_by_key(|passed| {
        (
            Reverse(passed.duration),
            passed.queued,
            passed.interface,
            passed.buffer,
        )
    });
    top.truncate(most);
    let mut log = partial.sums.log.clone();
    log.retain(|passed| names.shows(passed.interface));
    log.sort_by_key(|passed| (passed.end(), passed.queued, *passed));
    let row = |passed: &Passed| {
        vec![
            Timestamp(passed.queued).into(),
            passed.duration.into(),
            Value::Text(names.name(passed.interface)),
            passed.bytes.into(),
            Value::Text(format!("{:#x}", passed.buffer)),
        ]
    };
    let list = |key, title: &str, view, passed: &[Passed]| Section {
        key,
        title: title.to_owned(),
        view,
        columns: PASSED.to_vec(),
        rows: passed.iter().map(row).collect(),
        is_long: true,
        ..Section::default()
    };
    [
        list(
            "slowest",
            "Slowest packets, from the queue to the driver",
            View::Top,
            &top,
        ),
        list("log", "Packets sent", View::Log, &log),
    ]
}

fn ranges(interfaces: &[&Interface]) -> Ranges {
    let range = |interface: &&Interface| {
        let summary = interface.durations.summary();
        Some((interface.key.to_name(), (summary.min()?, summary.max()?)))
    };
    interfaces.iter().filter_map(range).collect()
}

/// The report of the second pass: histograms of durations.
fn frequencies(rules: &NetRules, names: &Names<'_>, interfaces: &[&Interface]) -> Report {
    let ranges = rules.ranges.iter().flatten();
    let groups = ranges.filter_map(|(key, range)| {
        let interface = interfaces.iter().find(|interface| interface.key == *key)?;
        Some((names.name(*key), *range, &interface.bins))
    });
    let mut groups: Vec<_> = groups.collect();
    groups.sort_by(|a, b| a.0.cmp(&b.0));
    Report {
        head: names.head.clone(),
        sections: vec![tracebraid_tables::frequencies(INTERFACE, groups)],
        ..Report::default()
    }
}
