//! Tables of a database of executions.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::Connection;
use tracebraid_executions::database::Database;
use tracebraid_executions::{ContextId, FrameKind};
use tracebraid_sql::{Questions, SqlError, Value};

use crate::support::{ask, database, integer, number, text, try_ask};

fn questions(path: &Path) -> Questions {
    Questions::new(Some(path), None).expect("a database")
}

#[test]
fn segments_are_the_steps_of_executions() {
    let path = database();
    let questions = questions(&path);
    let database = Database::open(&path).expect("a database");
    let rows = ask(&questions, "SELECT * FROM segments");
    let mut by_execution: BTreeMap<i64, Vec<Vec<Value>>> = BTreeMap::new();
    for row in rows {
        by_execution.entry(integer(&row[0])).or_default().push(row);
    }
    assert!(by_execution.len() > 100);
    for (id, rows) in &by_execution {
        let found = database
            .execution(*id as u32)
            .expect("it is read")
            .expect("it is there");
        assert_eq!(rows.len(), found.steps.len());
        let mut at = found.begin;
        for ((nth, row), step) in (1..).zip(rows).zip(&found.steps) {
            assert_eq!((integer(&row[1]), integer(&row[2])), (nth, at));
            assert_eq!(integer(&row[3]) as u64, step.duration);
            let thread = step.thread.map(|thread| &database.threads[thread as usize]);
            assert_eq!(
                row[5],
                thread.map_or(Value::Null, |of| Value::Integer(of.tid.into()))
            );
            assert_eq!(integer(&row[7]), i64::from(step.context.0));
            assert_eq!(
                text(&row[9]),
                database.union.words(step.context).join(" > ")
            );
            at += step.duration as i64;
        }
    }
    let wrong = "SELECT count(*) FROM executions WHERE duration_ns !=
        (SELECT sum(duration_ns) FROM segments WHERE execution = executions.id)";
    assert_eq!(number(&questions, wrong), 0);
    let executions = number(&questions, "SELECT count(*) FROM executions");
    assert_eq!(executions, by_execution.len() as i64);
}

#[test]
fn states_are_the_innermost_reasons() {
    let path = database();
    let questions = questions(&path);
    let database = Database::open(&path).expect("a database");
    let contexts = &database.union.contexts;
    let mut states = std::collections::BTreeSet::new();
    for row in ask(&questions, "SELECT DISTINCT context, state FROM segments") {
        let mut expected = "running";
        for frame in contexts.frames(ContextId(integer(&row[0]) as u32)) {
            match frame.kind {
                // Inner frames are those of the thread that has the CPU.
                FrameKind::Thread if matches!(expected, "preempted" | "runnable") => {}
                FrameKind::Thread => expected = "running",
                FrameKind::Reason => expected = database.union.names.text(frame.name),
                _ => {}
            }
        }
        assert_eq!(text(&row[1]), expected);
        states.insert(expected.to_owned());
    }
    for known in ["running", "timer", "block-device", "preempted", "runnable"] {
        assert!(states.contains(known), "{states:?}");
    }
}

/// While another thread has the CPU, the thread on the path is not running.
#[test]
fn steps_behind_another_thread_are_not_running() {
    let questions = questions(&database());
    for (state, least) in [("preempted", 1), ("runnable", 1)] {
        let with_thread = format!(
            "SELECT count(*) FROM segments WHERE text LIKE '%[{state}] > <%>' AND state = '{state}'"
        );
        assert!(number(&questions, &with_thread) >= least, "{state}");
        let wrong = format!(
            "SELECT count(*) FROM segments WHERE text LIKE '%[{state}]%' AND state = 'running'"
        );
        assert_eq!(number(&questions, &wrong), 0, "{state}");
    }
}

#[test]
fn times_are_those_of_the_table() {
    let path = database();
    let questions = questions(&path);
    let database = Database::open(&path).expect("a database");
    let table = database.table(&database.kinds[0]).expect("executions");
    let mut expected = Vec::new();
    for (row, id) in table.ids.iter().enumerate() {
        for (context, time) in table.rows.of(row) {
            expected.push([i64::from(*id), i64::from(context.0), *time as i64]);
        }
    }
    let rows = ask(&questions, "SELECT execution, context, own_ns FROM times");
    let found: Vec<[i64; 3]> = rows
        .iter()
        .map(|row| [integer(&row[0]), integer(&row[1]), integer(&row[2])])
        .collect();
    assert_eq!(found, expected);
    // By key, and joined with contexts.
    for id in [1, 17, table.ids.len() as i64] {
        let of_one = format!(
            "SELECT sum(own_ns) FROM times JOIN contexts ON contexts.id = context WHERE execution = {id}"
        );
        let duration = format!("SELECT duration_ns FROM executions WHERE id = {id}");
        assert_eq!(number(&questions, &of_one), number(&questions, &duration));
    }
    let between =
        "SELECT count(DISTINCT execution) FROM times WHERE execution > 4.5 AND execution <= 9";
    assert_eq!(number(&questions, between), 5);
    assert_eq!(
        number(
            &questions,
            "SELECT count(*) FROM times WHERE execution = NULL"
        ),
        0
    );
    assert_eq!(
        number(
            &questions,
            "SELECT count(*) FROM times WHERE execution < -5"
        ),
        0
    );
    let text_key = "SELECT count(DISTINCT execution) FROM times WHERE execution IN (3, '5', 7.0)";
    assert_eq!(number(&questions, text_key), 3);
}

#[test]
fn contexts_and_threads_are_those_of_the_database() {
    let path = database();
    let questions = questions(&path);
    let database = Database::open(&path).expect("a database");
    let count = |table: &str| number(&questions, &format!("SELECT count(*) FROM {table}"));
    assert_eq!(count("contexts") as usize, database.union.contexts.count());
    assert_eq!(count("threads") as usize, database.threads.len());
    let rows = ask(
        &questions,
        "SELECT id, around, depth, kind, name, text FROM contexts",
    );
    for (place, row) in rows.iter().enumerate() {
        let id = ContextId(place as u32);
        assert_eq!(integer(&row[0]), place as i64);
        assert_eq!(
            integer(&row[2]) as usize,
            database.union.contexts.frames(id).len()
        );
        match database.union.contexts.parts(id) {
            None => assert_eq!((&row[1], text(&row[5])), (&Value::Null, "")),
            Some((around, frame)) => {
                assert_eq!(integer(&row[1]), i64::from(around.0));
                assert_eq!(text(&row[3]), frame.kind.word());
                assert_eq!(text(&row[4]), database.union.names.text(frame.name));
            }
        }
    }
    let wrong =
        "SELECT count(*) FROM contexts AS one JOIN contexts AS other ON other.id = one.around
        WHERE other.depth != one.depth - 1";
    assert_eq!(number(&questions, wrong), 0);
    let same = "SELECT count(*) FROM segments JOIN threads ON threads.id = thread WHERE threads.tid != segments.tid";
    assert_eq!(number(&questions, same), 0);
}

/// Arbitrary bytes in the columns `path` and `times` yield rows, or an error that names the
/// execution.
#[test]
fn any_bytes_are_read_or_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hostile.db");
    std::fs::copy(database(), &path).expect("a copy");
    let mut random = 1u64;
    let mut refused = 0;
    for round in 0..60 {
        let bytes: Vec<u8> = (0..round % 40)
            .map(|_| {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (random >> 33) as u8
            })
            .collect();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let connection = Connection::open(&path).expect("a database");
        let update = format!("UPDATE execution SET path = x'{hex}', times = x'{hex}' WHERE id = 3");
        connection.execute_batch(&update).expect("it is written");
        drop(connection);
        let questions = questions(&path);
        for table in ["segments", "times"] {
            match try_ask(
                &questions,
                &format!("SELECT * FROM {table} WHERE execution < 6"),
            ) {
                Ok(_) => {}
                Err(error) => {
                    assert!(error.to_string().contains("execution 3: "), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 20, "{refused}");
    for update in [
        "UPDATE execution SET path = 5, times = 'text' WHERE id = 3",
        "UPDATE execution SET thread = 99999, times = NULL WHERE id = 3",
        "UPDATE execution SET thread = 'one', begin_ns = 'soon', times = 1.5 WHERE id = 3",
        "UPDATE execution SET source = -9223372036854775807 WHERE id = 3",
    ] {
        let connection = Connection::open(&path).expect("a database");
        // Columns that may not be NULL stay as they are.
        let _ = connection.execute_batch(&format!("PRAGMA ignore_check_constraints = 1; {update}"));
        drop(connection);
        let questions = questions(&path);
        let error = try_ask(&questions, "SELECT * FROM segments").expect_err(update);
        assert!(error.to_string().contains("execution 3: "), "{error}");
    }
}

/// Ids of executions that go back do not make a query run forever.
#[test]
fn ids_that_go_back_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hostile.db");
    std::fs::copy(database(), &path).expect("a copy");
    let connection = Connection::open(&path).expect("a database");
    let hostile = "ALTER TABLE execution RENAME TO hidden;
        CREATE TABLE execution AS SELECT CAST(id AS TEXT) AS id, kind, begin_ns, source, thread, times, path FROM hidden;";
    connection.execute_batch(hostile).expect("it is written");
    drop(connection);
    let Ok(questions) = Questions::new(Some(&path), None) else {
        return;
    };
    for table in ["segments", "times"] {
        let found = try_ask(&questions, &format!("SELECT count(*) FROM {table}"));
        assert!(matches!(found, Err(SqlError::Answer(_))), "{found:?}");
    }
}
