//! The size of the state of all that came before is bounded by keys (threads, descriptors, files in use), not by event records.

use std::path::Path;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{
    Analysis, Chunk, Control, Feed, Options, Record, Slice, StreamPlace, StreamRef, fold,
};
use tracebraid_follow::{CpuSet, KernelAnalysis, Selection, View, Views, Window};
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
use tracebraid_testkit::grow::{Target, grow};

/// An analysis whose report is that of another one, and the size of its state in bytes as it would cross a network.
struct StateSize<A>(A);

impl<A: Analysis> Analysis for StateSize<A> {
    type Partial = A::Partial;
    type Report = (usize, A::Report);

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        self.0.groups(set)
    }

    fn lanes(&self) -> usize {
        self.0.lanes()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        self.0.wants(trace, stream_class, class)
    }

    fn begin(&self, chunk: &Chunk) -> A::Partial {
        self.0.begin(chunk)
    }

    fn packet(&self, partial: &mut A::Partial, packet: &StreamPlace<'_>) {
        self.0.packet(partial, packet);
    }

    fn cut(&self, partial: &mut A::Partial, packet: &StreamPlace<'_>, time: Timestamp) {
        self.0.cut(partial, packet, time);
    }

    fn event(&self, partial: &mut A::Partial, record: &mut Record<'_>) {
        self.0.event(partial, record);
    }

    fn chunk(&self, partial: &mut A::Partial, feed: &mut Feed<'_>) {
        self.0.chunk(partial, feed);
    }

    fn end(&self, partial: &mut A::Partial, chunk: &Chunk) {
        self.0.end(partial, chunk);
    }

    fn exchange(&self, partial: &mut A::Partial, resident: &mut A::Partial) {
        self.0.exchange(partial, resident);
    }

    fn merge(&self, earlier: &mut A::Partial, later: A::Partial) {
        self.0.merge(earlier, later);
    }

    fn slices<'a>(&'a self, partial: &mut A::Partial, watermark: Timestamp) -> Vec<Slice<'a, A::Partial>> {
        self.0.slices(partial, watermark)
    }

    fn follow_up<'a>(&'a self, partial: &mut A::Partial) -> Vec<Slice<'a, A::Partial>> {
        self.0.follow_up(partial)
    }

    fn finish(&self, partial: A::Partial) -> (usize, A::Report) {
        let bytes = postcard::to_allocvec(&partial).expect("a state can be serialized");
        (bytes.len(), self.0.finish(partial))
    }
}

/// The size of the state after a trace, folded in many chunks and slices, and the report.
fn folded<A: Analysis>(set: &TraceSet, analysis: A) -> (usize, A::Report) {
    let options = Options {
        threads: 1,
        chunk_bytes: 200_000,
        slice_bytes: 200_000,
        ..Options::default()
    };
    let folded = fold(set, &StateSize(analysis), options, &Control::default());
    folded.expect("the fold is not cancelled").report
}

/// The size of the state of a report with statistics. Lists of the longest ones are of constant length, and lists of all
/// are as long as they are.
fn size_of_state<A: KernelAnalysis<Options: From<Views>>>(set: &TraceSet) -> usize {
    let views = Views {
        views: vec![View::Stats],
        ..Views::default()
    };
    folded(set, A::with(set, Selection::default(), views.into())).0
}

/// A recorded trace whose activity is repeated that often.
fn repeated(times: u64, directory: &Path) -> TraceSet {
    let source = tracebraid_testkit::recorded::unpacked("kernel-mix-small");
    let destination = directory.join(times.to_string());
    grow(&source, &destination, Target::Times(times)).expect("the trace can be repeated");
    TraceSet::open(std::slice::from_ref(&destination)).expect("the trace can be opened")
}

/// The sizes, if the second one is not about the same as the first.
fn grown(name: &str, few: usize, many: usize) -> Option<String> {
    assert!(few > 100, "{name}: {few} bytes");
    // Numbers take more bytes as sums grow.
    let is_same = many < few + few / 5;
    (!is_same).then(|| format!("{name}: {few} bytes, and {many} after four times as many events"))
}

#[test]
fn states_do_not_grow_with_event_records() {
    let directory = tempfile::tempdir().expect("a directory for traces");
    let (few, many) = (repeated(5, directory.path()), repeated(20, directory.path()));
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
    let count = |set| folded(set, Count::new(set, Window::default(), CpuSet::default(), 60)).0;
    all_grown.extend(grown("Count", count(&few), count(&many)));
    assert!(all_grown.is_empty(), "{all_grown:#?}");
}

/// Threads with the same ids are made again and again: each is a life of its own, which the report lists.
#[test]
fn states_of_processes_grow_with_their_report() {
    let directory = tempfile::tempdir().expect("a directory for traces");
    let sizes = |times| {
        let set = repeated(times, directory.path());
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
