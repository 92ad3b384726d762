//! Rows of executions on their way into a database, in a thread of its own: encoding them is one thing, keeping them another.
//!
//! Of a new database the pages of their table are written here ([`crate::database::pages`]); to one that is appended to, SQLite
//! adds rows.
//!
//! A column is there as soon as an execution has something else in it than all before, who have no room for it in their
//! rows: most executions have nothing at all in most figures.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::JoinHandle;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Statement};
use tracebraid_engine::Stopwatch;
use tracebraid_language::Datum;

use crate::database::pages::{PageWriter, Record};
use crate::database::schema::{COLUMNS, quoted};
use crate::database::table::Column;

/// An execution as it is written.
#[derive(Debug)]
pub(super) struct Row<'r> {
    /// The place of its kind among those of the store.
    pub(super) kind: usize,
    /// The id of its trace.
    pub(super) source: i64,
    /// Those of the executions around it, and its own.
    pub(super) numbers: &'r [u64],
    pub(super) begin: i64,
    pub(super) thread: Option<u32>,
    /// None if they are what the path adds up to.
    pub(super) times: Option<&'r [u8]>,
    pub(super) path: &'r [u8],
    /// Where they are in the database, the kind tells.
    pub(super) figures: &'r [Option<u64>],
    pub(super) values: &'r [Datum],
}

/// Executions, one behind the other: what is of several lengths lies in lists for all, which are used again.
#[derive(Debug, Default)]
struct Batch {
    heads: Vec<Head>,
    numbers: Vec<u64>,
    times: Vec<u8>,
    paths: Vec<u8>,
    figures: Vec<Option<u64>>,
    values: Vec<Datum>,
}

/// A row, without what is of several lengths: that ends there in the lists.
#[derive(Clone, Copy, Debug)]
struct Head {
    kind: usize,
    source: i64,
    begin: i64,
    thread: Option<u32>,
    has_times: bool,
    ends: Ends,
}

/// Places in the lists of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    numbers: usize,
    times: usize,
    path: usize,
    figures: usize,
    values: usize,
}

impl Batch {
    fn push(&mut self, row: &Row<'_>) {
        self.numbers.extend_from_slice(row.numbers);
        self.times.extend_from_slice(row.times.unwrap_or_default());
        self.paths.extend_from_slice(row.path);
        self.figures.extend_from_slice(row.figures);
        self.values.extend_from_slice(row.values);
        self.heads.push(Head {
            kind: row.kind,
            source: row.source,
            begin: row.begin,
            thread: row.thread,
            has_times: row.times.is_some(),
            ends: Ends {
                numbers: self.numbers.len(),
                times: self.times.len(),
                path: self.paths.len(),
                figures: self.figures.len(),
                values: self.values.len(),
            },
        });
    }

    fn row(&self, place: usize) -> Option<Row<'_>> {
        let head = self.heads.get(place)?;
        let before = place.checked_sub(1).and_then(|before| self.heads.get(before));
        let (from, to) = (before.map(|before| before.ends).unwrap_or_default(), head.ends);
        let times = self.times.get(from.times..to.times)?;
        Some(Row {
            kind: head.kind,
            source: head.source,
            begin: head.begin,
            thread: head.thread,
            numbers: self.numbers.get(from.numbers..to.numbers)?,
            times: head.has_times.then_some(times),
            path: self.paths.get(from.path..to.path)?,
            figures: self.figures.get(from.figures..to.figures)?,
            values: self.values.get(from.values..to.values)?,
        })
    }

    fn clear(&mut self) {
        self.heads.clear();
        self.numbers.clear();
        self.times.clear();
        self.paths.clear();
        self.figures.clear();
        self.values.clear();
    }
}

/// A kind of executions.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredKind {
    /// Its id in the database.
    pub(super) id: i64,
    /// By column: its place among the figures and, behind them, the values of a row; none if it is of other kinds.
    pub(super) places: Vec<Option<usize>>,
}

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

/// What all executions may have in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Constant {
    Null,
    Zero,
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
    batch: Batch,
    /// Those that were written, to be filled again.
    written: Receiver<Batch>,
    thread: Option<JoinHandle<rusqlite::Result<Store>>>,
}

/// Where batches come from, and go to.
type Ways<'w> = (&'w Receiver<Batch>, &'w Sender<Batch>);

/// Rows that go over to the other thread at once, and how many such batches may wait.
const BATCH: usize = 256;
const WAITING: usize = 8;

impl Writing {
    /// Begins to write.
    ///
    /// # Errors
    /// When there can be no thread for it.
    pub(super) fn new(store: Store) -> std::io::Result<Writing> {
        let (batches, receiver) = sync_channel(WAITING);
        let (done, written) = channel();
        let thread = std::thread::Builder::new().name("database".to_owned());
        Ok(Writing {
            batches: Some(batches),
            batch: Batch::default(),
            written,
            thread: Some(thread.spawn(move || store.write(&receiver, &done))?),
        })
    }

    /// Another row.
    ///
    /// # Errors
    /// When what was written before could not be.
    pub(super) fn push(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        self.batch.push(row);
        match self.batch.heads.len() < BATCH {
            true => Ok(()),
            false => self.send(),
        }
    }

    /// Waits until all is written.
    ///
    /// # Errors
    /// When it cannot be.
    pub(super) fn finish(mut self) -> rusqlite::Result<Store> {
        self.send()?;
        self.joined()
    }

    fn send(&mut self) -> rusqlite::Result<()> {
        let next = self.written.try_recv().unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        let batches = self.batches.as_ref();
        let is_taken = batches.is_some_and(|batches| batches.send(batch).is_ok());
        match is_taken {
            true => Ok(()),
            // It has ended before its time: that tells why.
            false => self.joined().map(|_| ()),
        }
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
    fn write(mut self, batches: &Receiver<Batch>, done: &Sender<Batch>) -> rusqlite::Result<Store> {
        let watch = Stopwatch::start();
        let table = if self.is_new { self.table()? } else { None };
        match table {
            Some(table) => self.write_pages(table, (batches, done))?,
            None => self.write_rows((batches, done))?,
        }
        self.busy_ns = watch.elapsed();
        Ok(self)
    }

    /// Where the table of executions is written; none if SQLite must do that.
    fn table(&self) -> rusqlite::Result<Option<(PathBuf, u32)>> {
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'execution'";
        let root = self.connection.query_row(root, [], |row| row.get(0))?;
        Ok(self.connection.path().map(|path| (PathBuf::from(path), root)))
    }

    /// Writes the pages of the table, while nobody has the database open; columns are added behind that, in the order in which
    /// rows needed them.
    fn write_pages(&mut self, (path, root): (PathBuf, u32), ways: Ways<'_>) -> rusqlite::Result<()> {
        self.connection.execute_batch("COMMIT")?;
        // Nothing else is known of the file until its pages are written.
        let nothing = Connection::open_in_memory()?;
        let connection = std::mem::replace(&mut self.connection, nothing);
        connection.close().map_err(|(_, error)| error)?;
        let Some(mut pages) = PageWriter::new(&path, root).map_err(of_file)? else {
            self.connection = connected(&path)?;
            self.connection.execute_batch("BEGIN")?;
            return self.write_rows(ways);
        };
        let mut added: Vec<(usize, State)> = Vec::new();
        let mut record = Record::default();
        for mut batch in ways.0 {
            let mut place = 0;
            while let Some(row) = batch.row(place) {
                if !fits(&mut self.columns, &self.kinds, &row) {
                    self.make_columns(&row, &mut added);
                }
                self.record(&mut record, &added, &row);
                pages.push(self.next, record.bytes()).map_err(of_file)?;
                self.next += 1;
                place += 1;
            }
            batch.clear();
            let _ = ways.1.send(batch);
        }
        pages.finish().map_err(of_file)?;
        self.connection = connected(&path)?;
        self.connection.execute_batch("BEGIN")?;
        for (place, state) in added {
            self.alter(place, state)?;
        }
        Ok(())
    }

    /// Counts the columns that a row has something in as added.
    fn make_columns(&mut self, row: &Row<'_>, added: &mut Vec<(usize, State)>) {
        for place in 0..self.columns.len() {
            let constant = constant(of(&self.kinds, row, place));
            if let Some(column) = self.columns.get_mut(place)
                && !column.state.takes(constant)
            {
                added.push((place, column.state));
                column.state = State::There;
            }
        }
    }

    /// A row, with the columns that were added so far.
    fn record(&self, record: &mut Record, added: &[(usize, State)], row: &Row<'_>) {
        record.clear();
        // The id is that of the cell.
        record.null();
        record.integer(self.kinds.get(row.kind).map_or(0, |kind| kind.id));
        record.integer(row.source);
        match row.numbers {
            [number] => record.integer(saturated(*number)),
            numbers => record.text(&joined(numbers)),
        }
        record.integer(row.begin);
        match row.thread {
            Some(thread) => record.integer(thread.into()),
            None => record.null(),
        }
        match row.times {
            Some(times) => record.blob(times),
            None => record.null(),
        }
        record.blob(row.path);
        for (place, _) in added {
            match of(&self.kinds, row, *place) {
                Cell::Figure(Some(figure)) => record.integer(saturated(figure)),
                Cell::Figure(None) => record.null(),
                Cell::Value(value) => put_value(record, value),
            }
        }
    }

    fn write_rows(&mut self, (batches, done): Ways<'_>) -> rusqlite::Result<()> {
        for mut batch in batches {
            let mut place = 0;
            while let Some(row) = batch.row(place) {
                self.make_room(&row)?;
                place = self.insert(&batch, place)?;
            }
            batch.clear();
            // Whoever has all that is to be written takes none back.
            let _ = done.send(batch);
        }
        Ok(())
    }

    /// Inserts rows from that place on, as far as there is room for what is in them; gives the place of the first that is not
    /// inserted.
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
        let column = self.columns.iter_mut().find(|column| column.column.name == name);
        let Some(column) = column else {
            return Ok(());
        };
        if column.state != State::There {
            column.state = State::All(Constant::Null);
            return Ok(());
        }
        let update = format!("UPDATE execution SET {} = NULL WHERE id >= ?1", quoted(name));
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
    fn alter(&self, place: usize, state: State) -> rusqlite::Result<()> {
        let Some(column) = self.columns.get(place) else {
            return Ok(());
        };
        let default = match state {
            State::All(Constant::Zero) => " DEFAULT 0",
            State::All(Constant::Null) | State::New | State::There => "",
        };
        let name = quoted(&column.column.name);
        let kind = if column.column.is_value { "" } else { " INTEGER" };
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

/// What a row has in a column, if that is a figure or a value of it.
fn of<'r>(kinds: &[StoredKind], row: &Row<'r>, column: usize) -> Cell<'r> {
    let place = kinds.get(row.kind).and_then(|kind| *kind.places.get(column)?);
    let Some(place) = place else {
        return Cell::Figure(None);
    };
    match row.figures.get(place) {
        Some(figure) => Cell::Figure(*figure),
        None => Cell::Value(row.values.get(place - row.figures.len())),
    }
}

/// A figure or a value of a row.
#[derive(Clone, Copy, Debug)]
enum Cell<'r> {
    Figure(Option<u64>),
    Value(Option<&'r Datum>),
}

fn constant(cell: Cell<'_>) -> Option<Constant> {
    match cell {
        Cell::Figure(None) | Cell::Value(None | Some(Datum::Missing)) => Some(Constant::Null),
        Cell::Figure(Some(0)) | Cell::Value(Some(Datum::Integer(0))) => Some(Constant::Zero),
        _ => None,
    }
}

/// How a row is inserted: all columns that are there are named, as those that were added may have a default.
fn insertion(columns: &[StoredColumn]) -> String {
    let there = columns.iter().filter(|column| column.state == State::There);
    let there = there.map(|column| quoted(&column.column.name));
    let names: Vec<String> = COLUMNS.into_iter().map(str::to_owned).chain(there).collect();
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

/// Numbers of executions, one within the other.
fn joined(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(".")
}

/// Opens a database that nobody else knows, and of which a half one is thrown away: no journal is needed.
pub(super) fn connected(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    let quick = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA foreign_keys = OFF; \
                 PRAGMA trusted_schema = OFF;";
    connection.execute_batch(quick)?;
    Ok(connection)
}

fn of_file(error: std::io::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Puts a captured value into a row, as [`bound`] gives it.
fn put_value(record: &mut Record, value: Option<&Datum>) {
    match bound(value) {
        ToSqlOutput::Borrowed(ValueRef::Integer(number)) | ToSqlOutput::Owned(Value::Integer(number)) => {
            record.integer(number);
        }
        ToSqlOutput::Borrowed(ValueRef::Real(number)) | ToSqlOutput::Owned(Value::Real(number)) => {
            record.float(number);
        }
        ToSqlOutput::Owned(Value::Text(text)) => record.text(&text),
        _ => record.null(),
    }
}

/// A captured value as SQLite keeps it: integers of more than 64 bits as text.
fn bound(datum: Option<&Datum>) -> ToSqlOutput<'_> {
    match datum {
        None | Some(Datum::Missing) => ToSqlOutput::Borrowed(ValueRef::Null),
        Some(Datum::Integer(number)) => match i64::try_from(*number) {
            Ok(number) => number.into(),
            Err(_) => number.to_string().into(),
        },
        Some(Datum::Float(bits)) => f64::from_bits(*bits).into(),
        Some(text) => String::from_utf8_lossy(text.bytes().unwrap_or_default())
            .into_owned()
            .into(),
    }
}
