//! Interrupts and softirqs compared with an independent model and with lttng-analyses.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Selection, Views};
use tracebraid_language::glob::Glob;
use tracebraid_models::law::{ALL, Asked, SMALL, any_tree, as_in_one_piece};
use tracebraid_models::model_irq::{Found, Handled, find};
use tracebraid_models::naming::{Maker, TEXT, Value};
use tracebraid_models::synthetic::{Random, Scripted, Shape, scripted};
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::irq::{IrqAnalysis, IrqOptions};
use tracebraid_tables::{Report, View};

fn report(set: &TraceSet, selection: Selection, options: IrqOptions) -> Report {
    let analysis = IrqAnalysis::with(set, selection, options);
    let options = Options {
        threads: 2,
        chunk_bytes: 100_000,
        ..Options::default()
    };
    fold(set, &analysis, options, &Control::default())
        .expect("not cancelled")
        .report
}

fn json(set: &TraceSet, selection: Selection, options: IrqOptions) -> Json {
    serde_json::to_value(report(set, selection, options)).expect("a report can be serialized")
}

fn rows<'a>(report: &'a Json, section: &str) -> &'a [Json] {
    report[section].as_array().expect("a list")
}

fn int(row: &Json, field: &str) -> u64 {
    row[field]
        .as_u64()
        .unwrap_or_else(|| panic!("{field} of {row}"))
}

/// Sums of some durations: number, sum, least, greatest.
fn sums(values: impl Iterator<Item = u64>) -> [u64; 4] {
    values.fold([0, 0, u64::MAX, 0], |[count, sum, min, max], value| {
        [count + 1, sum + value, min.min(value), max.max(value)]
    })
}

fn told(row: &Json) -> [u64; 4] {
    if int(row, "count") == 0 {
        return [0, 0, u64::MAX, 0];
    }
    ["count", "total_ns", "min_ns", "max_ns"].map(|field| int(row, field))
}

fn of<'a>(found: &'a Found, kind: &'a str, number: i64) -> impl Iterator<Item = &'a Handled> {
    let wanted = move |handled: &&Handled| handled.kind == kind && handled.number == number;
    found.handled.iter().filter(wanted)
}

/// Compares every number of the report that the model has. Returns the number of handlers.
fn as_modelled(what: &str, set: &TraceSet, asked: Asked) -> usize {
    let found = find(set, asked);
    let report = json(set, asked.selection(), asked.views().into());
    let what = format!("{what}, {asked:?}");
    let met = handlers_are_as_modelled(&what, &report, &found);
    raises_are_as_modelled(&what, &report, &found);
    for row in rows(&report, "cpus") {
        let cpu = int(row, "cpu") as u32;
        let expected = found.cpus.get(&cpu).copied().unwrap_or_default();
        let times = (int(row, "interrupt_ns"), int(row, "softirq_ns"));
        assert_eq!(times, expected, "{what}: CPU {cpu}");
    }
    assert_eq!(
        int(&report["total"], "unfinished"),
        found.unfinished,
        "{what}"
    );
    assert_eq!(
        int(&report["total"], "unknown_begin"),
        found.orphans,
        "{what}"
    );
    let log: Vec<_> = rows(&report, "log")
        .iter()
        .map(|row| row["begin_ns"].as_i64())
        .collect();
    let mut expected = found.handled.clone();
    expected.sort_by_key(|handled| (handled.end, handled.cpu, std::cmp::Reverse(handled.begin)));
    let expected: Vec<_> = expected.iter().map(|handled| Some(handled.begin)).collect();
    assert!(log == expected, "{what}: the log");
    met
}

/// Compares the tables of handlers. Returns the number of handlers.
fn handlers_are_as_modelled(what: &str, report: &Json, found: &Found) -> usize {
    let mut met = 0;
    for (section, kind) in [
        ("interrupts", "irq"),
        ("softirqs", "softirq"),
        ("functions", "hrtimer"),
        ("functions", "timer"),
    ] {
        for row in rows(report, section)
            .iter()
            .filter(|row| row["kind"] == kind || section == "softirqs")
        {
            let number = match kind {
                "hrtimer" | "timer" => address(row["name"].as_str().expect("a name")),
                _ => row["number"].as_i64().expect("a number"),
            };
            let expected = sums(of(found, kind, number).map(Handled::duration));
            assert_eq!(told(row), expected, "{what}: {kind} {number}");
            met += expected[0] as usize;
            if kind == "irq" {
                let names = found.names[&number].join(", ");
                assert_eq!(row["name"], names.as_str(), "{what}");
            }
        }
    }
    assert_eq!(
        met,
        found.handled.len(),
        "{what}: all handlers are in the tables"
    );
    met
}

/// Parses a 64-bit address from its hexadecimal form in reports.
fn address(text: &str) -> i64 {
    let digits = text.trim_start_matches("0x");
    i64::from_str_radix(digits, 16)
        .or_else(|_| u64::from_str_radix(digits, 16).map(|address| address as i64))
        .expect("an address")
}

fn raises_are_as_modelled(what: &str, report: &Json, found: &Found) {
    let mut raises = 0;
    for row in rows(report, "raises") {
        let number = row["number"].as_i64().expect("a number");
        let latencies = of(found, "softirq", number).filter_map(Handled::latency);
        assert_eq!(told(row), sums(latencies), "{what}: latency of {number}");
        let raised = found.raises.get(&number).copied().unwrap_or(0);
        assert_eq!(int(row, "raises"), raised, "{what}: raises of {number}");
        raises += raised;
    }
    assert_eq!(raises, found.raises.values().sum::<u64>(), "{what}");
}

#[test]
fn recorded_traces_are_as_modelled() {
    // The number of ends that other tools count, except for the trace with the most losses.
    for (name, handlers) in [
        ("kernel-mix-small", Some(12_977)),
        ("kernel-ust-requests", Some(81_080)),
        ("kernel-discarded", None),
        ("many-threads", Some(6_195)),
        ("twohost-server", Some(48_466)),
        ("synctraces/scp_src", Some(28_654)),
        ("synctraces/scp_dest", Some(21_633)),
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let met = as_modelled(name, &set, ALL);
        assert!(
            handlers.is_none_or(|handlers| handlers == met),
            "{name}: {met}"
        );
        let (begin, end) = tracebraid_models::events::extent(&set);
        let third = (end - begin) / 3;
        let asked = Asked {
            range: (begin + third, end - third),
            cpus: Some(&[0, 1, 2]),
        };
        as_modelled(name, &set, asked);
    }
}

/// Expected values, computed by hand from the events: vector, handlers, total duration, greatest
/// latency.
#[test]
fn softirqs_of_two_traces() {
    for (name, expected) in [
        (
            "many-threads",
            &[
                (1, 1019, 630_904, 14_055),
                (3, 8, 84_875, 1109),
                (4, 141, 745_399, 1741),
                (7, 778, 1_963_055, 14_153),
                (9, 4096, 11_726_510, 132_483),
            ][..],
        ),
        (
            "kernel-ust-requests",
            &[
                (1, 5336, 22_865_934, 546_406),
                (3, 8088, 155_575_080, 826_850),
                (7, 16_491, 79_938_044, 1_061_296),
                (9, 1070, 2_950_020, 709_686),
            ],
        ),
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let report = json(&set, Selection::default(), IrqOptions::default());
        let found: Vec<_> = rows(&report, "softirqs")
            .iter()
            .zip(rows(&report, "raises"))
            .map(|(row, raises)| {
                (
                    int(row, "number"),
                    int(row, "count"),
                    int(row, "total_ns"),
                    int(raises, "max_ns"),
                )
            })
            .collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// A simulated CPU with nested handlers.
struct Cpu {
    open: Vec<(&'static str, i64)>,
}

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 1,
    steps: 0,
    packet: 700,
    told_memory: false,
    ties: true,
    ..Shape::PLAIN
};

const NAMES: [&str; 4] = ["disk", "net", "disk", "serial"];

fn event(
    random: &mut Random,
    cpu: &mut Cpu,
) -> (&'static str, Vec<(&'static str, u32, Value<'static>)>) {
    let begin = |cpu: &mut Cpu, kind, key| cpu.open.push((kind, key));
    let vector = [1, 3, 7, 9][random.below(4) as usize];
    match random.below(10) {
        0 | 1 => ("irq_softirq_raise", vec![("vec", 32, Value::Int(vector))]),
        2 if cpu.open.len() < 5 => {
            let irq = random.below(5) as i64;
            begin(cpu, "irq", irq);
            let name = NAMES[(irq as usize + random.below(2) as usize) % 4];
            (
                "irq_handler_entry",
                vec![
                    ("irq", 32, Value::Int(irq)),
                    ("name", TEXT, Value::Text(name)),
                ],
            )
        }
        3 | 4 if cpu.open.is_empty() => {
            begin(cpu, "softirq", vector);
            ("irq_softirq_entry", vec![("vec", 32, Value::Int(vector))])
        }
        5 if cpu.open.len() < 5 => {
            let timer = random.below(3) as i64;
            begin(cpu, "hrtimer", timer);
            let fields = vec![
                ("hrtimer", 64, Value::Int(timer)),
                ("now", 64, Value::Int(0)),
                ("function", 64, Value::Int(-4096 + timer % 2)),
            ];
            ("timer_hrtimer_expire_entry", fields)
        }
        _ => match cpu.open.pop() {
            Some(("irq", irq)) => (
                "irq_handler_exit",
                vec![("irq", 32, Value::Int(irq)), ("ret", 32, Value::Int(1))],
            ),
            Some(("softirq", vector)) => {
                ("irq_softirq_exit", vec![("vec", 32, Value::Int(vector))])
            }
            Some((_, timer)) => (
                "timer_hrtimer_expire_exit",
                vec![("hrtimer", 64, Value::Int(timer))],
            ),
            None => ("irq_softirq_raise", vec![("vec", 32, Value::Int(vector))]),
        },
    }
}

fn with_trace(seed: u64, shape: Shape, then: impl FnOnce(&TraceSet)) {
    let mut random = Random::new(seed);
    let mut cpus: Vec<Cpu> = (0..shape.cpus).map(|_| Cpu { open: Vec::new() }).collect();
    let mut time = 1000;
    let events: Vec<Scripted<'_>> = (0..12_000)
        .map(|_| {
            time += random.below(20);
            let cpu = random.below(shape.cpus);
            let (name, fields) = event(&mut random, &mut cpus[cpu as usize]);
            (cpu, time, Maker { tid: 1, pid: 1 }, name, fields)
        })
        .collect();
    let (directory, set) = scripted(shape, events);
    then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

#[test]
fn made_up_interrupts_are_as_modelled_and_the_law_holds() {
    let lossy = Shape {
        silent_losses: 60,
        ..SHAPE
    };
    let very_lossy = Shape {
        lost_packets: 80,
        counted_losses: 80,
        ..lossy
    };
    let part = Asked {
        range: (5000 + 40_000, 5000 + 90_000),
        ..ALL
    };
    let two_cpus = Asked {
        cpus: Some(&[0, 2]),
        ..part
    };
    for seed in 0..5 {
        for (what, shape) in [
            ("whole", SHAPE),
            ("lossy", lossy),
            ("very lossy", very_lossy),
        ] {
            with_trace(seed, shape, |set| {
                for asked in [ALL, part, two_cpus] {
                    let met = as_modelled(&format!("{what}, seed {seed}"), set, asked);
                    assert!(met > 300, "{what}: {met}");
                    as_in_one_piece::<IrqAnalysis>(what, set, asked, SMALL);
                }
                any_tree::<IrqAnalysis>(set, seed);
            });
        }
    }
}

#[test]
fn choosing_interrupts_and_lengths() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let globs = |names: &[&str]| names.iter().map(|name| Glob::new(name)).collect::<Vec<_>>();
    let chosen = |irqs: &[&str], softirqs: &[&str], min| {
        let views = Views {
            limits: tracebraid_follow::Limits { min, max: None },
            ..Views::default()
        };
        let options = IrqOptions {
            interrupts: globs(irqs),
            softirqs: globs(softirqs),
            ..views.into()
        };
        json(&set, Selection::default(), options)
    };
    let names = |report: &Json, section: &str| -> Vec<String> {
        let name = |row: &Json| row["name"].as_str().expect("a name").to_owned();
        rows(report, section).iter().map(name).collect()
    };
    let hard = chosen(&["virtio1-*", "40"], &[], None);
    assert_eq!(names(&hard, "interrupts").len(), 5);
    assert!(names(&hard, "softirqs").is_empty() && names(&hard, "functions").is_empty());
    let soft = chosen(&[], &["net_rx", "NET_RX", "1"], None);
    assert_eq!(names(&soft, "softirqs"), ["TIMER", "NET_RX"]);
    assert!(names(&soft, "interrupts").is_empty());
    assert!(
        rows(&soft, "longest")
            .iter()
            .all(|row| row["kind"] == "softirq")
    );
    assert_eq!(rows(&soft, "longest").len(), 20);
    let long = chosen(&["*"], &["*"], Some(500_000));
    let least = rows(&long, "interrupts")
        .iter()
        .chain(rows(&long, "softirqs"))
        .map(|row| int(row, "min_ns"));
    assert!(least.min().is_some_and(|least| least >= 500_000));
    // The time that CPUs spend does not depend on the selection.
    assert_eq!(rows(&long, "cpus"), rows(&soft, "cpus"));
}

const ORACLES: [&str; 6] = [
    "kernel-mix-small",
    "kernel-ust-requests",
    "kernel-discarded",
    "many-threads",
    "twohost-client",
    "twohost-server",
];

fn tables<'a>(results: &'a Json, class: &str) -> Vec<&'a Json> {
    let is_it = |table: &&Json| table["class"] == class || table["class"]["inherit"] == class;
    results["results"]
        .as_array()
        .expect("tables")
        .iter()
        .filter(is_it)
        .collect()
}

/// Every row of irqstats: number, name, count, minimum, average, maximum, standard deviation.
#[test]
fn statistics_are_those_of_lttng_analyses() {
    let mut compared = BTreeMap::new();
    for name in ORACLES {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let Some(results) = oracle(name, "lttng-irqstats.mi.json") else {
            continue;
        };
        let report = json(&set, Selection::default(), IrqOptions::default());
        let (ours, theirs) = (rows(&report, "interrupts"), tables(&results, "hard-stats"));
        let theirs = theirs[0]["data"].as_array().expect("rows");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            let value = |column: usize| &theirs[column]["value"];
            let what = format!("{name}: {ours} and {theirs}");
            assert_eq!(ours["number"], theirs[0]["nr"], "{what}");
            assert_eq!(ours["name"], theirs[0]["name"], "{what}");
            assert_eq!(&ours["count"], value(1), "{what}");
            assert_eq!(&ours["min_ns"], value(2), "{what}");
            assert_eq!(&ours["max_ns"], value(4), "{what}");
            // Its arithmetic differs in the last digits.
            for (field, column) in [("average_ns", 3), ("deviation_ns", 5)] {
                match (ours[field].as_f64(), value(column).as_f64()) {
                    (Some(ours), Some(theirs)) => {
                        assert!((ours - theirs).abs() <= theirs * 1e-12, "{what}")
                    }
                    (ours, theirs) => assert_eq!(ours, theirs, "{what}"),
                }
            }
        }
        compared.insert(name, ours.len());
    }
    let expected = [14, 12, 8, 3, 8, 10];
    for (name, expected) in ORACLES.iter().zip(expected) {
        assert!(
            compared.get(name).is_none_or(|&rows| rows == expected),
            "{name}"
        );
    }
}

/// Every bin of irqfreq.
#[test]
fn frequencies_are_those_of_lttng_analyses() {
    for name in ORACLES {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let Some(results) = oracle(name, "lttng-irqfreq.mi.json") else {
            continue;
        };
        let views = vec![View::Freq];
        let of = |ranges| Views {
            views: views.clone(),
            ranges,
            ..Views::default()
        };
        let first = report(&set, Selection::default(), of(None).into());
        let report = json(&set, Selection::default(), of(Some(first.ranges)).into());
        let bins = rows(&report, "distribution");
        let mut compared = 0;
        for table in tables(&results, "freq") {
            let title = table["class"]["title"].as_str().expect("a title");
            let inside = title.split(['[', ']']).nth(1).expect("a name and a number");
            let (irq, number) = inside
                .trim_end_matches(')')
                .rsplit_once(" (")
                .expect("both");
            let label = format!("irq {number} {irq}");
            let ours: Vec<_> = bins
                .iter()
                .filter(|row| row["name"] == label.as_str())
                .collect();
            let theirs = table["data"].as_array().expect("rows");
            assert_eq!(ours.len(), theirs.len(), "{name}: {label}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                let what = format!("{name}, {label}: {ours} and {theirs}");
                for (field, column) in [("from_ns", 0), ("to_ns", 1)] {
                    let (ours, theirs) = (ours[field].as_f64(), theirs[column]["value"].as_f64());
                    let (ours, theirs) = (ours.expect("a number"), theirs.expect("a number"));
                    assert!((ours - theirs).abs() <= theirs * 1e-9, "{what}");
                }
                assert_eq!(ours["count"], theirs[2]["value"], "{what}");
            }
            compared += 1;
        }
        assert!(compared >= 3, "{name}");
    }
}
