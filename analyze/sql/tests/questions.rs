//! Invalid queries, several statements at once, and stopped queries.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tracebraid_sql::{Questions, SqlError};

use crate::support::{All, ask, database, number, try_ask};

fn questions() -> Questions {
    Questions::new(Some(&database()), None).expect("a database")
}

#[test]
fn what_writes_is_refused() {
    let path = database();
    let before = std::fs::read(&path).expect("the file");
    let questions = questions();
    for text in [
        "DELETE FROM execution",
        "CREATE TEMP TABLE t(x)",
        "UPDATE source SET path = 'x'",
        "INSERT INTO segments VALUES (1)",
        "DROP TABLE execution",
        "PRAGMA journal_mode = WAL",
        "PRAGMA user_version = 7",
        "VACUUM INTO '/tmp/never.db'",
        "ATTACH '/tmp/never-there.db' AS other",
        "ATTACH 'file:/tmp/never-there.db?mode=rwc' AS other",
        "SELECT load_extension('x')",
    ] {
        let found = try_ask(&questions, text);
        assert!(found.is_err(), "{text}: {found:?}");
    }
    let found = try_ask(&questions, "SELECT 1;\n  DELETE FROM execution");
    let Err(SqlError::Writes { statement, place }) = found else {
        panic!("{found:?}");
    };
    assert_eq!(
        (statement.as_str(), place.line, place.column),
        ("DELETE FROM execution", 2, 3)
    );
    assert_eq!(std::fs::read(&path).expect("the file"), before);
    assert!(!std::path::Path::new("/tmp/never.db").exists());
    assert!(!std::path::Path::new("/tmp/never-there.db").exists());
}

#[test]
fn errors_name_the_place() {
    let questions = questions();
    for (text, what, line, column) in [
        ("SELECT oops FROM executions", "no such column: oops", 1, 8),
        ("SELECT 1;\nSELECT 2 FORM x y", "near \"x\"", 2, 15),
        ("SELECT ?", "parameter", 1, 1),
        ("SELECT 1\0; DROP", "null byte", 1, 9),
    ] {
        let Err(SqlError::Question { what: found, place }) = try_ask(&questions, text) else {
            panic!("{text}");
        };
        let place = place.unwrap_or_else(|| panic!("{text}: {found}"));
        assert!(found.contains(what), "{text}: {found}");
        assert_eq!(
            (place.line, place.column),
            (line, column),
            "{text}: {found}"
        );
    }
    for text in ["", "  ", ";", "-- nothing"] {
        assert!(
            matches!(try_ask(&questions, text), Err(SqlError::Question { .. })),
            "{text}"
        );
    }
    let error = try_ask(&questions, "SELECT * FROM events").expect_err("no traces");
    assert!(
        error.to_string().contains("this table needs a trace"),
        "{error}"
    );
    let none = Questions::new(None, None).expect("nothing");
    let error = try_ask(&none, "SELECT * FROM executions").expect_err("no database");
    assert!(
        error.to_string().contains("needs a database of executions"),
        "{error}"
    );
}

#[test]
fn all_statements_are_answered() {
    let questions = questions();
    let mut all = All::default();
    let text = "SELECT 1 AS a; SELECT 2 AS b, 3 AS c -- more\n; ; SELECT 'é;' AS d WHERE 0";
    questions.answer(text, &mut all).expect("answers");
    assert_eq!(all.columns, [vec!["a"], vec!["b", "c"], vec!["d"]]);
    assert_eq!(all.rows.len(), 2);
    // No more rows are computed than the sink takes.
    let mut few = All {
        most: Some(3),
        ..All::default()
    };
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    questions.answer(endless, &mut few).expect("answers");
    assert_eq!(few.rows.len(), 3);
}

#[test]
fn endless_questions_can_be_stopped() {
    let questions = questions();
    let stopper = questions.stopper();
    let has_ended = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        // A stop has no effect on a query that has not begun.
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(20));
                stopper.stop();
            }
        });
        let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
        let found = try_ask(&questions, endless);
        has_ended.store(true, Ordering::Relaxed);
        found
    });
    assert!(matches!(found, Err(SqlError::Interrupted)), "{found:?}");
}

#[test]
fn every_column_is_told_of() {
    let questions = questions();
    let about = questions.about().expect("columns");
    for (table, _) in questions.tables() {
        let of_table = about.iter().filter(|of| of.table == table);
        let columns: Vec<String> = of_table.map(|of| format!("\"{}\"", of.column)).collect();
        assert!(!columns.is_empty(), "{table}");
        let rows = ask(
            &questions,
            &format!("SELECT {} FROM {table} LIMIT 2", columns.join(", ")),
        );
        assert!(rows.len() <= 2);
    }
    let duration = about
        .iter()
        .find(|of| (of.table.as_str(), of.column.as_str()) == ("executions", "duration_ns"));
    assert_eq!(duration.expect("a figure").about, "from begin to end");
    assert!(number(&questions, "SELECT count(*) FROM metric") > 3);
}
