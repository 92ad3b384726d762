//! Other tools' recordings to CTF on disk: perf.data, and trace.dat of trace-cmd.
//!
//! In: a file. Out: the directory of a CTF 1.8 trace as LTTng lays it out, whose event classes have
//! the names and fields that the kernel gives tracepoints (`sched:sched_switch`, `next_pid`), with
//! a stream for each CPU; and a [`Summary`] of what was imported and what it lacks. Promise: no
//! file makes it panic, hang or allocate without bound; damage is reported with its place, and
//! hides nothing but itself; when it fails, no directory is left.
//!
//! From above: `perf` and `ftrace` read the two formats, `tracepoint` the `format` files that both
//! contain, `output` writes event classes as they are met. Records of perf wait (`perf/order.rs`)
//! until a finished round shows that no older one can come; trace.dat has the pages of each CPU in
//! order. The program imports into a temporary directory (`present/cli/src/imported.rs`), so that
//! no other code needs to know that a trace was a file.
#![forbid(unsafe_code)]

mod bytes;
mod compression;
mod error;
mod ftrace;
mod input;
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
pub use summary::Summary;

use input::Input;

/// Bytes that tell what a file is.
const HEAD: u64 = 16;

/// True if the file can be imported, by what it begins with; false also if it cannot be read.
pub fn is_importable(path: &Path) -> bool {
    // Opening a pipe would wait for who writes to it.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.is_ok() && (perf::is_magic(&head) || ftrace::is_magic(&head))
}

/// Imports a file into a directory, which must not be there yet; stops when `stop` becomes true.
///
/// # Errors
/// When the file is of no known format, or nothing of it can be read, or the trace cannot be written;
/// then the directory is not there.
pub fn import(path: &Path, to: &Path, stop: &AtomicBool) -> Result<Summary, ImportError> {
    let input = Input::open(path)?;
    let head = input.head(HEAD)?;
    let session = Session::create(to)?;
    let part = session.path().to_owned();
    let imported = match () {
        () if perf::is_magic(&head) => perf::import(input, &session, stop),
        () if ftrace::is_magic(&head) => ftrace::import(input, &session, stop),
        () => Err(ImportError::malformed(
            0,
            "this is neither perf.data nor trace.dat",
        )),
    };
    let finished =
        imported.and_then(|summary| session.finish().map(|_| summary).map_err(Into::into));
    if finished.is_err() {
        // What remains is nobody's: the reason is more worth telling than that it could not be
        // removed.
        let _ = fs::remove_dir_all(part);
    }
    finished
}
