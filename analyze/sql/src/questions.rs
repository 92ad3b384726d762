//! Asking and answering.

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
use crate::virtual_table::register;

/// A database that tables share.
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

    /// The database, for one look.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Database> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many executions there are.
    pub(crate) fn executions(&self) -> f64 {
        self.executions as f64
    }
}

/// Knows whether answering was stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled(pub(crate) Arc<Control>);

impl Cancelled {
    /// An error if it was: for whoever is busy for long without a row.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.0.is_cancelled() {
            true => Err("interrupted".to_owned()),
            false => Ok(()),
        }
    }
}

/// Stops answering, from another thread.
pub struct Stopper {
    handle: InterruptHandle,
    control: Arc<Control>,
}

impl Stopper {
    /// Stops it soon, and for good.
    pub fn stop(&self) {
        self.control.cancel();
        self.handle.interrupt();
    }

    /// Tells how far reading traces is.
    pub fn control(&self) -> &Control {
        &self.control
    }
}

/// A column that questions can be asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Its table.
    pub table: String,
    /// Its name.
    pub column: String,
    /// The type of its values, in SQL, if it has one.
    pub kind: String,
    /// What it is, for people, if somebody said it.
    pub about: String,
}

/// Takes answers.
pub trait Sink {
    /// The rows of a statement's answer follow, with these columns. False: no more is wanted.
    fn begin(&mut self, columns: &[String]) -> bool;

    /// A row. False: no more rows of this answer are wanted.
    ///
    /// # Errors
    /// When it cannot be taken.
    fn row(&mut self, row: &[ValueRef<'_>]) -> Result<bool, SqlError>;

    /// That were all.
    ///
    /// # Errors
    /// When they cannot be taken.
    fn end(&mut self) -> Result<(), SqlError>;
}

/// Answers questions.
pub struct Questions {
    connection: Connection,
    control: Arc<Control>,
    tables: Vec<Arc<dyn Table>>,
    /// The executions' own columns: name, unit, and what it is.
    figures: Vec<(String, String, String)>,
    has_database: bool,
}

impl Questions {
    /// About a database, traces, or both.
    ///
    /// # Errors
    /// When the database cannot be read.
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

    /// What stops answering.
    pub fn stopper(&self) -> Stopper {
        Stopper {
            handle: self.connection.get_interrupt_handle(),
            control: self.control.clone(),
        }
    }

    /// Answers all statements of a text, one behind the other.
    ///
    /// # Errors
    /// When one cannot be understood or answered, or would write: those before it were answered then.
    pub fn answer(&self, text: &str, sink: &mut dyn Sink) -> Result<(), SqlError> {
        if let Some(byte) = text.find('\0') {
            return Err(SqlError::Question {
                what: "there is a null byte in the question".to_owned(),
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
                what: "there is no question in it".to_owned(),
                place: None,
            }),
        }
    }

    /// Whether it is a question.
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
                what: "there is a parameter (?, :name, @name or $name) in it, which nothing has a value for"
                    .to_owned(),
                place: Some(place()),
            });
        }
        Ok(())
    }

    /// Gives the rows of one answer away; false if nothing more is wanted at all.
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

    /// What is wrong with a question.
    fn question(&self, text: &str, error: Error) -> SqlError {
        match error {
            Error::SqlInputError {
                msg, sql, offset, ..
            } => {
                let begin = text.len().saturating_sub(sql.len());
                let byte = begin.saturating_add(usize::try_from(offset).unwrap_or(0));
                SqlError::Question {
                    what: self.hinted(msg),
                    place: Some(TextPosition::of(text, byte)),
                }
            }
            error => match self.failed(error) {
                SqlError::Answer(what) => SqlError::Question {
                    what: self.hinted(what),
                    place: None,
                },
                other => other,
            },
        }
    }

    /// With what to do about it, if a table is missing because nothing was told of that it is of.
    fn hinted(&self, what: String) -> String {
        const OF_DATABASE: [&str; 6] = [
            "executions",
            "execution",
            "segments",
            "times",
            "contexts",
            "threads",
        ];
        const OF_TRACES: [&str; 3] = ["events", "intervals", "trace_threads"];
        let Some(table) = what.strip_prefix("no such table: ") else {
            return what;
        };
        let has = |name: &str| self.tables.iter().any(|table| table.name() == name);
        let hint = match table {
            _ if OF_DATABASE.contains(&table) && !self.has_database => {
                "it is of databases of executions, and none is given"
            }
            _ if OF_TRACES.contains(&table) && !has(table) => "it is of traces, and none is given",
            _ => "without a question, all tables are shown",
        };
        format!("{what}: {hint}")
    }

    /// Why there is no answer.
    fn failed(&self, error: Error) -> SqlError {
        let is_stopped = error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted);
        match is_stopped || self.control.is_cancelled() {
            true => SqlError::Interrupted,
            false => answer(error),
        }
    }

    /// All that questions can be asked about.
    ///
    /// # Errors
    /// When the database cannot be read.
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

    /// What tables are, by name, for those that are not the file's own.
    pub fn tables(&self) -> Vec<(&'static str, &'static str)> {
        let own = self
            .tables
            .iter()
            .map(|table| (table.name(), table.about()));
        let file = [(
            "executions",
            "executions of tasks, with their figures and captured values",
        )];
        let file = file.into_iter().filter(|_| self.has_database);
        let rest = OF_FILE_ABOUT.into_iter().filter(|_| self.has_database);
        file.chain(own).chain(rest).collect()
    }

    /// Columns of a table of the file.
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

/// Tables of the file that are asked about as they are, and what their columns are.
const OF_FILE: [(&str, &[(&str, &str)]); 3] = [
    (
        "source",
        &[
            ("id", "from 1"),
            ("label", "of the recording"),
            ("path", "the trace"),
            ("host", "its machine"),
        ],
    ),
    (
        "kind",
        &[
            ("id", "from 1"),
            ("name", "of these executions"),
            ("definition", "the delimiters"),
        ],
    ),
    (
        "metric",
        &[
            ("name", "a column of executions"),
            ("unit", "ns, bytes, text, or nothing for other numbers"),
            ("description", "what it is"),
            (
                "is_value",
                "1 for captured values, 0 for figures of the path",
            ),
        ],
    ),
];

const OF_FILE_ABOUT: [(&str, &str); 3] = [
    ("source", "traces that executions come from"),
    ("kind", "kinds of executions"),
    ("metric", "figures and captured values of executions"),
];

/// What a column of executions is.
fn of_executions(column: &str, figures: &[(String, String, String)]) -> String {
    let own = match column {
        "id" => "from 1",
        "kind" => "id of its kind in the table kind",
        "source" => "id of its trace in the table source",
        "number" => "those of the executions around it, and its own: 3.1",
        "begin_ns" => "from the origin of the traces' clock",
        "thread" => "id of the thread in which it ends",
        "kind_name" => "its kind",
        "label" => "of the recording",
        "host" => "its machine",
        "trace" => "the trace that it comes from",
        "tid" => "of the thread in which it ends",
        "thread_name" => "of the thread in which it ends",
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
