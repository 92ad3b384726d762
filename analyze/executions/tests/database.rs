//! Databases of executions: what was written is read, appended to, renamed; what is no database is refused.

use std::path::{Path, PathBuf};

use tracebraid_critical_path::{Graph, GraphAnalysis};
use tracebraid_ctf::trace::TraceSet;
use tracebraid_executions::database::{About, Column, Database, KindAbout, SourceAbout, Table, Writer};
use tracebraid_executions::{
    ContextId, Finished, FrameKind, Metric, Sink, Union, build, chosen, compare, group, ranked, separations,
    times, typical_and_slow, with_threads,
};
use tracebraid_filter::periods::Periods;
use tracebraid_fold::{Analysis, Control, Options, fold};
use tracebraid_kernel_fold::{KernelAnalysis, Selection, Window};
use tracebraid_profile::{SampledStack, Samples};
use tracebraid_reports::periods::{Ended, EndedAnalysis};

/// What executions are made of.
struct Recording {
    set: TraceSet,
    graph: Graph,
    ended: Ended,
}

fn folded<A: Analysis>(set: &TraceSet, analysis: &A) -> A::Report {
    fold(set, analysis, Options::default(), &Control::default())
        .expect("nobody cancels")
        .report
}

fn recording() -> Recording {
    let directory = tracebraid_testkit::recorded::unpacked("kernel-ust-requests");
    let set = TraceSet::open(&[directory.join("kernel-ust-requests")]).expect("a trace");
    let mut periods = Periods::default();
    let definition = "request : $evt.$name == \"app:request_begin\" :
        $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id";
    periods.period(definition).expect("a definition");
    periods
        .captures("request : id = $evt.id, event = $evt.$name")
        .expect("captures");
    let analysis = EndedAnalysis::new(&set, with_threads(periods), Window::default()).expect("a plan");
    Recording {
        ended: folded(&set, &analysis),
        graph: folded(&set, &GraphAnalysis::new(&set, Selection::default())),
        set,
    }
}

fn about(recording: &Recording, label: &str, renames: &[(&str, &str)]) -> About {
    let source = |trace: &tracebraid_ctf::trace::Trace| SourceAbout {
        label: label.to_owned(),
        path: trace.paths.first().expect("a place").display().to_string(),
        host: trace.layout.class.env_str("hostname").map(str::to_owned),
    };
    About {
        sources: recording.set.traces.iter().map(source).collect(),
        kinds: vec![KindAbout {
            name: "request".to_owned(),
            definition: "as in the test".to_owned(),
            values: vec!["id".to_owned(), "event".to_owned()],
        }],
        figures: Metric::all().map(Column::from).collect(),
        renames: renames
            .iter()
            .map(|(old, new)| ((*old).to_owned(), (*new).to_owned()))
            .collect(),
    }
}

/// A writer that keeps what it is given.
struct Keeping {
    writer: Writer,
    kept: Vec<Finished>,
}

impl Sink for Keeping {
    type Error = <Writer as Sink>::Error;

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Self::Error> {
        self.kept.push(finished.clone());
        self.writer.take(graph, finished)
    }
}

/// Writes the executions of a recording, or appends them; all threads that run have one stack of that function.
fn written(
    path: &Path,
    recording: &Recording,
    about: &About,
    function: Option<&str>,
    appends: bool,
) -> Vec<Finished> {
    let (writer, union) = match appends {
        true => Writer::append(path, about).expect("a database"),
        false => (Writer::create(path, about).expect("a place"), Union::default()),
    };
    let mut sink = Keeping {
        writer,
        kept: Vec::new(),
    };
    let samples = function.map_or_else(Samples::default, |function| stacks(recording, function));
    let Recording { set, graph, ended } = recording;
    let union = build(set, graph, &samples, ended.clone(), union, &mut sink).expect("it is written");
    let Keeping { writer, kept } = sink;
    let length = writer.finish(&union).expect("it is written");
    assert_eq!(length, std::fs::metadata(path).expect("it is there").len());
    kept
}

/// A stack of each worker, behind all of its time.
fn stacks(recording: &Recording, function: &str) -> Samples {
    let workers = recording.graph.actors.iter().filter(|actor| {
        actor
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with("worker"))
    });
    let stack = |actor: &tracebraid_critical_path::Actor| SampledStack {
        trace: actor.key.trace,
        time: tracebraid_ctf::clock::Timestamp(recording.graph.known_until),
        tid: Some(actor.key.tid.into()),
        functions: vec![0, 1],
        wait_ns: None,
    };
    Samples {
        names: vec!["main".to_owned(), function.to_owned()],
        stacks: workers.map(stack).collect(),
        missing: Vec::new(),
    }
}

fn table(database: &Database) -> Table {
    database
        .table(database.kind(None).expect("one kind"))
        .expect("it is read")
}

/// A file in a directory that is gone when this is dropped.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("requests.db");
    (directory, path)
}

#[test]
fn what_was_written_is_read() {
    let recording = recording();
    let (_directory, path) = place();
    let kept = written(&path, &recording, &about(&recording, "one", &[]), None, false);
    let database = Database::open(&path).expect("a database");
    let table = table(&database);
    assert_eq!((table.len(), kept.len()), (2500, 2500));
    let durations = &table.figure("duration").expect("durations").values;
    let ids = &table.figure("id_value").expect("a captured number").values;
    for (row, finished) in kept.iter().enumerate() {
        assert_eq!(table.rows.of(row), finished.ecct.times.as_slice());
        assert_eq!(table.begins[row], finished.execution.begin);
        assert_eq!(durations[row], finished.execution.duration() as f64);
        assert_eq!(
            tracebraid_filter::Datum::Integer(ids[row] as i128),
            finished.execution.values[0]
        );
        let one = database
            .execution(table.ids[row])
            .expect("it is read")
            .expect("it is there");
        let steps: Vec<(u64, ContextId)> = one
            .steps
            .iter()
            .map(|step| (step.duration, step.context))
            .collect();
        let expected: Vec<(u64, ContextId)> = finished
            .steps
            .iter()
            .map(|step| (step.duration, step.context))
            .collect();
        assert_eq!(steps, expected);
        assert_eq!(one.end(), finished.execution.end);
        let thread = one
            .thread
            .map(|thread| database.threads[thread as usize].name.clone());
        let actor = finished
            .execution
            .last
            .and_then(|actor| recording.graph.actor(actor));
        assert_eq!(thread, actor.map(|actor| actor.name.clone()));
    }
    let event = table
        .texts
        .iter()
        .find(|texts| texts.column.name == "event")
        .expect("a captured text");
    assert_eq!(event.texts, ["app:request_begin"]);
    assert!(database.execution(9999).expect("it is read").is_none());
}

#[test]
fn recordings_are_appended_and_functions_renamed() {
    let recording = recording();
    let (_directory, path) = place();
    written(
        &path,
        &recording,
        &about(&recording, "old", &[]),
        Some("handle"),
        false,
    );
    let before = Database::open(&path).expect("a database").union.contexts.count();
    written(
        &path,
        &recording,
        &about(&recording, "same", &[]),
        Some("handle"),
        true,
    );
    let same = Database::open(&path).expect("a database");
    // The same contexts are there once.
    assert_eq!(same.union.contexts.count(), before);
    written(
        &path,
        &recording,
        &about(&recording, "new", &[]),
        Some("handle_v2"),
        true,
    );
    let apart = Database::open(&path).expect("a database");
    assert!(apart.union.contexts.count() > before);
    let renamed = about(&recording, "renamed", &[("handle_v2", "handle")]);
    written(&path, &recording, &renamed, Some("handle_v2"), true);
    let joined = Database::open(&path).expect("a database");
    assert_eq!(joined.union.contexts.count(), before);
    let table = table(&joined);
    assert_eq!(
        (table.len(), joined.sources.len()),
        (10_000, 4 * recording.set.traces.len())
    );
    // All four are of the same executions: nothing differs, whatever their functions were called.
    let of =
        |label: &str| group(&chosen(&format!("label == {label}"), &joined, &table).expect("a condition"));
    let [old, renamed] = [of("old"), of("renamed")];
    assert_eq!((old.len(), renamed.len()), (2500, 2500));
    let differences = compare(
        &joined.union.contexts,
        [&times(&table, &old), &times(&table, &renamed)],
    );
    assert!(differences.iter().all(|of| of.test.more == 0.0));
    let function =
        |context: &ContextId| {
            joined.union.contexts.frames(*context).iter().any(|frame| {
                frame.kind == FrameKind::Function && joined.union.names.text(frame.name) == "handle"
            })
        };
    assert!(
        differences
            .iter()
            .any(|of| function(&of.context) && of.groups[0].mean > 0.0)
    );
}

#[test]
fn conditions_choose_executions() {
    let recording = recording();
    let (_directory, path) = place();
    written(&path, &recording, &about(&recording, "one", &[]), None, false);
    let database = Database::open(&path).expect("a database");
    let table = table(&database);
    let of = |text: &str| chosen(text, &database, &table).map(|chosen| group(&chosen).len());
    let durations = &table.figure("duration").expect("durations").values;
    let longer = durations.iter().filter(|&&duration| duration > 20e6).count();
    assert!(longer > 0);
    assert_eq!(of("duration > 20ms"), Ok(longer));
    assert_eq!(of("duration_ns > 20000000 || label == other"), Ok(longer));
    assert_eq!(of("!(duration > 20ms)"), Ok(2500 - longer));
    assert_eq!(of("thread =~ worker* && has(id)"), Ok(2500));
    assert_eq!(of("id == 7"), Ok(1));
    let devices = of("ctx.block-device > 0").expect("a condition");
    assert_eq!(of("block_device > 0"), Ok(devices));
    assert!(devices > 0);
    for wrong in [
        "duration",
        "duration > soon",
        "nothing > 1",
        "ctx.nothing > 1",
        "duration =~ 1*",
        "(",
        "",
    ] {
        assert!(of(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_slowest_are_told_from_typical_ones() {
    let recording = recording();
    let (_directory, path) = place();
    written(&path, &recording, &about(&recording, "one", &[]), None, false);
    let database = Database::open(&path).expect("a database");
    let table = table(&database);
    let [typical, slow] = typical_and_slow(&table).expect("durations");
    assert_eq!((typical.len(), slow.len()), (1250, 25));
    let found = separations(&table, [&typical, &slow]);
    assert_eq!(found[0].figures.column.name, "duration_ns");
    assert_eq!(found[0].higher, 1.0);
    let differences = compare(
        &database.union.contexts,
        [&times(&table, &typical), &times(&table, &slow)],
    );
    let first = ranked(&differences, false)[0];
    assert!(first.is_sure() && first.test.more > 1e6, "{first:?}");
}

#[test]
fn what_is_no_database_is_refused() {
    let (directory, path) = place();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("a file");
        Database::open(&path).expect_err("it is none").to_string()
    };
    assert!(
        refused(b"").contains("no database of executions"),
        "{}",
        refused(b"")
    );
    assert!(refused(b"no database at all, but text").contains("no database of executions"));
    let missing = Database::open(&directory.path().join("missing.db")).expect_err("it is not there");
    assert!(missing.to_string().contains("missing.db"), "{missing}");
    // What is not complete leaves nothing.
    let recording = recording();
    drop(Writer::create(&path, &about(&recording, "one", &[])).expect("a place"));
    let left: Vec<_> = std::fs::read_dir(directory.path())
        .expect("a directory")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Damage is told, or what is told is what can be: nothing panics or hangs.
#[test]
fn damaged_databases_do_no_harm() {
    let recording = recording();
    let (_directory, path) = place();
    written(&path, &recording, &about(&recording, "one", &[]), None, false);
    let sound = std::fs::read(&path).expect("a file");
    let mut random = 1u64;
    let mut next = move || {
        // Knuth's constants.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    let mut refused = 0;
    for _ in 0..60 {
        let mut bytes = sound.clone();
        for _ in 0..40 {
            let at = next() % bytes.len();
            bytes[at] = next() as u8;
        }
        bytes.truncate(sound.len() - next() % (sound.len() / 2));
        std::fs::write(&path, &bytes).expect("a file");
        let read = Database::open(&path).and_then(|database| {
            for kind in &database.kinds {
                let table = database.table(kind)?;
                for &id in table.ids.iter().step_by(97) {
                    database.execution(id)?;
                }
            }
            Ok(())
        });
        refused += u32::from(read.is_err());
    }
    assert!(refused > 30, "{refused}");
}
