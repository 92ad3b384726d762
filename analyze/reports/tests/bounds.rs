//! The size of the composed state is bounded by keys (threads, descriptors, files in use), not by
//! the number of event records.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Analysis;
use tracebraid_follow::{CpuSet, KernelAnalysis, Selection, View, Views, Window};
use tracebraid_models::bounds::{at_end, encoded_bytes, grown, repeated};
use tracebraid_models::law::json;
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

/// Calls, forks, files, sockets, disks and interrupts.
const TRACE: &str = "kernel-mix-small";

/// The size in bytes of the state after a trace, and the report.
fn folded<A: Analysis>(set: &TraceSet, analysis: A) -> (usize, A::Report) {
    at_end(set, &analysis, |analysis, partial| {
        (encoded_bytes(&partial), analysis.finish(partial))
    })
}

/// The size of the state of a report with statistics. Lists of the longest items have constant
/// length, and complete lists grow with the trace.
fn size_of_state<A: KernelAnalysis<Options: From<Views>>>(set: &TraceSet) -> usize {
    let views = Views {
        views: vec![View::Stats],
        ..Views::default()
    };
    folded(set, A::with(set, Selection::default(), views.into())).0
}

#[test]
fn states_do_not_grow_with_event_records() {
    let directory = tempfile::tempdir().expect("a directory for traces");
    let [few, many] = [5, 20].map(|times| repeated(TRACE, times, directory.path()));
    let mut all_grown = Vec::new();
    macro_rules! check {
        ($($analysis:ident),*) => {$(
            all_grown.extend(grown(
                stringify!($analysis),
                size_of_state::<$analysis>(&few),
                size_of_state::<$analysis>(&many),
            ));
        )*};
    }
    check!(
        CpuAnalysis,
        DiskAnalysis,
        FilesAnalysis,
        IoAnalysis,
        IrqAnalysis,
        MemoryAnalysis,
        NetAnalysis,
        SchedAnalysis,
        SyscallAnalysis,
        WaitAnalysis
    );
    let count = |set| {
        folded(
            set,
            Count::new(set, Window::default(), CpuSet::default(), 60),
        )
        .0
    };
    all_grown.extend(grown("Count", count(&few), count(&many)));
    assert!(all_grown.is_empty(), "{all_grown:#?}");
}

/// Threads with the same ids are created again and again: each is a life of its own, which the
/// report lists.
#[test]
fn states_of_processes_grow_with_their_report() {
    let directory = tempfile::tempdir().expect("a directory for traces");
    let sizes = |times| {
        let set = repeated(TRACE, times, directory.path());
        let views = Views {
            views: vec![View::Stats, View::Top, View::Log],
            rows: usize::MAX,
            ..Views::default()
        };
        let analysis = ProcessAnalysis::with(&set, Selection::default(), views.into());
        let (state, report) = folded(&set, analysis);
        (state, json(&report).len())
    };
    let (few, many) = (sizes(5), sizes(20));
    assert!(few.0 < few.1 && many.0 < many.1, "{few:?} {many:?}");
    assert!(many.1 > 2 * few.1, "{few:?} {many:?}");
    assert!(many.0 * few.1 < few.0 * many.1 * 6 / 5, "{few:?} {many:?}");
}
