//! Rows of executions that SQLite adds to a database, in a thread of its own: to one that is
//! appended to.
//!
//! A column is there as soon as an execution has something else in it than all before, who have no
//! room for it in their rows: most executions have nothing at all in most figures.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rusqlite::{Connection, Statement};
use tracebraid_engine::Stopwatch;

use crate::database::row::{Batch, Cell, Row, StoredKind, bound, constant, joined, of, saturated};
use crate::database::schema::{COLUMNS, quoted};
use crate::database::table::Column;
use crate::made::Constant;

/// A column, and whether it is there.
#[derive(Clone, Debug)]
pub(super) struct StoredColumn {
    pub(super) column: Column,
    pub(super) state: State,
}

/// What is there of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is there.
    There,
    /// It is not there: all executions so far have that in it.
    All(Constant),
    /// It is not there, and neither are executions.
    New,
}

/// Where executions are kept.
#[derive(Debug)]
pub(super) struct Store {
    pub(super) connection: Connection,
    /// There are no executions yet, and nothing else but what this program has just made.
    pub(super) is_new: bool,
    pub(super) kinds: Vec<StoredKind>,
    pub(super) columns: Vec<StoredColumn>,
    /// The id of the next execution.
    pub(super) next: i64,
    /// CPU time in nanoseconds that writing rows took its thread.
    pub(super) busy_ns: u64,
}

/// A store that is written to.
#[derive(Debug)]
pub(super) struct Writing {
    batches: Option<SyncSender<Batch>>,
    thread: Option<JoinHandle<rusqlite::Result<Store>>>,
}

/// How many batches may wait.
const WAITING: usize = 8;

impl Writing {
    /// Begins to write.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub(super) fn new(store: Store) -> std::io::Result<Writing> {
        let (batches, receiver) = sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("database".to_owned());
        Ok(Writing {
            batches: Some(batches),
            thread: Some(thread.spawn(move || store.write(receiver))?),
        })
    }

    /// Further rows.
    ///
    /// # Errors
    /// When what was written before could not be.
    pub(super) fn send(&mut self, batch: Batch) -> rusqlite::Result<()> {
        let batches = self.batches.as_ref();
        let is_taken = batches.is_some_and(|batches| batches.send(batch).is_ok());
        match is_taken {
            true => Ok(()),
            // It has ended before its time: that tells why.
            false => self.joined().map(|_| ()),
        }
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// When it cannot be.
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

/// What is not finished is not kept; but nobody writes to its file any more.
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

    /// Inserts rows from that place on, as far as there is room for what is in them; gives the
    /// place of the first that is not inserted.
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

    /// Adds the columns that a row has something in.
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

    /// Of executions from that id on nothing is known of that figure, though they have 0 of it.
    ///
    /// # Errors
    /// When that cannot be written.
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

    /// Adds all columns that are not there, in which all executions have the same.
    ///
    /// # Errors
    /// When that cannot be written.
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

    /// Adds a column of which that was there so far.
    ///
    /// # Errors
    /// When that cannot be written.
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
    /// Whether nothing is to be written of that; `None` is anything else than a constant.
    fn takes(self, constant: Option<Constant>) -> bool {
        match self {
            State::There | State::New => true,
            State::All(all) => constant == Some(all),
        }
    }
}

/// Whether a row can be written; what is new in it is noted.
fn fits(columns: &mut [StoredColumn], kinds: &[StoredKind], row: &Row<'_>) -> bool {
    let mut fits = true;
    for (place, column) in columns.iter_mut().enumerate() {
        if column.state == State::There {
            continue;
        }
        let constant = constant(of(kinds, row, place));
        if column.state == State::New {
            // A column that is needed from the first row on has nothing before it.
            column.state = State::All(constant.unwrap_or(Constant::Null));
        }
        fits &= column.state.takes(constant);
    }
    fits
}

/// How a row is inserted: all columns that are there are named, as those that were added may have a
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

/// Binds what a row with that id has to the places of [`insertion`].
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

/// Opens a database that nobody else knows, and of which a half one is thrown away: no journal is
/// needed.
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
