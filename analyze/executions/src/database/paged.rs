//! A new database of which the pages with executions are written beside each other, while nobody has it open.
//!
//! A column is there as soon as an execution has something else in it than all before, who have no room for it in their
//! rows: most executions have nothing at all in most figures. Which execution that is, is found out for each batch from what is known
//! of all of it ([`crate::KindMade`]).

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;

use crate::database::encode::{AddedColumns, Encoding, Form};
use crate::database::pages::{Cells, PageWriter, Pages};
use crate::database::store::{State, Store, connected, of_file};
use crate::made::{Constant, KindMade, Made};

/// A new database.
#[derive(Debug)]
pub(super) struct Paged {
    /// Not connected to it.
    store: Store,
    path: PathBuf,
    pages: PageWriter,
    form: Arc<Form>,
    /// Columns that were added, and what all executions before have in them.
    added: Vec<(usize, State)>,
    /// The id of the next execution that is laid out.
    next: i64,
    /// Room of rows that are written.
    spare: Vec<Cells>,
}

/// More room than that of so many batches is given back.
const MOST_SPARE: usize = 64;

impl Paged {
    /// Closes a database in order to write its pages; gives it back if SQLite must do that.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(super) fn new(mut store: Store, sources: Vec<i64>) -> rusqlite::Result<Result<Paged, Store>> {
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
        // Nothing else is known of the file until its pages are written.
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

    /// How executions are encoded that come next.
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
        let encoding = Encoding { made, threads, form };
        move || encoding.cells(cells, columns)
    }

    /// Finds out where executions stand. They come in the order in which they were given to be encoded.
    ///
    /// # Errors
    /// When they do not, or the file gets too large.
    pub(super) fn lay_out(&mut self, cells: Cells) -> rusqlite::Result<Pages> {
        let (first, count) = cells.ids();
        if first != self.next {
            return Err(rusqlite::Error::InvalidQuery);
        }
        self.next += count as i64;
        self.pages.lay_out(cells).map_err(of_file)
    }

    /// Pages with these rows were written, which took a thread so many nanoseconds while others could not write.
    pub(super) fn wrote(&mut self, (cells, cpu_ns): (Cells, u64)) {
        self.store.busy_ns += cpu_ns;
        if self.spare.len() < MOST_SPARE {
            self.spare.push(cells);
        }
    }

    /// Connects to the database again once all pages are written, and adds the columns.
    ///
    /// # Errors
    /// When it cannot be written.
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

    /// The columns of executions that come next; adds those that are needed.
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

    /// The place of the first execution for which a column must be there.
    fn needed(&mut self, made: &[KindMade], place: usize) -> Option<usize> {
        let column = self.store.columns.get_mut(place)?;
        let kinds = self
            .form
            .kinds
            .iter()
            .map(|kind| kind.places.get(place).copied().flatten());
        let kinds = made.iter().zip(kinds);
        let kinds = kinds.filter(|(made, _)| made.executions > 0);
        // What the first one of a kind has, and the first one that has something else.
        let cells = kinds.map(|(made, place)| {
            let nothing = (Some(Constant::Null), None);
            let cell = place.map(|place| made.cells.get(place).copied());
            (made.first, cell.flatten().unwrap_or(nothing))
        });
        if column.state == State::New {
            // A column that is needed from the first row on has nothing before it.
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
