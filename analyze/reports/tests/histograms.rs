//! Histograms of logarithmic buckets: they count what the log lists, by each group.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_follow::{By, KernelAnalysis, View, Views};
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::disk::DiskAnalysis;
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::irq::IrqAnalysis;
use tracebraid_reports::memory::MemoryAnalysis;
use tracebraid_reports::net::NetAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;

use tracebraid_models::law::{ALL, folded};
use tracebraid_models::synthetic::{Shape, trace};
use tracebraid_models::traces::kernel_trace;

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 12_000,
    lost_packets: 10,
    ties: true,
    ..Shape::PLAIN
};

/// Number of values by group and least value of a bucket; without empty buckets.
type Counts = BTreeMap<(String, u64), u64>;

/// Name of the group and value.
type Sample = (String, u64);

fn report<A>(set: &TraceSet, views: &[View], by: &[By]) -> Json
where
    A: KernelAnalysis<Options: From<Views>>,
{
    let views = Views {
        views: views.to_vec(),
        by: by.to_vec(),
        ..Views::default()
    };
    let analysis = A::with(set, ALL.selection(), views.into());
    serde_json::from_str(&folded(set, &analysis, (1, u64::MAX))).expect("JSON")
}

fn rows<'a>(report: &'a Json, list: &str) -> impl Iterator<Item = &'a Json> + use<'a> {
    report[list].as_array().into_iter().flatten()
}

fn number(row: &Json, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"))
}

/// The histograms of a report. The buckets of each reach from that of its least to that of its
/// greatest value.
fn histograms(report: &Json, column: &str, from: &str) -> Counts {
    let rows: Vec<&Json> = rows(report, "distribution").collect();
    for group in rows.chunk_by(|a, b| a[column] == b[column]) {
        let ends = [group.first(), group.last()].into_iter().flatten();
        for row in ends {
            assert!(number(row, "count") > 0, "{row}");
        }
        for pair in group.windows(2).filter(|_| from == "from_ns") {
            assert_eq!(pair[0]["to_ns"], pair[1]["from_ns"]);
        }
        for row in group.iter().filter(|_| from == "from_ns") {
            let (from, to) = (number(row, "from_ns"), number(row, "to_ns"));
            assert!(from == 0 && to == 1 || from.is_power_of_two() && to == 2 * from);
        }
    }
    let counted = rows.iter().filter(|row| number(row, "count") > 0);
    let count = |row: &&&Json| {
        let name = row[column].as_str().expect("a name").to_owned();
        ((name, number(row, from)), number(row, "count"))
    };
    counted.map(|row| count(&row)).collect()
}

fn counted(samples: impl IntoIterator<Item = Sample>) -> Counts {
    let mut counts = Counts::new();
    for (name, value) in samples {
        let from = match value {
            0 => 0,
            value => 1 << value.ilog2(),
        };
        *counts.entry((name, from)).or_default() += 1;
    }
    counts
}

/// The name of a thread in a row.
fn thread(row: &Json) -> String {
    let name = row["name"].as_str().unwrap_or("?");
    match row["tid"].as_i64() {
        Some(tid) => format!("{name} ({tid})"),
        None => "unknown thread".to_owned(),
    }
}

/// The id of the process of a row's thread.
fn pid(row: &Json) -> String {
    match (row["pid"].as_i64(), row["tid"].as_i64()) {
        (Some(pid), _) => format!("({pid})"),
        (None, Some(tid)) => format!("(tid {tid})"),
        (None, None) => "unknown thread".to_owned(),
    }
}

/// The same without the names of groups, of which only their ids are kept.
fn by_id(counts: Counts) -> Counts {
    let id = |name: String| {
        name.rfind(" (")
            .map_or(name.clone(), |at| name[at + 1..].to_owned())
    };
    let counts = counts.into_iter();
    counts
        .map(|((name, from), count)| ((id(name), from), count))
        .collect()
}

/// The same without groups.
fn together(counts: &Counts) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    for ((_, from), count) in counts {
        *all.entry(*from).or_default() += count;
    }
    all
}

/// Histograms by `usual`, by thread and by process are those of the samples of rows of the log.
fn counts_the_log<A>(
    set: &TraceSet,
    (by, column): (By, &str),
    sample: impl Fn(&Json) -> Option<Sample>,
) where
    A: KernelAnalysis<Options: From<Views>>,
{
    let freq = |by: By| report::<A>(set, &[View::Freq], &[by]);
    let log = report::<A>(set, &[View::Log], &[]);
    let log = || rows(&log, "log").filter_map(|row| Some((row, sample(row)?)));
    assert!(log().count() > 100);
    let expected = counted(log().map(|(_, sample)| sample));
    assert_eq!(histograms(&freq(by), column, "from_ns"), expected);
    let all = counted(log().map(|(_, (_, value))| ("all".to_owned(), value)));
    assert_eq!(histograms(&freq(By::All), "of", "from_ns"), all);
    let threads = counted(log().map(|(row, (_, value))| (thread(row), value)));
    assert_eq!(histograms(&freq(By::Thread), "of", "from_ns"), threads);
    let processes = counted(log().map(|(row, (_, value))| (pid(row), value)));
    let found = histograms(&freq(By::Process), "of", "from_ns");
    assert_eq!(by_id(found), processes);
}

fn text(row: &Json, key: &str) -> String {
    row[key].as_str().expect(key).to_owned()
}

/// Runs a check on a recorded and on a random trace.
fn with_traces(then: impl Fn(&TraceSet)) {
    if let Some(set) = kernel_trace("kernel-mix-small") {
        then(&set);
    }
    let (directory, set) = trace(3, SHAPE);
    then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

#[test]
fn syscalls() {
    with_traces(|set| {
        counts_the_log::<SyscallAnalysis>(set, (By::Call, "syscall"), |row| {
            Some((text(row, "syscall"), number(row, "duration_ns")))
        });
    });
}

#[test]
fn files() {
    with_traces(|set| {
        counts_the_log::<FilesAnalysis>(set, (By::Operation, "class"), |row| {
            Some((text(row, "class"), number(row, "duration_ns")))
        });
    });
}

#[test]
fn cpu() {
    with_traces(|set| {
        counts_the_log::<CpuAnalysis>(set, (By::Cpu, "of"), |row| {
            let cpu = format!("CPU {}", number(row, "cpu"));
            Some((cpu, number(row, "duration_ns")))
        });
    });
}

#[test]
fn sched() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    counts_the_log::<SchedAnalysis>(&set, (By::Priority, "of"), |row| {
        let priority = format!("priority {}", row["priority"].as_i64()?);
        Some((priority, number(row, "latency_ns")))
    });
}

#[test]
fn disk() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    counts_the_log::<DiskAnalysis>(&set, (By::Disk, "disk"), |row| {
        let has_data = !row["sector"].is_null();
        has_data.then(|| (text(row, "disk"), number(row, "latency_ns")))
    });
}

#[test]
fn net() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let log = report::<NetAnalysis>(&set, &[View::Log], &[]);
    let sample = |row: &Json| (text(row, "interface"), number(row, "duration_ns"));
    let expected = counted(rows(&log, "log").map(sample));
    let of = |by| report::<NetAnalysis>(&set, &[View::Freq], &[by]);
    let found = histograms(&of(By::Interface), "interface", "from_ns");
    assert!(!found.is_empty());
    assert_eq!(found, expected);
    let all = histograms(&of(By::All), "of", "from_ns");
    assert_eq!(together(&all), together(&expected));
}

#[test]
fn irq() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let log = report::<IrqAnalysis>(&set, &[View::Log], &[]);
    let label = |row: &Json| {
        let (kind, name) = (text(row, "kind"), text(row, "name"));
        match row["number"].as_i64().filter(|_| kind == "irq") {
            Some(number) => format!("irq {number} {name}"),
            None => format!("{kind} {name}"),
        }
    };
    let samples = |row: &Json| {
        let latency = row["latency_ns"].as_u64();
        let latency = latency.map(|value| (format!("{}, from raise to start", label(row)), value));
        let duration = (label(row), number(row, "duration_ns"));
        [Some(duration), latency]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
    };
    let of = |by| report::<IrqAnalysis>(&set, &[View::Freq], &[by]);
    let found = histograms(&of(By::Name), "name", "from_ns");
    assert_eq!(found, counted(rows(&log, "log").flat_map(samples)));
    let sample = |row: &Json| {
        let cpu = format!("CPU {}", number(row, "cpu"));
        (cpu, number(row, "duration_ns"))
    };
    let found = histograms(&of(By::Cpu), "of", "from_ns");
    assert_eq!(found, counted(rows(&log, "log").map(sample)));
}

#[test]
fn processes() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let log = report::<ProcessAnalysis>(&set, &[View::Log], &[]);
    let lives = rows(&log, "log").filter_map(|row| row["life_ns"].as_u64());
    let expected = counted(lives.map(|life| ("all".to_owned(), life)));
    let report = report::<ProcessAnalysis>(&set, &[View::Freq], &[]);
    assert_eq!(histograms(&report, "of", "from_ns"), expected);
}

#[test]
fn memory() {
    let Some(set) = kernel_trace("perf-memory") else {
        return;
    };
    let log = report::<MemoryAnalysis>(&set, &[View::Log], &[]);
    let of = |by| report::<MemoryAnalysis>(&set, &[View::Freq], &[by]);
    let sample = |row: &Json| (text(row, "event"), number(row, "size_bytes"));
    let by_event = counted(rows(&log, "log").map(sample));
    let found = histograms_from_0(&of(By::Event));
    assert!(found.len() > 4);
    assert_eq!(found, by_event);
    let sample = |row: &Json| {
        let who = format!("{} by {}", text(row, "event"), thread(row));
        (who, number(row, "size_bytes"))
    };
    let by_thread = counted(rows(&log, "log").map(sample));
    assert_eq!(histograms(&of(By::Thread), "of", "size_bytes"), by_thread);
    let by_process = histograms(&of(By::Process), "of", "size_bytes");
    assert_eq!(together(&by_process), together(&by_event));
}

/// Histograms whose buckets begin with the smallest pages.
fn histograms_from_0(report: &Json) -> Counts {
    let counted = rows(report, "distribution").filter(|row| number(row, "count") > 0);
    let count = |row: &Json| {
        (
            (text(row, "of"), number(row, "size_bytes")),
            number(row, "count"),
        )
    };
    counted.map(count).collect()
}

/// The parts of calls are the sums of their single waits; the rest of a call is running.
#[test]
fn waits() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let calls = report::<SyscallAnalysis>(&set, &[View::Log], &[]);
    let waits = report::<WaitAnalysis>(&set, &[View::Log], &[]);
    let mut by_thread: BTreeMap<u64, Vec<(u64, u64, String)>> = BTreeMap::new();
    for wait in rows(&waits, "log") {
        let own = by_thread.entry(number(wait, "tid")).or_default();
        let (begin, duration) = (number(wait, "begin_ns"), number(wait, "duration_ns"));
        own.push((begin, duration, text(wait, "why")));
    }
    let mut parts: Vec<(String, String, String, u64)> = Vec::new();
    for call in rows(&calls, "log").filter(|call| call["tid"].is_u64()) {
        let (begin, duration) = (number(call, "begin_ns"), number(call, "duration_ns"));
        let mut own: BTreeMap<&str, u64> = BTreeMap::new();
        for (at, time, why) in by_thread.get(&number(call, "tid")).into_iter().flatten() {
            if (begin..=begin + duration).contains(at) && at + time <= begin + duration {
                *own.entry(why).or_default() += time;
            }
        }
        let running = duration - own.values().sum::<u64>();
        if running > 0 || own.is_empty() {
            own.insert("running", running);
        }
        let call_name = text(call, "syscall");
        let own = own.into_iter();
        parts
            .extend(own.map(|(why, time)| (why.to_owned(), call_name.clone(), thread(call), time)));
    }
    let of = |by| report::<WaitAnalysis>(&set, &[View::Freq], &[by]);
    let by = |name: fn(&(String, String, String, u64)) -> &String| {
        counted(parts.iter().map(|part| (name(part).clone(), part.3)))
    };
    assert_eq!(
        histograms(&of(By::Reason), "why", "from_ns"),
        by(|part| &part.0)
    );
    assert_eq!(
        histograms(&of(By::Call), "of", "from_ns"),
        by(|part| &part.1)
    );
    assert_eq!(
        histograms(&of(By::Thread), "of", "from_ns"),
        by(|part| &part.2)
    );
    let all = together(&by(|part| &part.0));
    for by in [By::All, By::Process] {
        assert_eq!(together(&histograms(&of(by), "of", "from_ns")), all);
    }
}

/// Histograms of several groupings stand one after the other; a report skips those that it does
/// not know.
#[test]
fn groupings_are_printed_in_the_order_of_the_report() {
    let Some(set) = kernel_trace("kernel-mix-small") else {
        return;
    };
    let of = |by: &[By]| {
        let report = report::<SchedAnalysis>(&set, &[View::Freq], by);
        let names = rows(&report, "distribution").map(|row| text(row, "of"));
        let mut names: Vec<String> = names.collect();
        names.dedup();
        names
    };
    let [all, priorities] = [&[By::All][..], &[By::Priority]].map(of);
    assert_eq!(all, ["all"]);
    assert!(priorities.len() > 1);
    let both = of(&[By::Priority, By::Interface, By::All]);
    assert_eq!(both, [all, priorities.clone()].concat());
    let usual = of(&[]);
    assert_eq!(usual[..1 + priorities.len()], both);
    assert!(usual.len() > 20);
}
