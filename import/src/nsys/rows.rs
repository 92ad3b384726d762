//! Rows of all tables as one list in the order of time.

use super::database::{Database, integer};
use crate::error::ImportError;
use crate::summary::Summary;

/// Kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Entry,
    Exit,
    Kernel,
    Memcpy,
    Memset,
}

const KINDS: [Kind; 5] = [
    Kind::Entry,
    Kind::Exit,
    Kind::Kernel,
    Kind::Memcpy,
    Kind::Memset,
];

/// Columns of a row after its kind, its time and its order within the time.
const COLUMNS: [&str; 18] = [
    "global",
    "name",
    "correlationId",
    "returnValue",
    "start",
    "end",
    "deviceId",
    "contextId",
    "streamId",
    "bytes",
    "copyKind",
    "value",
    "gridX",
    "gridY",
    "gridZ",
    "blockX",
    "blockY",
    "blockZ",
];

/// Columns ahead of [`COLUMNS`].
const AHEAD: usize = 2;

/// A begin or an end of a call, or a command at its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) kind: Kind,
    /// Nanoseconds from the begin of the session.
    pub(super) time: i64,
    values: [i64; COLUMNS.len()],
}

impl Row {
    pub(super) fn of(row: &rusqlite::Row<'_>) -> Row {
        let kind = usize::try_from(integer(row, 0)).unwrap_or(0);
        let mut values = [0; COLUMNS.len()];
        for (place, value) in values.iter_mut().enumerate() {
            *value = integer(row, AHEAD + place);
        }
        Row {
            kind: KINDS.get(kind).copied().unwrap_or(Kind::Entry),
            time: integer(row, 1),
            values,
        }
    }

    /// Value of a column of [`COLUMNS`].
    pub(super) fn get(&self, column: &str) -> i64 {
        let place = COLUMNS.iter().position(|of| *of == column);
        place
            .and_then(|place| self.values.get(place))
            .map_or(0, |value| *value)
    }
}

/// A table whose rows are commands.
struct Table {
    name: &'static str,
    kind: Kind,
    /// Plural noun for the rows, in messages.
    what: &'static str,
    /// Columns with the number of a name, the best first.
    names: &'static [&'static str],
    global: &'static str,
}

const CALLS: Table = Table {
    name: "CUPTI_ACTIVITY_KIND_RUNTIME",
    kind: Kind::Entry,
    what: "calls",
    names: &["nameId"],
    global: "globalTid",
};

const COMMANDS: [Table; 3] = [
    Table {
        name: "CUPTI_ACTIVITY_KIND_KERNEL",
        kind: Kind::Kernel,
        what: "kernels",
        names: &["demangledName", "shortName", "mangledName"],
        global: "globalPid",
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMCPY",
        kind: Kind::Memcpy,
        what: "copies",
        names: &[],
        global: "globalPid",
    },
    Table {
        name: "CUPTI_ACTIVITY_KIND_MEMSET",
        kind: Kind::Memset,
        what: "fills",
        names: &[],
        global: "globalPid",
    },
];

/// Columns whose lack is reported, by kind of the table's rows.
fn needed(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Entry | Kind::Exit => &["correlationId", "returnValue"],
        Kind::Kernel => &[
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "gridX",
            "blockX",
        ],
        Kind::Memcpy => &[
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "bytes",
            "copyKind",
        ],
        Kind::Memset => &[
            "correlationId",
            "deviceId",
            "contextId",
            "streamId",
            "bytes",
        ],
    }
}

/// A query for all rows in the order of time. Adds missing tables and columns to the summary.
pub(super) fn query(database: &Database, summary: &mut Summary) -> Result<String, ImportError> {
    let mut parts = Vec::new();
    let only = match database.has_column(CALLS.name, CALLS.global) {
        true => format!("SELECT {} FROM {} LIMIT 1", CALLS.global, CALLS.name),
        false => "SELECT 0".to_owned(),
    };
    // Exports without ids of processes are of one process.
    let only = database.first_integer(&only)?.unwrap_or(0);
    for table in std::iter::once(&CALLS).chain(&COMMANDS) {
        if !database.has_columns(table.name, &["start", "end"]) {
            summary
                .lacks
                .push(format!("no {} ({})", table.what, table.name));
            continue;
        }
        tell_missing(database, table, summary);
        match table.kind {
            // Of one time, calls end before others begin, unless they begin at that time. Calls
            // around others begin before them, and end after them.
            Kind::Entry => {
                parts.push(select(
                    database,
                    table,
                    Kind::Entry,
                    only,
                    ("start", "1", "-\"end\""),
                ));
                let order = "CASE WHEN \"end\" > start THEN 0 ELSE 2 END";
                parts.push(select(
                    database,
                    table,
                    Kind::Exit,
                    only,
                    ("\"end\"", order, "-start"),
                ));
            }
            kind => parts.push(select(
                database,
                table,
                kind,
                only,
                ("\"end\"", "3", "start"),
            )),
        }
    }
    if parts.is_empty() {
        let what =
            "the export has no calls and commands of CUDA: record with `nsys profile --trace cuda`";
        return Err(ImportError::Unsupported(what.to_owned()));
    }
    for (table, what) in [
        ("SCHED_EVENTS", "scheduling (SCHED_EVENTS) is"),
        ("NVTX_EVENTS", "ranges of NVTX (NVTX_EVENTS) are"),
        (
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            "synchronizations (CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) are",
        ),
    ] {
        if database.has(table) {
            summary.lacks.push(format!("{what} not imported"));
        }
    }
    let columns = COLUMNS.map(|column| format!("\"{column}\"")).join(", ");
    // Calls of one span are in an order by which they contain each other.
    let third = format!(
        "CASE kind WHEN {} THEN -\"name\" ELSE \"name\" END",
        Kind::Exit as usize
    );
    Ok(format!(
        "SELECT kind, time, {columns} FROM ({}) ORDER BY time, first, second, {third}",
        parts.join(" UNION ALL ")
    ))
}

fn tell_missing(database: &Database, table: &Table, summary: &mut Summary) {
    let needed = needed(table.kind).iter();
    let missing = needed.filter(|column| !database.has_column(table.name, column));
    let mut missing: Vec<&str> = missing.copied().collect();
    if !database.has_column(table.name, table.global) {
        missing.push(table.global);
    }
    if !table.names.is_empty() && name_of(database, table).is_none() {
        missing.extend(table.names.first());
    }
    if !missing.is_empty() {
        let columns = missing.join(", ");
        summary
            .lacks
            .push(format!("{} has no {columns}", table.name));
    }
}

fn name_of(database: &Database, table: &Table) -> Option<&'static str> {
    let mut names = table.names.iter().copied();
    names.find(|name| database.has_column(table.name, name))
}

/// A query for the rows of a table, with 0 for columns that it lacks. `order` has the time, and the
/// order within it.
fn select(
    database: &Database,
    table: &Table,
    kind: Kind,
    only: i64,
    (time, first, second): (&str, &str, &str),
) -> String {
    let columns = COLUMNS.map(|column| {
        let own = match column {
            "global" => Some(table.global),
            "name" => name_of(database, table),
            column => Some(column),
        };
        match own.filter(|own| database.has_column(table.name, own)) {
            Some(own) => format!("\"{own}\" AS \"{column}\""),
            None if column == "global" => format!("{only} AS \"{column}\""),
            None => format!("0 AS \"{column}\""),
        }
    });
    format!(
        "SELECT {} AS kind, {time} AS time, {first} AS first, {second} AS second, {} FROM {}",
        kind as usize,
        columns.join(", "),
        table.name
    )
}
