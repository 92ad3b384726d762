//! Encodes executions as rows, on any thread, after their numbers are mapped to global ones.

use std::sync::Arc;

use crate::contexts::ContextId;
use crate::database::blobs;
use crate::database::pages::Cells;
use crate::database::row::{Batch, Cell, Row, StoredKind, joined, of, put_value, saturated};
use crate::database::sqlite_record::Record;
use crate::ecct::add_up;
use crate::made::{Made, Told};

/// Parameters shared by all encodings.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) kinds: Vec<StoredKind>,
    /// Database id of each trace, by trace index.
    pub(super) sources: Vec<i64>,
}

/// Batch of executions to be written.
#[derive(Debug)]
pub(super) struct Encoding {
    pub(super) made: Made,
    /// Thread number in the database, by thread number of the batch.
    pub(super) threads: Vec<Option<u32>>,
    pub(super) form: Arc<Form>,
}

/// Columns that are added after those of the schema, by index.
#[derive(Clone, Debug, Default)]
pub(super) struct AddedColumns {
    /// Columns that already exist, in the order in which they were added.
    pub(super) there: Vec<usize>,
    /// Columns to add: index of the execution before which a column is added, and the column.
    pub(super) before: Vec<(usize, usize)>,
}

/// The times column is left out only if the path takes at most this multiple of its bytes.
const LONGER: usize = 4;

impl Encoding {
    /// Encodes rows for insertion by SQLite.
    pub(super) fn batch(self) -> Batch {
        let mut batch = Batch::default();
        self.each_row(|_, row| batch.push(row));
        batch
    }

    /// Encodes table cells; ids begin with the first id of `cells`.
    pub(super) fn cells(self, mut cells: Cells, added: AddedColumns) -> Cells {
        let AddedColumns { mut there, before } = added;
        let mut before = before.into_iter().peekable();
        let mut record = Record::default();
        self.each_row(|place, row| {
            while let Some((_, column)) = before.next_if(|next| next.0 <= place) {
                there.push(column);
            }
            put_record(&mut record, &self.form.kinds, &there, row);
            cells.push(record.bytes());
        });
        cells
    }

    fn each_row(&self, mut take: impl FnMut(usize, &Row<'_>)) {
        let (mut path, mut times) = (Vec::new(), Vec::new());
        let (mut mapped, mut added) = (Vec::new(), Vec::new());
        for place in 0..self.made.len() {
            let Some(told) = self.made.told(place) else {
                continue;
            };
            self.put_steps(&mut path, &told);
            mapped.clear();
            let all = told.times.iter();
            mapped.extend(all.map(|(context, time)| (self.made.context(*context), *time)));
            mapped.sort_unstable();
            blobs::put_times(&mut times, &mapped);
            let is_told = path.len() <= LONGER * times.len() && adds_up(&told, &mut added);
            let execution = told.execution;
            let row = Row {
                kind: execution.kind,
                source: self.source(&told),
                numbers: &execution.numbers,
                begin: execution.begin,
                thread: told.thread.and_then(|thread| self.thread(thread)),
                times: (!is_told).then_some(&times),
                path: &path,
                figures: told.figures,
                values: &execution.values,
            };
            take(place, &row);
        }
    }

    fn put_steps(&self, bytes: &mut Vec<u8>, told: &Told<'_>) {
        let mut changes = told.changes.iter().peekable();
        let mut thread = None;
        let steps = told.steps.iter().enumerate().map(|(place, step)| {
            while let Some((_, next)) = changes.next_if(|change| change.0 <= place) {
                thread = next.and_then(|next| self.thread(next));
            }
            (thread, self.made.context(step.context), step.duration)
        });
        blobs::put_steps(bytes, steps);
    }

    fn thread(&self, met: u32) -> Option<u32> {
        self.threads.get(met as usize).copied().flatten()
    }

    /// Database id of the trace of the thread in which the execution ended.
    fn source(&self, told: &Told<'_>) -> i64 {
        let thread = told
            .thread
            .and_then(|thread| self.made.threads().get(thread as usize));
        let trace = thread.map_or(0, |thread| thread.trace);
        self.form.sources.get(trace as usize).copied().unwrap_or(1)
    }
}

/// True if the step durations, summed by context, equal the context times. `added` is a scratch
/// buffer.
fn adds_up(told: &Told<'_>, added: &mut Vec<(ContextId, u64)>) -> bool {
    added.clear();
    added.extend(told.steps.iter().map(|step| (step.context, step.duration)));
    add_up(added);
    added == told.times
}

/// Encodes a row with the columns added so far.
fn put_record(record: &mut Record, kinds: &[StoredKind], added: &[usize], row: &Row<'_>) {
    record.clear();
    // The id is stored in the cell.
    record.null();
    record.integer(kinds.get(row.kind).map_or(0, |kind| kind.id));
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
    for column in added {
        match of(kinds, row, *column) {
            Cell::Figure(Some(figure)) => record.integer(saturated(figure)),
            Cell::Figure(None) => record.null(),
            Cell::Value(value) => put_value(record, value),
        }
    }
}
