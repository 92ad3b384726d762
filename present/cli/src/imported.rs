//! Archives and files of other tools as input. Each becomes a trace in a temporary directory, which
//! is removed when the program ends, even after an interrupt.

use std::fs::{self, DirBuilder};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use tracebraid_import::{ImportError, Summary, import, is_importable};

use crate::archives;
use crate::failure::Failure;
use crate::output::{self, say};
use crate::units::{bytes, grouped, number_of};

/// Temporary directories that must be removed.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Directory of each imported trace, with the original file.
static ORIGINS: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());

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
    if let Some(trace) = imported_before(path) {
        return Ok(trace);
    }
    if archives::is_packed(path) {
        return unpack(path);
    }
    if !is_importable(path) {
        return Ok(path.to_owned());
    }
    output::end_cleanly();
    // Messages name the trace after the file.
    let name = path.file_name().unwrap_or(path.as_os_str());
    let to = temporary().map_err(|error| {
        Failure::output(format!("cannot create a temporary directory: {error}"))
    })?;
    let to = to.join(name);
    let summary = import_file(path, &to)?;
    if let Ok(mut origins) = ORIGINS.lock() {
        origins.push((to.clone(), path.to_owned()));
    }
    say!("{}", said(path, &summary));
    if let Ok(mut damage) = DAMAGE.lock() {
        let damages = summary.damage.iter();
        let damages = damages.map(|damage| format!("{}: {damage}", path.display()));
        damage.found.extend(damages);
    }
    Ok(to)
}

/// Unpacks an archive of traces, or a compressed file of another tool, which is then imported.
fn unpack(path: &Path) -> Result<PathBuf, Failure> {
    let to = temporary().map_err(|error| {
        Failure::output(format!("cannot create a temporary directory: {error}"))
    })?;
    say!("{}: unpacking into {}", path.display(), to.display());
    let stop = output::interruption();
    let unpacked = archives::unpack(path, &to, &stop);
    output::end_at_once();
    if stop.load(Ordering::Relaxed) {
        return Err(Failure::interrupted());
    }
    let unpacked = unpacked.map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Failure::output(format!(
            "{}: no space left in {}: set TMPDIR to a directory with more space",
            path.display(),
            to.display()
        )),
        _ => Failure::nothing_readable(format!("{}: cannot be unpacked: {error}", path.display())),
    })?;
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
    if let Ok(mut origins) = ORIGINS.lock() {
        origins.push((to.clone(), path.to_owned()));
    }
    match &unpacked.single {
        Some(single) if is_importable(single) => resolve_one(single),
        Some(_) => Err(Failure::nothing_readable(format!(
            "{}: contains a single file, which is neither an archive nor a file of perf or trace-cmd",
            path.display()
        ))),
        None => Ok(to),
    }
}

/// The trace into which a file has already been imported.
fn imported_before(path: &Path) -> Option<PathBuf> {
    let origins = ORIGINS.lock().ok()?;
    let mut origins = origins.iter();
    let (trace, _) = origins.find(|(_, file)| file == path)?;
    Some(trace.clone())
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
        "{}: {}, {} event records imported",
        path.display(),
        summary.format,
        grouped(summary.events)
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

/// A path as messages show it: below the user's file, if that was imported.
pub(crate) fn shown(path: &Path) -> String {
    let origin = ORIGINS.lock().ok().and_then(|origins| {
        let below = |(to, file): &(PathBuf, PathBuf)| Some(file.join(path.strip_prefix(to).ok()?));
        origins.iter().find_map(below)
    });
    origin.as_deref().unwrap_or(path).display().to_string()
}

/// A message with the user's files in place of the temporary directories of imports.
pub(crate) fn named(message: &str) -> String {
    let mut message = message.to_owned();
    if let Ok(origins) = ORIGINS.lock() {
        for (to, file) in origins.iter() {
            message = message.replace(&to.display().to_string(), &file.display().to_string());
        }
    }
    message
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
fn temporary() -> std::io::Result<PathBuf> {
    let mut made = TEMPORARY
        .lock()
        .map_err(|_| std::io::Error::other("it is in use"))?;
    let base = std::env::temp_dir();
    for number in 0..u32::MAX {
        let path = base.join(format!("tracebraid-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => {
                made.push(path.clone());
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(std::io::ErrorKind::AlreadyExists.into())
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
