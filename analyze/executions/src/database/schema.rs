//! The SQL schema.

use crate::database::table::Column;

/// SQLite's `application_id` of databases of executions: "tbex".
pub const APPLICATION: i32 = 0x7462_6578;

/// Version of the schema: SQLite's `user_version`.
pub const VERSION: i64 = 1;

/// All tables. The columns of metrics and values are added to `execution` later.
pub(super) const TABLES: &str = "
CREATE TABLE source (
    id INTEGER PRIMARY KEY,  -- from 1
    label TEXT NOT NULL,     -- of the recording, for instance a version of the program
    path TEXT NOT NULL,      -- the trace
    host TEXT,               -- hostname, if the trace contains it
    recording INTEGER NOT NULL, -- from 1; the same for traces that were read together
    sync TEXT                -- source of the relation of the machines' clocks: auto, or a file
);
CREATE TABLE kind (
    id INTEGER PRIMARY KEY,  -- from 1
    name TEXT NOT NULL UNIQUE,
    definition TEXT NOT NULL -- the delimiters
);
CREATE TABLE metric (
    name TEXT PRIMARY KEY,   -- a column of execution
    unit TEXT NOT NULL,      -- ns, bytes, or empty
    description TEXT NOT NULL,
    is_value INTEGER NOT NULL -- 1: a value of events; 0: a metric of the critical path
) WITHOUT ROWID;
CREATE TABLE name (
    id INTEGER PRIMARY KEY,  -- from 0
    text TEXT NOT NULL
);
CREATE TABLE context (
    id INTEGER PRIMARY KEY,  -- from 1; 0 is the context without frames
    around INTEGER NOT NULL, -- less than id
    kind INTEGER NOT NULL,   -- kind of the innermost frame: 0 function, 1 call, 2 thread, 3 reason, 4 detail
    name INTEGER NOT NULL REFERENCES name(id)
);
CREATE TABLE rename (
    old TEXT PRIMARY KEY,    -- name of functions
    new TEXT NOT NULL        -- name under which they are shown
) WITHOUT ROWID;
CREATE TABLE thread (
    id INTEGER PRIMARY KEY,  -- from 0
    source INTEGER NOT NULL REFERENCES source(id),
    tid INTEGER NOT NULL,
    name TEXT
);
CREATE TABLE execution (
    id INTEGER PRIMARY KEY,  -- from 1
    kind INTEGER NOT NULL REFERENCES kind(id),
    source INTEGER NOT NULL REFERENCES source(id),
    number NOT NULL,         -- an integer; within other executions a text with their numbers first: 3.1
    begin_ns INTEGER NOT NULL, -- from the origin of the traces' clock
    thread INTEGER REFERENCES thread(id), -- in which it ends
    times BLOB,              -- LEB128: for each context, ascending, the difference to the previous id, and its own time;
                             -- NULL if the steps of the path add up to the same times
    path BLOB NOT NULL       -- LEB128: for each step, 2 * context, plus 1 if a thread follows; 1 + thread, 0 if unknown; duration
);
CREATE VIEW executions AS
    SELECT execution.*, kind.name AS kind_name, source.label AS label, source.host AS host, source.path AS trace,
        thread.tid AS tid, thread.name AS thread_name
    FROM execution JOIN kind ON kind.id = execution.kind JOIN source ON source.id = execution.source
        LEFT JOIN thread ON thread.id = execution.thread;
";

/// Columns of every execution, in the order in which they are written. Columns of metrics and
/// values must have other names.
pub(super) const COLUMNS: [&str; 8] = [
    "id", "kind", "source", "number", "begin_ns", "thread", "times", "path",
];

/// Columns that the view adds.
pub(super) const VIEW_COLUMNS: [&str; 6] =
    ["kind_name", "label", "host", "trace", "tid", "thread_name"];

/// SQLite's names of the row id.
const ROWID: [&str; 3] = ["rowid", "oid", "_rowid_"];

/// A name quoted for SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Column of a value: its name, unless it is the name of a fixed column, of a column in `columns`,
/// or of a metric without its unit.
pub(crate) fn value_column(name: &str, columns: &[Column]) -> String {
    let fixed = COLUMNS.into_iter().chain(VIEW_COLUMNS).chain(ROWID);
    let mut taken = fixed.chain(columns.iter().map(|column| column.name.as_str()));
    let small = name.to_ascii_lowercase();
    let mut figures = columns.iter().filter(|column| !column.is_value);
    match taken.any(|taken| taken.eq_ignore_ascii_case(name))
        || figures.any(|of| of.is_called(&small))
    {
        true => value_column(&format!("{name}_value"), columns),
        false => name.to_owned(),
    }
}
