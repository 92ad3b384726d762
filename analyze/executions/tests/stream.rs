//! Executions that are made while the trace is read equal those made from the whole graph, for all
//! ways to read the trace.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tracebraid_clocks::{Machines, Matches, PacketAnalysis, Synchronization};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, fold};
use tracebraid_executions::{
    BuildError, BuildRules, Builder, Built, ContextId, Contexts, CountAnalysis, Finished, Frame,
    Names, Sampled, Sink, Union, all_metrics, build, executions, with_threads,
};
use tracebraid_follow::{KernelAnalysis, Selection, ThreadKey, Window};
use tracebraid_graph::{ActorId, Graph, GraphAnalysis};
use tracebraid_language::periods::Periods;
use tracebraid_periods::EndedAnalysis;
use tracebraid_profile::{SampledStack, Samples};
use tracebraid_testkit::grow::{Target, grow};
use tracebraid_testkit::recorded::unpacked;

use crate::told::Words;

/// Keeps all executions, with their threads in the graph at that time.
#[derive(Default)]
pub(crate) struct Collect(pub(crate) Vec<(Finished, [Option<ThreadKey>; 2])>);

fn keys(graph: &Graph, finished: &Finished) -> [Option<ThreadKey>; 2] {
    let key = |actor: Option<ActorId>| Some(graph.actor(actor?)?.key);
    [key(finished.execution.first), key(finished.execution.last)]
}

impl Sink for Collect {
    type Error = Infallible;

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Infallible> {
        let keys = keys(graph, &finished);
        self.0.push((finished, keys));
        Ok(())
    }
}

/// An execution with names in place of the numbers of contexts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InWords {
    pub(crate) kind: usize,
    pub(crate) window: (i64, i64),
    pub(crate) threads: [Option<ThreadKey>; 2],
    pub(crate) values: Vec<tracebraid_language::Datum>,
    pub(crate) metrics: Vec<Option<u64>>,
    pub(crate) ecct: BTreeMap<Words, u64>,
    pub(crate) steps: Vec<(u64, Words)>,
}

pub(crate) fn in_words(
    contexts: &Contexts,
    names: &Names,
    (finished, threads): &(Finished, [Option<ThreadKey>; 2]),
) -> InWords {
    let frame = |frame: &Frame| (frame.kind, names.text(frame.name).to_owned());
    let words =
        |context: ContextId| -> Words { contexts.frames(context).iter().map(frame).collect() };
    InWords {
        kind: finished.execution.kind,
        window: (finished.execution.begin, finished.execution.end),
        threads: *threads,
        values: finished.execution.values.clone(),
        metrics: finished.metrics.clone(),
        ecct: finished
            .ecct
            .times
            .iter()
            .map(|(context, time)| (words(*context), *time))
            .collect(),
        steps: finished
            .steps
            .iter()
            .map(|step| (step.duration, words(step.context)))
            .collect(),
    }
}

/// Executions by their numbers.
fn all_in_words(found: &Collect, union: &Union) -> BTreeMap<Vec<u64>, InWords> {
    let one = |found: &(Finished, _)| {
        (
            found.0.execution.numbers.clone(),
            in_words(&union.contexts, &union.names, found),
        )
    };
    found.0.iter().map(one).collect()
}

pub(crate) fn folded<A: Analysis>(set: &TraceSet, analysis: &A) -> A::Report {
    let outcome = fold(set, analysis, Options::default(), &Control::default());
    outcome.expect("no cancellation").report
}

/// The executions of the whole graph, with one pass for each analysis.
fn plainly(set: &TraceSet, rules: &BuildRules, samples: &Samples) -> BTreeMap<Vec<u64>, InWords> {
    let periods = &rules.definitions.periods;
    let analysis =
        EndedAnalysis::new(set, with_threads(periods.clone()), Window::default()).expect("a plan");
    let ended = folded(set, &analysis);
    let mut graph = folded(set, &GraphAnalysis::new(set, Selection::default()));
    graph.devices = Arc::clone(&rules.devices);
    let counts = CountAnalysis::new(set, &periods.clone().into()).expect("names");
    let lines = folded(set, &counts);
    let sampled = Sampled::new(set, &graph, samples, Names::default());
    let mut builder = Builder::new(
        &graph,
        &sampled.stacks,
        &sampled.threads,
        sampled.names.clone(),
    );
    let mut found = Collect::default();
    for execution in executions(set, &graph, ended) {
        let path = execution.path(&graph);
        let (ecct, steps) = path
            .as_ref()
            .map(|path| builder.ecct_and_steps(path))
            .unwrap_or_default();
        let mut figures = vec![None; tracebraid_executions::Metric::all().count()];
        figures[0] = Some(execution.duration());
        if let Some(path) = &path {
            figures = all_metrics(&graph, path, execution.kind, (counts.quantities(), &lines));
        }
        let Ok(()) = found.take(
            &graph,
            Finished {
                execution,
                metrics: figures,
                ecct,
                steps,
            },
        );
    }
    let union = Union {
        contexts: builder.contexts,
        names: builder.names,
    };
    all_in_words(&found, &union)
}

pub(crate) fn rules(definitions: &[&str]) -> BuildRules {
    let mut periods = Periods::default();
    for definition in definitions {
        periods.period(definition).expect("a definition");
    }
    BuildRules {
        definitions: periods.into(),
        ..BuildRules::default()
    }
}

pub(crate) fn built(
    set: &TraceSet,
    rules: &BuildRules,
    samples: &Samples,
    options: Options,
) -> (Collect, Built) {
    let mut found = Collect::default();
    let control = Control::default();
    let built = build(
        set,
        rules,
        samples,
        Union::default(),
        (options, &control),
        &mut found,
    );
    (found, built.expect("it is made"))
}

const REQUEST: &str = "request : $evt.$name == \"app:request_begin\" :
    $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id";
/// A thread is off its CPU; some threads never run again.
pub(crate) const AWAY: &str = "away : $evt.$name == \"sched_switch\" && $evt.prev_tid != 0 :
    $evt.$name == \"sched_switch\" && $evt.next_tid == $begin.$evt.prev_tid";
const NEVER_ENDS: &str = "all : $evt.$name == \"sched_switch\" && $evt.next_prio < 120 : $evt.$name == \"sched_switch\" && \
    $evt.next_tid == -7";

fn requests() -> TraceSet {
    TraceSet::open(&[unpacked("kernel-ust-requests").join("kernel-ust-requests")]).expect("a trace")
}

fn two_hosts() -> TraceSet {
    let directory = unpacked("twohost");
    let hosts = ["twohost-server", "twohost-client"].map(|host| directory.join(host));
    let mut set = TraceSet::open(&hosts).expect("traces");
    let packets = folded(&set, &PacketAnalysis::new(&set, Selection::default()));
    let machines = Machines::of(&set);
    let matches = Matches::of(&packets, &machines);
    let found =
        Synchronization::of(machines, &matches, Some("srv")).expect("the hosts are related");
    found
        .transformations()
        .apply(&mut set)
        .expect("the traces can be corrected");
    set
}

fn queues() -> TraceSet {
    TraceSet::open(&[unpacked("perf-queues").join("perf-queues")]).expect("a trace")
}

pub(crate) const SECOND: u64 = BuildRules::BEHIND_NS;

/// Ways to read a trace.
pub(crate) fn ways() -> impl Iterator<Item = Options> {
    let ways = [
        (1, 1 << 16),
        (3, 1 << 16),
        (2, 5_000),
        (4, 1 << 20),
        (1, u64::MAX),
    ];
    ways.into_iter().map(|(threads, chunk_bytes)| Options {
        threads,
        chunk_bytes,
        ..Options::default()
    })
}

/// Invented stacks of all running threads, at switches and between them.
fn invented(set: &TraceSet) -> Samples {
    let graph = folded(set, &GraphAnalysis::new(set, Selection::default()));
    let mut samples = Samples {
        names: ["main", "work", "read", "hash"].map(str::to_owned).to_vec(),
        ..Samples::default()
    };
    for (number, (_, actor)) in graph.ids().enumerate() {
        for (place, pair) in actor
            .line
            .windows(2)
            .enumerate()
            .filter(|(place, _)| place % 3 == 0)
        {
            let functions = [&[0][..], &[0, 1], &[0, 1, 2], &[0, 3]][(place / 3 + number) % 4];
            samples.stacks.push(SampledStack {
                trace: actor.key.trace,
                time: Timestamp(pair[1].begin),
                tid: Some(i64::from(actor.key.tid)),
                functions: functions.to_vec(),
                wait_ns: (place % 2 == 0).then(|| pair[0].begin.abs_diff(pair[1].begin)),
            });
        }
    }
    samples
}

/// Checks that executions equal those of the whole graph, and are identical for all ways to read
/// the trace.
fn check_against_whole_graph(
    set: &TraceSet,
    definitions: &[&str],
    samples: &Samples,
    behind: &[u64],
) -> usize {
    check_rules(set, rules(definitions), samples, behind).len()
}

/// As [`check_against_whole_graph`]; returns the executions.
pub(crate) fn check_rules(
    set: &TraceSet,
    mut rules: BuildRules,
    samples: &Samples,
    behind: &[u64],
) -> BTreeMap<Vec<u64>, InWords> {
    let expected = plainly(set, &rules, samples);
    // With this delay, later samples cannot change an execution.
    let enough = match samples.stacks.is_empty() {
        true => BuildRules::BEHIND_NS,
        false => u64::MAX,
    };
    let intervals = behind
        .iter()
        .flat_map(|behind| [(*behind, 0), (*behind, 100_000)]);
    for (behind_ns, interval_bytes) in intervals {
        (rules.behind_ns, rules.interval_bytes) = (behind_ns, interval_bytes);
        let (first, of_first) = built(set, &rules, samples, Options::default());
        let found = all_in_words(&first, &of_first.union);
        assert_eq!(found.len(), expected.len());
        if behind_ns >= enough {
            for (number, found) in &found {
                assert_eq!(found, &expected[number], "{number:?}");
            }
        }
        let frames = |built: &Built| -> Vec<Vec<Frame>> {
            let ids = (0..built.union.contexts.count() as u32).map(ContextId);
            ids.map(|id| built.union.contexts.frames(id)).collect()
        };
        for options in ways() {
            let (other, of_other) = built(set, &rules, samples, options);
            assert!(
                first.0 == other.0,
                "{options:?}, {behind_ns}, {interval_bytes}"
            );
            assert_eq!(frames(&of_first), frames(&of_other));
            assert_eq!(of_first.union.names.texts(), of_other.union.names.texts());
            assert_eq!(of_first.unfinished, of_other.unfinished);
        }
    }
    expected
}

#[test]
fn requests_are_those_of_the_whole_graph() {
    let set = requests();
    assert_eq!(
        check_against_whole_graph(
            &set,
            &[REQUEST],
            &Samples::default(),
            &[0, 3_000_000, SECOND, u64::MAX]
        ),
        2500
    );
}

#[test]
fn waits_of_all_threads_are_those_of_the_whole_graph() {
    assert!(
        check_against_whole_graph(
            &requests(),
            &[AWAY],
            &Samples::default(),
            &[3_000_000, SECOND]
        ) > 10_000
    );
}

#[test]
fn stacks_are_those_of_the_whole_graph() {
    let set = requests();
    let samples = invented(&set);
    assert!(samples.stacks.len() > 5_000);
    check_against_whole_graph(
        &set,
        &[REQUEST],
        &samples,
        &[0, 3_000_000, SECOND, u64::MAX],
    );
}

#[test]
fn executions_on_two_hosts_are_those_of_the_whole_graph() {
    let set = two_hosts();
    assert!(
        check_against_whole_graph(&set, &[REQUEST, AWAY], &Samples::default(), &[0, SECOND]) > 1000
    );
}

#[test]
fn executions_with_queues_and_rings_are_those_of_the_whole_graph() {
    // The name of the event in perf.
    let definition = AWAY
        .replace("_tid", "_pid")
        .replace("sched_switch", "sched:sched_switch");
    assert!(
        check_against_whole_graph(
            &queues(),
            &[&definition],
            &Samples::default(),
            &[0, 3_000_000, SECOND]
        ) > 10
    );
}

#[test]
fn windows_have_the_executions_in_them() {
    let set = requests();
    let mut rules = rules(&[REQUEST]);
    let all = plainly(&set, &rules, &Samples::default());
    let begin = all
        .values()
        .map(|of| of.window.0)
        .min()
        .expect("there are some");
    let end = all
        .values()
        .map(|of| of.window.1)
        .max()
        .expect("there are some");
    let third = (end - begin) / 3;
    let (from, to) = (begin + third, end - third);
    (rules.window.from, rules.window.to) = (Some(Timestamp(from)), Some(Timestamp(to)));
    let is_in = |of: &&InWords| from <= of.window.0 && of.window.1 < to;
    let expected: Vec<&InWords> = all.values().filter(is_in).collect();
    assert!(expected.len() > 200, "{}", expected.len());
    for options in ways() {
        let (found, built) = built(&set, &rules, &Samples::default(), options);
        let found = all_in_words(&found, &built.union);
        assert!(found.values().eq(expected.iter().copied()), "{options:?}");
    }
}

/// A trace that is repeated `times` times.
fn longer(name: &str, times: u64) -> (PathBuf, TraceSet) {
    let source = unpacked(name).join(name);
    let destination = source.with_extension(format!("{times}-{}", std::process::id()));
    grow(&source, &destination, Target::Times(times)).expect("it grows");
    let set = TraceSet::open(&[&destination as &Path]).expect("the trace");
    (destination, set)
}

#[test]
fn what_is_kept_does_not_grow_with_the_trace() {
    let options = Options {
        threads: 2,
        chunk_bytes: 1 << 16,
        ..Options::default()
    };
    let kept = |times| {
        let (directory, set) = longer("kernel-ust-requests", times);
        let (found, built) = built(&set, &rules(&[REQUEST]), &Samples::default(), options);
        let graph = folded(&set, &GraphAnalysis::new(&set, Selection::default()));
        std::fs::remove_dir_all(directory).expect("it was made");
        let all: usize = graph.actors.iter().map(|actor| actor.line.len()).sum();
        assert!(found.0.len() >= 2499 * times as usize, "{}", found.0.len());
        assert_eq!(built.given_up, 0);
        (built.most_stretches, all)
    };
    let (short, long) = (kept(2), kept(8));
    println!("{short:?} {long:?}");
    // More while the machine is busy: one thread is then ahead of the other.
    assert!(long.0 < short.0 * 2, "{short:?} {long:?}");
    assert!(long.0 * 5 < long.1, "{short:?} {long:?}");
}

#[test]
fn what_never_ends_does_not_keep_everything() {
    let (directory, set) = longer("kernel-ust-requests", 4);
    let (alone, _) = built(
        &set,
        &rules(&[REQUEST]),
        &Samples::default(),
        Options::default(),
    );
    let mut rules = rules(&[REQUEST, NEVER_ENDS]);
    rules.most_within = 10_000;
    (rules.behind_ns, rules.interval_bytes) = (SECOND / 100, 0);
    let mut firsts: Option<Collect> = None;
    for options in ways() {
        let (found, built) = built(&set, &rules, &Samples::default(), options);
        // The unfinished executions are counted, and all others are made.
        assert!(built.unfinished[1] > 0);
        assert_eq!(found.0.len() + built.given_up as usize, alone.0.len());
        let first = firsts.get_or_insert_with(|| Collect(found.0.clone()));
        assert!(first.0 == found.0, "{options:?}");
        if options.chunk_bytes < 1 << 20 {
            let all = folded(&set, &GraphAnalysis::new(&set, Selection::default()));
            let all: usize = all.actors.iter().map(|actor| actor.line.len()).sum();
            println!("{} of {all}", built.most_stretches);
            assert!(
                built.most_stretches * 3 < all,
                "{} {all}",
                built.most_stretches
            );
        }
    }
    std::fs::remove_dir_all(directory).expect("it was made");
}

#[test]
fn executions_in_which_too_much_happens_are_counted() {
    let set = requests();
    let mut rules = rules(&[AWAY]);
    let (all, of_all) = built(&set, &rules, &Samples::default(), Options::default());
    assert_eq!(of_all.given_up, 0);
    rules.most_within = 3_000;
    let mut firsts = None;
    for options in ways() {
        let (found, built) = built(&set, &rules, &Samples::default(), options);
        assert!(built.given_up > 0);
        assert_eq!(found.0.len() + built.given_up as usize, all.0.len());
        let numbers: Vec<_> = found
            .0
            .iter()
            .map(|of| of.0.execution.numbers.clone())
            .collect();
        assert_eq!(
            firsts.get_or_insert_with(|| numbers.clone()),
            &numbers,
            "{options:?}"
        );
    }
}

/// Takes a fixed number of executions, and then fails.
struct Full(usize);

impl Sink for Full {
    type Error = &'static str;

    fn take(&mut self, _: &Graph, _: Finished) -> Result<(), &'static str> {
        self.0 = self.0.checked_sub(1).ok_or("it is full")?;
        Ok(())
    }
}

#[test]
fn a_sink_that_is_full_ends_it() {
    let set = requests();
    for options in ways() {
        let control = Control::default();
        let (options, samples) = ((options, &control), &Samples::default());
        let result = build(
            &set,
            &rules(&[REQUEST]),
            samples,
            Union::default(),
            options,
            &mut Full(100),
        );
        assert_eq!(result.err(), Some(BuildError::Sink("it is full")));
        // With several threads, chunks may be read ahead.
        if options.0.threads == 1 && options.0.chunk_bytes < 1 << 20 {
            assert!(control.done() < control.total(), "the rest is not read");
        }
    }
}
