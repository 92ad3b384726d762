//! The law of folding, for any analysis: its report does not depend on the size of chunks, the
//! number of threads or the order of merging, and equals that of a plain pass.
//!
//! A new analysis joins with a line in the list of its test program and, if it is an analysis of
//! kernel events, by [`Modelled`].

use std::sync::Mutex;

use serde::Serialize;
use tracebraid_clocks::PacketAnalysis;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_follow::{By, CpuSet, KernelAnalysis, Selection, Views, Window};
use tracebraid_graph::GraphAnalysis;
use tracebraid_reports::cpu::CpuAnalysis;
use tracebraid_reports::disk::DiskAnalysis;
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::gpu::GpuJobAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::irq::IrqAnalysis;
use tracebraid_reports::levels::{LevelAnalysis, ReactionAnalysis};
use tracebraid_reports::memory::MemoryAnalysis;
use tracebraid_reports::net::NetAnalysis;
use tracebraid_reports::processes::ProcessAnalysis;
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_reports::syscalls::SyscallAnalysis;
use tracebraid_reports::waits::WaitAnalysis;
use tracebraid_tables::View;

use crate::forwarding::Forwarding;
use crate::synthetic::Random;
use crate::{model_cpu, model_io};

/// An analysis that must obey the law.
pub trait Lawful: KernelAnalysis<Options: From<Views>> {
    const NAME: &'static str;
}

/// An analysis that is compared with a plain model.
pub trait Modelled: Lawful {
    /// The report by plain passes over all events.
    fn model(set: &TraceSet, asked: Asked) -> impl Serialize;
}

macro_rules! lawful {
    ($($analysis:ident: $name:literal,)*) => {
        $(impl Lawful for $analysis {
            const NAME: &'static str = $name;
        })*
    };
}

lawful! {
    CpuAnalysis: "cpu",
    DiskAnalysis: "disk",
    FilesAnalysis: "files",
    GpuJobAnalysis: "gpu jobs",
    IoAnalysis: "io",
    NetAnalysis: "net",
    PacketAnalysis: "packets",
    SyscallAnalysis: "syscalls",
    IrqAnalysis: "irq",
    LevelAnalysis: "levels",
    ReactionAnalysis: "levels reactions",
    MemoryAnalysis: "memory",
    SchedAnalysis: "sched",
    ProcessAnalysis: "processes",
    WaitAnalysis: "waits",
    GraphAnalysis: "critical-path",
}

impl Modelled for CpuAnalysis {
    fn model(set: &TraceSet, asked: Asked) -> impl Serialize {
        model_cpu::cpu(set, asked.range, asked.cpus)
    }
}

impl Modelled for IoAnalysis {
    fn model(set: &TraceSet, asked: Asked) -> impl Serialize {
        model_io::io(set, asked.range, asked.cpus)
    }
}

/// Selection of a report.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Nanoseconds from the origin: inclusive begin, exclusive end.
    pub range: Range,
    /// CPUs; `None` for all.
    pub cpus: Option<&'static [u32]>,
}

/// A range of time in nanoseconds.
type Range = (i64, i64);

/// No restriction.
pub const ALL: Asked = Asked {
    range: (i64::MIN, i64::MAX),
    cpus: None,
};

impl Asked {
    /// The selection in the form that analyses take.
    pub fn selection(self) -> Selection {
        let cpus = self.cpus.map(|cpus| cpus.iter().copied().collect());
        Selection {
            window: window(self.range),
            cpus: CpuSet(cpus),
            ..Selection::default()
        }
    }

    /// All views but histograms.
    pub fn views(self) -> Views {
        Views {
            views: vec![View::Stats, View::Top, View::Log],
            ..Views::default()
        }
    }

    /// All views, with histograms by each group that a report knows.
    pub fn all_views(self) -> Views {
        Views {
            views: View::ALL.to_vec(),
            by: By::ALL.to_vec(),
            ..Views::default()
        }
    }

    /// An analysis of it with all views.
    fn full_analysis<A: Lawful>(self, set: &TraceSet) -> A {
        A::with(set, self.selection(), self.all_views().into())
    }

    /// An analysis with this selection.
    pub fn analysis<A: Lawful>(self, set: &TraceSet) -> A {
        A::with(set, self.selection(), self.views().into())
    }
}

/// A range in the form that analyses take.
pub fn window((from, to): Range) -> Window {
    let time = |time: i64, none: i64| (time != none).then_some(Timestamp(time));
    Window {
        from: time(from, i64::MIN),
        to: time(to, i64::MAX),
    }
}

/// Configurations of a fold: number of threads, and number of bytes at which a chunk is closed.
pub type Ways = &'static [(usize, u64)];

/// For recorded traces.
pub const LARGE: Ways = &[(1, u64::MAX), (1, 1), (2, 200_000), (3, 1), (8, 500_000)];
/// For traces of some hundred kilobytes.
pub const SMALL: Ways = &[
    (1, u64::MAX),
    (1, 1),
    (2, 2000),
    (5, 1),
    (8, 10_000),
    (1, 5000),
];

pub fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string_pretty(value).expect("a report can be serialized")
}

/// The report of a fold in one configuration.
pub fn folded<A: Analysis<Report: Serialize>>(
    set: &TraceSet,
    analysis: &A,
    (threads, chunk_bytes): (usize, u64),
) -> String {
    let options = Options {
        threads,
        chunk_bytes,
        slice_bytes: chunk_bytes,
        ..Options::default()
    };
    let outcome = fold(set, analysis, options, &Control::default());
    json(&outcome.expect("the fold is not cancelled").report)
}

/// Panics with the first difference of two texts.
pub fn same(what: &str, expected: &str, found: &str) {
    if expected == found {
        return;
    }
    for (number, (expected, found)) in expected.lines().zip(found.lines()).enumerate() {
        assert_eq!(expected, found, "{what}: line {number}");
    }
    let lines = |text: &str| text.lines().count();
    panic!(
        "{what}: {} lines instead of {}",
        lines(found),
        lines(expected)
    );
}

/// Checks the report in each configuration.
pub fn every_way<A: Analysis<Report: Serialize>>(
    what: &str,
    set: &TraceSet,
    analysis: &A,
    expected: &str,
    ways: Ways,
) {
    for &way in ways {
        let (threads, bytes) = way;
        let what = format!("{what}, {threads} threads, chunks of {bytes} bytes");
        same(&what, expected, &folded(set, analysis, way));
    }
}

/// Checks in each configuration that the report equals the model's.
pub fn as_modelled<A: Modelled>(what: &str, set: &TraceSet, asked: Asked, ways: Ways) {
    let expected = json(&A::model(set, asked));
    as_told::<A>(what, set, asked, &expected, ways);
}

/// Checks in each configuration that the report equals `expected`.
pub fn as_told<A: Lawful>(what: &str, set: &TraceSet, asked: Asked, expected: &str, ways: Ways) {
    let analysis = asked.analysis::<A>(set);
    let what = format!("{} of {what}, {asked:?}", A::NAME);
    every_way(&what, set, &analysis, expected, ways);
}

/// Checks that all configurations give the same report, for cases without a model.
pub fn as_in_one_piece<A: Lawful>(what: &str, set: &TraceSet, asked: Asked, ways: Ways) {
    let analysis = asked.full_analysis::<A>(set);
    let expected = folded(set, &analysis, (1, u64::MAX));
    every_way(
        &format!("{} of {what}", A::NAME),
        set,
        &analysis,
        &expected,
        ways,
    );
}

/// Merges the same partial states in another order than the engine, serialized between any two
/// steps.
pub fn any_tree<A: Lawful>(set: &TraceSet, seed: u64) {
    any_tree_of(A::NAME, set, &ALL.full_analysis::<A>(set), seed);
}

/// Like `any_tree`, for any analysis.
pub fn any_tree_of<A: Analysis<Report: Serialize>>(
    name: &str,
    set: &TraceSet,
    analysis: &A,
    seed: u64,
) {
    if analysis.groups(set).concat().is_empty() {
        // The trace has no events for this analysis; other traces do.
        return;
    }
    let mut random = Random::new(seed + 77);
    let kept = Mutex::new(Vec::new());
    let keep = |state: &A::Partial| {
        kept.lock()
            .expect("no test failed before")
            .push(sent::<A>(state))
    };
    let chunks = Forwarding {
        analysis,
        take_chunk: Some(&keep),
        finish: |_: &A, _| (),
    };
    let options = Options {
        threads: 1,
        chunk_bytes: 5000,
        ..Options::default()
    };
    fold(set, &chunks, options, &Control::default()).expect("the fold is not cancelled");
    let mut states = kept.into_inner().expect("no test failed before");
    assert!(states.len() > 20, "there are states to merge");
    while states.len() > 1 {
        let at = random.below(states.len() as u64 - 1) as usize;
        let later = received::<A>(&states.remove(at + 1));
        let mut earlier = received::<A>(&states.remove(at));
        analysis.merge(&mut earlier, later);
        states.insert(at, sent::<A>(&earlier));
    }
    let state = received::<A>(&states.remove(0));
    let what = format!("{name}: a random tree of merges, seed {seed}");
    let expected = folded(set, analysis, (1, u64::MAX));
    same(&what, &expected, &json(&analysis.finish(state)));
}

fn sent<A: Analysis>(state: &A::Partial) -> String {
    serde_json::to_string(state).expect("a state can be serialized")
}

fn received<A: Analysis>(text: &str) -> A::Partial {
    serde_json::from_str(text).expect("a state can be deserialized")
}
