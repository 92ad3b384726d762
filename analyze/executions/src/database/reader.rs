//! Reads a database.

use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use tracebraid_ctf::special::special;
use tracebraid_graph::WaitReason;

use crate::build::Union;
use crate::contexts::ContextId;
use crate::database::blobs;
use crate::database::column_builder::{ColumnBuilder, EXACT};
use crate::database::error::DatabaseError;
use crate::database::lists::{ExecutionKind, Lists, Room, Source, Thread};
use crate::database::recorded_execution::{PathStep, Recorded};
use crate::database::renames::renamed;
use crate::database::schema::quoted;
use crate::database::table::{Column, Table};
use crate::ecct::add_up;
use crate::metrics::Metric;

/// A database that is open for reading.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Connection,
    /// Contexts and names after functions are renamed; contexts that become equal are merged.
    pub union: Union,
    /// By id in the database: the context in `union`.
    merged: Vec<ContextId>,
    /// Traces from which executions come, in the order of their ids, which begin at 1.
    pub sources: Vec<Source>,
    /// Threads, in the order of their ids, which begin at 0.
    pub threads: Vec<Thread>,
    /// Kinds of executions.
    pub kinds: Vec<ExecutionKind>,
    /// Columns of metrics and values.
    pub columns: Vec<Column>,
    /// Renamed functions: old and new name.
    pub renames: Vec<(String, String)>,
}

impl Database {
    /// The trace of the execution in a row of a table.
    pub fn source_of(&self, table: &Table, row: usize) -> Option<&Source> {
        self.sources.get(*table.sources.get(row)? as usize)
    }

    /// The thread in which the execution in a row of a table ends.
    pub fn thread_of(&self, table: &Table, row: usize) -> Option<&Thread> {
        let thread = table.threads.get(row).copied().flatten()?;
        self.threads.get(thread as usize)
    }
}

/// A file from elsewhere must not run code when it is read (functions in views and tables), and its
/// pages are checked.
const CAREFUL: &str = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;";

/// The times; the path instead where only the path contains them.
const TIMES: &str = "times, CASE WHEN times IS NULL THEN path END";
const NO_TIMES: &str = "x'', NULL";

/// Number of columns of [`Database::select`] that precede those of metrics and values.
const FIXED: usize = 6;

const DURATION: &str = "duration_ns";

impl Database {
    /// Opens a database for reading.
    ///
    /// # Errors
    /// If the file is not a database of executions, or its contents contradict each other.
    pub fn open(path: &Path) -> Result<Database, DatabaseError> {
        if let Some(what) = special(path) {
            return Err(DatabaseError::Special {
                path: path.to_owned(),
                what,
            });
        }
        if path.is_dir() {
            return Err(DatabaseError::Foreign {
                path: path.to_owned(),
            });
        }
        std::fs::File::open(path).map_err(|source| DatabaseError::file(path, source))?;
        let sqlite = DatabaseError::sqlite(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(&sqlite)?;
        connection.execute_batch(CAREFUL).map_err(&sqlite)?;
        let mut lists = Lists::new(path, &connection)?;
        let names = lists.names()?;
        let contexts = lists.contexts(&names)?;
        let (sources, threads) = (lists.sources()?, lists.threads()?);
        let (kinds, columns) = (lists.kinds()?, lists.columns()?);
        let renames = lists.renames()?;
        let (union, merged) = renamed(names, contexts, &renames);
        Ok(Database {
            union,
            merged,
            sources,
            threads,
            kinds,
            columns,
            renames,
            path: path.to_owned(),
            connection,
        })
    }

    /// Path of the database file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Contexts and names as they were written, without renames.
    pub(super) fn recorded_union(&self) -> Result<Union, DatabaseError> {
        let mut lists = Lists::new(&self.path, &self.connection)?;
        let names = lists.names()?;
        let contexts = lists.contexts(&names)?;
        Ok(Union { contexts, names })
    }

    /// The kind with a name; without a name, the only kind of the database.
    ///
    /// # Errors
    /// A message for the user with the names of all kinds, if there is no such kind.
    pub fn kind(&self, name: Option<&str>) -> Result<&ExecutionKind, String> {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
        match (name, self.kinds.as_slice()) {
            (None, [kind]) => Ok(kind),
            (None, []) => Err("the database contains no executions".to_owned()),
            (None, _) => Err(format!(
                "the database contains several kinds of executions; name one: {}",
                names.join(", ")
            )),
            (Some(name), kinds) => {
                let found = kinds.iter().find(|kind| kind.name == name);
                found.ok_or_else(|| {
                    format!(
                        "the database contains no executions named {name}; it contains: {}",
                        names.join(", ")
                    )
                })
            }
        }
    }

    /// All executions of a kind.
    ///
    /// # Errors
    /// If the executions cannot be read.
    pub fn table(&self, kind: &ExecutionKind) -> Result<Table, DatabaseError> {
        self.read(kind, TIMES)
    }

    /// All executions of a kind, without their times by context.
    ///
    /// # Errors
    /// If the executions cannot be read.
    pub fn table_without_times(&self, kind: &ExecutionKind) -> Result<Table, DatabaseError> {
        self.read(kind, NO_TIMES)
    }

    /// Calls `each` with all executions of a kind in parts of at most `most`, in the order of their
    /// ids; only one part is in memory at a time. A part lacks the columns in which it has no
    /// values.
    ///
    /// # Errors
    /// If the executions cannot be read, or with the first error of `each`.
    pub fn parts<E: From<DatabaseError>>(
        &self,
        kind: &ExecutionKind,
        most: usize,
        each: impl FnMut(Table) -> Result<(), E>,
    ) -> Result<(), E> {
        self.read_parts(kind, TIMES, most.max(1), each)
    }

    fn read(&self, kind: &ExecutionKind, times: &str) -> Result<Table, DatabaseError> {
        let mut whole = Table::default();
        self.read_parts(
            kind,
            times,
            usize::MAX,
            |part| -> Result<(), DatabaseError> {
                whole = part;
                Ok(())
            },
        )?;
        Ok(whole)
    }

    fn read_parts<E: From<DatabaseError>>(
        &self,
        kind: &ExecutionKind,
        times: &str,
        most: usize,
        mut each: impl FnMut(Table) -> Result<(), E>,
    ) -> Result<(), E> {
        let sqlite = DatabaseError::sqlite(&self.path);
        let mut statement = self
            .connection
            .prepare(&self.select(times))
            .map_err(&sqlite)?;
        let mut rows = statement.query([kind.id]).map_err(&sqlite)?;
        let mut table = Table::default();
        let mut room = Room::of(&self.connection).map_err(&sqlite)?;
        let duration = self
            .columns
            .iter()
            .position(|column| column.name == DURATION);
        let is_reason = self.are_reasons();
        // Integers above 2^53 may be in other parts of the rows.
        let are_names = match most {
            usize::MAX => vec![false; self.columns.len()],
            _ => self.names(kind)?,
        };
        let builders = || -> Vec<ColumnBuilder> {
            are_names.iter().map(|&is| ColumnBuilder::new(is)).collect()
        };
        let mut columns = builders();
        let mut last = None;
        while let Some(row) = rows.next().map_err(&sqlite)? {
            if table.len() >= most {
                let full = std::mem::take(&mut columns);
                each(self.filled(std::mem::take(&mut table), full))?;
                columns = builders();
            }
            self.take(&mut table, row, &mut room, last)?;
            last = table.ids.last().copied();
            let mut reasons = 0;
            for (place, column) in columns.iter_mut().enumerate() {
                let value = row.get_ref(FIXED + place).map_err(&sqlite)?;
                room.take(value).ok_or_else(|| self.is_too_much())?;
                if Some(place) == duration {
                    self.check_times(&table, value)?;
                }
                if is_reason.get(place) == Some(&true) {
                    reasons += u128::from(known(value).unwrap_or(0));
                }
                column.push(table.len() - 1, value);
            }
            if let Some(place) = duration {
                let value = row.get_ref(FIXED + place).map_err(&sqlite)?;
                self.check_reasons(&table, (reasons, value), times == TIMES)?;
            }
        }
        if !table.is_empty() {
            each(self.filled(table, columns))?;
        }
        Ok(())
    }

    /// The query for all executions of a kind, in the order of their ids.
    fn select(&self, times: &str) -> String {
        let mut select = format!("SELECT id, begin_ns, source, thread, {times}");
        for column in &self.columns {
            select.push_str(", ");
            select.push_str(&quoted(&column.name));
        }
        select.push_str(" FROM execution WHERE kind = ?1 ORDER BY id");
        select
    }

    /// By column: true if it contains the time of a wait reason.
    fn are_reasons(&self) -> Vec<bool> {
        let reasons: Vec<String> = WaitReason::ALL
            .map(|reason| Metric::Time(reason).name())
            .into();
        let is_reason = |column: &Column| !column.is_value && reasons.contains(&column.name);
        self.columns.iter().map(is_reason).collect()
    }

    /// By column: true if its captured integers are names, because one of them exceeds 2^53.
    fn names(&self, kind: &ExecutionKind) -> Result<Vec<bool>, DatabaseError> {
        let sqlite = DatabaseError::sqlite(&self.path);
        let is_name = |column: &Column| -> Result<bool, DatabaseError> {
            if !column.may_be_names() {
                return Ok(false);
            }
            let name = quoted(&column.name);
            let query = format!(
                "SELECT EXISTS (SELECT 1 FROM execution WHERE kind = ?1 AND typeof({name}) = 'integer' AND {name} NOT BETWEEN \
                 -{EXACT} AND {EXACT})"
            );
            let found = self
                .connection
                .query_row(&query, [kind.id], |row| row.get(0));
            found.map_err(&sqlite)
        };
        self.columns.iter().map(is_name).collect()
    }

    /// Adds the columns to a table.
    fn filled(&self, mut table: Table, columns: Vec<ColumnBuilder>) -> Table {
        for (column, filled) in self.columns.iter().zip(columns) {
            filled.into_table(column, &mut table);
        }
        table
    }

    /// Reads the fixed columns of an execution; `last` is the id of the previous one.
    fn take(
        &self,
        table: &mut Table,
        row: &Row<'_>,
        room: &mut Room,
        last: Option<u32>,
    ) -> Result<(), DatabaseError> {
        let sqlite = DatabaseError::sqlite(&self.path);
        let id: i64 = row.get(0).map_err(&sqlite)?;
        let damaged =
            |what: &str| DatabaseError::damaged(&self.path, format!("execution {id}: {what}"));
        let id = u32::try_from(id).map_err(|_| damaged("its id is out of range"))?;
        if last.is_some_and(|last| last >= id) {
            return Err(damaged("its id is not higher than the previous one"));
        }
        table.ids.push(id);
        table.begins.push(row.get(1).map_err(&sqlite)?);
        let source = self
            .source(row.get(2).map_err(&sqlite)?)
            .ok_or_else(|| damaged("its source does not exist"))?;
        table.sources.push(source as u32);
        let thread: Option<i64> = row.get(3).map_err(&sqlite)?;
        let thread = thread.map(|id| {
            u32::try_from(id)
                .ok()
                .filter(|&id| (id as usize) < self.threads.len())
        });
        if thread == Some(None) {
            return Err(damaged("its thread does not exist"));
        }
        table.threads.push(thread.flatten());
        for column in [4, 5] {
            let value = row.get_ref(column).map_err(&sqlite)?;
            room.take(value).ok_or_else(|| self.is_too_much())?;
        }
        let times = self.times(row, 4);
        let times = times.ok_or_else(|| damaged("its times cannot be read"))?;
        table.rows.push(&times);
        Ok(())
    }

    /// Checks that the times of the last execution, if it has times, add up to its duration.
    fn check_times(&self, table: &Table, duration: ValueRef<'_>) -> Result<(), DatabaseError> {
        let times = table.rows.of(table.len() - 1).iter().map(|(_, time)| *time);
        let id = table.ids.last().copied().unwrap_or_default();
        match known(duration).filter(|&duration| !adds_up(times.clone(), duration)) {
            None => Ok(()),
            Some(duration) => Err(self.differs(id.into(), "times", times, duration)),
        }
    }

    /// Checks that the times of the wait reasons of the last execution add up to at most its
    /// duration. If `has_times`, also checks that an execution with reasons has times.
    fn check_reasons(
        &self,
        table: &Table,
        (reasons, duration): (u128, ValueRef<'_>),
        has_times: bool,
    ) -> Result<(), DatabaseError> {
        let id = table.ids.last().copied().unwrap_or_default();
        let damaged = |told: String| Err(DatabaseError::damaged(&self.path, told));
        // A duration too long for SQLite is stored as the longest.
        let is_exceeded =
            |duration: &u64| reasons > u128::from(*duration) && *duration != i64::MAX as u64;
        if let Some(duration) = known(duration).filter(is_exceeded) {
            return damaged(format!(
                "execution {id}: the times of its reasons add up to {reasons} ns, more than its duration of {duration} ns"
            ));
        }
        if has_times && reasons > 0 && table.rows.of(table.len() - 1).is_empty() {
            return damaged(format!(
                "execution {id}: its reasons add up to {reasons} ns, but it has no times"
            ));
        }
        Ok(())
    }

    /// Error of an execution whose parts and duration contradict each other; it is unknown which is
    /// right, so neither is returned.
    fn differs(
        &self,
        id: i64,
        what: &str,
        parts: impl Iterator<Item = u64>,
        duration: u64,
    ) -> DatabaseError {
        let sum: u128 = parts.map(u128::from).sum();
        let told = format!(
            "execution {id}: its {what} add up to {sum} ns, but its duration is {duration} ns"
        );
        DatabaseError::damaged(&self.path, told)
    }

    fn is_too_much(&self) -> DatabaseError {
        DatabaseError::damaged(&self.path, "its executions are larger than the file")
    }

    /// The times of an execution: from `column`, or from the path in the next column where it is
    /// empty.
    fn times(&self, row: &Row<'_>, column: usize) -> Option<Vec<(ContextId, u64)>> {
        let contexts = self.merged.len();
        let times = row.get_ref(column).ok()?.as_blob_or_null().ok()?;
        let times = match times {
            Some(times) => blobs::read_times(times, contexts)?,
            None => {
                let path = row.get_ref(column + 1).ok()?.as_blob().ok()?;
                let steps = blobs::read_steps(path, contexts, self.threads.len())?.into_iter();
                let mut times = steps
                    .map(|(_, context, duration)| (context, duration))
                    .collect();
                add_up(&mut times);
                times
            }
        };
        Some(self.merge(times))
    }

    /// Maps times to the contexts after renames.
    fn merge(&self, mut times: Vec<(ContextId, u64)>) -> Vec<(ContextId, u64)> {
        if self.renames.is_empty() {
            return times;
        }
        for (context, _) in &mut times {
            *context = self.merged(*context);
        }
        add_up(&mut times);
        times
    }

    fn merged(&self, context: ContextId) -> ContextId {
        self.merged
            .get(context.0 as usize)
            .copied()
            .unwrap_or_default()
    }

    fn source(&self, id: i64) -> Option<usize> {
        let place = usize::try_from(id.checked_sub(1)?).ok()?;
        (place < self.sources.len()).then_some(place)
    }

    /// An execution with its steps; `None` if the id does not exist.
    ///
    /// # Errors
    /// If the execution cannot be read.
    pub fn execution(&self, id: u32) -> Result<Option<Recorded>, DatabaseError> {
        let found = self.execution_from(id.into())?;
        Ok(found.and_then(|(found, recorded)| (found == i64::from(id)).then_some(recorded)))
    }

    /// The first execution whose id is at least `id`, with its id and its steps; `None` after the
    /// last one.
    ///
    /// # Errors
    /// If the execution cannot be read.
    pub fn execution_from(&self, id: i64) -> Result<Option<(i64, Recorded)>, DatabaseError> {
        let has_durations = self.columns.iter().any(|column| column.name == DURATION);
        let duration = if has_durations { DURATION } else { "NULL" };
        let select = format!(
            "SELECT id, begin_ns, source, thread, path, {duration} FROM execution WHERE id >= ?1 ORDER BY id LIMIT 1"
        );
        let found = self.first(&select, id, |row| {
            let thread: Option<i64> = row.get(3).ok()?;
            let thread = match thread.map(u32::try_from) {
                Some(thread) => Some(
                    thread
                        .ok()
                        .filter(|&id| (id as usize) < self.threads.len())?,
                ),
                None => None,
            };
            let path = row.get_ref(4).ok()?.as_blob().ok()?;
            let steps = blobs::read_steps(path, self.merged.len(), self.threads.len())?.into_iter();
            let steps = steps.map(|(thread, context, duration)| PathStep {
                thread,
                context: self.merged(context),
                duration,
            });
            let steps: Vec<PathStep> = steps.collect();
            let duration = known(row.get_ref(5).ok()?);
            let sum = || {
                steps
                    .iter()
                    .fold(0u64, |sum, step| sum.saturating_add(step.duration))
            };
            Some(Recorded {
                begin: row.get(1).ok()?,
                source: self.source(row.get(2).ok()?)?,
                thread,
                duration: duration.unwrap_or_else(sum),
                steps,
            })
        })?;
        if let Some((id, recorded)) = &found {
            let parts = recorded.steps.iter().map(|step| step.duration);
            if has_durations && !adds_up(parts.clone(), recorded.duration) {
                return Err(self.differs(*id, "steps", parts, recorded.duration));
            }
        }
        Ok(found)
    }

    /// The times of the first execution whose id is at least `id`, with its id: contexts in
    /// ascending order, with the nanoseconds of their own time. `None` after the last execution.
    ///
    /// # Errors
    /// If the times cannot be read.
    pub fn times_from(
        &self,
        id: i64,
    ) -> Result<Option<(i64, Vec<(ContextId, u64)>)>, DatabaseError> {
        let select =
            format!("SELECT id, {TIMES} FROM execution WHERE id >= ?1 ORDER BY id LIMIT 1");
        self.first(&select, id, |row| self.times(row, 1))
    }

    /// Reads the first row whose id is at least `from`; the statement must select the id as its
    /// first column.
    fn first<T>(
        &self,
        select: &str,
        from: i64,
        read: impl FnOnce(&Row<'_>) -> Option<T>,
    ) -> Result<Option<(i64, T)>, DatabaseError> {
        let sqlite = DatabaseError::sqlite(&self.path);
        let mut statement = self.connection.prepare_cached(select).map_err(&sqlite)?;
        let mut rows = statement.query([from]).map_err(&sqlite)?;
        let Some(row) = rows.next().map_err(&sqlite)? else {
            return Ok(None);
        };
        let id: i64 = row.get(0).map_err(&sqlite)?;
        // A caller that continues after this id must reach an end, even if the file replaces tables
        // by views.
        let found = read(row).filter(|_| id >= from);
        let found = found.ok_or_else(|| {
            DatabaseError::damaged(
                &self.path,
                format!("execution {id}: its data cannot be read"),
            )
        });
        Ok(Some((id, found?)))
    }
}

/// A duration as SQLite stores it; `None` for other types.
fn known(duration: ValueRef<'_>) -> Option<u64> {
    match duration {
        // A negative duration becomes longer than any valid one.
        ValueRef::Integer(number) => Some(number.cast_unsigned()),
        ValueRef::Real(number) => Some(number as u64),
        _ => None,
    }
}

/// True if the parts of a duration add up to it. An execution without parts is valid: its thread is
/// unknown. A duration too long for SQLite is stored as the longest.
fn adds_up(parts: impl Iterator<Item = u64> + Clone, duration: u64) -> bool {
    let sum: u128 = parts.clone().map(u128::from).sum();
    parts.clone().next().is_none()
        || sum == u128::from(duration)
        || duration == i64::MAX as u64 && sum > u128::from(duration)
}
