//! Imports recordings of other tools as CTF: perf.data, trace.dat of trace-cmd, the SQLite export of
//! Nsight Systems, execution traces of Go, and traces of FxT.
//!
//! In: a file. Out: the directory of a CTF 1.8 trace in LTTng's layout, whose event classes have
//! the kernel's names and fields of tracepoints (`sched:sched_switch`, `next_pid`), with a stream
//! for each CPU; and a [`Summary`] of the imported data and its limitations. Promise: no file makes
//! the import panic, hang or allocate without bound; damage is reported with its position and does
//! not affect data elsewhere; if the import fails, no directory is left.
//!
//! Exports of Nsight Systems become a trace for each process (`nsys`), execution traces of Go one of
//! user-level threads (`go`); traces of FxT keep their cycles (`fxt`).
//!
//! From top to bottom: `perf` and `ftrace` read the two formats, `tracepoint` the `format` files
//! that both contain, and `output` writes event classes as they are encountered. Records of perf
//! are buffered (`perf/order.rs`) until a finished round shows that no older record can follow;
//! trace.dat contains the pages of each CPU in order. The program imports into a temporary
//! directory (`present/cli/src/imported.rs`), so that all other code only deals with traces.
#![forbid(unsafe_code)]

mod bytes;
mod compression;
mod error;
mod ftrace;
mod fxt;
mod go;
mod input;
mod nsys;
mod output;
mod perf;
mod summary;
mod tracepoint;

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tracebraid_ctf::write::trace::Session;

pub use error::ImportError;
pub use go::GoProcess;
pub use summary::Summary;

use input::Input;

/// Number of bytes that identify the format of a file.
const HEAD: u64 = 16;

/// True if the file can be imported, by its first bytes. False if it cannot be read.
pub fn is_importable(path: &Path) -> bool {
    // Opening a pipe would block until a writer opens it.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let is_known = perf::is_magic(&head)
        || ftrace::is_magic(&head)
        || fxt::is_magic(&head)
        || go::is_magic(&head)
        || nsys::is_magic(&head) && nsys::is_export(path);
    read.is_ok() && is_known
}

/// Imports a file into a directory, which must not exist yet. Stops when `stop` becomes true.
///
/// # Errors
/// If the format of the file is unknown, none of the file can be read, or the trace cannot be
/// written. The directory does not exist then.
pub fn import(path: &Path, to: &Path, stop: &AtomicBool) -> Result<Summary, ImportError> {
    let input = Input::open(path)?;
    let head = input.head(HEAD)?;
    let session = Session::create(to)?;
    let part = session.path().to_owned();
    let imported = match () {
        () if perf::is_magic(&head) => perf::import(input, &session, stop),
        () if ftrace::is_magic(&head) => ftrace::import(input, &session, stop),
        () if fxt::is_magic(&head) => fxt::import(input, &session, stop),
        () if nsys::is_magic(&head) => nsys::import(path, &input, &session, stop),
        () if go::is_magic(&head) => {
            let process = GoProcess::default();
            go::import(input, (&session, Path::new("ust/go")), &process, stop)
        }
        () => Err(ImportError::malformed(
            0,
            "this is neither perf.data nor trace.dat, nor an SQLite export of Nsight Systems, nor an \
             execution trace of Go, nor a trace of FxT",
        )),
    };
    finish(session, &part, imported)
}

/// Imports an execution trace of Go whose process is known into a directory, which must not exist
/// yet. Stops when `stop` becomes true.
///
/// # Errors
/// As for [`import`].
pub fn import_go(
    path: &Path,
    to: &Path,
    process: &GoProcess,
    stop: &AtomicBool,
) -> Result<Summary, ImportError> {
    let input = Input::open(path)?;
    let session = Session::create(to)?;
    let part = session.path().to_owned();
    let imported = go::import(input, (&session, Path::new("")), process, stop);
    finish(session, &part, imported)
}

/// Completes the output, or removes it if the import failed.
fn finish(
    session: Session,
    part: &Path,
    imported: Result<Summary, ImportError>,
) -> Result<Summary, ImportError> {
    let finished =
        imported.and_then(|summary| session.finish().map(|_| summary).map_err(Into::into));
    if finished.is_err() {
        // A failure to remove the partial output is ignored: the reason of the failed import is
        // more important.
        let _ = fs::remove_dir_all(part);
    }
    finished
}
