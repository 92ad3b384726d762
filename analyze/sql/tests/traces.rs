//! Tables of traces.

use std::collections::BTreeMap;

use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::Options;
use tracebraid_follow::{KernelAnalysis, Selection, View, Views};
use tracebraid_graph::{GraphAnalysis, State, WaitReason};
use tracebraid_reports::sched::SchedAnalysis;
use tracebraid_sql::{Questions, Value};

use crate::support::{ask, folded, integer, number, opened, set, text};

fn questions(set: &'static TraceSet) -> Questions {
    Questions::new(None, Some(opened(set, Options::default()))).expect("no file")
}

/// Times and names of all event records, read in a plain way.
fn plain(set: &TraceSet) -> Vec<(i64, String)> {
    let mut reader = MergedReader::new(set);
    let mut found = Vec::new();
    while let Some((time, reader)) = reader.next() {
        let event = reader.event().expect("an event record");
        found.push((time.0, event.class.name.to_string()));
    }
    found
}

#[test]
fn events_are_those_of_the_traces() {
    let set = set("kernel-mix-small");
    let questions = questions(set);
    let plain = plain(set);
    let rows = ask(&questions, "SELECT time_ns, name FROM events");
    let found: Vec<(i64, String)> = rows
        .iter()
        .map(|row| (integer(&row[0]), text(&row[1]).to_owned()))
        .collect();
    assert!(found == plain, "{} {}", found.len(), plain.len());
    // Times are in order: SQLite need not sort them.
    let plan = ask(
        &questions,
        "EXPLAIN QUERY PLAN SELECT * FROM events ORDER BY time_ns LIMIT 3",
    );
    assert_eq!(plan.len(), 1, "{plan:?}");
    let switches = plain
        .iter()
        .filter(|event| event.1 == "sched_switch")
        .count();
    let count = "SELECT count(*) FROM events WHERE name = 'sched_switch'";
    assert_eq!(number(&questions, count) as usize, switches);
}

/// Any range of time equals filtering in memory, whether or not the query uses `tid`.
#[test]
fn ranges_of_time_are_exact() {
    let set = set("kernel-mix-small");
    let questions = questions(set);
    let plain = plain(set);
    let (first, last) = (plain[0].0, plain[plain.len() - 1].0);
    let mut random = 7u64;
    let mut any = |bound: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound.max(1)
    };
    for round in 0..12 {
        let from = match round % 3 {
            0 => plain[any(plain.len() as u64) as usize].0,
            _ => first - 100 + any((last - first) as u64) as i64,
        };
        let to = from + any(1 << (10 + round * 2)) as i64;
        let expected = plain
            .iter()
            .filter(|event| from <= event.0 && event.0 <= to)
            .count();
        let within = format!(
            "SELECT count(*), count(tid) FROM events WHERE time_ns BETWEEN {from} AND {to}"
        );
        assert_eq!(
            integer(&ask(&questions, &within)[0][0]) as usize,
            expected,
            "{from} {to}"
        );
        let strict = format!(
            "SELECT count(*) FROM events WHERE time_ns > {from} - 1 AND time_ns < {to} + 1"
        );
        assert_eq!(
            number(&questions, &strict) as usize,
            expected,
            "{from} {to}"
        );
        // The running thread follows from earlier records and does not depend on the start of the
        // range.
        let from_all = format!(
            "SELECT total(tid) FROM (SELECT time_ns + 0 AS time, tid FROM events) WHERE time BETWEEN {from} AND {to}"
        );
        let of_range =
            format!("SELECT total(tid) FROM events WHERE time_ns BETWEEN {from} AND {to}");
        if round < 3 {
            assert_eq!(
                ask(&questions, &from_all),
                ask(&questions, &of_range),
                "{from} {to}"
            );
        }
    }
}

#[test]
fn fields_are_exact_json() {
    for name in ["kernel-mix-small", "kernel-ust-requests", "ust-cyg-profile"] {
        let set = set(name);
        let questions = questions(set);
        let rows = ask(
            &questions,
            "SELECT name, fields, context FROM events LIMIT 20000",
        );
        assert!(rows.len() > 100);
        for row in &rows {
            for column in [1, 2] {
                let json: serde_json::Value = serde_json::from_str(text(&row[column]))
                    .unwrap_or_else(|error| panic!("{error}: {row:?}"));
                assert!(json.is_object());
            }
        }
        let wrong = "SELECT count(*) FROM events WHERE name = 'sched_switch' AND
            (tid IS NULL OR tid != json_extract(fields, '$.prev_tid'))";
        assert_eq!(number(&questions, wrong), 0, "{name}");
    }
    let set = set("kernel-mix-small");
    let questions = questions(set);
    let sums =
        "SELECT sum(json_extract(fields, '$.ret')) FROM events WHERE name = 'syscall_exit_read'";
    assert_ne!(number(&questions, sums), 0);
}

/// The rows of a thread follow each other without gaps and equal those of the graph, for any number
/// of analysis threads.
#[test]
fn intervals_are_the_stretches_of_the_graph() {
    let set = set("kernel-mix-small");
    let graph = folded(
        set,
        &GraphAnalysis::new(set, Selection::default()),
        Options::default(),
    );
    let one = Options {
        threads: 1,
        chunk_bytes: 1 << 16,
        ..Options::default()
    };
    let select = "SELECT tid, begin_ns, end_ns, duration_ns, state, cpu, detail FROM intervals";
    let rows = ask(&questions(set), select);
    let again = Questions::new(None, Some(opened(set, one))).expect("no file");
    assert!(rows == ask(&again, select));
    let mut place = 0;
    let mut running: BTreeMap<i64, i64> = BTreeMap::new();
    for (_, actor) in graph.ids() {
        let mut at = None;
        for (index, stretch) in actor.line.iter().enumerate() {
            let next = actor
                .line
                .get(index + 1)
                .map_or(graph.known_until, |next| next.begin);
            if stretch.state == State::Ended || next <= stretch.begin {
                continue;
            }
            let row = &rows[place];
            place += 1;
            let numbers = [0, 1, 2, 3].map(|column| integer(&row[column]));
            assert_eq!(
                numbers,
                [
                    actor.key.tid.into(),
                    stretch.begin,
                    next,
                    next - stretch.begin
                ]
            );
            assert!(at.is_none_or(|at| at == stretch.begin));
            at = Some(next);
            let state = text(&row[4]);
            assert!(
                WaitReason::ALL.iter().any(|reason| reason.name() == state),
                "{state}"
            );
            assert_eq!(
                state == "running",
                matches!(stretch.state, State::Running(_))
            );
            if let State::Running(cpu) = stretch.state {
                assert_eq!(row[5], Value::Integer(cpu.into()));
                *running.entry(actor.key.tid.into()).or_default() += next - stretch.begin;
            }
        }
    }
    assert_eq!(place, rows.len());
    let questions = questions(set);
    for (tid, expected) in running {
        let sum = format!(
            "SELECT sum(duration_ns) FROM intervals WHERE tid = {tid} AND state = 'running'"
        );
        assert_eq!(number(&questions, &sum), expected, "{tid}");
    }
    let threads = ask(
        &questions,
        "SELECT tid, pid, name, begin_ns, end_ns FROM trace_threads",
    );
    assert_eq!(threads.len(), graph.actors.len());
    for (row, actor) in threads.iter().zip(&graph.actors) {
        assert_eq!(integer(&row[0]), i64::from(actor.key.tid));
        match actor.begin() {
            Some(begin) => assert!(
                begin == integer(&row[3]) && begin <= integer(&row[4]),
                "{row:?}"
            ),
            // The thread is named, but its actions are unknown.
            None => assert_eq!(row[3..], [Value::Null, Value::Null]),
        }
    }
}

/// The preemptor of a thread is the next thread of the switch.
#[test]
fn preempted_threads_know_by_whom() {
    let set = set("kernel-mix-small");
    let questions = questions(set);
    let switches =
        "SELECT time_ns, json_extract(fields, '$.prev_tid'), json_extract(fields, '$.next_tid')
        FROM events WHERE name = 'sched_switch'";
    let takers: BTreeMap<(i64, i64), i64> = ask(&questions, switches)
        .iter()
        .map(|row| ((integer(&row[0]), integer(&row[1])), integer(&row[2])))
        .collect();
    let rows = ask(
        &questions,
        "SELECT begin_ns, tid, detail FROM intervals WHERE state = 'preempted'",
    );
    assert!(rows.len() > 1000, "{}", rows.len());
    for row in &rows {
        let taker = takers[&(integer(&row[0]), integer(&row[1]))];
        let detail = text(&row[2]);
        let is_of_it = detail.starts_with("by ") && detail.ends_with(&format!("({taker})"));
        assert!(is_of_it || taker == 0, "{detail}: {taker}");
    }
}

/// SQL and `sched` attribute the same wake-ups to the same interrupts and threads.
#[test]
fn wakers_are_those_of_sched() {
    let set = set("kernel-mix-small");
    let questions = questions(set);
    let question = "SELECT time_ns, json_extract(fields, '$.tid'), interrupt, tid FROM events
        WHERE name IN ('sched_waking', 'sched_wakeup', 'sched_wakeup_new')";
    let mut wakes: BTreeMap<(i64, i64), (Value, Value)> = BTreeMap::new();
    for row in ask(&questions, question) {
        let key = (integer(&row[0]), integer(&row[1]));
        wakes.insert(key, (row[2].clone(), row[3].clone()));
    }
    let views = Views {
        views: vec![View::Log],
        ..Views::default()
    };
    let analysis = SchedAnalysis::with(set, Selection::default(), views.into());
    let report = folded(set, &analysis, Options::default());
    let report = serde_json::to_value(report).expect("JSON");
    let mut contexts: BTreeMap<String, usize> = BTreeMap::new();
    for row in report["log"].as_array().expect("latencies") {
        let number = |value: &serde_json::Value| value.as_i64().expect("a number");
        let (interrupt, tid) = &wakes[&(number(&row["wakeup_ns"]), number(&row["tid"]))];
        let context = row["waker_context"].as_str().expect("a context");
        match context {
            "thread" | "idle" => {
                let expected = Value::Integer(number(&row["waker"]["tid"]));
                assert_eq!((interrupt, tid), (&Value::Null, &expected), "{row}");
            }
            "unknown" => assert_eq!(interrupt, &Value::Null, "{row}"),
            _ => assert_eq!(
                text(interrupt),
                row["waker"]["name"].as_str().expect("a name"),
                "{row}"
            ),
        }
        *contexts.entry(context.to_owned()).or_default() += 1;
    }
    for context in ["thread", "irq", "softirq", "timer"] {
        assert!(contexts.get(context) > Some(&10), "{contexts:?}");
    }
}

#[test]
fn traces_that_cannot_be_opened_are_told_of() {
    let open = |_| Err("they are gone".to_owned());
    let traces = tracebraid_sql::Traces::new(Box::new(open), Box::new(|_| ()), Options::default());
    let questions = Questions::new(None, Some(traces)).expect("no file");
    for table in ["events", "intervals", "trace_threads"] {
        let error = crate::support::try_ask(&questions, &format!("SELECT * FROM {table}"));
        let error = error.expect_err("no traces").to_string();
        assert!(
            error.contains("they are gone") && error.contains(table),
            "{error}"
        );
    }
}
