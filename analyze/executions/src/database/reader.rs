//! Reading a database.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, Row};
use tracebraid_ctf::special::special;
use tracebraid_graph::WaitReason;

use crate::build::Union;
use crate::contexts::{ContextId, Contexts, FrameKind};
use crate::database::blobs;
use crate::database::error::DatabaseError;
use crate::database::lists::{Lists, Room};
use crate::database::schema::quoted;
use crate::database::table::{Column, Figures, Table, Texts};
use crate::ecct::add_up;
use crate::metrics::Metric;
use crate::names::{NameId, Names};

/// A database that is read.
#[derive(Debug)]
pub struct Database {
    path: PathBuf,
    connection: Connection,
    /// Contexts and names, functions renamed: contexts that are then the same are one.
    pub union: Union,
    /// By id in the database: the context it is.
    merged: Vec<ContextId>,
    /// Where executions come from, in the order of their ids from 1.
    pub sources: Vec<Source>,
    /// Threads in the order of their ids from 0.
    pub threads: Vec<Thread>,
    /// What executions there are.
    pub kinds: Vec<ExecutionKind>,
    /// Columns of figures and values.
    pub columns: Vec<Column>,
    /// Functions that are taken for those of another name.
    pub renames: Vec<(String, String)>,
}

/// A trace that executions come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// What the user calls the recording.
    pub label: String,
    /// Where it was.
    pub path: String,
    /// Its machine.
    pub host: Option<String>,
    /// What was read together has one number.
    pub recording: i64,
    /// What related the clocks of its machines: `auto`, or a file.
    pub sync: Option<String>,
}

/// A kind of executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionKind {
    /// Its id in the database.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its delimiters.
    pub definition: String,
    /// Labels of recordings that were added with other delimiters, and those.
    pub otherwise: Vec<(String, String)>,
    /// How many there are.
    pub executions: u64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// The id of its trace.
    pub source: i64,
    /// Its id on the machine.
    pub tid: i32,
    /// Its name.
    pub name: Option<String>,
}

/// A stretch of an execution's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The thread on the path, by its place among those of the database.
    pub thread: Option<u32>,
    /// In which context it was.
    pub context: ContextId,
    /// In nanoseconds.
    pub duration: u64,
}

/// One execution: where it is, and what came one behind the other.
#[derive(Clone, Debug, Default)]
pub struct Recorded {
    /// When it begins, in nanoseconds from the origin.
    pub begin: i64,
    /// The place of its source among those of the database.
    pub source: usize,
    /// The thread in which it ends.
    pub thread: Option<u32>,
    /// How long it is, in nanoseconds: what its steps add up to, if it has any.
    pub duration: u64,
    /// Its steps; none if nobody knows in which thread it was.
    pub steps: Vec<PathStep>,
}

impl Database {
    /// Where an execution of a table comes from, by its place there.
    pub fn source_of(&self, table: &Table, row: usize) -> Option<&Source> {
        self.sources.get(*table.sources.get(row)? as usize)
    }

    /// The thread in which one ends, by its place there.
    pub fn thread_of(&self, table: &Table, row: usize) -> Option<&Thread> {
        let thread = table.threads.get(row).copied().flatten()?;
        self.threads.get(thread as usize)
    }
}

impl Recorded {
    /// When it ends, in nanoseconds from the origin.
    pub fn end(&self) -> i64 {
        self.begin.saturating_add_unsigned(self.duration)
    }

    /// The command line that shows it in its trace; none where its thread is unknown, since a critical path is that of a thread.
    pub fn command(&self, database: &Database) -> Option<String> {
        let paths: Vec<String> = database.sources.iter().map(|of| of.path.clone()).collect();
        self.command_in(database, &paths, true)
    }

    /// As above with other paths of the sources, in their order: those on a machine to which the traces were
    /// moved. Without directories, a file that relates clocks has only its name, too.
    pub fn command_in(&self, database: &Database, paths: &[String], has_directories: bool) -> Option<String> {
        let thread = database.threads.get(self.thread? as usize)?;
        let own = database.sources.get(self.source);
        let (recording, sync) = own.map_or((0, None), |of| (of.recording, of.sync.as_deref()));
        let together = database.sources.iter().zip(paths);
        let together = together.filter(|(of, _)| of.recording == recording);
        let mut paths: Vec<String> = together.map(|(_, path)| shell_word(path)).collect();
        paths.dedup();
        let name = |sync: &str| match has_directories {
            true => sync.to_owned(),
            false => sync.rsplit('/').next().unwrap_or_default().to_owned(),
        };
        let sync = sync.map_or_else(String::new, |sync| format!(" --sync {}", shell_word(&name(sync))));
        Some(format!(
            "tracebraid critical-path {}{sync} --tid {} --from {}ns --to {}ns",
            paths.join(" "),
            thread.tid,
            self.begin,
            self.end(),
        ))
    }
}

/// A word as shells take it.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// What others put into the file is not done when it is read: functions in views and tables, pages that cannot be.
const CAREFUL: &str = "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;";

/// Columns of times, and of the path where it tells them.
const TIMES: &str = "times, CASE WHEN times IS NULL THEN path END";
const NO_TIMES: &str = "x'', NULL";

/// The column of durations.
const DURATION: &str = "duration_ns";

impl Database {
    /// Opens a database; it is not written to.
    ///
    /// # Errors
    /// When it is none, or what stands in it cannot be.
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

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Contexts and names as they were written, nothing renamed.
    pub(super) fn recorded_union(&self) -> Result<Union, DatabaseError> {
        let mut lists = Lists::new(&self.path, &self.connection)?;
        let names = lists.names()?;
        let contexts = lists.contexts(&names)?;
        Ok(Union { contexts, names })
    }

    /// The kind of that name; of a database with one kind that one if no name is given.
    ///
    /// # Errors
    /// When there is none, for people: with what there is.
    pub fn kind(&self, name: Option<&str>) -> Result<&ExecutionKind, String> {
        let names: Vec<&str> = self.kinds.iter().map(|kind| kind.name.as_str()).collect();
        match (name, self.kinds.as_slice()) {
            (None, [kind]) => Ok(kind),
            (None, []) => Err("there are no executions in it".to_owned()),
            (None, _) => Err(format!(
                "there are several kinds of executions in it, say which: {}",
                names.join(", ")
            )),
            (Some(name), kinds) => {
                let found = kinds.iter().find(|kind| kind.name == name);
                found.ok_or_else(|| {
                    format!(
                        "there are no executions called {name} in it, but {}",
                        names.join(", ")
                    )
                })
            }
        }
    }

    /// All executions of a kind.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn table(&self, kind: &ExecutionKind) -> Result<Table, DatabaseError> {
        self.read(kind, TIMES)
    }

    /// The same without where their time went.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn table_without_times(&self, kind: &ExecutionKind) -> Result<Table, DatabaseError> {
        self.read(kind, NO_TIMES)
    }

    /// All executions of a kind in parts of at most `most`, one after the other in the order of their ids: reading takes no more
    /// memory than a part. Columns in which a part has no values are not in it.
    ///
    /// # Errors
    /// When they cannot be read, and those of `each`, which end it.
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
        self.read_parts(kind, times, usize::MAX, |part| -> Result<(), DatabaseError> {
            whole = part;
            Ok(())
        })?;
        Ok(whole)
    }

    fn read_parts<E: From<DatabaseError>>(
        &self,
        kind: &ExecutionKind,
        times: &str,
        most: usize,
        mut each: impl FnMut(Table) -> Result<(), E>,
    ) -> Result<(), E> {
        let fixed = 6;
        let mut select = format!("SELECT id, begin_ns, source, thread, {times}");
        for column in &self.columns {
            select.push_str(", ");
            select.push_str(&quoted(&column.name));
        }
        select.push_str(" FROM execution WHERE kind = ?1 ORDER BY id");
        let sqlite = DatabaseError::sqlite(&self.path);
        let mut statement = self.connection.prepare(&select).map_err(&sqlite)?;
        let mut rows = statement.query([kind.id]).map_err(&sqlite)?;
        let mut table = Table::default();
        let mut room = Room::of(&self.connection).map_err(&sqlite)?;
        let duration = self.columns.iter().position(|column| column.name == DURATION);
        let of_reasons: Vec<String> = WaitReason::ALL.map(|reason| Metric::Time(reason).name()).into();
        let is_reason: Vec<bool> = self
            .columns
            .iter()
            .map(|column| !column.is_value && of_reasons.contains(&column.name))
            .collect();
        // Large integers may be in another part of the rows.
        let are_names = match most {
            usize::MAX => vec![false; self.columns.len()],
            _ => self.names(kind)?,
        };
        let filling = || -> Vec<Filling> { are_names.iter().map(|&is| Filling::new(is)).collect() };
        let mut columns = filling();
        let mut last = None;
        while let Some(row) = rows.next().map_err(&sqlite)? {
            if table.len() >= most {
                let full = std::mem::take(&mut columns);
                each(self.filled(std::mem::take(&mut table), full))?;
                columns = filling();
            }
            self.take(&mut table, row, &mut room, last)?;
            last = table.ids.last().copied();
            let mut reasons = 0;
            for (place, column) in columns.iter_mut().enumerate() {
                let value = row.get_ref(fixed + place).map_err(&sqlite)?;
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
                let value = row.get_ref(fixed + place).map_err(&sqlite)?;
                self.check_reasons(&table, reasons, value)?;
                let is_nowhere = times == TIMES && table.rows.of(table.len() - 1).is_empty();
                if is_nowhere && reasons > 0 {
                    let id = table.ids.last().copied().unwrap_or_default();
                    let told =
                        format!("execution {id}: its reasons add up to {reasons} ns, but it has no times");
                    return Err(DatabaseError::damaged(&self.path, told).into());
                }
            }
        }
        if !table.is_empty() {
            each(self.filled(table, columns))?;
        }
        Ok(())
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
            let found = self.connection.query_row(&query, [kind.id], |row| row.get(0));
            found.map_err(&sqlite)
        };
        self.columns.iter().map(is_name).collect()
    }

    /// A table with its columns.
    fn filled(&self, mut table: Table, columns: Vec<Filling>) -> Table {
        for (column, filled) in self.columns.iter().zip(columns) {
            filled.into_table(column, &mut table);
        }
        table
    }

    /// What every execution has; `last` is the id of the one before it.
    fn take(
        &self,
        table: &mut Table,
        row: &Row<'_>,
        room: &mut Room,
        last: Option<u32>,
    ) -> Result<(), DatabaseError> {
        let sqlite = DatabaseError::sqlite(&self.path);
        let id: i64 = row.get(0).map_err(&sqlite)?;
        let damaged = |what: &str| DatabaseError::damaged(&self.path, format!("execution {id}: {what}"));
        let id = u32::try_from(id).map_err(|_| damaged("its id is none"))?;
        if last.is_some_and(|last| last >= id) {
            return Err(damaged("it is not behind those before it"));
        }
        table.ids.push(id);
        table.begins.push(row.get(1).map_err(&sqlite)?);
        let source = self
            .source(row.get(2).map_err(&sqlite)?)
            .ok_or_else(|| damaged("its source is not there"))?;
        table.sources.push(source as u32);
        let thread: Option<i64> = row.get(3).map_err(&sqlite)?;
        let thread = thread.map(|id| {
            u32::try_from(id)
                .ok()
                .filter(|&id| (id as usize) < self.threads.len())
        });
        if thread == Some(None) {
            return Err(damaged("its thread is not there"));
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

    /// That the times of the last execution, if it has any, add up to its duration.
    fn check_times(&self, table: &Table, duration: ValueRef<'_>) -> Result<(), DatabaseError> {
        let times = table.rows.of(table.len() - 1).iter().map(|(_, time)| *time);
        let id = table.ids.last().copied().unwrap_or_default();
        match known(duration).filter(|&duration| !adds_up(times.clone(), duration)) {
            None => Ok(()),
            Some(duration) => Err(self.differs(id.into(), "times", times, duration)),
        }
    }

    /// Checks that the last execution did not spend more in reasons than its duration.
    fn check_reasons(
        &self,
        table: &Table,
        reasons: u128,
        duration: ValueRef<'_>,
    ) -> Result<(), DatabaseError> {
        let Some(duration) = known(duration) else {
            return Ok(());
        };
        // A duration too long for SQLite is stored as the longest.
        if reasons <= u128::from(duration) || duration == i64::MAX as u64 {
            return Ok(());
        }
        let id = table.ids.last().copied().unwrap_or_default();
        let told = format!(
            "execution {id}: the times of its reasons add up to {reasons} ns, more than its duration of {duration} ns"
        );
        Err(DatabaseError::damaged(&self.path, told))
    }

    /// Both are not told: nobody knows which of them is right.
    fn differs(&self, id: i64, what: &str, parts: impl Iterator<Item = u64>, duration: u64) -> DatabaseError {
        let sum: u128 = parts.map(u128::from).sum();
        let told =
            format!("execution {id}: its {what} add up to {sum} ns, and its duration is {duration} ns");
        DatabaseError::damaged(&self.path, told)
    }

    fn is_too_much(&self) -> DatabaseError {
        DatabaseError::damaged(&self.path, "its executions have more bytes than the file")
    }

    /// The times of an execution, of which that column has them, and the next one its path.
    fn times(&self, row: &Row<'_>, column: usize) -> Option<Vec<(ContextId, u64)>> {
        let contexts = self.merged.len();
        let times = row.get_ref(column).ok()?.as_blob_or_null().ok()?;
        let times = match times {
            Some(times) => blobs::read_times(times, contexts)?,
            None => {
                let path = row.get_ref(column + 1).ok()?.as_blob().ok()?;
                let steps = blobs::read_steps(path, contexts, self.threads.len())?.into_iter();
                let mut times = steps.map(|(_, context, duration)| (context, duration)).collect();
                add_up(&mut times);
                times
            }
        };
        Some(self.merge(times))
    }

    /// Times of contexts as they are when functions are renamed.
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
        self.merged.get(context.0 as usize).copied().unwrap_or_default()
    }

    fn source(&self, id: i64) -> Option<usize> {
        let place = usize::try_from(id.checked_sub(1)?).ok()?;
        (place < self.sources.len()).then_some(place)
    }

    /// One execution, with its steps; none if there is none with that id.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn execution(&self, id: u32) -> Result<Option<Recorded>, DatabaseError> {
        let found = self.execution_from(id.into())?;
        Ok(found.and_then(|(found, recorded)| (found == i64::from(id)).then_some(recorded)))
    }

    /// The first execution whose id is not less, with its id and its steps; none if there is none any more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn execution_from(&self, id: i64) -> Result<Option<(i64, Recorded)>, DatabaseError> {
        let has_durations = self.columns.iter().any(|column| column.name == DURATION);
        let duration = if has_durations { DURATION } else { "NULL" };
        let select = format!(
            "SELECT id, begin_ns, source, thread, path, {duration} FROM execution WHERE id >= ?1 ORDER BY id LIMIT 1"
        );
        let found = self.first(&select, id, |row| {
            let thread: Option<i64> = row.get(3).ok()?;
            let thread = match thread.map(u32::try_from) {
                Some(thread) => Some(thread.ok().filter(|&id| (id as usize) < self.threads.len())?),
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

    /// The times of the first execution whose id is not less, with its id: contexts ascending, and the nanoseconds in them
    /// themselves; none if there is none any more.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn times_from(&self, id: i64) -> Result<Option<(i64, Vec<(ContextId, u64)>)>, DatabaseError> {
        let select = format!("SELECT id, {TIMES} FROM execution WHERE id >= ?1 ORDER BY id LIMIT 1");
        self.first(&select, id, |row| self.times(row, 1))
    }

    /// What is read of the first execution whose id, which the statement selects first, is not less.
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
        // Whoever goes on behind it shall come to an end, whatever the file says that its tables are.
        let found = read(row).filter(|_| id >= from);
        let found = found.ok_or_else(|| {
            DatabaseError::damaged(
                &self.path,
                format!("execution {id}: what is kept of it cannot be read"),
            )
        });
        Ok(Some((id, found?)))
    }
}

/// A duration, as SQLite keeps it; none if it is none.
fn known(duration: ValueRef<'_>) -> Option<u64> {
    match duration {
        // One below 0 is longer than any is.
        ValueRef::Integer(number) => Some(number.cast_unsigned()),
        ValueRef::Real(number) => Some(number as u64),
        _ => None,
    }
}

/// Whether parts of a duration are all of it. Of executions without any nobody knows where their time went. What is too long for
/// SQLite is kept as the longest.
fn adds_up(parts: impl Iterator<Item = u64> + Clone, duration: u64) -> bool {
    let sum: u128 = parts.clone().map(u128::from).sum();
    parts.clone().next().is_none()
        || sum == u128::from(duration)
        || duration == i64::MAX as u64 && sum > u128::from(duration)
}

/// The contexts when functions have other names, and which of them each is.
fn renamed(mut names: Names, contexts: Contexts, renames: &[(String, String)]) -> (Union, Vec<ContextId>) {
    if renames.is_empty() {
        let ids = (0..contexts.count() as u32).map(ContextId).collect();
        return (Union { contexts, names }, ids);
    }
    let known: HashMap<NameId, NameId> = renames
        .iter()
        .map(|(old, new)| (names.id(old), names.id(new)))
        .collect();
    let known = followed(&known);
    let mut merged = vec![Contexts::EMPTY];
    let mut found = Contexts::default();
    for id in 1..contexts.count() as u32 {
        let Some((around, mut frame)) = contexts.parts(ContextId(id)) else {
            continue;
        };
        if let (FrameKind::Function, Some(&new)) = (frame.kind, known.get(&frame.name)) {
            frame.name = new;
        }
        let around = merged.get(around.0 as usize).copied().unwrap_or_default();
        merged.push(found.within(around, frame));
    }
    let union = Union {
        contexts: found,
        names,
    };
    (union, merged)
}

/// Names that lead to others which lead on: where each leads in the end. In a circle, which others may have made, some name of it.
fn followed(known: &HashMap<NameId, NameId>) -> HashMap<NameId, NameId> {
    let mut ends: HashMap<NameId, NameId> = HashMap::new();
    let mut way = Vec::new();
    for &from in known.keys() {
        let mut at = from;
        // Whoever is on the way has an end for now, so that a circle is left where it closes.
        while let (Some(&next), None) = (known.get(&at), ends.get(&at)) {
            ends.insert(at, at);
            way.push(at);
            at = next;
        }
        let end = ends.get(&at).copied().unwrap_or(at);
        for name in way.drain(..) {
            ends.insert(name, end);
        }
    }
    ends
}

/// A column that is being read: of what kind it is shows in its values. Where there are none yet there is no room for them.
#[derive(Debug, Default)]
struct Filling {
    numbers: Vec<f64>,
    texts: Names,
    codes: Vec<Option<u32>>,
    /// Integers that are rounded among the numbers, with their rows.
    large: Vec<(usize, i64)>,
    /// True if other rows of the column have such integers.
    are_names: bool,
}

/// Larger integers cannot be distinguished from their neighbours as floating point numbers.
const EXACT: u64 = 1 << 53;

impl Column {
    /// True for captured values without a unit: their integers may be names.
    fn may_be_names(&self) -> bool {
        self.is_value && self.unit.is_empty()
    }
}

impl Filling {
    fn new(are_names: bool) -> Filling {
        Filling {
            are_names,
            ..Filling::default()
        }
    }

    /// The value of that row.
    fn push(&mut self, row: usize, value: ValueRef<'_>) {
        let number = match value {
            ValueRef::Integer(number) => {
                if number.unsigned_abs() > EXACT {
                    self.large.push((row, number));
                }
                number as f64
            }
            ValueRef::Real(number) => number,
            ValueRef::Text(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                self.codes.resize(row, None);
                self.codes.push(Some(self.texts.id(&text).0));
                return;
            }
            _ => return,
        };
        self.numbers.resize(row, f64::NAN);
        self.numbers.push(number);
    }

    /// Numbers as texts.
    fn name_numbers(&mut self) {
        self.codes.resize(self.codes.len().max(self.numbers.len()), None);
        let mut large = self.large.drain(..).peekable();
        for (row, number) in self.numbers.drain(..).enumerate() {
            let exact = large.next_if(|(of, _)| *of == row);
            let text = match exact {
                Some((_, integer)) => integer.to_string(),
                None if number.is_nan() => continue,
                None => number.to_string(),
            };
            if let Some(code) = self.codes.get_mut(row) {
                *code = Some(self.texts.id(&text).0);
            }
        }
    }

    /// Values of both kinds are two columns; an empty column is dropped. Captured numbers without a unit that
    /// are too large to be distinguished from their neighbours are names, such as span ids: all values of
    /// their column become texts, including those that SQLite stores as text since they exceed 2^63.
    fn into_table(mut self, column: &Column, table: &mut Table) {
        if column.may_be_names() && (self.are_names || !self.large.is_empty()) {
            self.name_numbers();
        }
        if self.numbers.iter().any(|number| !number.is_nan()) {
            self.numbers.resize(table.len(), f64::NAN);
            table.figures.push(Figures {
                column: column.clone(),
                values: self.numbers,
            });
        }
        if !self.codes.is_empty() {
            self.codes.resize(table.len(), None);
            table.texts.push(Texts {
                column: column.clone(),
                texts: self.texts.texts().to_vec(),
                codes: self.codes,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_followed_to_their_ends() {
        let ends = |pairs: &[(u32, u32)]| {
            let known = pairs.iter().map(|&(old, new)| (NameId(old), NameId(new)));
            let mut ends: Vec<(u32, u32)> = followed(&known.collect())
                .into_iter()
                .map(|(old, end)| (old.0, end.0))
                .collect();
            ends.sort_unstable();
            ends
        };
        assert_eq!(
            ends(&[(1, 2), (2, 3), (7, 3), (5, 6)]),
            [(1, 3), (2, 3), (5, 6), (7, 3)]
        );
        // A circle has one end, whichever it is.
        let circle = ends(&[(1, 2), (2, 1), (4, 1)]);
        assert!(
            circle.iter().all(|(_, end)| *end == circle[0].1 && *end <= 2),
            "{circle:?}"
        );
    }
}
