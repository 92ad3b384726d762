//! Reads the small tables of a database: names, contexts, threads, kinds.
//!
//! The file may come from anywhere, so it is not trusted. The tables must be real tables whose rows
//! have ids, because a view may be endless. Rows must be in ascending order or unique, and each row
//! is checked, because a small file may refer to the same page many times. The total size of the
//! values that are read is limited to the size of the file.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use crate::contexts::{ContextId, Contexts, Frame, FrameKind};
use crate::database::error::DatabaseError;
use crate::database::otherwise;
use crate::database::schema::{APPLICATION, VERSION};
use crate::database::table::Column;
use crate::names::{NameId, Names};

/// A trace from which executions come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Name that the user gave to the recording.
    pub label: String,
    /// Directory or file from which it was read; for a trace in an archive, the archive followed by
    /// the path in it.
    pub path: String,
    /// Hostname, if the trace contains it.
    pub host: Option<String>,
    /// Number of the recording: traces that were read together have the same.
    pub recording: i64,
    /// Source of the relation between the clocks of several machines: `auto`, or the path of a
    /// file.
    pub sync: Option<String>,
}

/// A kind of executions: those of one definition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionKind {
    /// Id in the database.
    pub id: i64,
    /// Name that the user gave to the kind.
    pub name: String,
    /// Delimiters, as the user defined them.
    pub definition: String,
    /// Recordings that were added with other delimiters: label and delimiters.
    pub otherwise: Vec<(String, String)>,
    /// Number of executions.
    pub executions: u64,
}

/// A thread of a recorded machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Id of the trace in the database.
    pub source: i64,
    /// Thread id on its machine.
    pub tid: i32,
    /// Name when the execution ended, if it is known.
    pub name: Option<String>,
}

/// A file whose tables are read.
pub(super) struct Lists<'c> {
    path: &'c Path,
    connection: &'c Connection,
    room: Room,
}

/// Number of bytes of values that may still be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(u64);

impl Room {
    /// The size of all pages. The file's own size is not used, since the path may refer to another
    /// file by now.
    pub(super) fn of(connection: &Connection) -> rusqlite::Result<Room> {
        let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
        let pages = number("PRAGMA page_count")?.unsigned_abs();
        Ok(Room(pages.saturating_mul(
            number("PRAGMA page_size")?.unsigned_abs(),
        )))
    }

    /// Subtracts the bytes of a value; `None` if fewer are left.
    pub(super) fn take(&mut self, value: ValueRef<'_>) -> Option<()> {
        let bytes = match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len() as u64,
            _ => 0,
        };
        self.0 = self.0.checked_sub(bytes)?;
        Some(())
    }
}

/// Tables whose rows have ids, and tables whose rows are identified by another column.
const NUMBERED: [&str; 6] = ["source", "kind", "name", "context", "thread", "execution"];
const OTHERS: [&str; 2] = ["metric", "rename"];

impl<'c> Lists<'c> {
    /// Opens the lists of a file; fails unless the file is a database of executions of this
    /// version.
    pub(super) fn new(
        path: &'c Path,
        connection: &'c Connection,
    ) -> Result<Lists<'c>, DatabaseError> {
        let room = Room::of(connection).map_err(DatabaseError::sqlite(path))?;
        let lists = Lists {
            path,
            connection,
            room,
        };
        lists.check_version()?;
        lists.check_tables()?;
        Ok(lists)
    }

    fn damaged(&self, what: impl Into<String>) -> DatabaseError {
        DatabaseError::damaged(self.path, what)
    }

    fn check_version(&self) -> Result<(), DatabaseError> {
        let sqlite = DatabaseError::sqlite(self.path);
        let number = |pragma: &str| {
            self.connection
                .query_row(pragma, [], |row| row.get::<_, i64>(0))
        };
        if number("PRAGMA application_id").map_err(&sqlite)? != i64::from(APPLICATION) {
            return Err(DatabaseError::Foreign {
                path: self.path.to_owned(),
            });
        }
        match number("PRAGMA user_version").map_err(&sqlite)? {
            VERSION => Ok(()),
            found => Err(DatabaseError::Version {
                path: self.path.to_owned(),
                found,
            }),
        }
    }

    /// Checks that the tables are real tables without generated columns, and that there are no
    /// triggers.
    fn check_tables(&self) -> Result<(), DatabaseError> {
        let sqlite = DatabaseError::sqlite(self.path);
        let count = |select: &str, name: &str| -> Result<i64, DatabaseError> {
            let found = self.connection.query_row(select, [name], |row| row.get(0));
            found.map_err(&sqlite)
        };
        let table = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND rootpage > 0";
        let calculated = "SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden <> 0";
        let numbers = "SELECT count(*) FROM pragma_table_xinfo(?1) WHERE pk > 0 AND name = 'id' AND upper(type) = 'INTEGER'
            AND (SELECT max(pk) FROM pragma_table_xinfo(?1)) = 1 AND (SELECT wr FROM pragma_table_list(?1)) = 0";
        for name in NUMBERED.into_iter().chain(OTHERS) {
            if count(table, name)? != 1 {
                return Err(self.damaged(format!("it has no table `{name}`")));
            }
            if count(calculated, name)? != 0 {
                return Err(self.damaged(format!("its table `{name}` has generated columns")));
            }
            if NUMBERED.contains(&name) && count(numbers, name)? != 1 {
                return Err(self.damaged(format!("its table `{name}` has no integer key `id`")));
            }
        }
        let triggers = "SELECT count(*) FROM sqlite_schema WHERE type = ?1";
        match count(triggers, "trigger")? {
            0 => Ok(()),
            _ => Err(self.damaged("it has triggers")),
        }
    }

    /// Calls `take` for each row of a table; `take` rejects invalid rows.
    fn each(
        &mut self,
        select: &str,
        mut take: impl FnMut(&Row<'_>) -> Result<(), RowError>,
    ) -> Result<(), DatabaseError> {
        let sqlite = DatabaseError::sqlite(self.path);
        let mut statement = self.connection.prepare(select).map_err(&sqlite)?;
        let columns = statement.column_count();
        let mut rows = statement.query([]).map_err(&sqlite)?;
        while let Some(row) = rows.next().map_err(&sqlite)? {
            for column in 0..columns {
                let value = row.get_ref(column).map_err(&sqlite)?;
                if self.room.take(value).is_none() {
                    return Err(self.damaged("its values are larger than the file"));
                }
            }
            match take(row) {
                Ok(()) => (),
                Err(RowError::Sqlite(error)) => return Err(sqlite(error)),
                Err(RowError::Damaged(what)) => return Err(self.damaged(what)),
            }
        }
        Ok(())
    }

    /// The names, in the order of their ids, which begin at 0.
    pub(super) fn names(&mut self) -> Result<Names, DatabaseError> {
        let mut names = Names::default();
        self.each("SELECT id, text FROM name ORDER BY id", |row| {
            let place = names.texts().len();
            let text: String = row.get(1)?;
            match row.get::<_, i64>(0)? == place as i64 && names.id(&text).0 as usize == place {
                true => Ok(()),
                false => Err(RowError::order("names")),
            }
        })?;
        Ok(names)
    }

    /// The contexts, in the order of their ids, which begin at 1, with frames from `names`.
    pub(super) fn contexts(&mut self, names: &Names) -> Result<Contexts, DatabaseError> {
        let mut contexts = Contexts::default();
        let select = "SELECT id, around, kind, name FROM context ORDER BY id";
        self.each(select, |row| {
            let id: i64 = row.get(0)?;
            let [around, kind, name] = [row.get(1)?, row.get(2)?, row.get(3)?];
            let around = place_below(around, contexts.count());
            let kind = usize::try_from(kind).ok();
            let kind = kind.and_then(|kind| FrameKind::ALL.get(kind));
            let name = place_below(name, names.texts().len());
            let (Some(around), Some(&kind), Some(name)) = (around, kind, name) else {
                return Err(RowError::Damaged(format!("context {id} is invalid")));
            };
            let name = NameId(name);
            let found = contexts.within(ContextId(around), Frame { kind, name });
            match i64::from(found.0) == id && contexts.count() as i64 == id + 1 {
                true => Ok(()),
                false => Err(RowError::order("contexts")),
            }
        })?;
        Ok(contexts)
    }

    /// Renamed functions: old and new name.
    pub(super) fn renames(&mut self) -> Result<Vec<(String, String)>, DatabaseError> {
        let mut renames: HashMap<String, String> = HashMap::new();
        self.each("SELECT old, new FROM rename", |row| {
            match renames.insert(row.get(0)?, row.get(1)?) {
                None => Ok(()),
                Some(_) => Err(RowError::Damaged("a function is renamed twice".to_owned())),
            }
        })?;
        let mut renames: Vec<(String, String)> = renames.into_iter().collect();
        renames.sort_unstable();
        Ok(renames)
    }

    /// The traces, in the order of their ids, which begin at 1.
    pub(super) fn sources(&mut self) -> Result<Vec<Source>, DatabaseError> {
        let mut sources = Vec::new();
        let select = "SELECT id, label, path, host, recording, sync FROM source ORDER BY id";
        self.each(select, |row| {
            if row.get::<_, i64>(0)? != sources.len() as i64 + 1 {
                return Err(RowError::order("traces"));
            }
            sources.push(Source {
                label: row.get(1)?,
                path: row.get(2)?,
                host: row.get(3)?,
                recording: row.get(4)?,
                sync: row.get(5)?,
            });
            Ok(())
        })?;
        Ok(sources)
    }

    /// The threads, in the order of their ids, which begin at 0.
    pub(super) fn threads(&mut self) -> Result<Vec<Thread>, DatabaseError> {
        let mut threads = Vec::new();
        self.each(
            "SELECT id, source, tid, name FROM thread ORDER BY id",
            |row| {
                if row.get::<_, i64>(0)? != threads.len() as i64 {
                    return Err(RowError::order("threads"));
                }
                threads.push(Thread {
                    source: row.get(1)?,
                    tid: row.get(2)?,
                    name: row.get(3)?,
                });
                Ok(())
            },
        )?;
        Ok(threads)
    }

    /// The kinds of executions, in the order of their ids, with the number of executions of each.
    pub(super) fn kinds(&mut self) -> Result<Vec<ExecutionKind>, DatabaseError> {
        let counts = self.counts()?;
        let mut kinds: Vec<ExecutionKind> = Vec::new();
        let mut last = None;
        self.each("SELECT id, name, definition FROM kind ORDER BY id", |row| {
            let id = row.get(0)?;
            ascends(&mut last, id, "kinds of executions")?;
            let definition: String = row.get(2)?;
            let (definition, otherwise) = otherwise::apart(&definition);
            kinds.push(ExecutionKind {
                id,
                name: row.get(1)?,
                definition,
                otherwise,
                executions: counts.get(&id).copied().unwrap_or(0),
            });
            Ok(())
        })?;
        Ok(kinds)
    }

    /// Number of executions by kind. Reads only the columns id and kind, since there may be
    /// millions of executions.
    fn counts(&self) -> Result<HashMap<i64, u64>, DatabaseError> {
        let sqlite = DatabaseError::sqlite(self.path);
        let select = "SELECT id, kind FROM execution ORDER BY id";
        let mut statement = self.connection.prepare(select).map_err(&sqlite)?;
        let mut rows = statement.query([]).map_err(&sqlite)?;
        let mut counts: HashMap<i64, u64> = HashMap::new();
        // Most executions have the same kind as the previous one.
        let (mut last, mut of_one, mut count) = (i64::MIN, 0, 0);
        while let Some(row) = rows.next().map_err(&sqlite)? {
            let id: i64 = row.get(0).map_err(&sqlite)?;
            let kind: i64 = row.get(1).map_err(&sqlite)?;
            if id <= last {
                return Err(self.damaged("its executions are not in order"));
            }
            last = id;
            if kind != of_one {
                *counts.entry(of_one).or_default() += std::mem::take(&mut count);
                of_one = kind;
            }
            count += 1;
        }
        *counts.entry(of_one).or_default() += count;
        Ok(counts)
    }

    /// Columns of metrics and values, in the order of the columns of executions.
    pub(super) fn columns(&mut self) -> Result<Vec<Column>, DatabaseError> {
        let mut order: HashMap<String, usize> = HashMap::new();
        self.each("SELECT name FROM pragma_table_info('execution')", |row| {
            order.insert(row.get(0)?, order.len());
            Ok(())
        })?;
        let mut columns: Vec<Column> = Vec::new();
        let mut met: HashSet<String> = HashSet::new();
        self.each(
            "SELECT name, unit, description, is_value FROM metric",
            |row| {
                let column = Column {
                    name: row.get(0)?,
                    unit: row.get(1)?,
                    description: row.get(2)?,
                    is_value: row.get(3)?,
                }
                .with_unit();
                if !met.insert(column.name.clone()) {
                    return Err(RowError::Damaged(format!(
                        "the column `{}` is listed twice",
                        column.name
                    )));
                }
                if order.contains_key(&column.name) {
                    columns.push(column);
                }
                Ok(())
            },
        )?;
        columns.sort_by_key(|column| order.get(&column.name));
        Ok(columns)
    }
}

/// An invalid row.
enum RowError {
    Sqlite(rusqlite::Error),
    Damaged(String),
}

impl RowError {
    fn order(what: &str) -> RowError {
        RowError::Damaged(format!("its {what} are not in order"))
    }
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> RowError {
        RowError::Sqlite(error)
    }
}

/// Checks that the ids of rows ascend; stores the id as the last one.
fn ascends(last: &mut Option<i64>, id: i64, what: &str) -> Result<(), RowError> {
    match last.replace(id).is_none_or(|last| last < id) {
        true => Ok(()),
        false => Err(RowError::order(what)),
    }
}

/// `place` if it is an index into a list of `count` elements.
fn place_below(place: i64, count: usize) -> Option<u32> {
    let place = u32::try_from(place).ok()?;
    ((place as usize) < count).then_some(place)
}
