//! The SQLite export of NVIDIA Nsight Systems (`nsys export --type sqlite`): CUDA's calls and commands.
//!
//! In: the tables `CUPTI_ACTIVITY_KIND_RUNTIME` (calls of both APIs), `_KERNEL`, `_MEMCPY` and
//! `_MEMSET`. Out: a trace for each process, with the event classes of `tracebraid record --gpu`, one
//! stream in the order of time. Versions of the export differ in tables and columns: missing
//! ones are reported, the rest is read.
//!
//! SQLite sorts all rows by time, with files if memory is short. A process has its trace from its
//! first row on. Nothing of the schema is executed: only plain tables are read, no views, virtual
//! tables and calculated columns.
//!
//! Source: "SQLite Export Schema Reference" of Nsight Systems.

mod database;
mod rows;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tracebraid_ctf::write::trace::Session;

use crate::error::ImportError;
use crate::input::Input;
use crate::summary::Summary;
use database::Database;
use rows::Row;
use writer::Writer;

/// The first bytes of all SQLite databases.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Time between two checks whether the import must stop.
const PATIENCE: Duration = Duration::from_millis(20);

/// True if a file with these first bytes is an SQLite database.
pub(crate) fn is_magic(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// True if a database is an export of Nsight Systems. False if it cannot be read.
pub(crate) fn is_export(path: &Path) -> bool {
    Database::open(path).is_ok_and(|database| database.is_export())
}

/// Imports the file into the session.
pub(crate) fn import(
    path: &Path,
    input: &Input,
    session: &Session,
    stop: &AtomicBool,
) -> Result<Summary, ImportError> {
    let database = Database::open(path)?;
    if !database.is_export() {
        let what = "this SQLite database is no export of Nsight Systems: it has no table StringIds or \
                    no table CUPTI_ACTIVITY_KIND_…; export a report with `nsys export --type sqlite`";
        return Err(ImportError::Unsupported(what.to_owned()));
    }
    let mut summary = Summary {
        format: "SQLite export of Nsight Systems".to_owned(),
        ..Summary::default()
    };
    let query = rows::query(&database, &mut summary)?;
    let mut writer = Writer::new(&database, session, input.uuid()?);
    let interrupt = database.interrupt();
    let is_done = AtomicBool::new(false);
    let read = thread::scope(|scope| {
        // SQLite may sort for a long time before the first row.
        let watcher = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                if stop.load(Ordering::Relaxed) {
                    interrupt.interrupt();
                }
                thread::park_timeout(PATIENCE);
            }
        });
        let read = database.each(&query, |row| match stop.load(Ordering::Relaxed) {
            true => Err(ImportError::Interrupted),
            false => writer.write(&Row::of(row), &mut summary),
        });
        is_done.store(true, Ordering::Relaxed);
        watcher.thread().unpark();
        read
    });
    if stop.load(Ordering::Relaxed) {
        return Err(ImportError::Interrupted);
    }
    read?;
    writer.finish(&mut summary)?;
    Ok(summary)
}
