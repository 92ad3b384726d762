//! Writing a database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, params};
use tempfile::TempPath;
use tracebraid_critical_path::{ActorId, Graph};
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_filter::Datum;
use tracebraid_filter::executions::Definitions;

use crate::build::{Finished, Sink, Union};
use crate::contexts::{Contexts, FrameKind};
use crate::counts::ExtraMetric;
use crate::database::error::DatabaseError;
use crate::database::reader::Database;
use crate::database::schema::{APPLICATION, COLUMNS, TABLES, VERSION, quoted, value_column};
use crate::database::{blobs, table::Column};
use crate::metrics::Metric;

/// What is told of executions that are written.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// By index of the trace: where they come from.
    pub sources: Vec<SourceAbout>,
    /// By place among the definitions.
    pub kinds: Vec<KindAbout>,
    /// Functions that are taken for those of another name.
    pub renames: Vec<(String, String)>,
}

impl About {
    /// Of executions of these definitions, of which `text` is what the user wrote, in these traces, which are one recording.
    pub fn new(set: &TraceSet, label: &str, definitions: &Definitions, text: &str) -> About {
        let kind = |kind| KindAbout {
            name: definitions.path(kind),
            definition: text.to_owned(),
            values: definitions.captures(kind),
        };
        About {
            sources: set.traces.iter().map(|trace| source(trace, label)).collect(),
            kinds: (0..definitions.list.len()).map(kind).collect(),
            renames: Vec::new(),
        }
    }
}

fn source(trace: &Trace, label: &str) -> SourceAbout {
    let class = &trace.layout.class;
    let host = class.env_str("hostname").or_else(|| class.env_str("host"));
    let path = trace.paths.first();
    let path = path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    SourceAbout {
        label: label.to_owned(),
        path: path.map(|path| path.display().to_string()).unwrap_or_default(),
        host: host.map(str::to_owned),
    }
}

/// A trace.
#[derive(Clone, Debug, Default)]
pub struct SourceAbout {
    /// What the user calls the recording.
    pub label: String,
    /// Where it is.
    pub path: String,
    /// Its machine.
    pub host: Option<String>,
}

/// A kind of executions.
#[derive(Clone, Debug, Default)]
pub struct KindAbout {
    /// Its name.
    pub name: String,
    /// Its delimiters, as the user defined them.
    pub definition: String,
    /// Names of values that are captured, in the order of [`crate::Execution::values`].
    pub values: Vec<String>,
}

/// Writes a database aside; [`Writer::finish`] puts it in its place.
#[derive(Debug)]
pub struct Writer {
    /// Where it will be.
    place: PathBuf,
    hidden: TempPath,
    connection: Connection,
    /// By index of the trace.
    sources: Vec<i64>,
    /// By place among the definitions.
    kinds: Vec<WrittenKind>,
    /// Numbers of threads: by source, id and name.
    threads: HashMap<(i64, i32, Option<String>), u32>,
    next_execution: i64,
    /// How many contexts and names there were.
    known: (usize, usize),
}

#[derive(Debug)]
struct WrittenKind {
    id: i64,
    /// Names of what is captured.
    values: Vec<String>,
    /// How an execution is inserted, its columns as [`Finished`] has them; empty until those are known.
    insert: String,
}

impl Writer {
    /// A new database; one that is there stays as it is until this one is complete.
    ///
    /// # Errors
    /// When it cannot be written there.
    pub fn create(path: &Path, about: &About) -> Result<Writer, DatabaseError> {
        let mut writer = Writer::aside(path, None)?;
        let sqlite = DatabaseError::sqlite(path);
        let tables = format!(
            "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; BEGIN; {TABLES}"
        );
        writer.connection.execute_batch(&tables).map_err(sqlite)?;
        writer.tell(about)?;
        Ok(writer)
    }

    /// A database that goes on with all that is in that one, and what its executions refer to. That one stays as it is until
    /// this one is complete.
    ///
    /// # Errors
    /// When there is none, or it cannot be written there.
    pub fn append(path: &Path, about: &About) -> Result<(Writer, Union), DatabaseError> {
        let before = Database::open(path)?;
        let union = before.recorded_union()?;
        let threads = before.threads;
        let mut writer = Writer::aside(path, Some(path))?;
        writer.known = (union.contexts.count(), union.names.texts().len());
        for (id, thread) in threads.into_iter().enumerate() {
            writer
                .threads
                .insert((thread.source, thread.tid, thread.name), id as u32);
        }
        let sqlite = DatabaseError::sqlite(path);
        let begin = || -> rusqlite::Result<i64> {
            writer.connection.execute_batch("BEGIN")?;
            writer
                .connection
                .query_row("SELECT coalesce(max(id), 0) + 1 FROM execution", [], |row| {
                    row.get(0)
                })
        };
        let next = begin().map_err(sqlite)?;
        writer.next_execution = next;
        writer.tell(about)?;
        Ok((writer, union))
    }

    fn aside(path: &Path, copied: Option<&Path>) -> Result<Writer, DatabaseError> {
        let error = |source| DatabaseError::file(path, source);
        let place = tracebraid_aside::place(path).map_err(error)?;
        let (_, hidden) = tracebraid_aside::beside(&place).map_err(error)?.into_parts();
        if let Some(copied) = copied {
            let permissions = std::fs::metadata(&hidden).map_err(error)?.permissions();
            std::fs::copy(copied, &hidden).map_err(error)?;
            std::fs::set_permissions(&hidden, permissions).map_err(error)?;
        }
        let sqlite = DatabaseError::sqlite(path);
        let connection = Connection::open(&hidden).map_err(&sqlite)?;
        // Nobody else knows the file, and a half one is thrown away: no journal is needed. What executions refer to is written last.
        let quick = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = OFF;";
        connection.execute_batch(quick).map_err(&sqlite)?;
        Ok(Writer {
            place,
            hidden,
            connection,
            sources: Vec::new(),
            kinds: Vec::new(),
            threads: HashMap::new(),
            next_execution: 1,
            known: (1, 0),
        })
    }

    fn tell(&mut self, about: &About) -> Result<(), DatabaseError> {
        let place = self.place.clone();
        self.tell_all(about).map_err(DatabaseError::sqlite(&place))
    }

    fn tell_all(&mut self, about: &About) -> rusqlite::Result<()> {
        for source in &about.sources {
            let insert = "INSERT INTO source (label, path, host) VALUES (?1, ?2, ?3)";
            self.connection
                .execute(insert, params![source.label, source.path, source.host])?;
            self.sources.push(self.connection.last_insert_rowid());
        }
        for (old, new) in &about.renames {
            let insert = "INSERT OR REPLACE INTO rename (old, new) VALUES (?1, ?2)";
            self.connection.execute(insert, params![old, new])?;
        }
        for kind in &about.kinds {
            let written = self.add_kind(kind)?;
            self.kinds.push(written);
        }
        Ok(())
    }

    fn add_kind(&mut self, kind: &KindAbout) -> rusqlite::Result<WrittenKind> {
        let insert = "INSERT INTO kind (name, definition) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
        self.connection
            .execute(insert, params![kind.name, kind.definition])?;
        let of_name = "SELECT id FROM kind WHERE name = ?1";
        let id = self
            .connection
            .query_row(of_name, [&kind.name], |row| row.get(0))?;
        Ok(WrittenKind {
            id,
            values: kind.values.clone(),
            insert: String::new(),
        })
    }

    /// Columns of all figures, and of what each kind captures.
    fn add_columns(&mut self, extra: &[ExtraMetric]) -> rusqlite::Result<()> {
        let mut kinds = std::mem::take(&mut self.kinds);
        for kind in &mut kinds {
            let columns = execution_columns(extra, &kind.values);
            for column in &columns {
                self.add_column(column)?;
            }
            kind.insert = insertion(&columns);
        }
        self.kinds = kinds;
        Ok(())
    }

    /// A column of executions, unless there is one.
    fn add_column(&self, column: &Column) -> rusqlite::Result<()> {
        let insert =
            "INSERT OR IGNORE INTO metric (name, unit, description, is_value) VALUES (?1, ?2, ?3, ?4)";
        let Column {
            name,
            unit,
            description,
            is_value,
        } = column;
        if self
            .connection
            .execute(insert, params![name, unit, description, is_value])?
            > 0
        {
            let add = format!("ALTER TABLE execution ADD COLUMN {}", quoted(name));
            self.connection.execute_batch(&add)?;
        }
        Ok(())
    }

    /// Writes what executions refer to, and puts the database in its place. Gives its size in bytes.
    ///
    /// # Errors
    /// When it cannot be written: then what was there stays as it was.
    pub fn finish(self, union: &Union) -> Result<u64, DatabaseError> {
        let place = self.place.clone();
        self.tell_union(union).map_err(DatabaseError::sqlite(&place))?;
        let Writer {
            hidden, connection, ..
        } = self;
        connection
            .close()
            .map_err(|(_, source)| DatabaseError::sqlite(&place)(source))?;
        let done = || {
            let file = std::fs::File::open(&hidden)?;
            file.sync_all()?;
            let length = file.metadata()?.len();
            hidden.persist(&place).map_err(|error| error.error)?;
            Ok(length)
        };
        done().map_err(|source| DatabaseError::file(&place, source))
    }

    fn tell_union(&self, union: &Union) -> rusqlite::Result<()> {
        let (contexts, names) = self.known;
        let mut insert = self
            .connection
            .prepare("INSERT INTO name (id, text) VALUES (?1, ?2)")?;
        for (id, text) in union.names.texts().iter().enumerate().skip(names) {
            insert.execute(params![id as i64, text])?;
        }
        let mut insert = self
            .connection
            .prepare("INSERT INTO context (id, around, kind, name) VALUES (?1, ?2, ?3, ?4)")?;
        for (id, around, frame) in contexts_from(&union.contexts, contexts) {
            insert.execute(params![id, around, number_of(frame.kind), frame.name.0])?;
        }
        let mut insert = self
            .connection
            .prepare("INSERT OR IGNORE INTO thread (id, source, tid, name) VALUES (?1, ?2, ?3, ?4)")?;
        let mut threads: Vec<_> = self.threads.iter().collect();
        threads.sort_unstable_by_key(|(_, id)| **id);
        for ((source, tid, name), id) in threads {
            insert.execute(params![id, source, tid, name])?;
        }
        self.connection.execute_batch("COMMIT")
    }

    /// The number of a thread.
    fn thread(&mut self, graph: &Graph, actor: ActorId) -> Option<u32> {
        let actor = graph.actor(actor)?;
        let source = *self.sources.get(actor.key.trace as usize)?;
        let next = self.threads.len() as u32;
        Some(
            *self
                .threads
                .entry((source, actor.key.tid, actor.name.clone()))
                .or_insert(next),
        )
    }

    fn insert(&mut self, graph: &Graph, finished: &Finished) -> rusqlite::Result<()> {
        if self.kinds.iter().any(|kind| kind.insert.is_empty()) {
            self.add_columns(&[])?;
        }
        let execution = &finished.execution;
        let mut threads: HashMap<ActorId, Option<u32>> = HashMap::new();
        let mut number = |actor| *threads.entry(actor).or_insert_with(|| self.thread(graph, actor));
        let thread = execution.last.or(execution.first).and_then(&mut number);
        let steps = finished.steps.iter();
        let steps = steps.map(|step| (step.actor.and_then(&mut number), step.context, step.duration));
        let path = blobs::steps(steps);
        let trace = execution
            .last
            .or(execution.first)
            .and_then(|actor| Some(graph.actor(actor)?.key.trace));
        let source = self
            .sources
            .get(trace.unwrap_or(0) as usize)
            .copied()
            .unwrap_or(1);
        let Some(kind) = self.kinds.get(execution.kind) else {
            return Ok(());
        };
        let numbers: Vec<String> = execution.numbers.iter().map(u64::to_string).collect();
        let mut insert = self.connection.prepare_cached(&kind.insert)?;
        let head: [Value; COLUMNS.len()] = [
            self.next_execution.into(),
            kind.id.into(),
            source.into(),
            numbers.join(".").into(),
            execution.begin.into(),
            thread.map_or(Value::Null, |thread| i64::from(thread).into()),
            blobs::times(&finished.ecct.times).into(),
            path.into(),
        ];
        let figures = finished
            .metrics
            .iter()
            .map(|figure| figure.map_or(Value::Null, |figure| saturated(figure).into()));
        let values = execution.values.iter().map(value);
        let all = head.into_iter().chain(figures).chain(values);
        for (place, value) in (1..=insert.parameter_count()).zip(all) {
            insert.raw_bind_parameter(place, value)?;
        }
        insert.raw_execute()?;
        self.next_execution += 1;
        Ok(())
    }
}

impl Sink for Writer {
    type Error = DatabaseError;

    fn figures(&mut self, extra: &[ExtraMetric]) -> Result<(), DatabaseError> {
        let added = self.add_columns(extra);
        added.map_err(DatabaseError::sqlite(&self.place))
    }

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), DatabaseError> {
        self.insert(graph, &finished)
            .map_err(|source| DatabaseError::sqlite(&self.place)(source))
    }
}

/// The columns of executions that capture values of those names, behind [`COLUMNS`]: figures, then values.
fn execution_columns(extra: &[ExtraMetric], values: &[String]) -> Vec<Column> {
    let value = |name: &String| Column {
        name: name.clone(),
        unit: String::new(),
        description: format!("{name}, as captured"),
        is_value: true,
    };
    let mut columns: Vec<Column> = Metric::all().map(Column::from).collect();
    let figures = columns.len();
    // What is captured is named first: its name stays the same whatever else programs attach.
    for mut column in values.iter().map(value).chain(extra.iter().map(Column::from)) {
        column.name = value_column(&column.name, &columns);
        columns.push(column);
    }
    let behind = columns.get_mut(figures..).unwrap_or_default();
    behind.rotate_left(values.len());
    columns
}

/// How an execution is inserted.
fn insertion(columns: &[Column]) -> String {
    let names = COLUMNS.into_iter().map(str::to_owned);
    let names: Vec<String> = names
        .chain(columns.iter().map(|column| quoted(&column.name)))
        .collect();
    let places: Vec<String> = (1..=names.len()).map(|place| format!("?{place}")).collect();
    format!(
        "INSERT INTO execution ({}) VALUES ({})",
        names.join(", "),
        places.join(", ")
    )
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A captured value as SQLite keeps it: integers of more than 64 bits as text.
fn value(datum: &Datum) -> Value {
    match datum {
        Datum::Missing => Value::Null,
        Datum::Integer(number) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => number.to_string().into(),
        },
        Datum::Float(bits) => f64::from_bits(*bits).into(),
        text => String::from_utf8_lossy(text.bytes().unwrap_or_default())
            .into_owned()
            .into(),
    }
}

/// Contexts from that id on.
fn contexts_from(
    contexts: &Contexts,
    from: usize,
) -> impl Iterator<Item = (u32, u32, crate::contexts::Frame)> + '_ {
    (from as u32..contexts.count() as u32).filter_map(|id| {
        let (around, frame) = contexts.parts(crate::contexts::ContextId(id))?;
        Some((id, around.0, frame))
    })
}

/// The number of a kind of frames in the schema.
fn number_of(kind: FrameKind) -> i64 {
    FrameKind::ALL
        .iter()
        .position(|known| *known == kind)
        .map_or(0, |at| at as i64)
}
