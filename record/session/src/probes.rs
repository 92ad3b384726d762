//! What programs with probes are told, and what is done with their traces in the end.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tracebraid_probe::control::{end_session, switches_on};
use tracebraid_probe::finish::{Finished, copy, finish};
use tracebraid_probe::parents;

use crate::SessionError;

/// How events of programs' own are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// Patterns (`*`, `?`) of event classes.
    pub patterns: Vec<String>,
    /// Keep only the newest.
    pub ring: bool,
    /// Bytes that a process may write, if not the usual.
    pub limit: Option<u64>,
    /// Library to preload into programs that are not linked with it; not needed if the one for
    /// modules is preloaded.
    pub library: Option<PathBuf>,
}

/// The library that records which modules of a program are loaded where, so that addresses of
/// functions have names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// The library to preload.
    pub library: PathBuf,
}

/// Event classes of modules.
const MODULES: &str = "lttng_ust_lib:*";

/// Has programs load a library, before what the user has them load.
pub(crate) fn preload(library: &Path) -> (String, OsString) {
    let mut libraries = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        libraries.push(":");
        libraries.push(others);
    }
    ("LD_PRELOAD".to_owned(), libraries)
}

impl Probes {
    /// Whether functions are recorded of programs that are compiled with `-finstrument-functions`.
    pub fn has_functions(&self) -> bool {
        switches_on(&self.patterns, "lttng_ust_cyg_profile:func_entry")
    }

    /// With the event classes of modules.
    pub(crate) fn with_modules(mut self) -> Probes {
        self.patterns.push(MODULES.to_owned());
        self
    }
}

/// Writes the options where programs look for them; gives what their environment must have.
pub(crate) fn prepare(
    probes: &Probes,
    directory: &Path,
    clock_offset: u64,
) -> Result<Vec<(String, OsString)>, SessionError> {
    // Programs pass over the last key. Readers expect `ended = yes` only where it is.
    let recorder = std::process::id();
    let mut text = format!("clock_offset = {clock_offset}\nrecorder = {recorder}\n");
    if probes.ring {
        text.push_str("mode = ring\n");
    }
    if let Some(limit) = probes.limit {
        let _ = writeln!(text, "limit = {limit}");
    }
    for pattern in &probes.patterns {
        let _ = writeln!(text, "enable = {pattern}");
    }
    let path = directory.join("probe.conf");
    let failed = |source| SessionError::File {
        path: path.clone(),
        source,
    };
    fs::write(&path, text).map_err(failed)?;
    parents::prepare(directory).map_err(failed)?;
    let session = fs::canonicalize(directory).map_err(failed)?;
    Ok(vec![(
        "TRACEBRAID_SESSION".to_owned(),
        session.into_os_string(),
    )])
}

/// A lock of the directory of programs' traces, which lasts as long as this process, however it
/// ends: readers distinguish by it a recording that goes on from one whose recorder was killed.
/// File systems without locks have none. (The session's own directory is locked by those who change
/// `probe.conf`.)
pub(crate) fn locked(directory: &Path) -> Option<fs::File> {
    let directory = fs::File::open(directory.join("ust")).ok()?;
    directory.try_lock().is_ok().then_some(directory)
}

/// Removes again what was made for programs with probes, where none of them has begun.
pub fn forget_probes(directory: &Path) {
    let _ = fs::remove_file(directory.join("probe.conf"));
    parents::remove_if_empty(directory);
}

/// Writes what programs with probes keep into another directory.
///
/// # Errors
/// When something cannot be read or written.
pub(crate) fn copy_probes(session: &Path, directory: &Path) -> Result<usize, SessionError> {
    copy(session, directory).map_err(|source| SessionError::File {
        path: directory.to_owned(),
        source,
    })
}

/// Has programs that go on record nothing any more, and gives the traces of those that have ended
/// their last shape.
///
/// # Errors
/// When the directory cannot be read, or `probe.conf` not be written.
pub fn finish_probes(directory: &Path) -> Result<Finished, SessionError> {
    // What cannot be done for one process is told of by what comes next.
    let ended = end_session(directory);
    let finished = finish(directory);
    parents::remove_if_empty(directory);
    let failed = |source| SessionError::File {
        path: directory.to_owned(),
        source,
    };
    let finished = finished.map_err(failed)?;
    match finished.failed.is_empty() {
        true => ended.map_err(failed).map(|()| finished),
        false => Ok(finished),
    }
}
