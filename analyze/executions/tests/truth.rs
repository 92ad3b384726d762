//! Requests of a real program that were slowed by injected causes: their trees differ at the cause.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_executions::{
    Builder, ContextId, Contexts, Ecct, FrameKind, Names, Sampled, StackId, Stacks, Times, compare,
    executions, with_threads,
};
use tracebraid_follow::{KernelAnalysis, Selection, Window};
use tracebraid_graph::GraphAnalysis;
use tracebraid_language::Datum;
use tracebraid_language::periods::Periods;
use tracebraid_periods::EndedAnalysis;
use tracebraid_profile::{SampledStack, Samples};

use crate::told::Words;

/// Injected cause of a request, and its tree.
pub(crate) struct Request {
    pub(crate) cause: String,
    pub(crate) ecct: Ecct,
}

fn folded<A: Analysis>(set: &TraceSet, analysis: &A, options: Options) -> A::Report {
    fold(set, analysis, options, &Control::default())
        .expect("no cancellation")
        .report
}

/// Injected cause and duration (by the program's own clock) of each request, by its number.
fn truth(directory: &Path) -> HashMap<i128, (String, u64)> {
    let text = std::fs::read_to_string(directory.join("requests.csv")).expect("the truth");
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let at = |name: &str| {
        head.iter()
            .position(|column| *column == name)
            .expect("a column")
    };
    let [id, begin, end, cause] = ["request_id", "start_ns", "end_ns", "injected_cause"].map(at);
    let row = |row: Vec<&str>| {
        let [begin, end] = [begin, end].map(|at| row[at].parse::<u64>().expect("a time"));
        let id = row[id].parse().expect("a number");
        (id, (row[cause].to_owned(), end - begin))
    };
    lines.map(row).collect()
}

pub(crate) fn requests(options: Options) -> (Vec<Request>, Contexts, BTreeMap<u32, Words>) {
    let directory = tracebraid_testkit::recorded::unpacked("kernel-ust-requests");
    let set = TraceSet::open(&[directory.join("kernel-ust-requests")]).expect("a trace");
    let causes = truth(&directory.join("kernel-ust-requests.truth"));
    let mut periods = Periods::default();
    let definition = "request : $evt.$name == \"app:request_begin\" :
        $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id";
    periods.period(definition).expect("a definition");
    periods
        .captures("request : id = $evt.id")
        .expect("captures");
    let analysis =
        EndedAnalysis::new(&set, with_threads(periods), Window::default()).expect("a plan");
    let ended = folded(&set, &analysis, options);
    assert_eq!((ended.unfinished.clone(), ended.refused), (vec![0], 0));
    let graph = folded(
        &set,
        &GraphAnalysis::new(&set, Selection::default()),
        options,
    );
    let (stacks, threads) = (Stacks::default(), HashMap::new());
    let mut builder = Builder::new(&graph, &stacks, &threads, Names::default());
    let mut found = Vec::new();
    let mut apart = 0;
    for execution in executions(&set, &graph, ended) {
        let [Datum::Integer(id)] = execution.values.as_slice() else {
            panic!("a number is captured: {:?}", execution.values);
        };
        let (cause, duration) = &causes[id];
        apart += u64::from(execution.duration().abs_diff(*duration) > 100_000);
        assert!(execution.first.is_some() && execution.first == execution.last);
        let ecct = builder.ecct(&execution.path(&graph).expect("a worker"));
        assert_eq!(ecct.total(), execution.duration(), "{id}");
        found.push(Request {
            cause: cause.clone(),
            ecct,
        });
    }
    assert_eq!(found.len(), causes.len());
    // The program reads its clock next to the event records, so that a preemption in between is
    // rare.
    assert!(apart * 20 < found.len() as u64, "{apart}");
    let words = |context| {
        let frame = |frame: &tracebraid_executions::Frame| {
            (frame.kind, builder.names.text(frame.name).to_owned())
        };
        builder.contexts.frames(context).iter().map(frame).collect()
    };
    let ids = 0..builder.contexts.count() as u32;
    let words = ids.map(|id| (id, words(ContextId(id)))).collect();
    (found, builder.contexts, words)
}

pub(crate) fn of_cause<'r>(requests: &'r [Request], cause: &str) -> Vec<Times<'r>> {
    let of_cause = requests.iter().filter(|request| request.cause == cause);
    of_cause
        .map(|request| request.ecct.times.as_slice())
        .collect()
}

#[test]
fn trees_of_slow_requests_differ_where_the_cause_is() {
    let (requests, contexts, words) = requests(Options::default());
    let fast = of_cause(&requests, "none");
    let has = |words: &Words, kind: FrameKind, name: &str| {
        words.iter().any(|frame| frame.0 == kind && frame.1 == name)
    };
    let thread = |words: &Words, name| has(words, FrameKind::Thread, name);
    let reason = |words: &Words, name| has(words, FrameKind::Reason, name);
    type Is<'t> = &'t dyn Fn(&Words) -> bool;
    let causes: [(&str, Is<'_>); 6] = [
        ("preempt", &|words| {
            reason(words, "preempted") && thread(words, "cpuhog")
        }),
        ("lock_sleep", &|words| {
            thread(words, "lockholder") && reason(words, "timer")
        }),
        ("lock_run", &|words| {
            thread(words, "lockholder") && !reason(words, "timer")
        }),
        ("backend_sleep", &|words| {
            thread(words, "backend") && reason(words, "timer")
        }),
        ("backend_run", &|words| {
            thread(words, "backend") && !reason(words, "timer")
        }),
        ("disk", &|words| {
            reason(words, "block-device") && has(words, FrameKind::Detail, "vdc")
        }),
    ];
    for (cause, is_it) in causes {
        let slow = of_cause(&requests, cause);
        let differences = compare(&contexts, [&fast, &slow]);
        let own = differences
            .iter()
            .filter(|of| !of.is_whole && of.test.chance < SURE);
        let most = own.max_by(|one, other| one.test.more.total_cmp(&other.test.more));
        let most = most.unwrap_or_else(|| panic!("{cause}: nothing differs"));
        let found = &words[&most.context.0];
        assert!(is_it(found), "{cause}: {found:?} {most:?}");
        assert!(
            most.test.interval.is_some_and(|(low, _)| low > 0.0) && most.test.effect > 0.5,
            "{cause}: {most:?}"
        );
    }
}

/// Significance level.
pub(crate) const SURE: f64 = 0.01;

/// Invented stacks: of a computing worker, of a waiting worker, and of a thread that does not
/// exist.
#[test]
fn stacks_go_to_their_threads() {
    let directory = tracebraid_testkit::recorded::unpacked("kernel-ust-requests");
    let set = TraceSet::open(&[directory.join("kernel-ust-requests")]).expect("a trace");
    let graph = folded(
        &set,
        &GraphAnalysis::new(&set, Selection::default()),
        Options::default(),
    );
    let (worker, _) = graph
        .ids()
        .find(|(_, actor)| actor.name.as_deref() == Some("worker-1"))
        .expect("a worker");
    let actor = graph.actor(worker).expect("the same");
    let kernel = actor.key.trace;
    let user = (0..set.traces.len() as u32)
        .find(|&trace| trace != kernel)
        .expect("a user-space trace");
    let middle = actor
        .line
        .get(actor.line.len() / 2)
        .expect("a stretch")
        .begin;
    let sample = |trace, tid, time, functions: &[u32], wait_ns| SampledStack {
        trace,
        time: Timestamp(time),
        tid,
        functions: functions.to_vec(),
        wait_ns,
    };
    let tid = Some(i64::from(actor.key.tid));
    let samples = Samples {
        names: ["main", "work", "read"].map(str::to_owned).to_vec(),
        stacks: vec![
            sample(kernel, tid, middle, &[0, 1], None),
            sample(user, tid, middle + 1000, &[0, 2], Some(400)),
            sample(kernel, Some(999_999), middle, &[0], None),
            sample(kernel, None, middle, &[0], None),
        ],
        missing: Vec::new(),
        ..Samples::default()
    };
    let sampled = Sampled::new(&set, &graph, &samples, Names::default());
    assert_eq!((sampled.threads.len(), sampled.of_nobody), (1, 2));
    let functions = |time| {
        let parts = |stack: &StackId| sampled.stacks.parts(*stack);
        let stack = sampled.threads[&worker].at(time);
        let stacks = std::iter::successors(Some(stack), |stack| parts(stack).map(|parts| parts.0));
        let names = stacks.filter_map(|stack| Some(sampled.names.text(parts(&stack)?.1)));
        names.collect::<Vec<_>>()
    };
    assert_eq!(functions(middle - 1), ["work", "main"]);
    assert_eq!(functions(middle + 1), ["main"]);
    assert_eq!(functions(middle + 700), ["read", "main"]);
}

#[test]
fn trees_are_the_same_for_every_number_of_threads() {
    let one = Options {
        threads: 1,
        ..Options::default()
    };
    let many = Options {
        threads: 4,
        chunk_bytes: 1 << 16,
        ..Options::default()
    };
    let [(one, _, of_one), (many, _, of_many)] = [one, many].map(requests);
    assert_eq!(of_one, of_many);
    let trees = |requests: Vec<Request>| {
        requests
            .into_iter()
            .map(|request| request.ecct)
            .collect::<Vec<_>>()
    };
    assert_eq!(trees(one), trees(many));
}
