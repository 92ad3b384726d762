//! What programs with probes are told, and what is done with their traces in the end.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tracebraid_probe::finish::{Finished, finish};

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
}

/// Writes the options where programs look for them; gives what their environment must have.
pub(crate) fn prepare(
    probes: &Probes,
    directory: &Path,
    clock_offset: u64,
) -> Result<Vec<(String, OsString)>, SessionError> {
    let mut text = format!("clock_offset = {clock_offset}\n");
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
    let session = fs::canonicalize(directory).map_err(failed)?;
    Ok(vec![("TRACEBRAID_SESSION".to_owned(), session.into_os_string())])
}

/// What became of the traces of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeSummary {
    /// Processes that recorded something and have ended.
    pub traces: usize,
    /// Traces of processes that go on: `tracebraid finish` gives them their last shape later.
    pub running: Vec<PathBuf>,
    /// Traces with a file that could not be put in order.
    pub failed: Vec<(PathBuf, String)>,
}

/// Gives the traces of programs that have ended their last shape.
///
/// # Errors
/// When the directory cannot be read.
pub fn finish_probes(directory: &Path) -> Result<ProbeSummary, SessionError> {
    let failed = |source| SessionError::File {
        path: directory.to_owned(),
        source,
    };
    let Finished {
        traces,
        running,
        failed: not,
    } = finish(directory).map_err(failed)?;
    Ok(ProbeSummary {
        traces,
        running,
        failed: not,
    })
}
