//! Hints for unknown names in queries: the nearest tables and columns, or all tables and columns.

use std::collections::BTreeSet;

use tracebraid_language::glob::Glob;
use tracebraid_language::near::did_you_mean;

use crate::questions::About;

/// Maximum number of columns that a message lists.
const MOST: usize = 30;

/// Tables of databases of executions.
const OF_DATABASE: [&str; 6] = [
    "executions",
    "execution",
    "segments",
    "times",
    "contexts",
    "threads",
];

/// Tables of traces.
const OF_TRACES: [&str; 3] = ["events", "intervals", "trace_threads"];

/// SQLite's message on a query, with a hint if a table or a column is unknown. `known` contains
/// all columns that queries can use.
pub(crate) fn hinted(what: String, query: &str, known: &[About]) -> String {
    if let Some(table) = what.strip_prefix("no such table: ") {
        return format!("{what}{}", of_table(table, known));
    }
    match what.strip_prefix("no such column: ") {
        Some(column) => format!("{what}{}", of_column(column, query, known)),
        None => what,
    }
}

fn of_table(table: &str, known: &[About]) -> String {
    let tables: BTreeSet<&str> = known.iter().map(|of| of.table.as_str()).collect();
    let has = |others: &[&str]| others.iter().any(|other| tables.contains(other));
    if OF_DATABASE.contains(&table) && !has(&OF_DATABASE) {
        return ": this table needs a database of executions (DB)".to_owned();
    }
    if OF_TRACES.contains(&table) && !has(&OF_TRACES) {
        return ": this table needs a trace (--trace)".to_owned();
    }
    let instead = did_you_mean(&Glob::literal(table), tables.iter().copied());
    match instead.is_empty() {
        true => format!(
            ": the tables are {}",
            tables.into_iter().collect::<Vec<_>>().join(", ")
        ),
        false => instead,
    }
}

fn of_column(column: &str, query: &str, known: &[About]) -> String {
    // The name may follow that of a table or its alias.
    let name = column.rsplit('.').next().unwrap_or(column);
    let words: BTreeSet<String> = query
        .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .map(str::to_ascii_lowercase)
        .collect();
    let is_queried = |of: &&About| words.contains(&of.table);
    let queried: Vec<&About> = known.iter().filter(is_queried).collect();
    let columns: BTreeSet<&str> = queried.iter().map(|of| of.column.as_str()).collect();
    let instead = did_you_mean(&Glob::literal(name), columns.iter().copied());
    if !instead.is_empty() {
        return instead;
    }
    match columns.len() {
        0 => String::new(),
        1..=MOST => format!(
            ": the columns are {}",
            columns.into_iter().collect::<Vec<_>>().join(", ")
        ),
        _ => ": omit the query to list all columns".to_owned(),
    }
}
