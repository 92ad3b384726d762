//! The user's files from which traces in temporary directories were unpacked or imported. Messages,
//! reports and databases name these files, since the directories are removed when the program ends.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tracebraid_ctf::trace::TraceSet;

/// The temporary directory of each trace or archive, with the user's file.
static ORIGINS: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());

/// Records that a temporary directory was made from a user's file.
pub(crate) fn add(directory: &Path, file: &Path) {
    if let Ok(mut origins) = ORIGINS.lock() {
        origins.push((directory.to_owned(), file.to_owned()));
    }
}

/// The temporary directory made from a file; the last one, if a single file was unpacked and then
/// imported.
pub(crate) fn made_of(file: &Path) -> Option<PathBuf> {
    let origins = ORIGINS.lock().ok()?;
    let (directory, _) = origins.iter().rev().find(|(_, of)| of == file)?;
    Some(directory.clone())
}

/// The user's file from which a path was made, followed by the path in the archive; `None` if the
/// path is not in a temporary directory.
pub(crate) fn of(path: &Path) -> Option<PathBuf> {
    let origins = ORIGINS.lock().ok()?;
    origins.iter().find_map(|(directory, file)| {
        let below = path.strip_prefix(directory).ok()?;
        Some(match below.as_os_str().is_empty() {
            true => file.clone(),
            false => file.join(below),
        })
    })
}

/// Sets the origin of each trace.
pub(crate) fn note(set: &mut TraceSet) {
    for trace in &mut set.traces {
        trace.origin = trace.paths.first().and_then(|path| of(path));
    }
}

/// A path as messages show it: below the user's file, if that was imported.
pub(crate) fn shown(path: &Path) -> String {
    of(path).as_deref().unwrap_or(path).display().to_string()
}

/// A message with the user's files in place of temporary directories.
pub(crate) fn named(message: &str) -> String {
    let mut message = message.to_owned();
    if let Ok(origins) = ORIGINS.lock() {
        // The last first: the name of an earlier directory may begin that of a later one.
        for (directory, file) in origins.iter().rev() {
            message = message.replace(
                &directory.display().to_string(),
                &file.display().to_string(),
            );
        }
    }
    message
}
