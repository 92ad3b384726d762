//! Queries and their answers.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Error, ErrorCode, InterruptHandle, OpenFlags, Statement};
use tracebraid_engine::Control;
use tracebraid_executions::database::Database;

use crate::contexts::ContextTable;
use crate::error::{SqlError, TextPosition};
use crate::events::EventTable;
use crate::intervals::IntervalTable;
use crate::segments::SegmentTable;
use crate::table::Table;
use crate::threads::ThreadTable;
use crate::times::TimeTable;
use crate::trace_threads::TraceThreadTable;
use crate::traces::Traces;
use crate::unknown_names::hinted;
use crate::virtual_table::register;

/// A database that several tables share.
#[derive(Clone)]
pub(crate) struct Shared {
    database: Arc<Mutex<Database>>,
    executions: u64,
}

impl Shared {
    fn new(database: Database) -> Shared {
        let executions = database.kinds.iter().map(|kind| kind.executions);
        Shared {
            executions: executions.fold(0, u64::saturating_add),
            database: Arc::new(Mutex::new(database)),
        }
    }

    /// Locks the database for one access.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn executions(&self) -> f64 {
        self.executions as f64
    }
}

/// Whether the query was stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled(pub(crate) Arc<Control>);

impl Cancelled {
    /// Returns an error if the query was stopped. Loops that may run long without a row call it.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.0.is_cancelled() {
            true => Err("interrupted".to_owned()),
            false => Ok(()),
        }
    }

    /// Reports the progress of reading: bytes that were read, of all.
    pub(crate) fn progress(&self, done: u64, total: u64) {
        self.0.progress(done, total);
    }
}

/// Stops queries from another thread.
pub struct Stopper {
    handle: InterruptHandle,
    control: Arc<Control>,
}

impl Stopper {
    /// Stops the current query soon, and all later ones.
    pub fn stop(&self) {
        self.control.cancel();
        self.handle.interrupt();
    }

    /// Progress of reading traces.
    pub fn control(&self) -> &Control {
        &self.control
    }
}

/// A column that queries can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Name of the table.
    pub table: String,
    /// Name of the column.
    pub column: String,
    /// Type of the values in SQL; empty if the column has none.
    pub kind: String,
    /// Description; may be empty.
    pub about: String,
}

/// Receives the rows of answers.
pub trait Sink {
    /// Begins the answer of a statement with these columns; false to stop all answers.
    fn begin(&mut self, columns: &[String]) -> bool;

    /// Receives a row; false to end this answer.
    ///
    /// # Errors
    /// If the row cannot be written.
    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<bool, SqlError>;

    /// Ends the answer of a statement.
    ///
    /// # Errors
    /// If the answer cannot be written.
    fn end(&mut self) -> Result<(), SqlError>;
}

/// Answers queries in SQL.
pub struct Questions {
    connection: Connection,
    control: Arc<Control>,
    tables: Vec<Arc<dyn Table>>,
    /// Metrics of executions: column name, unit and description.
    figures: Vec<(String, String, String)>,
    has_database: bool,
}

impl Questions {
    /// Queries over a database, traces, or both.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn new(path: Option<&Path>, traces: Option<Traces>) -> Result<Questions, SqlError> {
        let control = Arc::new(Control::default());
        let cancelled = Cancelled(control.clone());
        let mut tables: Vec<Arc<dyn Table>> = Vec::new();
        let mut figures = Vec::new();
        if let Some(path) = path {
            let database = Database::open(path)?;
            let columns = database.columns.iter();
            figures = columns
                .map(|of| (of.name.clone(), of.unit.clone(), of.description.clone()))
                .collect();
            let contexts = ContextTable::new(&database);
            let union = contexts.union();
            tables.push(Arc::new(ThreadTable::new(&database)));
            tables.push(Arc::new(contexts));
            let shared = Shared::new(database);
            tables.push(Arc::new(TimeTable::new(shared.clone(), cancelled.clone())));
            tables.push(Arc::new(SegmentTable::new(
                shared,
                union,
                cancelled.clone(),
            )));
        }
        if let Some(traces) = traces {
            let traces = Arc::new(traces.watched(cancelled));
            tables.push(Arc::new(EventTable::new(traces.clone())));
            tables.push(Arc::new(IntervalTable::new(traces.clone())));
            tables.push(Arc::new(TraceThreadTable::new(traces)));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let place = path.unwrap_or_else(|| Path::new(":memory:"));
        let connection = Connection::open_with_flags(place, flags).map_err(answer)?;
        for table in &tables {
            register(&connection, table.clone()).map_err(answer)?;
        }
        Ok(Questions {
            connection,
            control,
            tables,
            figures,
            has_database: path.is_some(),
        })
    }

    /// A handle that stops queries.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            handle: self.connection.get_interrupt_handle(),
            control: self.control.clone(),
        }
    }

    /// Answers all statements of a text in their order.
    ///
    /// # Errors
    /// If a statement is invalid, would write or fails. Earlier statements were answered by then.
    pub fn answer(&self, text: &str, sink: &mut dyn Sink) -> Result<(), SqlError> {
        if let Some(byte) = text.find('\0') {
            return Err(SqlError::Question {
                what: "the query contains a null byte".to_owned(),
                place: Some(TextPosition::of(text, byte)),
            });
        }
        let mut batch = Batch::new(&self.connection, text);
        let mut from = 0;
        let mut is_any = false;
        while let Some(mut statement) = batch.next().map_err(|error| self.question(text, error))? {
            is_any = true;
            let sql = statement.expanded_sql().unwrap_or_default();
            let begin = from
                + text
                    .get(from..)
                    .and_then(|rest| rest.find(&*sql))
                    .unwrap_or(0);
            from = begin + sql.len();
            let first = begin + sql.len() - sql.trim_start().len();
            self.check(&statement, &sql, || TextPosition::of(text, first))?;
            if !self.rows(&mut statement, sink)? {
                break;
            }
        }
        match is_any {
            true => Ok(()),
            false => Err(SqlError::Question {
                what: "the query contains no SQL statement".to_owned(),
                place: None,
            }),
        }
    }

    /// Refuses statements that write or have parameters.
    fn check(
        &self,
        statement: &Statement<'_>,
        sql: &str,
        place: impl Fn() -> TextPosition,
    ) -> Result<(), SqlError> {
        if !statement.readonly() {
            let words: Vec<&str> = sql.split_whitespace().take(3).collect();
            return Err(SqlError::Writes {
                statement: words.join(" "),
                place: place(),
            });
        }
        if statement.parameter_count() > 0 {
            return Err(SqlError::Question {
                what: "the query contains a parameter (?, :name, @name or $name), which has no value here; write the value itself"
                    .to_owned(),
                place: Some(place()),
            });
        }
        Ok(())
    }

    /// Passes the rows of one answer to the sink; false if the sink wants no more answers.
    fn rows(&self, statement: &mut Statement<'_>, sink: &mut dyn Sink) -> Result<bool, SqlError> {
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.query([]).map_err(|error| self.failed(error))?;
        if !columns.is_empty() && !sink.begin(&columns) {
            return Ok(false);
        }
        while let Some(row) = rows.next().map_err(|error| self.failed(error))? {
            let values = (0..columns.len()).map(|place| row.get_ref(place));
            let values: Vec<ValueRef<'_>> = values.collect::<Result<_, _>>().map_err(answer)?;
            if !sink.row(&values)? {
                break;
            }
        }
        if !columns.is_empty() {
            sink.end()?;
        }
        Ok(true)
    }

    /// The error of an invalid statement.
    fn question(&self, text: &str, error: Error) -> SqlError {
        match error {
            Error::SqlInputError {
                msg, sql, offset, ..
            } => {
                let begin = text.len().saturating_sub(sql.len());
                let byte = begin.saturating_add(usize::try_from(offset).unwrap_or(0));
                SqlError::Question {
                    what: self.hinted(msg, &sql),
                    place: Some(TextPosition::of(text, byte)),
                }
            }
            error => match self.failed(error) {
                SqlError::Answer(what) => SqlError::Question {
                    what: self.hinted(what, text),
                    place: None,
                },
                other => other,
            },
        }
    }

    /// Adds a hint to a message on unknown names.
    fn hinted(&self, what: String, query: &str) -> String {
        match self.about() {
            Ok(known) => hinted(what, query, &known),
            Err(_) => what,
        }
    }

    /// The error of a query that failed while it ran.
    fn failed(&self, error: Error) -> SqlError {
        let is_stopped = error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted);
        match is_stopped || self.control.is_cancelled() {
            true => SqlError::Interrupted,
            false => answer(error),
        }
    }

    /// All columns that queries can use.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn about(&self) -> Result<Vec<About>, SqlError> {
        let mut found = Vec::new();
        if self.has_database {
            let figures = self.figures.as_slice();
            let view = self.of_file("executions")?;
            found.extend(view.into_iter().map(|mut of| {
                of.about = of_executions(&of.column, figures);
                of
            }));
        }
        for table in &self.tables {
            let about = |column: &crate::table::Column| About {
                table: table.name().to_owned(),
                column: column.name.to_owned(),
                kind: column.kind.to_owned(),
                about: column.about.to_owned(),
            };
            found.extend(table.columns().iter().map(about));
        }
        if self.has_database {
            for (name, columns) in OF_FILE {
                found.extend(self.of_file(name)?.into_iter().map(|mut of| {
                    let known = columns.iter().find(|known| known.0 == of.column);
                    of.about = known.map_or_else(String::new, |known| known.1.to_owned());
                    of
                }));
            }
        }
        Ok(found)
    }

    /// Names and descriptions of the tables, except those that the file itself contains.
    pub fn tables(&self) -> Vec<(&'static str, &'static str)> {
        let own = self
            .tables
            .iter()
            .map(|table| (table.name(), table.about()));
        let file = [(
            "executions",
            "executions, with their metrics and captured values",
        )];
        let file = file.into_iter().filter(|_| self.has_database);
        let rest = OF_FILE_ABOUT.into_iter().filter(|_| self.has_database);
        file.chain(own).chain(rest).collect()
    }

    /// Columns of a table that the file contains.
    fn of_file(&self, table: &str) -> Result<Vec<About>, SqlError> {
        let select =
            "SELECT name, type FROM pragma_table_info(?1) WHERE name NOT IN ('times', 'path')";
        let mut statement = self.connection.prepare(select).map_err(answer)?;
        let columns = statement.query_map([table], |row| {
            Ok(About {
                table: table.to_owned(),
                column: row.get(0)?,
                kind: row.get(1)?,
                about: String::new(),
            })
        });
        columns.and_then(Iterator::collect).map_err(answer)
    }
}

/// Tables of the file that queries read directly, with descriptions of their columns.
const OF_FILE: [(&str, &[(&str, &str)]); 3] = [
    (
        "source",
        &[
            ("id", "from 1"),
            ("label", "label of the recording"),
            ("path", "the trace"),
            ("host", "host name in the trace"),
            ("recording", "the same for traces that were read together"),
            ("sync", "how the clocks were aligned: auto, or a file"),
        ],
    ),
    (
        "kind",
        &[
            ("id", "from 1"),
            ("name", "name of the kind"),
            ("definition", "the conditions of begin and end"),
        ],
    ),
    (
        "metric",
        &[
            ("name", "a column of executions"),
            ("unit", "ns, bytes, text, or empty for other numbers"),
            ("description", "description"),
            (
                "is_value",
                "1 for captured values, 0 for metrics of the path",
            ),
        ],
    ),
];

const OF_FILE_ABOUT: [(&str, &str); 3] = [
    ("source", "traces that contain the executions"),
    ("kind", "kinds of executions"),
    ("metric", "metrics and captured values of executions"),
];

/// Description of a column of `executions`.
fn of_executions(column: &str, figures: &[(String, String, String)]) -> String {
    let own = match column {
        "id" => "from 1",
        "kind" => "id of its kind in the table kind",
        "source" => "id of its trace in the table source",
        "number" => "numbers of the enclosing executions and its own, such as 3.1",
        "begin_ns" => "time since the origin of the traces' clock",
        "thread" => "id of the thread in which it ends",
        "kind_name" => "name of its kind",
        "label" => "label of the recording",
        "host" => "host name in the trace",
        "trace" => "path of the trace",
        "tid" => "tid of the thread in which it ends",
        "thread_name" => "name of the thread in which it ends",
        _ => "",
    };
    let figure = figures.iter().find(|figure| figure.0 == column);
    match figure {
        Some((_, unit, description)) if description.is_empty() => unit.clone(),
        Some((_, _, description)) => description.clone(),
        None => own.to_owned(),
    }
}

fn answer(error: Error) -> SqlError {
    SqlError::Answer(error.to_string())
}
