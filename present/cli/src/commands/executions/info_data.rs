//! The contents of a database of executions as CSV and JSON tables.

use tracebraid_executions::database::Database;
use tracebraid_tables::{Section, Unit, Value};

use super::info::Durations;
use crate::commands::data_tables::table;

/// The tables of a database, the main table first.
pub(super) fn tables(database: &Database, kinds: &[Durations<'_>]) -> Vec<Section> {
    vec![
        durations(kinds),
        sources(database),
        columns(database),
        renames(database),
    ]
}

fn durations(kinds: &[Durations<'_>]) -> Section {
    let columns = [
        ("kind", Unit::Text),
        ("executions", Unit::Count),
        ("shortest_ns", Unit::Duration),
        ("median_ns", Unit::Duration),
        ("p90_ns", Unit::Duration),
        ("p99_ns", Unit::Duration),
        ("longest_ns", Unit::Duration),
        ("definition", Unit::Text),
    ];
    let row = |of: &Durations<'_>| {
        let mut row = vec![of.kind.name.as_str().into(), of.kind.executions.into()];
        let quantiles = of.quantiles.iter().map(|&ns| Value::Unsigned(ns));
        row.extend(quantiles.chain(std::iter::repeat(Value::None)).take(5));
        row.push(of.kind.definition.as_str().into());
        row
    };
    table("kinds", &columns, kinds.iter().map(row).collect())
}

fn sources(database: &Database) -> Section {
    let columns = [
        ("label", Unit::Text),
        ("host", Unit::Text),
        ("path", Unit::Path),
    ];
    let rows = database.sources.iter().map(|of| {
        vec![
            of.label.as_str().into(),
            of.host.as_deref().into(),
            of.path.as_str().into(),
        ]
    });
    table("sources", &columns, rows.collect())
}

fn columns(database: &Database) -> Section {
    let columns = [
        ("name", Unit::Text),
        ("unit", Unit::Text),
        ("description", Unit::Text),
    ];
    let rows = database.columns.iter().map(|of| {
        vec![
            of.name.as_str().into(),
            of.unit.as_str().into(),
            of.description.as_str().into(),
        ]
    });
    table("columns", &columns, rows.collect())
}

fn renames(database: &Database) -> Section {
    let columns = [("old", Unit::Text), ("new", Unit::Text)];
    let rows = database.renames.iter();
    let rows = rows.map(|(old, new)| vec![old.as_str().into(), new.as_str().into()]);
    table("renames", &columns, rows.collect())
}
