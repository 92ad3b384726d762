//! Writes a database.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, params};
use tempfile::TempPath;
use tracebraid_graph::Graph;

use crate::build::{Built, Finished, Sink, SinkJob, Union};
use crate::contexts::{ContextId, Contexts, Frame, FrameKind};
use crate::counts::ExtraMetric;
use crate::database::about::{About, KindAbout, SourceAbout};
use crate::database::encode::{Encoding, Form};
use crate::database::error::DatabaseError;
use crate::database::otherwise;
use crate::database::paged::Paged;
use crate::database::pages::Pages;
use crate::database::reader::Database;
use crate::database::row::{Batch, StoredKind};
use crate::database::schema::{APPLICATION, TABLES, VERSION, value_column};
use crate::database::store::{self, State, Store, StoredColumn, Writing};
use crate::database::table::Column;
use crate::made::{Constant, Made, MetThread};
use crate::metrics::Metric;

/// Writes a database to a temporary file; [`Writer::finish`] moves it to its path.
#[derive(Debug)]
pub struct Writer {
    /// Final path.
    place: PathBuf,
    hidden: TempPath,
    keeps: Keeps,
    /// Database ids of the traces, by index of the trace.
    sources: Vec<i64>,
    /// Names of captured values, by index of the definition.
    values: Vec<Vec<String>>,
    threads: Threads,
    /// Number of contexts and names that the database already had.
    known: (usize, usize),
    /// Id of the first execution that is written.
    first: i64,
    /// Executions that were given one at a time and are not written yet.
    single: Made,
    /// The locked file that is appended to; other builds are refused meanwhile.
    lock: Option<File>,
}

/// Destination of executions.
#[derive(Debug)]
enum Keeps {
    /// The metrics are not known yet.
    Store(Box<Store>),
    /// A new database.
    Paged(Box<Paged>),
    /// A database that is appended to.
    Writing(Box<Writing>, Arc<Form>),
    /// Writing failed.
    Nothing,
}

/// Numbers of threads by source, thread id and name.
#[derive(Debug, Default)]
struct Threads {
    numbers: HashMap<(i64, i32, Option<String>), u32>,
}

impl Writer {
    /// Creates a database. A database at `path` stays unchanged until the new one is complete.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn create(path: &Path, about: &About) -> Result<Writer, DatabaseError> {
        let (hidden, mut store) = aside(path, None)?;
        let tables = format!(
            "PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}; BEGIN; {TABLES}"
        );
        let begun = store.connection.execute_batch(&tables);
        store.is_new = true;
        let told = begun.and_then(|()| tell(&mut store, about));
        let sources = told.map_err(DatabaseError::sqlite(path))?;
        Writer::new(path, (hidden, store), about, sources)
    }

    /// Continues the database at `path`; also returns its contexts and names. The file stays
    /// unchanged until the new database is complete.
    ///
    /// # Errors
    /// If there is no database, or the new one cannot be written.
    pub fn append(path: &Path, about: &About) -> Result<(Writer, Union), DatabaseError> {
        let lock = locked(path)?;
        let before = Database::open(path)?;
        let is_known = |source: &&SourceAbout| {
            let mut known = before.sources.iter();
            known.any(|known| (&known.label, &known.path) == (&source.label, &source.path))
        };
        if let Some(twice) = about.sources.iter().find(is_known) {
            return Err(DatabaseError::Twice {
                path: path.to_owned(),
                trace: twice.path.clone(),
                label: twice.label.clone(),
            });
        }
        let union = before.recorded_union()?;
        let (hidden, mut store) = aside(path, Some(path))?;
        let there = |column: &Column| StoredColumn {
            column: column.clone(),
            state: State::There,
        };
        store.columns = before.columns.iter().map(there).collect();
        let mut goes_on = || -> rusqlite::Result<Vec<i64>> {
            store.connection.execute_batch("BEGIN")?;
            let next = "SELECT coalesce(max(id), 0) + 1 FROM execution";
            store.next = store.connection.query_row(next, [], |row| row.get(0))?;
            tell(&mut store, about)
        };
        let sources = goes_on().map_err(DatabaseError::sqlite(path))?;
        let mut writer = Writer::new(path, (hidden, store), about, sources)?;
        writer.known = (union.contexts.count(), union.names.texts().len());
        let threads = before.threads.into_iter().zip(0..);
        let threads = threads.map(|(thread, id)| ((thread.source, thread.tid, thread.name), id));
        writer.threads.numbers = threads.collect();
        writer.lock = Some(lock);
        Ok((writer, union))
    }

    fn new(
        path: &Path,
        (hidden, store): (TempPath, Store),
        about: &About,
        sources: Vec<i64>,
    ) -> Result<Writer, DatabaseError> {
        Ok(Writer {
            place: tracebraid_storage::aside::place(path)
                .map_err(|source| DatabaseError::file(path, source))?,
            hidden,
            sources,
            values: about.kinds.iter().map(|kind| kind.values.clone()).collect(),
            threads: Threads::default(),
            known: (1, 0),
            first: store.next,
            keeps: Keeps::Store(Box::new(store)),
            single: Made::default(),
            lock: None,
        })
    }

    /// Chooses the destination of executions, with metrics in addition to those of [`Metric`].
    fn begin(&mut self, extra: &[ExtraMetric]) -> Result<(), DatabaseError> {
        let mut store = match std::mem::replace(&mut self.keeps, Keeps::Nothing) {
            Keeps::Store(store) => store,
            other => {
                self.keeps = other;
                return Ok(());
            }
        };
        let added = add_columns(&mut store, extra, &self.values);
        added.map_err(DatabaseError::sqlite(&self.place))?;
        let paged = Paged::new(*store, self.sources.clone());
        self.keeps = match paged.map_err(DatabaseError::sqlite(&self.place))? {
            Ok(paged) => Keeps::Paged(Box::new(paged)),
            Err(store) => {
                let form = Form {
                    kinds: store.kinds.clone(),
                    sources: self.sources.clone(),
                };
                let writing = Writing::new(store);
                let writing = writing.map_err(|source| DatabaseError::file(&self.place, source))?;
                Keeps::Writing(Box::new(writing), Arc::new(form))
            }
        };
        Ok(())
    }

    /// Writes contexts, names and threads, and moves the database to its path. Returns its size in
    /// bytes.
    ///
    /// # Errors
    /// If the database cannot be written; a database at the path then stays unchanged.
    pub fn finish(self, built: &Built) -> Result<u64, DatabaseError> {
        self.finish_timed(built).0
    }

    /// As [`Writer::finish`]; also returns the CPU time in nanoseconds of the thread that wrote the
    /// rows.
    ///
    /// # Errors
    /// As [`Writer::finish`].
    pub fn finish_timed(self, built: &Built) -> (Result<u64, DatabaseError>, u64) {
        let mut of_thread = 0;
        (self.complete(built, &mut of_thread), of_thread)
    }

    fn complete(mut self, built: &Built, of_thread: &mut u64) -> Result<u64, DatabaseError> {
        self.begin(&[])?;
        self.write_single()?;
        let place = self.place.clone();
        let sqlite = DatabaseError::sqlite(&place);
        let mut store = match std::mem::replace(&mut self.keeps, Keeps::Nothing) {
            Keeps::Paged(paged) => paged.finish().map_err(&sqlite)?,
            Keeps::Writing(writing, _) => writing.finish().map_err(&sqlite)?,
            Keeps::Store(_) | Keeps::Nothing => {
                return Err(DatabaseError::damaged(
                    &self.place,
                    "an earlier write failed",
                ));
            }
        };
        *of_thread = store.busy_ns;
        if built.lacks_faults {
            let name = Metric::PageFaults.name();
            store.lacks(&name, self.first).map_err(&sqlite)?;
        }
        store.add_others().map_err(&sqlite)?;
        let Store { connection, .. } = store;
        self.tell_union(&connection, &built.union)
            .map_err(&sqlite)?;
        let length = std::fs::metadata(&self.hidden)
            .map_err(|source| DatabaseError::file(&place, source))?;
        if length.len() < SMALL {
            connection.execute_batch(SHRINK).map_err(&sqlite)?;
        }
        let closed = connection.close().map_err(|(_, source)| source);
        closed.map_err(&sqlite)?;
        let Writer {
            hidden,
            lock: _lock,
            ..
        } = self;
        let done = || {
            let file = std::fs::File::open(&hidden)?;
            file.sync_all()?;
            let length = file.metadata()?.len();
            hidden.persist(&place).map_err(|error| error.error)?;
            Ok(length)
        };
        done().map_err(|source| DatabaseError::file(&place, source))
    }

    fn tell_union(&self, connection: &Connection, union: &Union) -> rusqlite::Result<()> {
        let (contexts, names) = self.known;
        let mut insert = connection.prepare("INSERT INTO name (id, text) VALUES (?1, ?2)")?;
        for (id, text) in union.names.texts().iter().enumerate().skip(names) {
            insert.execute(params![id as i64, text])?;
        }
        let insert = "INSERT INTO context (id, around, kind, name) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = connection.prepare(insert)?;
        for (id, around, frame) in contexts_from(&union.contexts, contexts) {
            insert.execute(params![id, around, number_of(frame.kind), frame.name.0])?;
        }
        let insert = "INSERT OR IGNORE INTO thread (id, source, tid, name) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = connection.prepare(insert)?;
        let mut threads: Vec<_> = self.threads.numbers.iter().collect();
        threads.sort_unstable_by_key(|(_, id)| **id);
        for ((source, tid, name), id) in threads {
            insert.execute(params![id, source, tid, name])?;
        }
        connection.execute_batch("COMMIT")
    }

    /// Returns the job that encodes executions; [`Writer::take_encoded`] writes the result.
    fn encode(&mut self, made: Made) -> Result<Option<SinkJob<Writer>>, DatabaseError> {
        self.begin(&[])?;
        if made.is_empty() {
            return Ok(None);
        }
        let threads = made.threads().iter();
        let threads = threads.map(|met| self.threads.number(met, &self.sources));
        let threads: Vec<Option<u32>> = threads.collect();
        Ok(Some(match &mut self.keeps {
            Keeps::Paged(paged) => {
                let encode = paged.encode(made, threads);
                SinkJob::new(encode, |writer: &mut Writer, cells| {
                    let pages = writer.paged()?.lay_out(cells);
                    let pages = pages.map_err(DatabaseError::sqlite(&writer.place))?;
                    Ok(vec![writing(pages)])
                })
            }
            Keeps::Writing(_, form) => {
                let form = form.clone();
                let encoding = Encoding {
                    made,
                    threads,
                    form,
                };
                SinkJob::new(|| encoding.batch(), Writer::insert)
            }
            Keeps::Store(_) | Keeps::Nothing => return Err(self.broken()),
        }))
    }

    fn broken(&self) -> DatabaseError {
        DatabaseError::damaged(&self.place, "an earlier write failed")
    }

    fn paged(&mut self) -> Result<&mut Paged, DatabaseError> {
        let place = &self.place;
        match &mut self.keeps {
            Keeps::Paged(paged) => Ok(paged),
            _ => Err(DatabaseError::damaged(place, "an earlier write failed")),
        }
    }

    /// Sends rows to SQLite.
    fn insert(&mut self, batch: Batch) -> Result<Vec<SinkJob<Writer>>, DatabaseError> {
        let Keeps::Writing(writing, _) = &mut self.keeps else {
            return Err(self.broken());
        };
        let sent = writing.send(batch);
        sent.map_err(DatabaseError::sqlite(&self.place))?;
        Ok(Vec::new())
    }

    /// Writes the executions that were given one at a time.
    fn write_single(&mut self) -> Result<(), DatabaseError> {
        let made = std::mem::take(&mut self.single);
        let mut jobs: Vec<SinkJob<Writer>> = self.encode(made)?.into_iter().collect();
        while let Some(job) = jobs.pop() {
            jobs.extend(job.run()(self)?);
        }
        Ok(())
    }
}

/// The job that fills and writes pages.
fn writing(pages: Pages) -> SinkJob<Writer> {
    SinkJob::new(
        || pages.write(),
        |writer: &mut Writer, written| {
            let written = written.map_err(|source| DatabaseError::file(&writer.place, source))?;
            writer.paged()?.wrote(written);
            Ok(Vec::new())
        },
    )
}

impl Threads {
    /// Number of a thread; assigns the next number to a new thread.
    fn number(&mut self, met: &MetThread, sources: &[i64]) -> Option<u32> {
        let source = *sources.get(met.trace as usize)?;
        let next = self.numbers.len() as u32;
        let key = (source, met.tid, met.name.clone());
        Some(*self.numbers.entry(key).or_insert(next))
    }
}

impl Sink for Writer {
    type Error = DatabaseError;

    fn figures(&mut self, extra: &[ExtraMetric]) -> Result<(), DatabaseError> {
        self.begin(extra)
    }

    fn take(&mut self, graph: &Graph, finished: Finished) -> Result<(), DatabaseError> {
        self.single.push_finished(graph, finished);
        match self.single.len() < MANY {
            true => Ok(()),
            false => self.write_single(),
        }
    }

    fn take_all(&mut self, _: &Graph, made: Made) -> Result<Vec<SinkJob<Writer>>, DatabaseError> {
        Ok(self.encode(made)?.into_iter().collect())
    }
}

/// Number of executions that are encoded together if the sink receives them one at a time.
const MANY: usize = 256;

/// In files of fewer bytes, partly filled pages are a large share of the size.
const SMALL: u64 = 1 << 20;

/// Makes the pages smaller.
const SHRINK: &str = "PRAGMA page_size = 1024; VACUUM";

/// Opens and locks the existing file.
fn locked(path: &Path) -> Result<File, DatabaseError> {
    let error = |source| DatabaseError::file(path, source);
    let busy = || DatabaseError::Busy {
        path: path.to_owned(),
    };
    let file = File::open(path).map_err(error)?;
    file.try_lock().map_err(|_| busy())?;
    // The previous holder of the lock may have replaced the file since it was opened.
    let (held, there) = (
        file.metadata().map_err(error)?,
        std::fs::metadata(path).map_err(error)?,
    );
    match (held.dev(), held.ino()) == (there.dev(), there.ino()) {
        true => Ok(file),
        false => Err(busy()),
    }
}

/// Creates a temporary file beside `path`, empty or as a copy of a file.
fn aside(path: &Path, copied: Option<&Path>) -> Result<(TempPath, Store), DatabaseError> {
    let error = |source| DatabaseError::file(path, source);
    let place = tracebraid_storage::aside::place(path).map_err(error)?;
    let (_, hidden) = tracebraid_storage::aside::beside(&place)
        .map_err(error)?
        .into_parts();
    if let Some(copied) = copied {
        let permissions = std::fs::metadata(&hidden).map_err(error)?.permissions();
        std::fs::copy(copied, &hidden).map_err(error)?;
        std::fs::set_permissions(&hidden, permissions).map_err(error)?;
    }
    let sqlite = DatabaseError::sqlite(path);
    let store = Store {
        connection: store::connected(&hidden).map_err(&sqlite)?,
        is_new: false,
        kinds: Vec::new(),
        columns: Vec::new(),
        next: 1,
        busy_ns: 0,
    };
    Ok((hidden, store))
}

/// Writes the descriptions of traces and kinds; returns the ids of the traces.
fn tell(store: &mut Store, about: &About) -> rusqlite::Result<Vec<i64>> {
    let connection = &store.connection;
    let mut sources = Vec::new();
    let next = "SELECT coalesce(max(recording), 0) + 1 FROM source";
    let recording: i64 = connection.query_row(next, [], |row| row.get(0))?;
    for source in &about.sources {
        let insert =
            "INSERT INTO source (label, path, host, recording, sync) VALUES (?1, ?2, ?3, ?4, ?5)";
        let SourceAbout { label, path, host } = source;
        connection.execute(insert, params![label, path, host, recording, about.sync])?;
        sources.push(connection.last_insert_rowid());
    }
    for (old, new) in &about.renames {
        let insert = "INSERT OR REPLACE INTO rename (old, new) VALUES (?1, ?2)";
        connection.execute(insert, params![old, new])?;
    }
    let mut labels: Vec<&str> = about
        .sources
        .iter()
        .map(|source| source.label.as_str())
        .collect();
    labels.dedup();
    let labels = labels.join(", ");
    let kinds = about
        .kinds
        .iter()
        .map(|kind| stored_kind(connection, kind, &labels));
    store.kinds = kinds.collect::<rusqlite::Result<_>>()?;
    Ok(sources)
}

/// Inserts a kind, with the labels of its recordings.
fn stored_kind(
    connection: &Connection,
    kind: &KindAbout,
    labels: &str,
) -> rusqlite::Result<StoredKind> {
    let insert =
        "INSERT INTO kind (name, definition) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING";
    connection.execute(insert, params![kind.name, kind.definition])?;
    if kind.is_otherwise {
        let more = otherwise::comment(labels, &kind.definition);
        let update = "UPDATE kind SET definition = definition || ?2 WHERE name = ?1";
        connection.execute(update, params![kind.name, more])?;
    }
    let of_name = "SELECT id FROM kind WHERE name = ?1";
    Ok(StoredKind {
        id: connection.query_row(of_name, [&kind.name], |row| row.get(0))?,
        places: Vec::new(),
    })
}

/// Registers the columns of all metrics and of the captured values of each kind. A column is added
/// to the table when an execution needs it.
fn add_columns(
    store: &mut Store,
    extra: &[ExtraMetric],
    values: &[Vec<String>],
) -> rusqlite::Result<()> {
    let state = match store.next {
        ..=1 => State::New,
        _ => State::All(Constant::Null),
    };
    for (place, values) in values.iter().enumerate() {
        for (of_kind, column) in execution_columns(extra, values).into_iter().enumerate() {
            let known = store
                .columns
                .iter()
                .position(|known| known.column.name == column.name);
            let at = match known {
                Some(at) => at,
                None => {
                    add_metric(&store.connection, &column)?;
                    store.columns.push(StoredColumn { column, state });
                    store.columns.len() - 1
                }
            };
            if let Some(kind) = store.kinds.get_mut(place) {
                let length = kind.places.len().max(at + 1);
                kind.places.resize(length, None);
                if let Some(place) = kind.places.get_mut(at) {
                    *place = Some(of_kind);
                }
            }
        }
    }
    Ok(())
}

fn add_metric(connection: &Connection, column: &Column) -> rusqlite::Result<()> {
    let insert = "INSERT INTO metric (name, unit, description, is_value) VALUES (?1, ?2, ?3, ?4)";
    let Column {
        name,
        unit,
        description,
        is_value,
    } = column;
    connection.execute(insert, params![name, unit, description, is_value])?;
    Ok(())
}

/// Columns of executions with the given captured values, which follow those of the schema: metrics,
/// then values.
fn execution_columns(extra: &[ExtraMetric], values: &[String]) -> Vec<Column> {
    let value = |name: &String| Column {
        name: name.clone(),
        unit: String::new(),
        description: format!("{name}, as captured"),
        is_value: true,
    };
    let mut columns: Vec<Column> = Metric::all().map(Column::from).collect();
    let figures = columns.len();
    // Captured values get their names first, so that these do not depend on the values that
    // programs attach.
    for mut column in values
        .iter()
        .map(value)
        .chain(extra.iter().map(Column::from))
    {
        column.name = value_column(&column.name, &columns);
        columns.push(column);
    }
    let behind = columns.get_mut(figures..).unwrap_or_default();
    behind.rotate_left(values.len());
    columns
}

/// Contexts with ids from `from` on: id, context around it, and frame.
fn contexts_from(contexts: &Contexts, from: usize) -> impl Iterator<Item = (u32, u32, Frame)> + '_ {
    (from as u32..contexts.count() as u32).filter_map(|id| {
        let (around, frame) = contexts.parts(ContextId(id))?;
        Some((id, around.0, frame))
    })
}

/// Number of a kind of frames in the schema.
fn number_of(kind: FrameKind) -> i64 {
    let place = FrameKind::ALL.iter().position(|known| *known == kind);
    place.map_or(0, |at| at as i64)
}
