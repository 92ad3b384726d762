//! The database: its plain tables and their columns.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, InterruptHandle, OpenFlags, Row};

use crate::error::ImportError;

/// Prefix of the tables of CUPTI's records.
const RECORDS: &str = "CUPTI_ACTIVITY_KIND_";

/// Limit for a text in bytes: names of C++ kernels may be long.
const MOST_BYTES: usize = 8192;

/// Limit for the tables of a database: exports have at most some hundred.
const MOST_TABLES: i64 = 4096;

pub(super) struct Database {
    connection: Connection,
    /// Columns of plain tables, by table.
    tables: BTreeMap<String, BTreeSet<String>>,
}

fn unreadable(error: &rusqlite::Error) -> ImportError {
    ImportError::Unsupported(format!(
        "the database cannot be read ({error}): export the report again, with `nsys export --type \
         sqlite --force-overwrite true REPORT.nsys-rep`"
    ))
}

/// An integer; 0 for other values.
pub(super) fn integer(row: &Row<'_>, column: usize) -> i64 {
    match row.get_ref(column) {
        Ok(ValueRef::Integer(number)) => number,
        _ => 0,
    }
}

/// A text, cut if it is too long; empty for other values.
fn text(row: &Row<'_>, column: usize) -> String {
    let Ok(ValueRef::Text(bytes)) = row.get_ref(column) else {
        return String::new();
    };
    let bytes = bytes.get(..MOST_BYTES).unwrap_or(bytes);
    String::from_utf8_lossy(bytes).replace('\0', " ")
}

impl Database {
    pub(super) fn open(path: &Path) -> Result<Database, ImportError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection =
            Connection::open_with_flags(path, flags).map_err(|error| unreadable(&error))?;
        let mut database = Database {
            connection,
            tables: BTreeMap::new(),
        };
        database.tables = database.plain_tables()?;
        Ok(database)
    }

    fn plain_tables(&self) -> Result<BTreeMap<String, BTreeSet<String>>, ImportError> {
        // Virtual tables have no root page. Hidden columns are calculated.
        let query = format!(
            "SELECT tables.name, columns.name FROM \
             (SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 LIMIT {MOST_TABLES}) \
             AS tables, pragma_table_xinfo(tables.name) AS columns WHERE columns.hidden = 0"
        );
        let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        self.each(&query, |row| {
            let columns = tables.entry(text(row, 0)).or_default();
            columns.insert(text(row, 1));
            Ok(())
        })?;
        Ok(tables)
    }

    pub(super) fn is_export(&self) -> bool {
        let has_records = self.tables.keys().any(|table| table.starts_with(RECORDS));
        self.has("StringIds") && has_records
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    pub(super) fn has_column(&self, table: &str, column: &str) -> bool {
        let columns = self.tables.get(table);
        columns.is_some_and(|columns| columns.contains(column))
    }

    pub(super) fn has_columns(&self, table: &str, columns: &[&str]) -> bool {
        columns.iter().all(|column| self.has_column(table, column))
    }

    pub(super) fn interrupt(&self) -> InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// Calls a function with each row.
    pub(super) fn each(
        &self,
        query: &str,
        mut then: impl FnMut(&Row<'_>) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let cannot = |error| unreadable(&error);
        let mut statement = self.connection.prepare(query).map_err(cannot)?;
        let mut rows = statement.query([]).map_err(cannot)?;
        while let Some(row) = rows.next().map_err(cannot)? {
            then(row)?;
        }
        Ok(())
    }

    /// The text with a number; empty if it does not exist.
    pub(super) fn string(&self, id: i64) -> Result<String, ImportError> {
        self.first(&format!(
            "SELECT value FROM StringIds WHERE id = {id} LIMIT 1"
        ))
    }

    /// The text in the first column of the first row; empty without a row.
    pub(super) fn first(&self, query: &str) -> Result<String, ImportError> {
        let mut found = String::new();
        self.each(query, |row| {
            found = text(row, 0);
            Ok(())
        })?;
        Ok(found)
    }

    /// The integer in the first column of the first row; `None` without a row.
    pub(super) fn first_integer(&self, query: &str) -> Result<Option<i64>, ImportError> {
        let mut found = None;
        self.each(query, |row| {
            found = Some(integer(row, 0));
            Ok(())
        })?;
        Ok(found)
    }
}
