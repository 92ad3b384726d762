//! Archives and files of other tools as input. Each becomes a trace in a temporary directory, which
//! is removed when the program ends, even after an interrupt.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use tracebraid_import::{ImportError, Summary, import, is_importable};

use crate::archives;
use crate::failure::Failure;
use crate::origins;
use crate::output::{self, say};
use crate::units::{bytes, number_of};
use crate::without_trace::WithoutTrace;

/// Temporary directories that must be removed.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Damage found by imports.
static DAMAGE: Mutex<Damages> = Mutex::new(Damages {
    found: Vec::new(),
    told: 0,
});

struct Damages {
    found: Vec<String>,
    /// Number of messages in `found` that have been reported.
    told: usize,
}

/// Maximum number of phrases on missing data for each file; more would hide the output after them.
const MOST_LACKS: usize = 8;

/// The paths, with a trace in place of each imported file.
///
/// # Errors
/// When a file cannot be imported, or the user interrupts the import.
pub(crate) fn resolve(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    paths.iter().map(|path| resolve_one(path)).collect()
}

fn resolve_one(path: &Path) -> Result<PathBuf, Failure> {
    if let Some(trace) = origins::made_of(path) {
        return Ok(trace);
    }
    if let Some((archive, below)) = in_archive(path) {
        return Ok(resolve_one(archive)?.join(below));
    }
    if archives::is_packed(path) {
        return unpack(path);
    }
    if is_importable(path) {
        return import_from(path, path);
    }
    let Some(files) = WithoutTrace::of(path) else {
        tell_left_out(path);
        return Ok(path.to_owned());
    };
    match (files.single(), files.advice()) {
        (Some(file), _) => resolve_one(file),
        (None, Some(advice)) => Err(no_trace(path, &advice)),
        // Opening the directory explains what a trace is.
        (None, None) => Ok(path.to_owned()),
    }
}

/// Prints a note for each recording of another tool and each archive that lies beside traces: only
/// the traces in a directory are read.
fn tell_left_out(directory: &Path) {
    const MOST: usize = 3;
    // A trace has many files, and no archives.
    if directory.join("metadata").exists() {
        return;
    }
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| is_input_file(file));
    files.sort();
    for file in files.iter().take(MOST) {
        say!(
            "note: {} is not read, since {} contains traces: give its path as well",
            file.display(),
            directory.display()
        );
    }
    if let more @ 1.. = files.len().saturating_sub(MOST) {
        say!(
            "note: {} are not read either",
            number_of(more as u64, "more file", "more files")
        );
    }
}

/// Whether a path is a file that becomes traces: an archive, or a recording of another tool.
pub(crate) fn is_input_file(path: &Path) -> bool {
    is_importable(path) || archives::is_packed(path)
}

/// Splits a path into an archive, such as `traces.tar.zst/kernel`, as stored in databases.
fn in_archive(path: &Path) -> Option<(&Path, &Path)> {
    if path.exists() {
        return None;
    }
    let archive = path.ancestors().skip(1).find(|above| above.is_file())?;
    let below = path.strip_prefix(archive).ok()?;
    let is_plain = |part| matches!(part, Component::Normal(_));
    (archives::is_packed(archive) && below.components().all(is_plain)).then_some((archive, below))
}

/// Whether a path exists in the file system or may exist in an archive.
pub(crate) fn exists(path: &Path) -> bool {
    path.exists() || is_in_archive(path)
}

/// Whether a path leads into an archive, such as `traces.tar.zst/kernel`.
pub(crate) fn is_in_archive(path: &Path) -> bool {
    in_archive(path).is_some()
}

fn no_trace(path: &Path, why: &str) -> Failure {
    Failure::nothing_readable(format!("{}: no trace found: {why}", path.display()))
}

/// Imports a file that is the user's file `origin` or was unpacked from it.
fn import_from(path: &Path, origin: &Path) -> Result<PathBuf, Failure> {
    output::end_cleanly();
    // Messages name the trace after the file.
    let name = path.file_name().unwrap_or(path.as_os_str());
    let to = temporary()?.join(name);
    let summary = import_file(path, &to)?;
    origins::add(&to, origin);
    say!("{}", said(path, &summary));
    if let Ok(mut damage) = DAMAGE.lock() {
        let damages = summary.damage.iter();
        let damages = damages.map(|damage| format!("{}: {damage}", origins::shown(path)));
        damage.found.extend(damages);
    }
    Ok(to)
}

/// Unpacks an archive of traces, or a compressed file of another tool, which is then imported.
fn unpack(path: &Path) -> Result<PathBuf, Failure> {
    let to = temporary()?;
    say!("{}: unpacking into {}", path.display(), to.display());
    let stop = output::interruption();
    let unpacked = archives::unpack(path, &to, &stop);
    output::end_at_once();
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted());
    }
    let unpacked = unpacked.map_err(|error| cannot_be_unpacked(path, &to, &error))?;
    if unpacked.skipped > 0 {
        say!(
            "warning: {}: {} skipped: links, special files or paths outside the archive",
            path.display(),
            number_of(unpacked.skipped, "member was", "members were")
        );
    }
    say!(
        "{}: {} unpacked, {}; the copy is removed when the command ends",
        path.display(),
        number_of(unpacked.files, "file", "files"),
        bytes(unpacked.bytes)
    );
    origins::add(&to, path);
    let Some(files) = WithoutTrace::of(&to) else {
        return Ok(to);
    };
    match files.single() {
        Some(file) => import_from(file, path),
        None if unpacked.files == 0 && unpacked.skipped > 0 => {
            Err(no_trace(path, "all members were skipped"))
        }
        None => Err(no_trace(path, &files.lack(&to))),
    }
}

fn cannot_be_unpacked(path: &Path, to: &Path, error: &io::Error) -> Failure {
    let path = path.display();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Failure::output(format!(
            "{path}: no space left in {}: set TMPDIR to a directory with more space",
            to.display()
        )),
        _ => Failure::nothing_readable(format!("{path}: cannot be unpacked: {error}")),
    }
}

/// Imports a file into the directory `to`, which must not exist.
///
/// # Errors
/// When the file cannot be imported, or the user interrupts the import.
pub(crate) fn import_file(path: &Path, to: &Path) -> Result<Summary, Failure> {
    let stop = output::interruption();
    let imported = import(path, to, &stop);
    output::end_at_once();
    // An import that was interrupted shortly before its end may still have succeeded.
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted());
    }
    imported.map_err(|error| match error {
        ImportError::Write(error) => Failure::output(error.to_string()),
        error @ ImportError::Io { .. } => Failure::nothing_readable(error.to_string()),
        error => Failure::nothing_readable(format!("{}: {error}", path.display())),
    })
}

/// Summary of an import in one line.
pub(crate) fn said(path: &Path, summary: &Summary) -> String {
    let mut line = format!(
        "{}: {}, {} imported",
        origins::shown(path),
        summary.format,
        number_of(summary.events, "event record", "event records")
    );
    if !summary.lacks.is_empty() {
        line.push_str("; ");
        let shown: Vec<_> = summary
            .lacks
            .iter()
            .take(MOST_LACKS)
            .map(String::as_str)
            .collect();
        line.push_str(&shown.join("; "));
    }
    line
}

/// Damage that has not been reported yet.
pub(crate) fn take_damage() -> Vec<String> {
    let Ok(mut damage) = DAMAGE.lock() else {
        return Vec::new();
    };
    let untold = damage.found.get(damage.told..).unwrap_or_default().to_vec();
    damage.told = damage.found.len();
    untold
}

/// Prepares a restart: all damage is reported again, but files are not imported again.
pub(crate) fn restart() {
    if let Ok(mut damage) = DAMAGE.lock() {
        damage.told = 0;
    }
}

/// Creates a temporary directory that only the user can access.
pub(crate) fn temporary() -> Result<PathBuf, Failure> {
    make_temporary().map_err(|error| {
        Failure::output(format!(
            "{}: cannot create a temporary directory: {error}; set TMPDIR to another directory",
            std::env::temp_dir().display()
        ))
    })
}

fn make_temporary() -> io::Result<PathBuf> {
    let mut made = TEMPORARY
        .lock()
        .map_err(|_| io::Error::other("it is in use"))?;
    let base = std::env::temp_dir();
    for number in 0..u32::MAX {
        let path = base.join(format!("tracebraid-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                made.push(path.clone());
                return Ok(path);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Removes all temporary directories.
pub(crate) fn clean() {
    let Ok(mut made) = TEMPORARY.lock() else {
        return;
    };
    for path in made.drain(..) {
        if let Err(error) = fs::remove_dir_all(&path) {
            eprintln!("warning: {}: cannot be removed: {error}", path.display());
        }
    }
}
