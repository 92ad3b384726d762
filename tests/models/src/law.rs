//! The law, for any analysis: its report does not depend on the size of chunks, on the number of
//! threads or on the way in which partial states are merged, and is that of a plain pass.
//!
//! A new analysis joins by a line in the list of its test program, and, if it is one of kernel
//! events, by [`Modelled`].

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
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::irq::IrqAnalysis;
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

/// An analysis of which the law holds.
pub trait Lawful: KernelAnalysis<Options: From<Views>> {
    const NAME: &'static str;
}

/// An analysis with a slow and obvious one beside it.
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
    IoAnalysis: "io",
    NetAnalysis: "net",
    PacketAnalysis: "packets",
    SyscallAnalysis: "syscalls",
    IrqAnalysis: "irq",
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

/// What a report is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    /// Nanoseconds from the first to before the second.
    pub range: Range,
    /// CPUs; none: all.
    pub cpus: Option<&'static [u32]>,
}

/// A range of time in nanoseconds.
type Range = (i64, i64);

/// Everything.
pub const ALL: Asked = Asked {
    range: (i64::MIN, i64::MAX),
    cpus: None,
};

impl Asked {
    /// As analyses take it.
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

    /// An analysis of it.
    pub fn analysis<A: Lawful>(self, set: &TraceSet) -> A {
        A::with(set, self.selection(), self.views().into())
    }
}

/// A range as analyses take it.
pub fn window((from, to): Range) -> Window {
    let time = |time: i64, none: i64| (time != none).then_some(Timestamp(time));
    Window {
        from: time(from, i64::MIN),
        to: time(to, i64::MAX),
    }
}

/// Ways to fold: numbers of threads, and bytes from which on a chunk is closed.
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

/// The report, folded in one way.
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
    json(&outcome.expect("nobody cancels").report)
}

/// Says where two texts differ.
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

/// The report is the expected one, in whatever way it is folded.
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

/// The report is that of the model, in every way.
pub fn as_modelled<A: Modelled>(what: &str, set: &TraceSet, asked: Asked, ways: Ways) {
    let expected = json(&A::model(set, asked));
    as_told::<A>(what, set, asked, &expected, ways);
}

/// The report is the one that was told, in every way.
pub fn as_told<A: Lawful>(what: &str, set: &TraceSet, asked: Asked, expected: &str, ways: Ways) {
    let analysis = asked.analysis::<A>(set);
    let what = format!("{} of {what}, {asked:?}", A::NAME);
    every_way(&what, set, &analysis, expected, ways);
}

/// The report is the same in every way, where no model can tell it.
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

/// The same partial states, merged in another order than the engine's, and sent as text between
/// any two steps.
pub fn any_tree<A: Lawful>(set: &TraceSet, seed: u64) {
    any_tree_of(A::NAME, set, &ALL.full_analysis::<A>(set), seed);
}

/// The same of any analysis.
pub fn any_tree_of<A: Analysis<Report: Serialize>>(
    name: &str,
    set: &TraceSet,
    analysis: &A,
    seed: u64,
) {
    if analysis.groups(set).concat().is_empty() {
        // Nothing there is for it; other traces are.
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
    fold(set, &chunks, options, &Control::default()).expect("nobody cancels");
    let mut states = kept.into_inner().expect("no test failed before");
    assert!(states.len() > 20, "there is something to merge");
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
