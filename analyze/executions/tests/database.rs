//! Databases of executions: writing, reading, appending, renaming; other files are refused.

use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_executions::database::{About, Column, Database, Figures, Table, Texts, Writer};
use tracebraid_executions::{
    BuildRules, ContextId, ExtraMetric, Finished, FrameKind, Sink, Union, build, chosen, compare,
    group, ranked, separations, times, typical_and_slow,
};
use tracebraid_follow::{KernelAnalysis, Selection};
use tracebraid_graph::{Graph, GraphAnalysis};
use tracebraid_language::executions::Definitions;
use tracebraid_profile::{SampledStack, Samples};

/// Traces and rules of a build.
struct Recording {
    set: TraceSet,
    rules: BuildRules,
}

const REQUESTS: &str = "
period request : $evt.$name == \"app:request_begin\" :
    $evt.$name == \"app:request_end\" && $evt.id == $begin.$evt.id
captures request : id = $evt.id, event = $evt.$name
";

fn recording() -> Recording {
    let directory = tracebraid_testkit::recorded::unpacked("kernel-ust-requests");
    let set = TraceSet::open(&[directory.join("kernel-ust-requests")]).expect("a trace");
    let mut definitions = Definitions::default();
    definitions.file(REQUESTS).expect("definitions");
    Recording {
        set,
        rules: BuildRules {
            definitions,
            ..BuildRules::default()
        },
    }
}

fn about(recording: &Recording, label: &str, renames: &[(&str, &str)]) -> About {
    let renames = renames.iter();
    let renames = renames.map(|(old, new)| ((*old).to_owned(), (*new).to_owned()));
    About {
        renames: renames.collect(),
        ..About::new(
            &recording.set,
            |_| label.to_owned(),
            &recording.rules.definitions,
            "as in the test",
        )
    }
}

/// Passes executions to a writer, and keeps them with the name of the thread in which they ended.
struct Keeping {
    writer: Writer,
    kept: Vec<(Finished, Option<String>)>,
}

impl Sink for Keeping {
    type Error = <Writer as Sink>::Error;

    fn figures(&mut self, extra: &[ExtraMetric]) -> Result<(), Self::Error> {
        self.writer.figures(extra)
    }

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), Self::Error> {
        let thread = finished.execution.last.and_then(|actor| graph.actor(actor));
        let name = thread.and_then(|thread| thread.name.clone());
        self.kept.push((finished.clone(), name));
        self.writer.take(graph, finished)
    }
}

/// Writes or appends the executions of a recording. If `function` is given, all running threads
/// have a stack of that function.
fn written(
    path: &Path,
    recording: &Recording,
    about: &About,
    function: Option<&str>,
    appends: bool,
) -> Vec<(Finished, Option<String>)> {
    let (writer, union) = match appends {
        true => Writer::append(path, about).expect("a database"),
        false => (
            Writer::create(path, about).expect("a writer"),
            Union::default(),
        ),
    };
    let mut sink = Keeping {
        writer,
        kept: Vec::new(),
    };
    let samples = function.map_or_else(Samples::default, |function| stacks(recording, function));
    let Recording { set, rules } = recording;
    let how = (Options::default(), &Control::default());
    let built = build(set, rules, &samples, union, how, &mut sink).expect("it is written");
    let Keeping { writer, kept } = sink;
    let length = writer.finish(&built).expect("it is written");
    assert_eq!(length, std::fs::metadata(path).expect("it is there").len());
    kept
}

/// A stack for all of the time of each worker.
fn stacks(recording: &Recording, function: &str) -> Samples {
    let analysis = GraphAnalysis::new(&recording.set, Selection::default());
    let graph = fold(
        &recording.set,
        &analysis,
        Options::default(),
        &Control::default(),
    );
    let graph = graph.expect("no cancellation").report;
    let workers = graph.actors.iter().filter(|actor| {
        actor
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with("worker"))
    });
    let stack = |actor: &tracebraid_graph::Actor| SampledStack {
        trace: actor.key.trace,
        time: tracebraid_ctf::clock::Timestamp(graph.known_until),
        tid: Some(actor.key.tid.into()),
        functions: vec![0, 1],
        wait_ns: None,
    };
    Samples {
        names: vec!["main".to_owned(), function.to_owned()],
        stacks: workers.map(stack).collect(),
        missing: Vec::new(),
        ..Samples::default()
    }
}

fn table(database: &Database) -> Table {
    database
        .table(database.kind(None).expect("one kind"))
        .expect("it is read")
}

/// A path in a temporary directory.
fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("requests.db");
    (directory, path)
}

#[test]
fn what_was_written_is_read() {
    let recording = recording();
    let (_directory, path) = place();
    let kept = written(
        &path,
        &recording,
        &about(&recording, "one", &[]),
        None,
        false,
    );
    let database = Database::open(&path).expect("a database");
    let table = table(&database);
    assert_eq!((table.len(), kept.len()), (2500, 2500));
    let durations = &table.figure("duration").expect("durations").values;
    let ids = &table.figure("id_value").expect("a captured number").values;
    for (row, (finished, thread)) in kept.iter().enumerate() {
        assert_eq!(table.rows.of(row), finished.ecct.times.as_slice());
        assert_eq!(table.begins[row], finished.execution.begin);
        assert_eq!(durations[row], finished.execution.duration() as f64);
        assert_eq!(
            tracebraid_language::Datum::Integer(ids[row] as i128),
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
        let id = one.thread.expect("it is known") as usize;
        assert_eq!(&database.threads[id].name, thread);
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
    let before = Database::open(&path)
        .expect("a database")
        .union
        .contexts
        .count();
    written(
        &path,
        &recording,
        &about(&recording, "same", &[]),
        Some("handle"),
        true,
    );
    let same = Database::open(&path).expect("a database");
    // Each context is stored once.
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
    // All four recordings are the same executions: they do not differ, whatever their functions
    // were called.
    let of = |label: &str| {
        group(&chosen(&format!("label == {label}"), &joined, &table).expect("a condition"))
    };
    let [old, renamed] = [of("old"), of("renamed")];
    assert_eq!((old.len(), renamed.len()), (2500, 2500));
    let differences = compare(
        &joined.union.contexts,
        [&times(&table, &old), &times(&table, &renamed)],
    );
    assert!(differences.iter().all(|of| of.test.more == 0.0));
    let function = |context: &ContextId| {
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
    written(
        &path,
        &recording,
        &about(&recording, "one", &[]),
        None,
        false,
    );
    let database = Database::open(&path).expect("a database");
    let table = table(&database);
    let of = |text: &str| chosen(text, &database, &table).map(|chosen| group(&chosen).len());
    let durations = &table.figure("duration").expect("durations").values;
    let longer = durations
        .iter()
        .filter(|&&duration| duration > 20e6)
        .count();
    assert!(longer > 0);
    assert_eq!(of("duration > 20ms"), Ok(longer));
    // A space may separate number and unit.
    assert_eq!(of("(duration > 20 ms) && duration < 3600 s"), Ok(longer));
    assert_eq!(of("duration_ns > 20000000 || label == other"), Ok(longer));
    assert_eq!(of("!(duration > 20ms)"), Ok(2500 - longer));
    assert_eq!(of("thread =~ worker* && has(id)"), Ok(2500));
    assert_eq!(of("id == 7"), Ok(1));
    let devices = of("ctx.block-device > 0").expect("a condition");
    assert_eq!(of("block_device > 0"), Ok(devices));
    assert!(devices > 0);
    // With several comparisons, the message names the wrong one.
    let error = of("duration > 1ms && switches > many").expect_err("no number");
    assert!(
        error.starts_with("switches: `many`: not a number"),
        "{error}"
    );
    for wrong in [
        "duration",
        "duration > soon",
        "duration > 20 parsecs",
        "duration > 20 KiB",
        "duration > 20KiB",
        "ctx.block-device > 1MiB",
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
    written(
        &path,
        &recording,
        &about(&recording, "one", &[]),
        None,
        false,
    );
    let database = Database::open(&path).expect("a database");
    let table = table(&database);
    let [typical, slow] = typical_and_slow(&table).expect("durations");
    assert_eq!((typical.len(), slow.len()), (1250, 25));
    let found = separations(&database, &table, [&typical, &slow]).figures;
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
        Database::open(&path)
            .expect_err("not a database")
            .to_string()
    };
    assert!(
        refused(b"").contains("not a database of executions"),
        "{}",
        refused(b"")
    );
    assert!(refused(b"no database at all, but text").contains("not a database of executions"));
    let missing =
        Database::open(&directory.path().join("missing.db")).expect_err("it is not there");
    assert!(missing.to_string().contains("missing.db"), "{missing}");
    // An incomplete database leaves no file.
    let recording = recording();
    drop(Writer::create(&path, &about(&recording, "one", &[])).expect("a writer"));
    let left: Vec<_> = std::fs::read_dir(directory.path())
        .expect("a directory")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Damage is reported, or the contents are plausible; reading never panics or hangs.
#[test]
fn damaged_databases_do_no_harm() {
    let recording = recording();
    let (_directory, path) = place();
    written(
        &path,
        &recording,
        &about(&recording, "one", &[]),
        None,
        false,
    );
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

/// Statements that damage a sound database, each with a part of the expected error message.
const HOSTILE: &[(&str, &str)] = &[
    (
        "DROP TABLE name; CREATE VIEW name AS WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n) \
         SELECT id, 'x' || id AS text FROM n",
        "no table `name`",
    ),
    (
        "CREATE TRIGGER t AFTER INSERT ON kind BEGIN DELETE FROM source; END",
        "has triggers",
    ),
    (
        "ALTER TABLE execution ADD COLUMN large AS (zeroblob(1000000000))",
        "generated columns",
    ),
    (
        "DROP TABLE thread; CREATE TABLE thread (id, source, tid, name)",
        "has no integer key",
    ),
    (
        "UPDATE context SET around = id + 1 WHERE id = 2",
        "context 2 is invalid",
    ),
    ("UPDATE context SET around = id WHERE id = 2", "context 2 is invalid"),
    ("UPDATE context SET kind = 9 WHERE id = 3", "context 3 is invalid"),
    ("UPDATE context SET name = -1 WHERE id = 3", "context 3 is invalid"),
    ("DELETE FROM context WHERE id = 2", "contexts are not in order"),
    (
        "INSERT INTO name VALUES ((SELECT max(id) + 1 FROM name), 'deep');
        WITH RECURSIVE n(at) AS (SELECT max(id) + 1 FROM context UNION ALL SELECT at + 1 FROM n LIMIT 5000)
        INSERT INTO context SELECT at, at - 1, 0, (SELECT max(id) FROM name) FROM n",
        "contexts are not in order",
    ),
    ("UPDATE name SET text = 'twice'", "names are not in order"),
    (
        "UPDATE name SET id = 1000000 WHERE id = 2",
        "names are not in order",
    ),
    (
        "UPDATE name SET text = x'00' WHERE id = 2",
        "`text` is of type Blob",
    ),
    (
        "UPDATE thread SET tid = 99999999999 WHERE id = 1",
        "99999999999 is out of range",
    ),
    ("UPDATE source SET id = 7 WHERE id = 2", "traces are not in order"),
    (
        "UPDATE execution SET begin_ns = 'x' WHERE id = 9",
        "`begin_ns` is of type Text",
    ),
    (
        "UPDATE execution SET source = 3 WHERE id = 9",
        "execution 9: its source",
    ),
    (
        "UPDATE execution SET thread = 1000000 WHERE id = 9",
        "execution 9: its thread",
    ),
    (
        "UPDATE execution SET id = -1 WHERE id = 9",
        "execution -1: its id is out of range",
    ),
    (
        "UPDATE execution SET path = x'80', times = NULL WHERE id = 9",
        "execution 9: its times",
    ),
    (
        "UPDATE execution SET times = x'ffffffffff01' WHERE id = 9",
        "execution 9: its times",
    ),
    (
        "UPDATE execution SET times = 'text' WHERE id = 9",
        "execution 9: its times",
    ),
    (
        "UPDATE execution SET duration_ns = duration_ns + 1 WHERE id = 9",
        "execution 9: its times add up to",
    ),
    (
        "UPDATE execution SET duration_ns = -1 WHERE id = 9",
        "but its duration is 18446744073709551615 ns",
    ),
    (
        "UPDATE execution SET timer_ns = duration_ns + 1 WHERE id = 9",
        "execution 9: the times of its reasons add up to",
    ),
    (
        "UPDATE execution SET times = x'' WHERE id = 9",
        "execution 9: its reasons add up to",
    ),
];

/// A sound database: its directory, path and bytes.
fn sound() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
    let recording = recording();
    let (directory, path) = place();
    written(
        &path,
        &recording,
        &about(&recording, "one", &[]),
        None,
        false,
    );
    let bytes = std::fs::read(&path).expect("a file");
    (directory, path, bytes)
}

/// Writes the bytes of a sound database to `path`, and executes statements on it.
fn change(path: &Path, sound: &[u8], statements: &str) {
    std::fs::write(path, sound).expect("a file");
    let connection = rusqlite::Connection::open(path).expect("a database");
    connection.execute_batch(statements).expect("statements");
}

/// A file may have any contents that SQLite accepts: invalid contents are refused with a message.
#[test]
fn hostile_databases_are_refused() {
    let (_directory, path, sound) = sound();
    for &(statements, expected) in HOSTILE {
        let all = format!("PRAGMA foreign_keys = OFF; DROP VIEW executions; {statements}");
        change(&path, &sound, &all);
        let read = Database::open(&path)
            .and_then(|database| Ok(database.table(&database.kinds[0])?.len()));
        let error = read.expect_err(statements).to_string();
        assert!(error.contains(expected), "{statements}: {error}");
    }
}

/// An execution is refused if its steps do not add up to its duration. Without steps, the time is
/// unknown.
#[test]
fn steps_that_contradict_the_duration_are_refused() {
    let (_directory, path, sound) = sound();
    let statements = "UPDATE execution SET duration_ns = 5 WHERE id = 9;
        UPDATE execution SET duration_ns = 5, path = x'', times = NULL WHERE id = 10";
    change(&path, &sound, statements);
    let database = Database::open(&path).expect("a database");
    let error = database
        .execution(9)
        .expect_err("it is refused")
        .to_string();
    assert!(
        error.contains("execution 9: its steps add up to")
            && error.contains("its duration is 5 ns"),
        "{error}"
    );
    let unknown = database
        .execution(10)
        .expect("it is read")
        .expect("it is there");
    assert_eq!((unknown.duration, unknown.end() - unknown.begin), (5, 5));
}

#[test]
fn executions_of_no_kind_are_passed_over() {
    let (_directory, path, sound) = sound();
    let statements = "PRAGMA foreign_keys = OFF; UPDATE execution SET kind = 77 WHERE id <= 500";
    change(&path, &sound, statements);
    let database = Database::open(&path).expect("a database");
    assert_eq!(
        (database.kinds[0].executions, table(&database).len()),
        (2000, 2000)
    );
}

/// A tree that refers to the same page twice: the table is larger than its file, and could be
/// endless.
#[test]
fn pages_that_are_there_twice_are_refused() {
    let recording = recording();
    let (_directory, path) = place();
    written(
        &path,
        &recording,
        &about(&recording, "one", &[]),
        None,
        false,
    );
    let mut bytes = std::fs::read(&path).expect("a file");
    let connection = rusqlite::Connection::open(&path).expect("a database");
    let number = |select: &str| -> usize {
        let found: i64 = connection
            .query_row(select, [], |row| row.get(0))
            .expect("a number");
        found as usize
    };
    let size = number("PRAGMA page_size");
    let root = number("SELECT rootpage FROM sqlite_schema WHERE name = 'execution'");
    drop(connection);
    let page = (root - 1) * size;
    assert_eq!(bytes[page], 5, "a page of the tree's inside");
    // Each of the first two children begins with its page number.
    let cell = |at: usize| {
        usize::from(u16::from_be_bytes([
            bytes[page + 12 + 2 * at],
            bytes[page + 13 + 2 * at],
        ]))
    };
    let (first, second) = (page + cell(0), page + cell(1));
    bytes.copy_within(first..first + 4, second);
    std::fs::write(&path, &bytes).expect("a file");
    let error = Database::open(&path)
        .expect_err("it is refused")
        .to_string();
    assert!(error.contains("its executions are not in order"), "{error}");
}

/// A recording with values of programs, written twice to a database.
fn with_values() -> (tempfile::TempDir, PathBuf, Recording) {
    let mut recording = recording();
    let more = "
call io : *sync*
value amount(request) = app:request_begin . id
value id = app:request_end count
";
    let all = REQUESTS.replace("event = $evt.$name", "switches = $evt.id") + more;
    recording.rules.definitions = Definitions::default();
    recording.rules.definitions.file(&all).expect("definitions");
    let (directory, path) = place();
    for (label, appends) in [("one", false), ("two", true)] {
        written(
            &path,
            &recording,
            &about(&recording, label, &[]),
            None,
            appends,
        );
    }
    (directory, path, recording)
}

#[test]
fn nothing_is_appended_twice_or_at_once() {
    let (_directory, path, recording) = with_values();
    // The same recording would count twice, and only one writer may append at a time.
    let again = |label: &str| {
        Writer::append(&path, &about(&recording, label, &[])).map(|(writer, _)| writer)
    };
    let twice = again("two").expect_err("it is there").to_string();
    assert!(twice.contains("--label"), "{twice}");
    let other = again("three").expect("another label");
    let busy = again("four").expect_err("another writer").to_string();
    assert!(busy.contains("another build"), "{busy}");
    drop(other);
    drop(again("four").expect("no other writer"));
}

/// Values of programs are columns. A value with the name of another column gets a new name, and
/// conditions find it.
#[test]
fn values_are_columns_under_names_of_their_own() {
    let (_directory, path, _) = with_values();
    let database = Database::open(&path).expect("a database");
    assert_eq!(
        database
            .kinds
            .iter()
            .map(|kind| kind.name.as_str())
            .collect::<Vec<_>>(),
        ["request", "io"]
    );
    let of = |kind: &str| {
        let kind = database.kind(Some(kind)).expect("it is there");
        database.table(kind).expect("it is read")
    };
    let [requests, calls] = [of("request"), of("io")];
    let column = |table: &Table, name: &str| table.figure(name).expect("a column").values.clone();
    // `id` is the id of the row. The captured value with that name comes first, followed by the
    // program's value.
    assert_eq!(requests.len(), 5000);
    assert!(
        column(&requests, "id_value_value")
            .iter()
            .all(|&count| count == 1.0)
    );
    let captured = column(&requests, "id_value");
    assert_eq!(captured, column(&requests, "amount"));
    assert_eq!(captured, column(&requests, "switches_value"));
    assert!(captured.contains(&2499.0));
    let chosen_of =
        |text: &str| group(&chosen(text, &database, &requests).expect("a condition")).len();
    assert_eq!(chosen_of("id == 7"), 2);
    assert_eq!(chosen_of("switches_value == 7"), 2);
    assert_eq!(chosen_of("amount == 7"), 2);
    // Values of other kinds are unknown for these executions.
    assert!(
        calls
            .figure("amount")
            .is_none_or(|figures| figures.values.iter().all(|value| value.is_nan()))
    );
    assert!(column(&calls, "ret").iter().all(|&result| result == 0.0));
    assert!(
        column(&calls, "system_calls")
            .iter()
            .all(|&begun| begun >= 1.0)
    );
}

/// SQLite stores 64-bit names as integers or, from 2^63, as text. Their column has texts, and
/// conditions find both.
#[test]
fn names_of_64_bits_are_texts() {
    let (_directory, path, _) = with_values();
    let connection = rusqlite::Connection::open(&path).expect("a database");
    let spans =
        "UPDATE execution SET switches_value = 5216120438844067843 WHERE switches_value = 7;
        UPDATE execution SET switches_value = '17571871944214396930' WHERE switches_value = 8";
    connection.execute_batch(spans).expect("statements");
    drop(connection);
    let database = Database::open(&path).expect("a database");
    let requests = database
        .table(database.kind(Some("request")).expect("it is there"))
        .expect("it is read");
    assert!(requests.figure("switches_value").is_none());
    let spans = requests
        .texts
        .iter()
        .find(|of| of.column.name == "switches_value");
    assert!(spans.expect("a column").codes.iter().all(Option::is_some));
    for span in ["5216120438844067843", "17571871944214396930", "9"] {
        let chosen = chosen(&format!("switches_value == {span}"), &database, &requests);
        assert_eq!(group(&chosen.expect("a condition")).len(), 2, "{span}");
    }
}

fn figures(name: &str, is_value: bool, values: &[f64]) -> Figures {
    let column = Column {
        name: name.to_owned(),
        unit: if is_value { "" } else { "ns" }.to_owned(),
        is_value,
        ..Column::default()
    };
    Figures {
        column,
        values: values.to_vec(),
    }
}

#[test]
fn what_is_a_number_here_and_a_text_there_is_found_as_both() {
    let texts = Texts {
        column: figures("e", true, &[]).column,
        texts: vec!["OPEN".to_owned(), "9223372036854776106".to_owned()],
        codes: vec![Some(0), None, Some(1), None],
    };
    let recording = recording();
    let (_directory, path) = place();
    written(
        &path,
        &recording,
        &about(&recording, "one", &[]),
        None,
        false,
    );
    let database = Database::open(&path).expect("a database");
    let none = f64::NAN;
    let table = Table {
        ids: vec![1, 2, 3, 4],
        figures: vec![
            figures("duration_ns", false, &[1e6, 2e6, 3e6, 4e6]),
            figures("duration_value", true, &[500.0, 200.0, 200.0, 200.0]),
            figures("e", true, &[none, 7.0, none, 4_611_686_018_427_387_904.0]),
        ],
        texts: vec![texts],
        ..Table::default()
    };
    let of = |text: &str| {
        let chosen = chosen(text, &database, &table)?;
        Ok((1..)
            .zip(chosen)
            .filter_map(|(id, is)| is.then_some(id))
            .collect())
    };
    let is = |text: &str, expected: &[u32]| assert_eq!(of(text), Ok(expected.to_vec()), "{text}");
    is("e == OPEN", &[1]);
    is("e != OPEN", &[2, 3, 4]);
    is("e =~ O*", &[1]);
    is("e == 7", &[2]);
    is("e != 7", &[1, 3, 4]);
    is("e > 5", &[2, 4]);
    is("has(e)", &[1, 2, 3, 4]);
    is("e == 9223372036854776106", &[3]);
    let rounded: Result<Vec<u32>, String> = of("e == 4611686018427387905");
    assert!(rounded.expect_err("not exact").contains("`tracebraid sql`"));
    // A metric takes precedence over a captured value.
    is("duration > 1ms", &[2, 3, 4]);
    is("duration_value > 300", &[1]);
}
