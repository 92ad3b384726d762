//! Executions as rows, and batches of rows.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use tracebraid_language::Datum;

use crate::database::sqlite_record::Record;
use crate::made::Constant;

#[derive(Debug)]
pub(super) struct Row<'r> {
    /// Index of the kind in the store.
    pub(super) kind: usize,
    /// Database id of the trace.
    pub(super) source: i64,
    /// Numbers of the enclosing executions, then its own.
    pub(super) numbers: &'r [u64],
    pub(super) begin: i64,
    pub(super) thread: Option<u32>,
    /// `None` if the times equal the sums over the path.
    pub(super) times: Option<&'r [u8]>,
    pub(super) path: &'r [u8],
    /// The kind maps columns to metrics and values.
    pub(super) figures: &'r [Option<u64>],
    pub(super) values: &'r [Datum],
}

/// Consecutive rows; data of variable length lies in lists shared by all rows.
#[derive(Debug, Default)]
pub(super) struct Batch {
    heads: Vec<Head>,
    numbers: Vec<u64>,
    times: Vec<u8>,
    paths: Vec<u8>,
    figures: Vec<Option<u64>>,
    values: Vec<Datum>,
}

/// Fixed-length part of a row, and the ends of its data in the lists.
#[derive(Clone, Copy, Debug)]
struct Head {
    kind: usize,
    source: i64,
    begin: i64,
    thread: Option<u32>,
    has_times: bool,
    ends: Ends,
}

/// Offsets in the lists of a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    numbers: usize,
    times: usize,
    path: usize,
    figures: usize,
    values: usize,
}

impl Batch {
    pub(super) fn push(&mut self, row: &Row<'_>) {
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

    pub(super) fn row(&self, place: usize) -> Option<Row<'_>> {
        let head = self.heads.get(place)?;
        let before = place
            .checked_sub(1)
            .and_then(|before| self.heads.get(before));
        let (from, to) = (
            before.map(|before| before.ends).unwrap_or_default(),
            head.ends,
        );
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
}

#[derive(Clone, Debug, Default)]
pub(super) struct StoredKind {
    /// Database id.
    pub(super) id: i64,
    /// By column: index into the metrics and, after them, the values of a row; `None` for columns
    /// of other kinds.
    pub(super) places: Vec<Option<usize>>,
}

/// Content of a column in a row; a missing metric if the kind does not have the column.
pub(super) fn of<'r>(kinds: &[StoredKind], row: &Row<'r>, column: usize) -> Cell<'r> {
    let place = kinds
        .get(row.kind)
        .and_then(|kind| *kind.places.get(column)?);
    let Some(place) = place else {
        return Cell::Figure(None);
    };
    match row.figures.get(place) {
        Some(figure) => Cell::Figure(*figure),
        None => Cell::Value(row.values.get(place - row.figures.len())),
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'r> {
    Figure(Option<u64>),
    Value(Option<&'r Datum>),
}

/// `None` if the cell is neither missing nor zero.
pub(super) fn constant(cell: Cell<'_>) -> Option<Constant> {
    match cell {
        Cell::Figure(figure) => Constant::of_figure(figure),
        Cell::Value(value) => Constant::of_value(value),
    }
}

/// Execution numbers joined by dots, in the order of nesting.
pub(super) fn joined(numbers: &[u64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    numbers.join(".")
}

pub(super) fn saturated(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Appends a captured value, converted as by [`bound`].
pub(super) fn put_value(record: &mut Record, value: Option<&Datum>) {
    match bound(value) {
        ToSqlOutput::Borrowed(ValueRef::Integer(number))
        | ToSqlOutput::Owned(Value::Integer(number)) => {
            record.integer(number);
        }
        ToSqlOutput::Borrowed(ValueRef::Real(number)) | ToSqlOutput::Owned(Value::Real(number)) => {
            record.float(number);
        }
        ToSqlOutput::Owned(Value::Text(text)) => record.text(&text),
        _ => record.null(),
    }
}

/// Converts a captured value for SQLite: integers outside the range of `i64` become text.
pub(super) fn bound(datum: Option<&Datum>) -> ToSqlOutput<'_> {
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
