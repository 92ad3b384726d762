//! Adds rows of executions to an existing database with SQLite, in a thread of its own.
//!
//! A column is added as soon as an execution differs in it from all earlier ones; their rows take
//! no space for the column, since most executions are empty in most metrics.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::{Connection, Statement};
use tracebraid_engine::Stopwatch;

use crate::database::row::{Batch, Cell, Row, StoredKind, bound, constant, joined, of, saturated};
use crate::database::schema::{COLUMNS, quoted};
use crate::database::table::Column;
use crate::made::Constant;

/// A column, and whether the table has it.
#[derive(Clone, Debug)]
pub(super) struct StoredColumn {
    pub(super) column: Column,
    pub(super) state: State,
}

/// State of a column in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The table has the column.
    There,
    /// The column does not exist yet: all executions so far have this constant in it.
    All(Constant),
    /// The column does not exist yet, and the table has no rows.
    New,
}

/// The table of executions.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) connection: Connection,
    /// The database contains no executions, and only tables that this program has just created.
    pub(super) is_new: bool,
    pub(super) kinds: Vec<StoredKind>,
    pub(super) columns: Vec<StoredColumn>,
    /// Id of the next execution.
    pub(super) next: i64,
    /// CPU time in nanoseconds that the writing thread spent on rows.
    pub(super) busy_ns: u64,
}

/// A store that a thread writes to.
#[derive(Debug)]
pub(super) struct Writing {
    batches: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<rusqlite::Result<Store>>>,
}

/// Maximum number of batches in the queue.
const WAITING: usize = 8;

impl Writing {
    /// Starts the thread.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(super) fn new(store: Store) -> std::io::Result<Writing> {
        let (batches, receiver) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("database".to_owned());
        Ok(Writing {
            batches: Some(batches),
            thread: Some(thread.spawn(move || store.write(receiver))?),
        })
    }

    /// Queues rows.
    ///
    /// # Errors
    /// If earlier rows could not be written.
    pub(super) fn send(&mut self, batch: Batch) -> rusqlite::Result<()> {
        let batches = self.batches.as_ref();
        let is_taken = batches.is_some_and(|batches| batches.send(batch).is_ok());
        match is_taken {
            true => Ok(()),
            // The thread ended early; its result is the error.
            false => self.joined().map(|_| ()),
        }
    }

    /// Waits until all rows are written.
    ///
    /// # Errors
    /// If a row could not be written.
    pub(super) fn finish(mut self) -> rusqlite::Result<Store> {
        self.joined()
    }

    fn joined(&mut self) -> rusqlite::Result<Store> {
        self.batches = None;
        let joined = self.thread.take().map(JoinHandle::join);
        match joined {
            Some(Ok(written)) => written,
            _ => Err(rusqlite::Error::UnwindingPanic),
        }
    }
}

/// An unfinished database is discarded, but its file must not be written to after the drop.
impl Drop for Writing {
    fn drop(&mut self) {
        self.batches = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Store {
    fn write(mut self, batches: Receiver<Batch>) -> rusqlite::Result<Store> {
        let watch = Stopwatch::start();
        for batch in batches {
            let mut place = 0;
            while let Some(row) = batch.row(place) {
                self.make_room(&row)?;
                place = self.insert(&batch, place)?;
            }
        }
        self.busy_ns = watch.elapsed();
        Ok(self)
    }

    /// Inserts rows from `place` on, as long as the table has all columns that they need. Returns
    /// the index of the first row that is not inserted.
    fn insert(&mut self, batch: &Batch, mut place: usize) -> rusqlite::Result<usize> {
        let Store {
            connection,
            kinds,
            columns,
            next,
            ..
        } = self;
        let mut insert = connection.prepare_cached(&insertion(columns))?;
        while let Some(row) = batch.row(place)
            && fits(columns, kinds, &row)
        {
            bind(&mut insert, columns, kinds, (*next, &row))?;
            insert.raw_execute()?;
            *next += 1;
            place += 1;
        }
        Ok(place)
    }

    /// Adds the columns that a row needs.
    fn make_room(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        if fits(&mut self.columns, &self.kinds, row) {
            return Ok(());
        }
        for place in 0..self.columns.len() {
            let constant = constant(of(&self.kinds, row, place));
            if self
                .columns
                .get(place)
                .is_some_and(|column| !column.state.takes(constant))
            {
                self.add(place)?;
            }
        }
        Ok(())
    }

    /// Marks a metric as unknown for executions from the id `from` on, although they have 0 in it.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub(super) fn lacks(&mut self, name: &str, from: i64) -> rusqlite::Result<()> {
        let column = self
            .columns
            .iter_mut()
            .find(|column| column.column.name == name);
        let Some(column) = column else {
            return Ok(());
        };
        if column.state != State::There {
            column.state = State::All(Constant::Null);
            return Ok(());
        }
        let update = format!(
            "UPDATE execution SET {} = NULL WHERE id >= ?1",
            quoted(name)
        );
        self.connection.execute(&update, [from])?;
        Ok(())
    }

    /// Adds the columns that do not exist yet, in which all executions have the same content.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub(super) fn add_others(&mut self) -> rusqlite::Result<()> {
        (0..self.columns.len()).try_for_each(|place| self.add(place))
    }

    fn add(&mut self, place: usize) -> rusqlite::Result<()> {
        let Some(column) = self.columns.get_mut(place) else {
            return Ok(());
        };
        let state = std::mem::replace(&mut column.state, State::There);
        match state {
            State::There => Ok(()),
            state => self.alter(place, state),
        }
    }

    /// Adds a column that was in this state so far.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub(super) fn alter(&self, place: usize, state: State) -> rusqlite::Result<()> {
        let Some(column) = self.columns.get(place) else {
            return Ok(());
        };
        let default = match state {
            State::All(Constant::Zero) => " DEFAULT 0",
            State::All(Constant::Null) | State::New | State::There => "",
        };
        let name = quoted(&column.column.name);
        let kind = if column.column.is_value {
            ""
        } else {
            " INTEGER"
        };
        let add = format!("ALTER TABLE execution ADD COLUMN {name}{kind}{default}");
        self.connection.execute_batch(&add)
    }
}

impl State {
    /// True if a row with this content needs no column; `None` is any content other than a
    /// constant.
    fn takes(self, constant: Option<Constant>) -> bool {
        match self {
            State::There | State::New => true,
            State::All(all) => constant == Some(all),
        }
    }
}

/// True if the table has all columns that a row needs. Updates the states of new columns.
fn fits(columns: &mut [StoredColumn], kinds: &[StoredKind], row: &Row<'_>) -> bool {
    let mut fits = true;
    for (place, column) in columns.iter_mut().enumerate() {
        if column.state == State::There {
            continue;
        }
        let constant = constant(of(kinds, row, place));
        if column.state == State::New {
            // If the first row needs the column, no earlier row has content in it.
            column.state = State::All(constant.unwrap_or(Constant::Null));
        }
        fits &= column.state.takes(constant);
    }
    fits
}

/// Statement that inserts a row. It names all existing columns, since the added ones may have a
/// default.
fn insertion(columns: &[StoredColumn]) -> String {
    let there = columns.iter().filter(|column| column.state == State::There);
    let there = there.map(|column| quoted(&column.column.name));
    let names: Vec<String> = COLUMNS
        .into_iter()
        .map(str::to_owned)
        .chain(there)
        .collect();
    let places: Vec<&str> = names.iter().map(|_| "?").collect();
    let (names, places) = (names.join(", "), places.join(", "));
    format!("INSERT INTO execution ({names}) VALUES ({places})")
}

/// Binds the content of a row to the parameters of [`insertion`].
fn bind(
    insert: &mut Statement<'_>,
    columns: &[StoredColumn],
    kinds: &[StoredKind],
    (id, row): (i64, &Row<'_>),
) -> rusqlite::Result<()> {
    let kind = kinds.get(row.kind).map_or(0, |kind| kind.id);
    insert.raw_bind_parameter(1, id)?;
    insert.raw_bind_parameter(2, kind)?;
    insert.raw_bind_parameter(3, row.source)?;
    match row.numbers {
        [number] => insert.raw_bind_parameter(4, saturated(*number))?,
        numbers => insert.raw_bind_parameter(4, joined(numbers))?,
    }
    insert.raw_bind_parameter(5, row.begin)?;
    insert.raw_bind_parameter(6, row.thread)?;
    insert.raw_bind_parameter(7, row.times)?;
    insert.raw_bind_parameter(8, row.path)?;
    let there = columns.iter().enumerate();
    let there = there.filter(|(_, column)| column.state == State::There);
    for (parameter, (place, _)) in (COLUMNS.len() + 1..).zip(there) {
        match of(kinds, row, place) {
            Cell::Figure(figure) => insert.raw_bind_parameter(parameter, figure.map(saturated))?,
            Cell::Value(value) => insert.raw_bind_parameter(parameter, bound(value))?,
        }
    }
    Ok(())
}

/// Opens a database that no other program uses, and that is discarded when it is incomplete, so
/// that it needs no journal.
pub(super) fn connected(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    let quick = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = OFF; \
                 PRAGMA trusted_schema = OFF;";
    connection.execute_batch(quick)?;
    Ok(connection)
}

pub(super) fn of_file(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}
