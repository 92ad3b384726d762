//! Memory by thread compared with an independent model, on random traces.

use std::cmp::Reverse;

use serde_json::Value as Json;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{KernelAnalysis, Limits, ROWS, Selection, ThreadFilter, Views};
use tracebraid_models::law::{
    ALL, Asked, SMALL, any_tree, any_tree_of, as_in_one_piece, every_way, folded,
};
use tracebraid_models::model_memory::{Found, Move, Who, find, moves};
use tracebraid_models::naming::{Field, Maker, TEXT, Value::Int, Value::Text};
use tracebraid_models::synthetic::{Random, Scripted, Shape, scripted};
use tracebraid_models::traces::{kernel_trace, oracle};
use tracebraid_reports::memory::{MemoryAnalysis, MemoryOptions};
use tracebraid_tables::View;

const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 12_000,
    packet: 900,
    told_memory: false,
    ties: true,
    ..Shape::PLAIN
};

/// Memory events as LTTng records them; a failed allocation has the `pfn` of no page.
fn memory(random: &mut Random) -> (&'static str, Vec<Field<'static>>) {
    let order = [0, 0, 0, 1, 3, 9][random.below(6) as usize];
    let pfn = if random.chance(50) {
        -1
    } else {
        1 + random.below(1 << 20) as i64
    };
    let bytes = 1 + random.below(4096) as i64;
    let page = |pfn| vec![("pfn", 64, Int(pfn)), ("order", 32, Int(order))];
    let object = || {
        vec![
            ("ptr", 64, Int(-99)),
            ("bytes_req", 64, Int(bytes)),
            ("bytes_alloc", 64, Int(bytes | 31)),
        ]
    };
    let fault = || {
        vec![
            ("address", 64, Int(7)),
            ("ip", 64, Int(8)),
            ("error_code", 64, Int(4)),
        ]
    };
    let cached = || vec![("i_ino", 64, Int(5)), ("index", 64, Int(6))];
    match random.below(16) {
        0..4 => ("kmem_mm_page_alloc", page(pfn)),
        4 | 5 => ("kmem_mm_page_free", page(pfn.abs())),
        6 => ("kmem_mm_page_free_batched", vec![("pfn", 64, Int(3))]),
        7 => ("kmem_kmalloc", object()),
        8 => ("kmem_cache_alloc", object()),
        9 => ("kmem_kfree", vec![("ptr", 64, Int(-99))]),
        10 => ("x86_exceptions_page_fault_user", fault()),
        11 => ("x86_exceptions_page_fault_kernel", fault()),
        12 => ("mm_filemap_add_to_page_cache", cached()),
        13 => ("mm_filemap_delete_from_page_cache", cached()),
        14 => (
            "mm_vmscan_direct_reclaim_begin",
            vec![("order", 32, Int(order))],
        ),
        _ => match random.below(2) {
            0 => (
                "mm_vmscan_direct_reclaim_end",
                vec![("nr_reclaimed", 64, Int(bytes))],
            ),
            _ => (
                "mm_vmscan_kswapd_wake",
                vec![("nid", 32, Int(0)), ("order", 32, Int(order))],
            ),
        },
    }
}

fn switch(prev: i32, next: i32) -> Vec<Field<'static>> {
    vec![
        ("prev_comm", TEXT, Text("workload")),
        ("prev_tid", 32, Int(prev.into())),
        ("prev_prio", 32, Int(20)),
        ("prev_state", 64, Int(0)),
        ("next_comm", TEXT, Text("workload")),
        ("next_tid", 32, Int(next.into())),
        ("next_prio", 32, Int(20)),
    ]
}

fn fork(parent: i32, child: i32) -> Vec<Field<'static>> {
    vec![
        ("parent_comm", TEXT, Text("workload")),
        ("parent_tid", 32, Int(parent.into())),
        ("parent_pid", 32, Int(parent.into())),
        ("child_comm", TEXT, Text("child")),
        ("child_tid", 32, Int(child.into())),
        ("child_pid", 32, Int(i64::from(child) & !1)),
    ]
}

/// A trace in which `silent` CPUs never switch.
fn with_trace(seed: u64, shape: Shape, silent: u64, then: impl FnOnce(&TraceSet)) {
    let mut random = Random::new(seed);
    let mut running: Vec<i32> = (0..shape.cpus as i32).map(|cpu| 100 + cpu).collect();
    let mut time = 1000;
    let mut events: Vec<Scripted<'_>> = Vec::new();
    for _ in 0..shape.steps {
        time += random.below(30);
        let cpu = random.below(shape.cpus);
        let now = running[cpu as usize];
        let maker = Maker { tid: now, pid: now };
        let other = 100 + random.below(shape.threads) as i32;
        let (name, fields) = match random.below(20) {
            0 if cpu >= silent => {
                let next = if running.contains(&other) { 0 } else { other };
                running[cpu as usize] = next;
                ("sched_switch", switch(now, next))
            }
            1 if random.chance(100) && !running.contains(&other) => {
                ("sched_process_fork", fork(now, other))
            }
            _ => memory(&mut random),
        };
        events.push((cpu, time, maker, name, fields));
    }
    let (directory, set) = scripted(shape, events);
    then(&set);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

fn all_views() -> Views {
    Views {
        views: View::ALL.to_vec(),
        ..Views::default()
    }
}

fn json(set: &TraceSet, selection: Selection, options: MemoryOptions) -> Json {
    let analysis = MemoryAnalysis::with(set, selection, options);
    let options = Options {
        threads: 2,
        chunk_bytes: 10_000,
        ..Options::default()
    };
    let outcome = fold(set, &analysis, options, &Control::default());
    serde_json::to_value(outcome.expect("not cancelled").report)
        .expect("a report can be serialized")
}

fn rows<'a>(report: &'a Json, section: &str) -> &'a [Json] {
    report[section].as_array().expect("a list")
}

/// Compares every number of a row with the model.
fn compare(what: &str, row: &Json, found: impl Fn(&str) -> i64) {
    for (key, value) in row.as_object().expect("a row") {
        let about = [
            "who",
            "trace",
            "tid",
            "pid",
            "name",
            "host",
            "threads",
            "other_faults",
            "compactions",
            "kills",
        ];
        if !about.contains(&key.as_str()) {
            assert_eq!(value.as_i64(), Some(found(key)), "{what}: {key} of {row}");
        }
    }
}

fn amount(found: &Found, who: Who, what: &str) -> i64 {
    found
        .get(&who)
        .and_then(|counts| counts.get(what))
        .copied()
        .unwrap_or(0)
}

fn as_modelled(what: &str, set: &TraceSet, asked: Asked) {
    let (found, report) = (
        find(set, asked),
        json(set, asked.selection(), asked.views().into()),
    );
    let sum = |what: &str, wanted: &dyn Fn(Who) -> bool| -> i64 {
        found
            .keys()
            .filter(|who| wanted(**who))
            .map(|who| amount(&found, *who, what))
            .sum()
    };
    let of: [(&str, &dyn Fn(Who) -> bool); 4] = [
        ("threads", &|who| who.is_some_and(|tid| tid != 0)),
        ("idle", &|who| who == Some(0)),
        ("unknown", &|who| who.is_none()),
        ("all", &|_| true),
    ];
    for row in rows(&report, "totals") {
        let counted = row["what"].as_str().expect("a name");
        for (who, wanted) in of {
            let expected = sum(counted, wanted);
            assert_eq!(
                row[who].as_i64(),
                Some(expected),
                "{what}: {counted} of {who}"
            );
        }
    }
    assert_eq!(rows(&report, "totals").len(), 19);
    for (section, first) in [
        ("threads", "allocated_pages"),
        ("faults", "user_faults"),
        ("objects", "allocated_bytes"),
        ("cache", "added_pages"),
        ("reclaim", "direct_reclaims"),
    ] {
        let mut all = 0;
        for row in rows(&report, section) {
            let tid = row["tid"].as_i64().expect("a thread") as i32;
            compare(what, row, |what| amount(&found, Some(tid), what));
            all += row[first].as_i64().expect("a number");
        }
        let expected = sum(first, &|who| who.is_some_and(|tid| tid != 0));
        assert_eq!(all, expected, "{what}: all threads are in {section}");
    }
    let of_processes = rows(&report, "processes").iter();
    let pages: i64 = of_processes
        .map(|row| row["allocated_pages"].as_i64().expect("a number"))
        .sum();
    assert_eq!(
        pages,
        sum("allocated_pages", &|who| who.is_some_and(|tid| tid != 0)),
        "{what}"
    );
    let mut all = moves(set, asked);
    as_listed(&format!("{what}, log"), rows(&report, "log"), &all);
    all.retain(|moved| moved.what == "allocated");
    all.sort_by_key(|moved| (Reverse(moved.order), moved.time, moved.cpu, moved.who));
    all.truncate(ROWS);
    as_listed(&format!("{what}, largest"), rows(&report, "largest"), &all);
}

/// Compares each row with the model; rows of unknown threads have no thread.
fn as_listed(what: &str, found: &[Json], expected: &[Move]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (row, moved) in found.iter().zip(expected) {
        let number = |key: &str| row[key].as_i64();
        assert_eq!(number("time_ns"), Some(moved.time), "{what}: {row}");
        assert_eq!(number("cpu"), Some(i64::from(moved.cpu)), "{what}: {row}");
        assert_eq!(number("tid"), moved.who.map(i64::from), "{what}: {row}");
        assert_eq!(row["event"], moved.what, "{what}: {row}");
        assert_eq!(number("order"), Some(moved.order), "{what}: {row}");
        assert_eq!(
            number("size_bytes"),
            Some(4096 << moved.order),
            "{what}: {row}"
        );
    }
}

/// Bounds of sizes select the events of pages only. The counts by order equal those of the log.
#[test]
fn sizes_choose_pages() {
    let shape = Shape {
        silent_losses: 60,
        ..SHAPE
    };
    let sizes = Limits {
        min: Some(8192),
        max: Some(100_000),
    };
    let options = |sizes| MemoryOptions {
        views: all_views(),
        sizes,
    };
    for seed in 0..3 {
        with_trace(seed, shape, 0, |set| {
            let (whole, some) = (
                json(set, ALL.selection(), options(Limits::default())),
                json(set, ALL.selection(), options(sizes)),
            );
            for list in ["faults", "objects", "cache", "reclaim"] {
                assert_eq!(whole[list], some[list], "{list}");
            }
            let chosen: Vec<Move> = (moves(set, ALL).into_iter())
                .filter(|moved| (1..=4).contains(&moved.order))
                .collect();
            assert!(!chosen.is_empty());
            as_listed("some sizes", rows(&some, "log"), &chosen);
            let pages = |what: &str| -> i64 {
                let of = chosen.iter().filter(|moved| moved.what == what);
                of.map(|moved| 1 << moved.order).sum()
            };
            assert_eq!(some["total"]["allocated_pages"], pages("allocated"));
            assert_eq!(some["total"]["freed_pages"], pages("freed"));
            for report in [&whole, &some] {
                for row in rows(report, "distribution") {
                    let of = |moved: &&Json| {
                        moved["event"] == row["of"] && moved["order"] == row["order"]
                    };
                    let count = rows(report, "log").iter().filter(of).count();
                    assert_eq!(row["count"], count, "{row}");
                }
            }
            let analysis = MemoryAnalysis::with(set, ALL.selection(), options(sizes));
            let expected = folded(set, &analysis, (1, u64::MAX));
            every_way("some sizes", set, &analysis, &expected, SMALL);
            any_tree_of("some sizes", set, &analysis, seed);
        });
    }
}

#[test]
fn made_up_memory_is_as_modelled_and_the_law_holds() {
    let lossy = Shape {
        silent_losses: 60,
        ..SHAPE
    };
    let very_lossy = Shape {
        lost_packets: 60,
        counted_losses: 60,
        ..lossy
    };
    let part = Asked {
        range: (5000 + 50_000, 5000 + 130_000),
        cpus: Some(&[0, 2]),
    };
    for seed in 0..5 {
        for (what, shape, silent) in [
            ("whole", SHAPE, 0),
            ("lossy", lossy, 0),
            ("very lossy", very_lossy, 0),
            ("a CPU without switches", SHAPE, 1),
            ("no switches", lossy, 3),
        ] {
            let what = &format!("{what}, seed {seed}");
            with_trace(seed, shape, silent, |set| {
                for asked in [ALL, part] {
                    as_modelled(what, set, asked);
                    as_in_one_piece::<MemoryAnalysis>(what, set, asked, SMALL);
                }
                any_tree::<MemoryAnalysis>(set, seed);
            });
        }
    }
}

/// A few scripted events, with the thread of each allocation and release.
#[test]
fn pages_of_a_few_events() {
    let maker = Maker { tid: 7, pid: 7 };
    let page = |order| vec![("pfn", 64, Int(5)), ("order", 32, Int(order))];
    let events: Vec<Scripted<'_>> = vec![
        // The running thread is unknown.
        (0, 10, maker, "kmem_mm_page_alloc", page(2)),
        (0, 20, maker, "sched_switch", switch(3, 7)),
        (0, 30, maker, "kmem_mm_page_alloc", page(3)),
        (
            0,
            40,
            maker,
            "kmem_mm_page_alloc",
            vec![("pfn", 64, Int(-1)), ("order", 32, Int(9))],
        ),
        // A page that is released in a batch is recorded twice.
        (0, 50, maker, "kmem_mm_page_free", page(0)),
        (
            0,
            51,
            maker,
            "kmem_mm_page_free_batched",
            vec![("pfn", 64, Int(5))],
        ),
        (0, 60, maker, "sched_switch", switch(7, 0)),
        (0, 70, maker, "kmem_mm_page_free", page(4)),
        (0, 80, maker, "sched_process_fork", fork(7, 9)),
        (0, 90, maker, "sched_switch", switch(0, 9)),
        (0, 95, maker, "kmem_mm_page_alloc", page(0)),
    ];
    let (directory, set) = scripted(SHAPE, events);
    let report = json(&set, Selection::default(), MemoryOptions::default());
    let row = |section: &str, at: usize, fields: &[&str]| -> Vec<Json> {
        fields
            .iter()
            .map(|field| rows(&report, section)[at][*field].clone())
            .collect()
    };
    let pages = [
        "allocated_pages",
        "freed_pages",
        "balance_pages",
        "batched_pages",
        "failed",
    ];
    assert_eq!(row("threads", 0, &pages), [8, 1, 7, 1, 1]);
    assert_eq!(
        row("threads", 1, &["tid", "pid", "allocated_pages"]),
        [9, 8, 1]
    );
    assert_eq!(rows(&report, "threads").len(), 2);
    assert_eq!(row("processes", 0, &["pid", "allocated_pages"]), [7, 8]);
    let who = ["what", "threads", "idle", "unknown", "all"];
    assert_eq!(row("totals", 0, &who[1..]), [9, 0, 4, 13]);
    assert_eq!(row("totals", 1, &who[1..]), [1, 16, 0, 17]);
    assert_eq!(row("totals", 2, &who[1..]), [8, -16, 4, -4]);
    assert_eq!(row("totals", 2, &who[..1]), ["balance_pages"]);
    assert_eq!(report["total"]["allocated_pages"], 13);
    // The rows contain the selected threads; the totals cover all.
    let selection = Selection {
        threads: ThreadFilter {
            tids: vec![9],
            ..ThreadFilter::default()
        },
        ..Selection::default()
    };
    let chosen = json(&set, selection, MemoryOptions::default());
    assert_eq!(rows(&chosen, "threads").len(), 1);
    assert_eq!(chosen["totals"], report["totals"]);
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

/// If only batches were recorded, their pages count as freed.
#[test]
fn pages_that_only_batches_tell() {
    let maker = Maker { tid: 7, pid: 7 };
    let batched = |time| {
        (
            0,
            time,
            maker,
            "kmem_mm_page_free_batched",
            vec![("pfn", 64, Int(5))],
        )
    };
    let events = vec![
        (0, 20, maker, "sched_switch", switch(3, 7)),
        batched(30),
        batched(40),
    ];
    let (directory, set) = scripted(SHAPE, events);
    let report = json(&set, Selection::default(), MemoryOptions::default());
    assert_eq!(rows(&report, "threads")[0]["freed_pages"], 2);
    let listed = json(&set, Selection::default(), all_views().into());
    let events: Vec<_> = rows(&listed, "log")
        .iter()
        .map(|row| &row["event"])
        .collect();
    assert_eq!(events, ["freed", "freed"]);
    assert_eq!(rows(&listed, "distribution")[0]["count"], 2);
    let analysis = MemoryAnalysis::new(&set, Selection::default());
    let lacks = analysis.lacks().expect("no allocations were recorded");
    assert!(lacks.contains("kmem_mm_page_alloc"), "{lacks}");
    std::fs::remove_dir_all(directory).expect("the trace can be removed");
}

/// A trace of perf, whose events contain their threads: every number equals that of the text of
/// `perf script`.
#[test]
fn as_perf_script_tells() {
    let set = kernel_trace("perf-memory").expect("it is committed");
    let expected = oracle("perf-memory", "from-perf-script.json").expect("it is committed");
    let report = json(&set, Selection::default(), MemoryOptions::default());
    let number = |tid: &str, what: &str| expected[tid][what].as_i64().unwrap_or(0);
    let mut met = std::collections::BTreeSet::new();
    for section in ["threads", "faults", "objects", "cache", "reclaim"] {
        for row in rows(&report, section) {
            let tid = row["tid"].to_string();
            compare("perf-memory", row, |what| match what {
                "balance_pages" => number(&tid, "allocated_pages") - number(&tid, "freed_pages"),
                what => number(&tid, what),
            });
            let first = row.as_object().into_iter().flat_map(|row| row.keys());
            met.extend(first.map(|key| (tid.clone(), key.clone())));
        }
    }
    // The report contains all counts.
    for (tid, counts) in expected.as_object().expect("threads") {
        for what in counts.as_object().expect("counts").keys() {
            assert!(
                met.contains(&(tid.clone(), what.clone())),
                "{what} of {tid}"
            );
        }
    }
    assert_eq!(rows(&report, "totals")[0]["all"], 206);
}
