//! Writer of a new database: pages with executions are written in parallel while no connection has
//! the file open.
//!
//! A column is added as soon as an execution differs in it from all earlier ones; their rows take
//! no space for the column, since most executions are empty in most metrics. The execution that
//! requires a column is found for each batch from its summary ([`crate::KindMade`]).

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;

use crate::database::encode::{AddedColumns, Encoding, Form};
use crate::database::pages::{Cells, PageWriter, Pages};
use crate::database::store::{State, Store, connected, of_file};
use crate::made::{Constant, KindMade, Made};

#[derive(Debug)]
pub(super) struct Paged {
    /// Not connected to the file at `path`.
    store: Store,
    path: PathBuf,
    pages: PageWriter,
    form: Arc<Form>,
    /// Added columns, and the common content of all earlier executions in them.
    added: Vec<(usize, State)>,
    /// Id of the next execution to be laid out.
    next: i64,
    /// Allocations of written rows, for reuse.
    spare: Vec<Cells>,
}

/// Maximum number of batches whose allocations are kept for reuse.
const MOST_SPARE: usize = 64;

impl Paged {
    /// Closes the database to write its pages directly; returns the store if SQLite must write
    /// them.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) fn new(
        mut store: Store,
        sources: Vec<i64>,
    ) -> rusqlite::Result<Result<Paged, Store>> {
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'execution'";
        let root = store.connection.query_row(root, [], |row| row.get(0))?;
        let Some(path) = store
            .connection
            .path()
            .map(PathBuf::from)
            .filter(|_| store.is_new)
        else {
            return Ok(Err(store));
        };
        store.connection.execute_batch("COMMIT")?;
        // No connection has the file open until its pages are written.
        let nothing = Connection::open_in_memory()?;
        let connection = std::mem::replace(&mut store.connection, nothing);
        connection.close().map_err(|(_, error)| error)?;
        let Some(pages) = PageWriter::new(&path, root).map_err(of_file)? else {
            store.connection = connected(&path)?;
            store.connection.execute_batch("BEGIN")?;
            return Ok(Err(store));
        };
        let form = Form {
            kinds: store.kinds.clone(),
            sources,
        };
        Ok(Ok(Paged {
            next: store.next,
            path,
            pages,
            form: Arc::new(form),
            added: Vec::new(),
            spare: Vec::new(),
            store,
        }))
    }

    /// Returns the job that encodes the next executions.
    pub(super) fn encode(
        &mut self,
        made: Made,
        threads: Vec<Option<u32>>,
    ) -> impl FnOnce() -> Cells + Send + use<> {
        let columns = self.columns(&made);
        let mut cells = self
            .spare
            .pop()
            .unwrap_or_else(|| Cells::new(self.pages.size(), 0));
        cells.clear(self.store.next);
        self.store.next += made.len() as i64;
        let form = self.form.clone();
        let encoding = Encoding {
            made,
            threads,
            form,
        };
        move || encoding.cells(cells, columns)
    }

    /// Assigns pages to executions. Batches must come in the order of [`Paged::encode`].
    ///
    /// # Errors
    /// If the order is wrong, or the file gets too large.
    pub(super) fn lay_out(&mut self, cells: Cells) -> rusqlite::Result<Pages> {
        let (first, count) = cells.ids();
        if first != self.next {
            return Err(rusqlite::Error::InvalidQuery);
        }
        self.next += count as i64;
        self.pages.lay_out(cells).map_err(of_file)
    }

    /// Takes back the cells of written pages. `cpu_ns`: CPU time in nanoseconds during which other
    /// threads could not write.
    pub(super) fn wrote(&mut self, (cells, cpu_ns): (Cells, u64)) {
        self.store.busy_ns += cpu_ns;
        if self.spare.len() < MOST_SPARE {
            self.spare.push(cells);
        }
    }

    /// Reconnects to the database once all pages are written, and adds the columns.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub(super) fn finish(self) -> rusqlite::Result<Store> {
        let Paged {
            mut store,
            path,
            pages,
            added,
            next,
            ..
        } = self;
        pages.finish(next - 1).map_err(of_file)?;
        store.connection = connected(&path)?;
        store.connection.execute_batch("BEGIN")?;
        for (place, state) in added {
            store.alter(place, state)?;
        }
        Ok(store)
    }

    /// Columns of the next executions; adds the required ones.
    fn columns(&mut self, made: &Made) -> AddedColumns {
        let there = self.added.iter().map(|(place, _)| *place).collect();
        let mut before = Vec::new();
        for place in 0..self.store.columns.len() {
            before.extend(self.needed(made.kinds(), place).map(|row| (row, place)));
        }
        before.sort_unstable();
        for &(_, place) in &before {
            if let Some(column) = self.store.columns.get_mut(place) {
                self.added.push((place, column.state));
                column.state = State::There;
            }
        }
        AddedColumns { there, before }
    }

    /// Index of the first execution that requires the column.
    fn needed(&mut self, made: &[KindMade], place: usize) -> Option<usize> {
        let column = self.store.columns.get_mut(place)?;
        let kinds = self
            .form
            .kinds
            .iter()
            .map(|kind| kind.places.get(place).copied().flatten());
        let kinds = made.iter().zip(kinds);
        let kinds = kinds.filter(|(made, _)| made.executions > 0);
        // By kind: its first execution, the constant in it, and the first execution that differs.
        let cells = kinds.map(|(made, place)| {
            let nothing = (Some(Constant::Null), None);
            let cell = place.map(|place| made.cells.get(place).copied());
            (made.first, cell.flatten().unwrap_or(nothing))
        });
        if column.state == State::New {
            // If the first row requires the column, no earlier row has content in it.
            let first = cells.clone().min_by_key(|(first, _)| *first)?.1;
            column.state = State::All(first.0.unwrap_or(Constant::Null));
        }
        let State::All(all) = column.state else {
            return None;
        };
        let firsts = cells.filter_map(|(first, cell)| match cell.0 == Some(all) {
            true => cell.1,
            false => Some(first),
        });
        firsts.min()
    }
}
