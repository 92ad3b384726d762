//! Counts along critical paths, compared with the programs' own records, reports, and single calls.

use std::collections::{BTreeMap, HashMap};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options};
use tracebraid_executions::{
    BuildRules, CountAnalysis, CountSeries, DelimitedAnalysis, Execution, ExtraMetric, Finished,
    FunctionNames, Metric, Sink, Union, all_metrics, build, executions,
};
use tracebraid_follow::{KernelAnalysis, Selection, Window};
use tracebraid_graph::{Graph, GraphAnalysis, SegmentKind};
use tracebraid_language::Datum;
use tracebraid_profile::Samples;
use tracebraid_reports::io::IoAnalysis;

use crate::delimit::{defined, folded, found, traces, ways};

fn graph(set: &TraceSet) -> Graph {
    folded(
        set,
        &GraphAnalysis::new(set, Selection::default()),
        Options::default(),
    )
}

/// The counts, which must be the same for all ways to read the trace.
fn counted(set: &TraceSet, texts: &[&str]) -> (CountAnalysis, CountSeries) {
    let analysis = CountAnalysis::new(set, &defined(texts)).expect("names");
    let [first, others @ ..] = ways().map(|options| folded(set, &analysis, options));
    for other in others {
        assert_eq!(other, first);
    }
    (analysis, first)
}

/// Metrics by name.
type Figures = HashMap<String, Option<u64>>;

/// Executions that have a path, and their metrics.
fn figures(set: &TraceSet, texts: &[&str]) -> Vec<(Execution, Figures)> {
    let (analysis, lines) = counted(set, texts);
    let quantities = analysis.quantities();
    let names: Vec<String> = Metric::all().map(Metric::name).collect();
    let extra = quantities.extra().into_iter().map(|extra| extra.name);
    let names: Vec<String> = names.into_iter().chain(extra).collect();
    let graph = graph(set);
    let ended = found(set, texts, Window::default());
    let figures = |execution: Execution| {
        let path = execution.path(&graph)?;
        let values = all_metrics(&graph, &path, execution.kind, (quantities, &lines));
        assert_eq!(values.len(), names.len());
        Some((execution, names.iter().cloned().zip(values).collect()))
    };
    executions(set, &graph, ended)
        .into_iter()
        .filter_map(figures)
        .collect()
}

fn integer(datum: &Datum) -> i128 {
    match datum {
        Datum::Integer(number) => *number,
        other => panic!("{other:?}"),
    }
}

fn requests() -> TraceSet {
    traces("probe-requests", &["probe-requests"])
}

/// Cost of each request by its number, as the program records it: bytes read and written, pages,
/// items.
fn truth(set: &TraceSet) -> BTreeMap<i128, [u64; 4]> {
    // Each event record is a period that ends with itself.
    let ended = found(
        set,
        &[
            "period t : $evt.$name == \"shop:truth\" : $evt.$name == \"tracebraid:span_begin\" && $evt.id == $begin.$evt.id",
            "captures t : id = $evt.id, $evt.read, $evt.written, $evt.pages, $evt.items",
        ],
        Window::default(),
    );
    let row = |period: &tracebraid_periods::EndedPeriod| {
        let [id, costs @ ..] = [0, 1, 2, 3, 4].map(|place| integer(&period.begin.captures[place]));
        (id, costs.map(|cost| cost as u64))
    };
    ended.periods.iter().map(row).collect()
}

/// Counters of threads that LTTng-UST recorded, compared with the program's own record for each of
/// its two threads.
#[test]
fn counters_of_threads_are_those_of_their_requests() {
    let directory = tracebraid_testkit::recorded::unpacked("ust-counters").join("ust-counters");
    let set = traces("ust-counters", &["ust-counters"]);
    let texts = [
        r#"period request : $evt.$name == "lttng_ust_tracef:event" && $evt.msg =* "begin*" : $evt.$name == "lttng_ust_tracef:event" && $evt.msg =* "end*" && $evt.vtid == $begin.$evt.vtid"#,
        "captures request : $evt.msg",
    ];
    let found: HashMap<String, Figures> = figures(&set, &texts)
        .into_iter()
        .map(|(execution, figures)| {
            let text = execution.values[0].bytes().expect("text");
            (String::from_utf8_lossy(text).into_owned(), figures)
        })
        .collect();
    let truth = std::fs::read_to_string(directory.join("truth")).expect("the program's record");
    assert_eq!((truth.lines().count(), found.len()), (200, 200));
    for line in truth.lines() {
        let numbers: Vec<u64> = line
            .split(' ')
            .map(|word| word.parse().expect("a number"))
            .collect();
        let [thread, number, pages, sleeps] = numbers[..] else {
            panic!("{line}");
        };
        let figures = &found[&format!("begin {thread}/{number}")];
        assert_eq!(figures["perf_thread_page_fault"], Some(pages), "{line}");
        assert!(
            figures["timer_ns"] >= Some(sleeps * 100_000),
            "{line}: {figures:?}"
        );
    }
}

#[test]
fn requests_cost_what_the_program_says() {
    let set = requests();
    let truth = truth(&set);
    assert_eq!(truth.len(), 30);
    let texts = [
        "span request",
        "function cost",
        "value items(request) = shop:batch . items",
        "value most(request) = shop:batch . items max",
        "value batches(request) = shop:batch count",
        "value numbered(request) = shop:batch . items count",
        "value last = shop:batch . items last",
        "value never = shop:nothing . x",
    ];
    let found = figures(&set, &texts);
    let requests: Vec<_> = found
        .iter()
        .filter(|(execution, _)| execution.kind == 0)
        .collect();
    assert_eq!(requests.len(), 30);
    for (execution, figures) in &requests {
        let id = integer(&execution.values[1]);
        let of =
            |name: &str| figures[name].unwrap_or_else(|| panic!("{name} of {id}: {figures:?}"));
        let [read, written, pages, items] = truth[&id];
        // During the first request, the probe library writes, because it meets spans for the first
        // time.
        let own = if id == 5000 { 157 } else { 0 };
        let moved = (of("read_bytes"), of("written_bytes"));
        assert_eq!(moved, (read, written + own), "{id}: {figures:?}");
        // Each second request waits for a helper, which does the same work again.
        let parts = 1 + u64::from(id % 2 == 1);
        assert_eq!((of("threads"), of("hosts")), (parts, 1), "{id}");
        // The interpreter's own memory may cause faults, and waiting and waking are calls, too.
        assert!(
            (pages..pages + 40).contains(&of("page_faults")),
            "{id}: {figures:?}"
        );
        assert!(
            (3 * parts..3 * parts + 24).contains(&of("system_calls")),
            "{id}: {figures:?}"
        );
        let most = (id as u64 - 5000) % 4;
        let batches = (items, most * parts, most * parts);
        assert_eq!(
            (of("items"), of("batches"), of("numbered")),
            batches,
            "{id}"
        );
        let greatest = (most > 0).then_some(most);
        assert_eq!(
            (figures["most"], figures["last"], figures["never"]),
            (greatest, greatest, None)
        );
    }
    let costs = found.iter().filter(|(execution, _)| execution.kind == 1);
    for (_, figures) in costs.clone() {
        assert!(
            figures["read_bytes"] > Some(0) && figures["items"].is_none(),
            "{figures:?}"
        );
    }
    assert_eq!(costs.count(), 47);
}

#[test]
fn spans_begin_and_end_on_whatever_thread() {
    let set = requests();
    let ended = found(
        &set,
        &["span order", "span r*", "span nothing"],
        Window::default(),
    );
    let of_kind = |kind| {
        ended
            .periods
            .iter()
            .filter(move |period| period.period == kind)
    };
    assert_eq!([0, 1, 2].map(|kind| of_kind(kind).count()), [5, 34, 0]);
    // The last of the spans that begin in one thread and end in another has no end.
    assert_eq!(ended.unfinished, [0, 1, 0]);
    for period in of_kind(0) {
        assert!(integer(&period.begin.captures[1]) % 2 == 0, "{period:?}");
        let threads = [&period.begin, &period.end]
            .map(|bound| integer(bound.captures.last().expect("a thread")));
        assert_ne!(threads[0], threads[1]);
    }
}

#[test]
fn all_together_is_what_the_report_says() {
    let set = traces("kernel-mix-small", &["kernel-mix-small"]);
    let (analysis, lines) = counted(&set, &[]);
    let report = folded(
        &set,
        &IoAnalysis::new(&set, Selection::default()),
        Options::default(),
    );
    // One read of 24 bytes began before the trace and ended in it: the report leaves it out.
    assert!(report.unsigned("unstarted") > 0);
    let expected = (
        report.unsigned("read_bytes") + 24,
        report.unsigned("written_bytes"),
    );
    assert_eq!((lines.total(1), lines.total(2)), expected);
    // The number of `syscall_entry_` in the output of babeltrace2.
    assert_eq!(lines.total(3), ENTRIES);
    assert_eq!(
        (analysis.quantities().extra(), analysis.doubts()),
        (vec![], vec![])
    );
}

const ENTRIES: u64 = 57745;

#[test]
fn a_call_that_does_not_wait_counts_itself_alone() {
    let set = traces("kernel-ust-requests", &["kernel-ust-requests"]);
    let graph = graph(&set);
    let mut alone = 0;
    for (execution, figures) in figures(&set, &["call read", "call w: write"]) {
        let path = execution.path(&graph).expect("it had one");
        let runs = |kind: &SegmentKind| {
            matches!(kind, SegmentKind::Running(_) | SegmentKind::Interrupted(_))
        };
        if !path.segments.iter().all(|segment| runs(&segment.kind)) {
            continue;
        }
        let ret = integer(execution.values.last().expect("its result")).max(0) as u64;
        let moved = [ret, 0];
        let [read, written] = if execution.kind == 0 { moved } else { [0, ret] };
        let of = |name: &str| figures[name];
        assert_eq!(
            (of("read_bytes"), of("written_bytes")),
            (Some(read), Some(written)),
            "{execution:?}"
        );
        assert_eq!(
            (of("system_calls"), of("page_faults")),
            (Some(1), None),
            "{execution:?}"
        );
        alone += 1;
    }
    assert!(alone > 1000, "{alone}");
}

#[test]
fn values_have_names_of_their_own() {
    let set = requests();
    let error = CountAnalysis::new(&set, &defined(&["value switches = a count"])).unwrap_err();
    assert!(error.contains("switches"), "{error}");
    let analysis = CountAnalysis::new(&set, &defined(&["value v = a count"])).expect("a name");
    assert_eq!(
        analysis.doubts(),
        ["no event of the traces records the value v"]
    );
    assert!(
        DelimitedAnalysis::new(
            &set,
            &defined(&["span x"]),
            FunctionNames::default(),
            Window::default()
        )
        .is_ok()
    );
}

/// Keeps executions and their metrics.
#[derive(Default)]
struct Kept {
    extra: Vec<ExtraMetric>,
    made: Vec<(Execution, Vec<Option<u64>>)>,
}

impl Sink for Kept {
    type Error = std::convert::Infallible;

    fn figures(&mut self, extra: &[ExtraMetric]) -> Result<(), Self::Error> {
        self.extra = extra.to_vec();
        Ok(())
    }

    fn take(&mut self, _: &Graph, finished: Finished) -> Result<(), Self::Error> {
        // Numbers of threads are specific to the graph of this pass.
        let execution = Execution {
            first: None,
            last: None,
            ..finished.execution
        };
        self.made.push((execution, finished.metrics));
        Ok(())
    }
}

#[test]
fn executions_of_all_kinds_are_made_in_one_pass() {
    let mixed = [
        "call read",
        "process s*",
        "period run : $evt.$name == \"sched_process_exec\" : $evt.$name == \"sched_process_exit\" && $evt.tid == $begin.$evt.tid",
    ];
    let shop = [
        "span request",
        "function cost",
        "call futex",
        "process python3",
        "value items = shop:batch . items",
        "value most(cost) = shop:batch . items max",
    ];
    let mixed = (
        traces("kernel-mix-small", &["kernel-mix-small"]),
        &mixed[..],
    );
    for (set, texts) in [mixed, (requests(), &shop[..])] {
        let expected = figures(&set, texts);
        let made = ways().map(|options| {
            let rules = BuildRules {
                definitions: defined(texts),
                ..BuildRules::default()
            };
            let mut kept = Kept::default();
            let how = (options, &Control::default());
            let built = build(
                &set,
                &rules,
                &Samples::default(),
                Union::default(),
                how,
                &mut kept,
            );
            let built = built.expect("it is made");
            assert_eq!((built.given_up, &built.extra), (0, &kept.extra));
            (kept.made, kept.extra, built.unfinished)
        });
        let names: Vec<String> = Metric::all().map(Metric::name).collect();
        let extra = made[0].1.iter().map(|extra| extra.name.clone());
        let names: Vec<String> = names.into_iter().chain(extra).collect();
        let key =
            |execution: &Execution| (execution.kind, execution.begin, execution.numbers.clone());
        let by_key: BTreeMap<_, _> = made[0].0.iter().map(|made| (key(&made.0), made)).collect();
        assert_eq!(by_key.len(), made[0].0.len());
        for (execution, figures) in &expected {
            let (own, metrics) = by_key[&key(execution)];
            assert_eq!((own.end, &own.values), (execution.end, &execution.values));
            let own: Figures = names.iter().cloned().zip(metrics.iter().copied()).collect();
            assert_eq!(own, *figures, "{execution:?}");
        }
        let kinds = 0..defined(texts).list.len();
        assert!(
            kinds
                .clone()
                .all(|kind| expected.iter().any(|(execution, _)| execution.kind == kind))
        );
        let [first, others @ ..] = made;
        for other in others {
            assert_eq!(other, first);
        }
    }
}
