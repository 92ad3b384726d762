//! The law: reports do not depend on the size of chunks, the number of threads or the order in
//! which partial states are merged, and equal those of a plain pass over all events.

use std::collections::BTreeMap;

use tracebraid_clocks::PacketAnalysis;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_follow::{CpuSet, KernelAnalysis, Selection, Together};
use tracebraid_graph::GraphAnalysis;
use tracebraid_reports::count::Count;
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::disk::DiskAnalysis;
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::irq::IrqAnalysis;
use tracebraid_reports::memory::MemoryAnalysis;
use tracebraid_reports::net::NetAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;

use tracebraid_models::law::{
    ALL, Asked, LARGE, Modelled, SMALL, Ways, any_tree, as_in_one_piece, as_modelled, as_told,
    every_way, json, window,
};
use tracebraid_models::naming::Naming;
use tracebraid_models::synthetic::Shape;

/// Calls a function for each analysis of kernel events that has a model.
macro_rules! for_each {
    ($function:ident($($argument:expr),*)) => {
        $function::<CpuAnalysis>($($argument),*);
        $function::<IoAnalysis>($($argument),*);
    };
}

/// Calls a function for each analysis that has rules for events: one chunk is a plain pass.
macro_rules! for_each_per_cpu {
    ($function:ident($($argument:expr),*)) => {
        $function::<SyscallAnalysis>($($argument),*);
        $function::<IrqAnalysis>($($argument),*);
        $function::<tracebraid_reports::levels::LevelAnalysis>($($argument),*);
        $function::<MemoryAnalysis>($($argument),*);
        $function::<SchedAnalysis>($($argument),*);
        $function::<ProcessAnalysis>($($argument),*);
        $function::<DiskAnalysis>($($argument),*);
        $function::<FilesAnalysis>($($argument),*);
        $function::<NetAnalysis>($($argument),*);
        $function::<PacketAnalysis>($($argument),*);
        $function::<WaitAnalysis>($($argument),*);
        $function::<GraphAnalysis>($($argument),*);
    };
}

pub(crate) use {for_each, for_each_per_cpu};

fn holds_for(name: &str) {
    let Some(set) = tracebraid_models::traces::kernel_trace(name) else {
        return;
    };
    let (begin, end) = tracebraid_models::events::extent(&set);
    let third = (end - begin) / 3;
    let middle = Asked {
        range: (begin + third, end - third),
        ..ALL
    };
    for asked in [ALL, middle] {
        for_each!(as_modelled(name, &set, asked, LARGE));
        for_each_per_cpu!(as_in_one_piece(name, &set, asked, LARGE));
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

/// As in a copy of a ring buffer: the last packet of each file comes first.
#[test]
fn packets_in_another_order() {
    let directory = tempfile::tempdir().expect("a directory for a trace");
    let Some(set) = tracebraid_models::traces::rotated("kernel-mix-small", directory.path()) else {
        return;
    };
    let name = "rotated";
    as_in_one_piece::<CpuAnalysis>(name, &set, ALL, LARGE);
    as_in_one_piece::<IoAnalysis>(name, &set, ALL, LARGE);
    for_each_per_cpu!(as_in_one_piece(name, &set, ALL, LARGE));
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

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 12_000,
    packet: 900,
    ties: true,
    ..Shape::PLAIN
};

/// Seeds to try: `usual`, or the number in the environment variable.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("TRACEBRAID_LAW_SEEDS")
        .ok()
        .and_then(|count| count.parse().ok());
    0..asked.unwrap_or(usual)
}

/// Calls `then` with a random trace, then removes it.
fn with_trace<T>(seed: u64, shape: Shape, then: impl FnOnce(&TraceSet) -> T) -> T {
    let (directory, set) = tracebraid_models::synthetic::trace(seed, shape);
    let result = then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
    result
}

/// For several random traces of a shape, the report is that of the plain pass, however it is
/// folded.
fn holds_for_synthetic(what: &str, shape: Shape) {
    let part = Asked {
        range: (5000 + 60_000, 5000 + 200_000),
        ..ALL
    };
    let two_cpus = Asked {
        cpus: Some(&[0, 2]),
        ..ALL
    };
    for seed in seeds(8) {
        let what = &format!("{what}, seed {seed}");
        let cpus = 1 + seed % 4;
        with_trace(seed, Shape { cpus, ..shape }, |set| {
            for asked in [ALL, part, two_cpus] {
                for_each!(as_modelled(what, set, asked, SMALL));
                for_each_per_cpu!(as_in_one_piece(what, set, asked, SMALL));
            }
        });
    }
}

#[test]
fn threads_that_migrate_in_calls() {
    holds_for_synthetic("migrations", SHAPE);
}

#[test]
fn lost_events() {
    let silent_losses = 60;
    holds_for_synthetic(
        "events lost silently",
        Shape {
            silent_losses,
            ..SHAPE
        },
    );
}

#[test]
fn lost_packets() {
    let shape = Shape {
        lost_packets: 60,
        counted_losses: 60,
        ..SHAPE
    };
    holds_for_synthetic("packets lost", shape);
    let silent_losses = 100;
    holds_for_synthetic(
        "all events lost",
        Shape {
            silent_losses,
            ..shape
        },
    );
}

#[test]
fn one_exit_for_all_calls() {
    let shape = Shape {
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
    for seed in seeds(8) {
        let one = Shape {
            cpus: 1 + seed % 3,
            ties: false,
            packet: 600 + seed as usize * 50,
            ..SHAPE
        };
        let two = Shape {
            two_streams: true,
            ..one
        };
        fn equal<A: Modelled>(seed: u64, one: Shape, two: Shape) {
            let expected = with_trace(seed, one, |set| json(&A::model(set, ALL)));
            let what = &format!("two streams, seed {seed}");
            with_trace(seed, two, |set| {
                as_told::<A>(what, set, ALL, &expected, SMALL)
            });
        }
        for_each!(equal(seed, one, two));
        // With losses there is no such reference, but the law holds.
        let lossy = Shape {
            silent_losses: 50,
            lost_packets: 50,
            counted_losses: 100,
            ..two
        };
        let what = &format!("two lossy streams, seed {seed}");
        with_trace(seed, lossy, |set| {
            for_each!(as_in_one_piece(what, set, ALL, SMALL));
            for_each_per_cpu!(as_in_one_piece(what, set, ALL, SMALL));
        });
    }
}

/// If each event contains its thread, the report stays the same, but depends less on switches.
#[test]
fn threads_by_context() {
    for seed in seeds(8) {
        let plain = Shape {
            cpus: 1 + seed % 3,
            ..SHAPE
        };
        let context = Shape {
            tid_context: true,
            packet: 1000,
            ..plain
        };
        let io = with_trace(seed, plain, |set| json(&IoAnalysis::model(set, ALL)));
        let what = &format!("contexts, seed {seed}");
        with_trace(seed, context, |set| {
            as_told::<IoAnalysis>(what, set, ALL, &io, SMALL);
        });
        let lossy = Shape {
            silent_losses: 80,
            lost_packets: 50,
            counted_losses: 100,
            ..context
        };
        let what = &format!("contexts and losses, seed {seed}");
        with_trace(seed, lossy, |set| {
            for_each!(as_in_one_piece(what, set, ALL, SMALL));
            for_each_per_cpu!(as_in_one_piece(what, set, ALL, SMALL));
        });
    }
}

/// The same partial states, merged in another order than the engine's, and serialized between any
/// two steps.
#[test]
fn any_tree_of_merges() {
    let shape = Shape {
        silent_losses: 30,
        lost_packets: 30,
        counted_losses: 30,
        ..SHAPE
    };
    for seed in seeds(6) {
        with_trace(seed, shape, |set| {
            for_each!(any_tree(set, seed));
            for_each_per_cpu!(any_tree(set, seed));
        });
    }
}

/// Long enough that histories of descriptors are dropped in between.
#[test]
fn long_traces_forget() {
    let shape = Shape {
        cpus: 4,
        steps: 150_000,
        packet: 4000,
        silent_losses: 5,
        ..SHAPE
    };
    with_trace(1, shape, |set| {
        let ways = &[(1, u64::MAX), (1, 1), (3, 60_000)];
        for_each!(as_modelled("a long trace", set, ALL, ways));
        for_each_per_cpu!(as_in_one_piece("a long trace", set, ALL, ways));
    });
}

#[test]
fn count_is_the_same_in_every_way() {
    for name in [
        "kernel-mix-small",
        "kernel-discarded",
        "many-threads",
        "synctraces/scp_src",
    ] {
        let Some(set) = tracebraid_models::traces::kernel_trace(name) else {
            continue;
        };
        let (begin, end) = tracebraid_models::events::extent(&set);
        for range in [
            ALL.range,
            (begin + (end - begin) / 3, end - (end - begin) / 3),
        ] {
            let analysis = Count::new(&set, window(range), CpuSet::default(), 60);
            let mut expected: BTreeMap<String, u64> = BTreeMap::new();
            for trace in &set.traces {
                for stream in &trace.streams {
                    let mut reader =
                        StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 16);
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
                ..Options::default()
            };
            let report = fold(&set, &analysis, options, &Control::default())
                .expect("not cancelled")
                .report;
            assert_eq!(report.by_name, expected, "{name}");
            assert_eq!(report.events, expected.values().sum::<u64>(), "{name}");
            every_way(
                &format!("count of {name}"),
                &set,
                &analysis,
                &json(&report),
                LARGE,
            );
        }
    }
}

fn alone<A: Analysis>(set: &TraceSet, analysis: &A) -> A::Report {
    let outcome = fold(set, analysis, Options::default(), &Control::default());
    outcome.expect("not cancelled").report
}

/// Several analyses in one pass give the same reports as each alone.
fn together(what: &str, set: &TraceSet, ways: Ways) {
    fn of<A: KernelAnalysis>(set: &TraceSet) -> A {
        A::new(set, Selection::default())
    }
    let expected = (
        alone(set, &of::<CpuAnalysis>(set)),
        alone(set, &of::<IoAnalysis>(set)),
        alone(set, &of::<SyscallAnalysis>(set)),
    );
    let together = Together::<(CpuAnalysis, IoAnalysis, SyscallAnalysis)>::new(
        set,
        &Selection::default(),
        Default::default(),
    );
    every_way(what, set, &together, &json(&expected), ways);
}

#[test]
fn several_in_one_pass() {
    for name in ["kernel-mix-small", "kernel-discarded", "twohost-server"] {
        if let Some(set) = tracebraid_models::traces::kernel_trace(name) {
            together(name, &set, LARGE);
        }
    }
    for seed in seeds(6) {
        let shape = Shape {
            silent_losses: 20 * (seed % 4),
            lost_packets: 20 * (seed % 4),
            ties: false,
            ..SHAPE
        };
        with_trace(seed, shape, |set| {
            together(&format!("seed {seed}"), set, SMALL)
        });
    }
}
