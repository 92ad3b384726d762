//! The law: reports do not depend on the size of chunks, the number of threads or the way in which
//! partial states are merged, and equal those of a plain pass over all events.
#![allow(missing_docs)]

mod support;

use std::collections::BTreeMap;

use serde::Serialize;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Analysis, Chunk, Control, Options, Record, StreamPlace, StreamRef, fold};
use tracebraid_reports::count::Count;
use tracebraid_reports::cpu::{CpuAnalysis, CpuOptions};
use tracebraid_reports::io::{IoAnalysis, IoOptions};
use tracebraid_reports::kernel::{CpuSet, Window};

use support::naming::Naming;

const ALL: (i64, i64) = (i64::MIN, i64::MAX);

fn window((from, to): (i64, i64)) -> Window {
    let time = |time: i64, none: i64| (time != none).then_some(Timestamp(time));
    Window {
        from: time(from, i64::MIN),
        to: time(to, i64::MAX),
    }
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect("a report can be serialized")
}

fn folded<A: Analysis<Report: Serialize>>(
    set: &TraceSet,
    analysis: &A,
    threads: usize,
    chunk_bytes: u64,
) -> String {
    let options = Options {
        threads,
        chunk_bytes,
        until: None,
    };
    json(
        &fold(set, analysis, options, &Control::default())
            .expect("nobody cancels")
            .report,
    )
}

/// Says where two texts differ.
fn same(what: &str, expected: &str, found: &str) {
    if expected == found {
        return;
    }
    for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
        assert_eq!(expected, found, "{what}: line {number}");
    }
    panic!(
        "{what}: {} lines instead of {}",
        found.lines().count(),
        expected.lines().count()
    );
}

fn every_way<A: Analysis<Report: Serialize>>(what: &str, set: &TraceSet, analysis: &A, expected: &str) {
    for (threads, chunk_bytes) in [(1, u64::MAX), (1, 1), (2, 200_000), (3, 1), (8, 500_000)] {
        let found = folded(set, analysis, threads, chunk_bytes);
        same(
            &format!("{what}, {threads} threads, chunks of {chunk_bytes} bytes"),
            expected,
            &found,
        );
    }
}

fn holds_for(name: &str) {
    let Some(set) = support::traces::kernel_trace(name) else {
        return;
    };
    let (begin, end) = support::events::extent(&set);
    let third = (end - begin) / 3;
    for range in [ALL, (begin + third, end - third)] {
        let expected = json(&support::model_cpu::cpu(&set, range));
        let options = CpuOptions {
            window: window(range),
            ..CpuOptions::default()
        };
        every_way(
            &format!("cpu of {name}"),
            &set,
            &CpuAnalysis::new(&set, options),
            &expected,
        );
        let expected = json(&support::model_io::io(&set, range, None));
        let options = IoOptions {
            window: window(range),
            ..IoOptions::default()
        };
        every_way(
            &format!("io of {name}"),
            &set,
            &IoAnalysis::new(&set, options),
            &expected,
        );
    }
}

#[test]
fn kernel_mix_small() {
    holds_for("kernel-mix-small");
}

#[test]
fn kernel_ust_requests() {
    holds_for("kernel-ust-requests");
}

#[test]
fn kernel_discarded() {
    holds_for("kernel-discarded");
}

#[test]
fn twohost_server() {
    holds_for("twohost-server");
}

#[test]
fn many_threads() {
    holds_for("many-threads");
}

#[test]
fn lttng_2_1_names() {
    holds_for("synctraces/scp_src");
    holds_for("synctraces/scp_dest");
}

const SHAPE: support::synthetic::Shape = support::synthetic::Shape {
    cpus: 3,
    threads: 9,
    steps: 12_000,
    silent_losses: 0,
    lost_packets: 0,
    counted_losses: 0,
    packet: 900,
    naming: Naming::Lttng,
    told_memory: true,
    told_threads: false,
    clone3: false,
    tid_context: false,
    pid_context: false,
    two_streams: false,
    ties: true,
};

/// Seeds to try: so many, or as many as the environment asks for.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("TRACEBRAID_LAW_SEEDS")
        .ok()
        .and_then(|count| count.parse().ok());
    0..asked.unwrap_or(usual)
}

/// Each kind of trace with several seeds: the report is that of the plain pass, in every way.
fn holds_for_synthetic(what: &str, shape: support::synthetic::Shape) {
    for seed in seeds(12) {
        let shape = support::synthetic::Shape {
            cpus: 1 + seed % 4,
            ..shape
        };
        let (directory, set) = support::synthetic::trace(seed, shape);
        let what = format!("{what}, seed {seed}");
        for range in [ALL, (5000 + 60_000, 5000 + 200_000)] {
            let expected = json(&support::model_cpu::cpu(&set, range));
            let options = CpuOptions {
                window: window(range),
                ..CpuOptions::default()
            };
            every_way_small(
                &format!("cpu, {what}"),
                &set,
                &CpuAnalysis::new(&set, options),
                &expected,
            );
            let expected = json(&support::model_io::io(&set, range, None));
            let options = IoOptions {
                window: window(range),
                ..IoOptions::default()
            };
            every_way_small(
                &format!("io, {what}"),
                &set,
                &IoAnalysis::new(&set, options),
                &expected,
            );
        }
        let expected = json(&support::model_io::io(&set, ALL, Some(&[0, 2])));
        let cpus = CpuSet(Some([0, 2].into()));
        let options = IoOptions {
            cpus,
            ..IoOptions::default()
        };
        every_way_small(
            &format!("io of two CPUs, {what}"),
            &set,
            &IoAnalysis::new(&set, options),
            &expected,
        );
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
}

fn every_way_small<A: Analysis<Report: Serialize>>(what: &str, set: &TraceSet, analysis: &A, expected: &str) {
    for (threads, chunk_bytes) in [(1, u64::MAX), (1, 1), (2, 2000), (5, 1), (8, 10_000), (1, 5000)] {
        let found = folded(set, analysis, threads, chunk_bytes);
        same(
            &format!("{what}, {threads} threads, chunks of {chunk_bytes} bytes"),
            expected,
            &found,
        );
    }
}

#[test]
fn threads_that_migrate_in_calls() {
    holds_for_synthetic("migrations", SHAPE);
}

#[test]
fn lost_events() {
    holds_for_synthetic(
        "events lost silently",
        support::synthetic::Shape {
            silent_losses: 60,
            ..SHAPE
        },
    );
}

#[test]
fn lost_packets() {
    let shape = support::synthetic::Shape {
        lost_packets: 60,
        counted_losses: 60,
        ..SHAPE
    };
    holds_for_synthetic("packets lost", shape);
    holds_for_synthetic(
        "everything lost",
        support::synthetic::Shape {
            silent_losses: 100,
            ..shape
        },
    );
}

#[test]
fn one_exit_for_all_calls() {
    let shape = support::synthetic::Shape {
        naming: Naming::OldLttng,
        told_memory: false,
        silent_losses: 20,
        lost_packets: 20,
        ..SHAPE
    };
    holds_for_synthetic("old names", shape);
}

/// Streams of one CPU are merged by time: the report is that of one stream for each CPU.
#[test]
fn two_streams_for_each_cpu() {
    for seed in seeds(12) {
        let shape = support::synthetic::Shape {
            cpus: 1 + seed % 3,
            ties: false,
            packet: 600 + seed as usize * 50,
            ..SHAPE
        };
        let (one, set) = support::synthetic::trace(seed, shape);
        let cpu = json(&support::model_cpu::cpu(&set, ALL));
        let io = json(&support::model_io::io(&set, ALL, None));
        std::fs::remove_dir_all(one).expect("the trace can be removed");
        let shape = support::synthetic::Shape {
            two_streams: true,
            ..shape
        };
        let (two, set) = support::synthetic::trace(seed, shape);
        every_way_small(
            &format!("cpu of two streams, seed {seed}"),
            &set,
            &CpuAnalysis::new(&set, Default::default()),
            &cpu,
        );
        every_way_small(
            &format!("io of two streams, seed {seed}"),
            &set,
            &IoAnalysis::new(&set, Default::default()),
            &io,
        );
        // With losses there is no such truth, but the law holds.
        std::fs::remove_dir_all(two).expect("the trace can be removed");
        let shape = support::synthetic::Shape {
            silent_losses: 50,
            lost_packets: 50,
            counted_losses: 100,
            ..shape
        };
        let (lossy, set) = support::synthetic::trace(seed, shape);
        let analysis = CpuAnalysis::new(&set, Default::default());
        let whole = folded(&set, &analysis, 1, u64::MAX);
        every_way_small(
            &format!("cpu of two lossy streams, seed {seed}"),
            &set,
            &analysis,
            &whole,
        );
        let analysis = IoAnalysis::new(&set, Default::default());
        let whole = folded(&set, &analysis, 1, u64::MAX);
        every_way_small(
            &format!("io of two lossy streams, seed {seed}"),
            &set,
            &analysis,
            &whole,
        );
        std::fs::remove_dir_all(lossy).expect("the trace can be removed");
    }
}

/// Where each event tells its thread, nothing changes, but less depends on switches.
#[test]
fn threads_by_context() {
    for seed in seeds(12) {
        let shape = support::synthetic::Shape {
            cpus: 1 + seed % 3,
            ..SHAPE
        };
        let (plain, set) = support::synthetic::trace(seed, shape);
        let io = json(&support::model_io::io(&set, ALL, None));
        std::fs::remove_dir_all(plain).expect("the trace can be removed");
        let shape = support::synthetic::Shape {
            tid_context: true,
            packet: 1000,
            ..shape
        };
        let (context, set) = support::synthetic::trace(seed, shape);
        every_way_small(
            &format!("io with contexts, seed {seed}"),
            &set,
            &IoAnalysis::new(&set, Default::default()),
            &io,
        );
        std::fs::remove_dir_all(context).expect("the trace can be removed");
        let shape = support::synthetic::Shape {
            silent_losses: 80,
            lost_packets: 50,
            counted_losses: 100,
            ..shape
        };
        let (lossy, set) = support::synthetic::trace(seed, shape);
        let analysis = IoAnalysis::new(&set, Default::default());
        let whole = folded(&set, &analysis, 1, u64::MAX);
        every_way_small(
            &format!("io with contexts and losses, seed {seed}"),
            &set,
            &analysis,
            &whole,
        );
        std::fs::remove_dir_all(lossy).expect("the trace can be removed");
    }
}

/// The same partial states, merged in another order than the engine's, and sent as text between
/// any two steps.
#[test]
fn any_tree_of_merges() {
    for seed in seeds(6) {
        let shape = support::synthetic::Shape {
            silent_losses: 30,
            lost_packets: 30,
            counted_losses: 30,
            ..SHAPE
        };
        let (directory, set) = support::synthetic::trace(seed, shape);
        let cpu = CpuAnalysis::new(&set, Default::default());
        tree(&set, &cpu, seed, &json(&support::model_cpu::cpu(&set, ALL)));
        let io = IoAnalysis::new(&set, Default::default());
        tree(&set, &io, seed, &json(&support::model_io::io(&set, ALL, None)));
        std::fs::remove_dir_all(directory).expect("the trace can be removed");
    }
}

fn tree<A: Analysis<Report: Serialize>>(set: &TraceSet, analysis: &A, seed: u64, expected: &str) {
    let mut random = support::synthetic::Random::new(seed + 77);
    let keeper = Keeper {
        analysis,
        kept: std::sync::Mutex::new(Vec::new()),
    };
    let options = Options {
        threads: 1,
        chunk_bytes: 5000,
        until: None,
    };
    fold(set, &keeper, options, &Control::default()).expect("nobody cancels");
    let mut states = keeper.kept.into_inner().expect("no test failed before");
    assert!(states.len() > 20, "there is something to merge");
    while states.len() > 1 {
        let at = random.below(states.len() as u64 - 1) as usize;
        let later = sent::<A>(states.remove(at + 1));
        let mut earlier = sent::<A>(states.remove(at));
        analysis.merge(&mut earlier, later);
        states.insert(
            at,
            serde_json::to_string(&earlier).expect("a state can be serialized"),
        );
    }
    let state = sent::<A>(states.remove(0));
    same(
        &format!("a random tree of merges, seed {seed}"),
        expected,
        &json(&analysis.finish(state)),
    );
}

fn sent<A: Analysis>(text: String) -> A::Partial {
    serde_json::from_str(&text).expect("a state can be deserialized")
}

/// Keeps the partial state of each chunk.
struct Keeper<'a, A: Analysis> {
    analysis: &'a A,
    kept: std::sync::Mutex<Vec<String>>,
}

impl<A: Analysis> Analysis for Keeper<'_, A> {
    type Partial = A::Partial;
    type Report = ();

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.analysis.groups(set)
    }
    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.analysis.wants(trace, stream_class, class)
    }
    fn begin(&self, chunk: &Chunk) -> A::Partial {
        self.analysis.begin(chunk)
    }
    fn packet(&self, partial: &mut A::Partial, packet: &StreamPlace<'_>) {
        self.analysis.packet(partial, packet);
    }
    fn event(&self, partial: &mut A::Partial, record: &mut Record<'_>) {
        self.analysis.event(partial, record);
    }
    fn end(&self, partial: &mut A::Partial, chunk: &Chunk) {
        self.analysis.end(partial, chunk);
        let text = serde_json::to_string(partial).expect("a state can be serialized");
        self.kept.lock().expect("no test failed before").push(text);
    }
    fn merge(&self, _: &mut A::Partial, _: A::Partial) {}
    fn finish(&self, _: A::Partial) {}
}

/// Long enough that descriptors' histories are forgotten on the way.
#[test]
fn long_traces_forget() {
    let shape = support::synthetic::Shape {
        cpus: 4,
        steps: 150_000,
        packet: 4000,
        silent_losses: 5,
        ..SHAPE
    };
    let (directory, set) = support::synthetic::trace(1, shape);
    let expected = json(&support::model_io::io(&set, ALL, None));
    let analysis = IoAnalysis::new(&set, Default::default());
    for (threads, chunk_bytes) in [(1, u64::MAX), (1, 1), (3, 60_000)] {
        let found = folded(&set, &analysis, threads, chunk_bytes);
        same(
            &format!("a long trace, chunks of {chunk_bytes} bytes"),
            &expected,
            &found,
        );
    }
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

#[test]
fn count_is_the_same_in_every_way() {
    for name in [
        "kernel-mix-small",
        "kernel-discarded",
        "many-threads",
        "synctraces/scp_src",
    ] {
        let Some(set) = support::traces::kernel_trace(name) else {
            continue;
        };
        let (begin, end) = support::events::extent(&set);
        for range in [ALL, (begin + (end - begin) / 3, end - (end - begin) / 3)] {
            let analysis = Count::new(&set, window(range), CpuSet::default(), 60);
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for trace in &set.traces {
                for stream in &trace.streams {
                    let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 16);
                    while let Some(time) = reader.peek().flatten() {
                        if range.0 <= time.0 && time.0 < range.1 {
                            let event = reader.event().expect("an event");
                            *expected.entry(event.class.name.to_string()).or_default() += 1;
                        }
                        reader.advance();
                    }
                }
            }
            let options = Options {
                threads: 1,
                chunk_bytes: u64::MAX,
                until: None,
            };
            let report = fold(&set, &analysis, options, &Control::default())
                .expect("nobody cancels")
                .report;
            assert_eq!(report.by_name, expected, "{name}");
            assert_eq!(report.events, expected.values().sum::<u64>(), "{name}");
            every_way(&format!("count of {name}"), &set, &analysis, &json(&report));
        }
    }
}
