//! A recording with call stacks: its functions appear at the right positions of the trees.
//!
//! The recording is that of the case study on disk contention
//! (`docs/case-studies/disk-contention`): a server reads from its disk (`read_block`), while
//! another thread of the server sometimes flushes its log to that disk (`flush_log`).

use std::collections::HashMap;
use std::path::Path;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, FoldError, Options, fold};
use tracebraid_executions::{
    Builder, ContextId, Ecct, FrameKind, Names, Sampled, compare, executions, ranked, with_threads,
};
use tracebraid_follow::{KernelAnalysis, Selection, Window};
use tracebraid_graph::GraphAnalysis;
use tracebraid_language::Datum;
use tracebraid_language::periods::Periods;
use tracebraid_periods::EndedAnalysis;
use tracebraid_profile::Samples;
use tracebraid_symbols::Symbols;

use crate::told::Words;

const MS: u64 = 1_000_000;

/// Requests with their trees.
struct Recorded {
    requests: Vec<(u64, i128, Ecct)>,
    contexts: tracebraid_executions::Contexts,
    names: Names,
}

fn folded<A: Analysis>(set: &TraceSet, analysis: &A) -> A::Report {
    let folded = fold(set, analysis, Options::default(), &Control::default());
    folded.expect("no cancellation").report
}

fn recorded(directory: &Path) -> Recorded {
    let set = TraceSet::open(&[directory.join("disk-contention")]).expect("a trace");
    let mut periods = Periods::default();
    let definition = "request : $evt.$name == \"server:request_begin\" :
        $evt.$name == \"server:request_end\" && $evt.request == $begin.$evt.request";
    periods.period(definition).expect("a definition");
    periods
        .captures("request : request = $evt.request")
        .expect("captures");
    let analysis =
        EndedAnalysis::new(&set, with_threads(periods), Window::default()).expect("a plan");
    let ended = folded(&set, &analysis);
    let graph = folded(&set, &GraphAnalysis::new(&set, Selection::default()));
    // The archive contains the program, which is found by its build id.
    let mut symbols = Symbols::new(vec![directory.join("disk-contention.debug")]);
    let how = (Options::default(), &Control::default());
    let samples = Samples::new(&set, &mut symbols, &[], how).expect("no cancellation");
    let sampled = Sampled::new(&set, &graph, &samples, Names::default());
    assert!(!sampled.threads.is_empty());
    let mut builder = Builder::new(
        &graph,
        &sampled.stacks,
        &sampled.threads,
        sampled.names.clone(),
    );
    let mut requests = Vec::new();
    for execution in executions(&set, &graph, ended) {
        let ecct = builder.ecct(&execution.path(&graph).expect("the server's thread"));
        assert_eq!(ecct.total(), execution.duration());
        let [Datum::Integer(number)] = execution.values.as_slice() else {
            panic!("a number is captured: {:?}", execution.values);
        };
        requests.push((execution.duration(), *number, ecct));
    }
    Recorded {
        requests,
        contexts: builder.contexts,
        names: builder.names,
    }
}

impl Recorded {
    fn words(&self, context: ContextId) -> Words {
        let frames = self.contexts.frames(context).into_iter();
        frames
            .map(|frame| (frame.kind, self.names.text(frame.name).to_owned()))
            .collect()
    }
}

/// True if these frames occur in this order, possibly with other frames between them.
fn goes(words: &Words, way: &[(FrameKind, &str)]) -> bool {
    let mut words = words.iter();
    way.iter()
        .all(|wanted| words.any(|(kind, name)| (*kind, name.as_str()) == *wanted))
}

const READ: [(FrameKind, &str); 4] = [
    (FrameKind::Function, "handle_request"),
    (FrameKind::Function, "read_block"),
    (FrameKind::Call, "pread64"),
    (FrameKind::Reason, "block-device"),
];
const FLUSHED: [(FrameKind, &str); 3] = [
    (FrameKind::Reason, "block-device"),
    (FrameKind::Thread, "logger"),
    (FrameKind::Function, "flush_log"),
];

#[test]
fn waits_stand_under_the_functions_that_waited() {
    let recorded = recorded(&tracebraid_testkit::recorded::unpacked("disk-contention"));
    assert_eq!(recorded.requests.len(), 300);
    // Time of waits for the disk, and the part of it under the function that reads.
    let (mut waited, mut reading) = (0, 0);
    for (_, _, ecct) in &recorded.requests {
        for &(context, time) in &ecct.times {
            let words = recorded.words(context);
            if goes(&words, &READ[2..]) {
                waited += time;
                reading += if goes(&words, &READ) { time } else { 0 };
            }
        }
    }
    assert!(waited > 500 * MS, "{waited}");
    // Waits shorter than the recording threshold have no stacks of their own.
    assert!(reading * 100 > waited * 95, "{reading} of {waited}");
}

#[test]
fn slow_requests_differ_by_who_else_used_the_disk() {
    let directory = tracebraid_testkit::recorded::unpacked("disk-contention");
    let recorded = recorded(&directory);
    let group = |is: &dyn Fn(u64) -> bool| {
        let requests = recorded
            .requests
            .iter()
            .filter(|(duration, ..)| is(*duration));
        requests.collect::<Vec<_>>()
    };
    let fast = group(&|duration| duration < 10 * MS);
    let slow = group(&|duration| duration > 20 * MS);
    assert!(
        fast.len() > 250 && slow.len() > 15,
        "{} {}",
        fast.len(),
        slow.len()
    );
    let text = std::fs::read_to_string(directory.join("disk-contention.truth/requests.csv"))
        .expect("the truth");
    let truth: HashMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.split_once(','))
        .collect();
    for (_, number, _) in &slow {
        assert_eq!(truth[number.to_string().as_str()], "fsync", "{number}");
    }
    let times = [&fast, &slow].map(|group| {
        let times = group.iter().map(|(_, _, ecct)| ecct.times.as_slice());
        times.collect::<Vec<_>>()
    });
    let differences = ranked(&compare(&recorded.contexts, [&times[0], &times[1]]), false);
    // The writing thread comes first: its requests are large, and the disk is busy with them nearly
    // all the time.
    let first = recorded.words(differences[0].context);
    assert!(differences[0].is_sure() && differences[0].test.more > 10e6);
    assert!(goes(&first, &READ) && goes(&first, &FLUSHED), "{first:?}");
    let more = |is: &dyn Fn(&Words) -> bool| -> f64 {
        let at_disk = differences
            .iter()
            .map(|of| (recorded.words(of.context), of.test.more));
        let chosen = at_disk.filter(|(words, _)| goes(words, &READ) && is(words));
        chosen.map(|(_, more)| more).sum()
    };
    let (all, logger) = (more(&|_| true), more(&|words| goes(words, &FLUSHED)));
    println!("{logger} of {all} ns are the logger's");
    assert!(logger > 0.9 * all, "{logger} of {all}");
}

#[test]
fn cancelled_samples_are_none() {
    let directory = tracebraid_testkit::recorded::unpacked("disk-contention");
    let set = TraceSet::open(&[directory.join("disk-contention")]).expect("a trace");
    let control = Control::default();
    control.cancel();
    let how = (Options::default(), &control);
    let samples = Samples::new(&set, &mut Symbols::default(), &[], how);
    assert_eq!(samples.err(), Some(FoldError::Cancelled));
}
