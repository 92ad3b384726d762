//! Targets that read untrusted databases of executions: files as they are, and rows in tables of
//! the right schema.

use std::path::Path;
use std::sync::OnceLock;

use libfuzzer_sys::Corpus;
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};
use tracebraid_executions::database::{
    About, Database, DatabaseError, KindAbout, SourceAbout, Table, Writer,
};
use tracebraid_executions::{
    Built, ContextId, chosen, compare, group, ranked, separations, times, typical_and_slow,
};
use tracebraid_sql::{Questions, Sink, SqlError};

use crate::trace::directory;

/// The input is a database file.
pub(crate) fn file(data: &[u8]) -> Corpus {
    let path = directory().join("file.db");
    std::fs::write(&path, data).expect("written");
    all_of(&path, data.len());
    Corpus::Keep
}

/// The tables into which rows are inserted, with their columns and the number of columns.
const TABLES: [(&str, usize); 8] = [
    ("source (id, label, path, host, recording, sync)", 6),
    ("kind (id, name, definition)", 3),
    ("metric (name, unit, description, is_value)", 4),
    ("name (id, text)", 2),
    ("context (id, around, kind, name)", 4),
    ("rename (old, new)", 2),
    ("thread (id, source, tid, name)", 4),
    (
        "execution (id, kind, source, number, begin_ns, thread, times, path, duration_ns, called)",
        10,
    ),
];

/// The input is a list of rows, which are inserted into an otherwise valid database: a byte for the
/// table, then the values.
pub(crate) fn rows(data: &[u8]) -> Corpus {
    let path = directory().join("rows.db");
    std::fs::write(&path, sound()).expect("written");
    let connection = Connection::open(&path).expect("opened");
    let quick =
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN;";
    connection.execute_batch(quick).expect("begun");
    let mut rest = data;
    while let Some((&table, after)) = rest.split_first() {
        let (table, columns) = TABLES[usize::from(table) % TABLES.len()];
        rest = after;
        let values: Vec<Value> = (0..columns).map(|_| value(&mut rest)).collect();
        let places = vec!["?"; columns].join(", ");
        let insert = format!("INSERT OR REPLACE INTO {table} VALUES ({places})");
        // Rows that the table rejects are skipped.
        let _ = connection.execute(&insert, rusqlite::params_from_iter(values));
    }
    connection.execute_batch("COMMIT").expect("written");
    drop(connection);
    all_of(&path, data.len());
    Corpus::Keep
}

/// A database without executions, with a column for a metric.
fn sound() -> &'static [u8] {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let path = directory().join("sound.db");
        let writer = Writer::create(&path, &about("sound")).expect("a database");
        writer.finish(&Built::default()).expect("written");
        let connection = Connection::open(&path).expect("opened");
        let column =
            "ALTER TABLE execution ADD called; INSERT INTO metric VALUES ('called', '', '', 1);";
        connection.execute_batch(column).expect("added");
        drop(connection);
        std::fs::read(&path).expect("read")
    })
}

fn about(label: &str) -> About {
    let source = SourceAbout {
        label: label.to_owned(),
        ..SourceAbout::default()
    };
    let kind = KindAbout {
        name: "request".to_owned(),
        ..KindAbout::default()
    };
    About {
        sources: vec![source],
        kinds: vec![kind],
        ..About::default()
    }
}

/// A value of any type.
fn value(rest: &mut &[u8]) -> Value {
    let mut take = |count: usize| {
        let (taken, after) = rest.split_at(count.min(rest.len()));
        *rest = after;
        taken
    };
    let head = take(1).first().copied().unwrap_or(0);
    let length = usize::from(head >> 3);
    let number = |bytes: &[u8]| {
        let mut all = [0; 8];
        all[..bytes.len()].copy_from_slice(bytes);
        all
    };
    match head & 7 {
        0 => Value::Null,
        1 | 2 => Value::Integer(i64::from(head >> 3)),
        3 => Value::Integer(i64::from_le_bytes(number(take(8)))),
        4 => Value::Real(f64::from_le_bytes(number(take(8)))),
        5 => Value::Text(String::from_utf8_lossy(take(length)).into_owned()),
        _ => Value::Blob(take(length).to_vec()),
    }
}

/// Reads the whole database with all readers, and appends to some databases (appending takes long).
fn all_of(path: &Path, length: usize) {
    match read(path) {
        Ok(()) => (),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(questions) = Questions::new(Some(path), None) {
        for table in ["segments", "times", "contexts", "threads"] {
            let _ = questions.answer(&format!("SELECT * FROM {table}"), &mut Counting(0));
        }
    }
    if length.is_multiple_of(8)
        && let Ok((writer, union)) = Writer::append(path, &about("appended"))
    {
        let built = Built {
            union,
            ..Built::default()
        };
        let _ = writer.finish(&built);
    }
}

fn read(path: &Path) -> Result<(), DatabaseError> {
    let database = Database::open(path)?;
    for context in 0..database.union.contexts.count() as u32 {
        for frame in database.union.contexts.frames(ContextId(context)) {
            database.union.names.text(frame.name);
        }
    }
    for kind in &database.kinds {
        let table = database.table(kind)?;
        assert_eq!(table.len() as u64, kind.executions);
        assert_eq!(database.table_without_times(kind)?.ids, table.ids);
        columns(&table);
        groups(&database, &table);
        for &id in &table.ids {
            let found = database.execution(id)?.expect("it is there");
            assert!(
                found
                    .command(&database)
                    .is_none_or(|command| command.starts_with("tracebraid"))
            );
        }
    }
    one_by_one(&database)
}

/// Checks that all columns are as long as the table.
fn columns(table: &Table) {
    let lengths = [
        table.begins.len(),
        table.sources.len(),
        table.threads.len(),
        table.rows.ends.len(),
    ];
    let figures = table.figures.iter().map(|figures| figures.values.len());
    let texts = table.texts.iter().map(|texts| texts.codes.len());
    for length in lengths.into_iter().chain(figures).chain(texts) {
        assert_eq!(length, table.len());
    }
}

/// Compares two groups.
fn groups(database: &Database, table: &Table) {
    let condition =
        "duration > 1ms || called == word || ctx.\"*\" >= 1 || label != x || has(thread)";
    if let Ok(chosen) = chosen(condition, database, table) {
        assert!(group(&chosen).len() <= table.len());
    }
    let Some([typical, slow]) = typical_and_slow(table) else {
        return;
    };
    let groups = [&times(table, &typical)[..], &times(table, &slow)[..]];
    let differences = compare(&database.union.contexts, groups);
    assert!(ranked(&differences, true).len() <= differences.len());
    let apart = separations(database, table, [&typical, &slow]);
    let chances = apart.figures.iter().map(|of| of.test.chance);
    for chance in chances.chain(apart.texts.iter().map(|of| of.chance)) {
        assert!((0.0..=1.0).contains(&chance));
    }
    for text in &apart.texts {
        assert!((0.0..=1.0).contains(&text.association));
    }
}

/// Reads the executions one at a time. Their ids ascend, so the loop ends.
fn one_by_one(database: &Database) -> Result<(), DatabaseError> {
    let mut from = i64::MIN;
    while let Some((id, _)) = database.execution_from(from)? {
        let times = database.times_from(id)?.expect("it is there");
        assert_eq!(times.0, id);
        match id.checked_add(1) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(())
}

/// Counts rows.
struct Counting(u64);

impl Sink for Counting {
    fn begin(&mut self, _: &[String]) -> bool {
        true
    }

    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<bool, SqlError> {
        self.0 += row.len() as u64;
        Ok(true)
    }

    fn end(&mut self) -> Result<(), SqlError> {
        Ok(())
    }
}
