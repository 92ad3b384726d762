//! Reports do not depend on the field in which a trace records the CPU.

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{CpuSet, seen_cpus};
use tracebraid_graph::GraphAnalysis;
use tracebraid_models::law::{ALL, Asked, Lawful, SMALL, as_told, folded};
use tracebraid_models::naming::Naming;
use tracebraid_models::synthetic::{CpuPlace, Shape, trace_with_cpus};
use tracebraid_reports::count::Count;
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::irq::IrqAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;

const SHAPE: Shape = Shape {
    cpus: 4,
    threads: 9,
    steps: 6000,
    packet: 1500,
    ..Shape::PLAIN
};

const PLACES: [(Naming, CpuPlace); 8] = [
    (Naming::Lttng, CpuPlace::Context("_cpu_id")),
    (Naming::Lttng, CpuPlace::Context("cpu")),
    // As perf's converter writes it, and as traces of ftrace are converted.
    (Naming::Perf, CpuPlace::Payload("perf_cpu")),
    (Naming::PerfRaw, CpuPlace::Payload("perf_cpu")),
    (Naming::Ftrace, CpuPlace::Payload("common_cpu")),
    // Converters that add a CPU field to every event.
    (Naming::Lttng, CpuPlace::Payload("CPU")),
    (Naming::Perf, CpuPlace::Payload("processor_id")),
    (Naming::Lttng, CpuPlace::Context("processor_id")),
];

/// Every variant with one stream for all CPUs gives the same reports as a stream for each CPU.
fn same<A: Lawful>(what: &str, per_cpu: &TraceSet, shared: &TraceSet) {
    const SOME: Option<&[u32]> = Some(&[1, 3]);
    for asked in [ALL, Asked { cpus: SOME, ..ALL }] {
        let expected = folded(per_cpu, &asked.analysis::<A>(per_cpu), (1, u64::MAX));
        as_told::<A>(what, shared, asked, &expected, SMALL);
    }
}

fn counted(set: &TraceSet, cpus: Option<&[u32]>, (threads, chunk_bytes): (usize, u64)) -> Json {
    let cpus = CpuSet(cpus.map(|cpus| cpus.iter().copied().collect()));
    let count = Count::new(set, Default::default(), cpus, 7);
    let options = Options {
        threads,
        chunk_bytes,
        ..Options::default()
    };
    let outcome = fold(set, &count, options, &Control::default()).expect("not cancelled");
    let mut report = serde_json::to_value(outcome.report).expect("a report can be serialized");
    // The packets differ, and so do the bounds that they give.
    let report_fields = report.as_object_mut().expect("a report");
    for field in ["streams", "rate", "losses"] {
        report_fields.remove(field);
    }
    report
}

#[test]
fn reports_are_those_of_a_trace_with_a_stream_for_each_cpu() {
    for (seed, (naming, place)) in (0..).zip(PLACES) {
        let shape = Shape { naming, ..SHAPE };
        let (first, per_cpu) = trace_with_cpus(seed, shape, CpuPlace::Packets);
        let (second, shared) = trace_with_cpus(seed, shape, place);
        assert_eq!(
            (
                per_cpu.traces[0].streams.len(),
                shared.traces[0].streams.len()
            ),
            (4, 1)
        );
        assert_eq!(seen_cpus(&shared, 0), [0, 1, 2, 3]);
        let what = format!("{naming:?}, {place:?}, seed {seed}");
        same::<CpuAnalysis>(&what, &per_cpu, &shared);
        same::<IoAnalysis>(&what, &per_cpu, &shared);
        same::<SyscallAnalysis>(&what, &per_cpu, &shared);
        same::<IrqAnalysis>(&what, &per_cpu, &shared);
        same::<SchedAnalysis>(&what, &per_cpu, &shared);
        same::<ProcessAnalysis>(&what, &per_cpu, &shared);
        same::<FilesAnalysis>(&what, &per_cpu, &shared);
        same::<WaitAnalysis>(&what, &per_cpu, &shared);
        same::<GraphAnalysis>(&what, &per_cpu, &shared);
        for cpus in [None, Some(&[1, 3][..]), Some(&[9])] {
            let expected = counted(&per_cpu, cpus, (1, u64::MAX));
            for &way in SMALL {
                assert_eq!(
                    counted(&shared, cpus, way),
                    expected,
                    "{what}, CPUs {cpus:?}, {way:?}"
                );
            }
        }
        for directory in [first, second] {
            std::fs::remove_dir_all(directory).expect("the trace can be removed");
        }
    }
}

/// A loss in a shared stream makes the running threads of all its CPUs unknown.
#[test]
fn losses_of_a_shared_stream_are_those_of_each_cpu() {
    let shape = Shape {
        counted_losses: 60,
        ..SHAPE
    };
    let (directory, set) = trace_with_cpus(3, shape, CpuPlace::Context("cpu_id"));
    let stream = &set.traces[0].streams[0];
    let lost = (0..stream.packets.len())
        .filter(|&packet| stream.lost_before(packet))
        .count();
    assert!(lost > 3, "{lost}");
    let report = folded(&set, &ALL.analysis::<CpuAnalysis>(&set), (1, u64::MAX));
    let json: Json = serde_json::from_str(&report).expect("JSON");
    let rows = json["cpus"].as_array().expect("CPUs");
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["losses"] == lost), "{rows:?}");
    as_told::<CpuAnalysis>("lost events", &set, ALL, &report, SMALL);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}
