//! Recordings of tracebraid that were not ended by their recorder.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_follow::{Extent, TraceEnd, unended};

use crate::units;

/// Time at the end of a killed recording that may be missing: the recorder writes its buffers at
/// least this often.
const FLUSHED_EACH: &str = "1 s";

/// A recording without its end.
#[derive(Clone, Debug)]
pub(crate) struct Unfinished {
    pub(crate) path: PathBuf,
    pub(crate) message: String,
}

impl std::fmt::Display for Unfinished {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            to,
            "{}: {}",
            crate::origins::shown(&self.path),
            self.message
        )
    }
}

/// The recordings without an end, kernel traces first.
pub(crate) fn all(set: &TraceSet) -> Vec<Unfinished> {
    let kernels = unended(set).into_iter().filter_map(|unended| {
        let trace = set.traces.get(unended.trace as usize)?;
        // If a recording has several chunks, only the newest lacks its end.
        let path = trace.paths.iter().max()?.clone();
        let begin = trace
            .streams
            .iter()
            .filter_map(|stream| Extent::covered(trace, stream));
        let begin = begin.map(|covered| covered.first.0).min();
        let length = unended
            .recorded_until_ns
            .zip(begin)
            .map(|(end, begin)| end.abs_diff(begin));
        let message = kernel_message(length);
        Some(Unfinished { path, message })
    });
    let programs = sessions(set).into_iter().map(|path| Unfinished {
        message: format!(
            "the recorder was killed before it ended the recording of programs with probes, which may still be writing: end it with \
             `tracebraid stop {}`",
            path.display()
        ),
        path,
    });
    kernels.chain(programs).collect()
}

fn kernel_message(length: Option<u64>) -> String {
    let missing = match length {
        Some(length) => format!(
            "it contains the first {}, and up to {FLUSHED_EACH} of events at the end is missing",
            units::duration(length)
        ),
        None => "it contains no events".to_owned(),
    };
    format!(
        "the trace has no end mark because the recorder was killed or the trace was cut: {missing} (end recordings with Ctrl-C, \
         `tracebraid stop`, --duration or --max-size)"
    )
}

/// How a trace ends; `None` if its recorder does not mark the end.
pub(crate) fn end_of(trace: &Trace) -> Option<TraceEnd> {
    TraceEnd::of(trace).or_else(|| {
        let session = trace.paths.first().and_then(|path| session_of(path))?;
        end_of_session(&session)
    })
}

/// Directories of recordings of programs with probes that have no end.
fn sessions(set: &TraceSet) -> BTreeSet<PathBuf> {
    let paths = set.traces.iter().flat_map(|trace| &trace.paths);
    let sessions: BTreeSet<PathBuf> = paths.filter_map(|path| session_of(path)).collect();
    let is_unfinished = |session: &PathBuf| end_of_session(session) == Some(TraceEnd::Unfinished);
    sessions.into_iter().filter(is_unfinished).collect()
}

/// The recording that contains the trace of a process, DIR/ust/pid/PROCESS.
fn session_of(trace: &Path) -> Option<PathBuf> {
    let pid = trace.parent()?;
    let ust = pid.parent()?;
    let is_trace = pid.file_name()? == "pid" && ust.file_name()? == "ust";
    let session = ust.parent().filter(|_| is_trace)?;
    Some(match session.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => session.to_owned(),
    })
}

/// How a recording of programs with probes ends; `None` if it had no recorder.
fn end_of_session(session: &Path) -> Option<TraceEnd> {
    let options = options(session)?;
    if !options.lines().any(|line| line.starts_with("recorder = ")) {
        return None;
    }
    if options.lines().any(|line| line == "ended = yes") {
        return Some(TraceEnd::Ended(None));
    }
    let locked = File::open(session.join("ust")).map(|directory| directory.try_lock_shared());
    Some(match locked {
        Ok(Err(std::fs::TryLockError::WouldBlock)) => TraceEnd::Growing,
        _ => TraceEnd::Unfinished,
    })
}

/// Maximum size of a recording's options in bytes; programs read far less.
const MOST_OPTIONS: u64 = 64 << 10;

/// The options of a recording of programs with probes (`probe.conf`), if it has any.
pub(crate) fn options(recording: &Path) -> Option<String> {
    let options = recording.join("probe.conf");
    // Opening a pipe of that name would block.
    match options.metadata() {
        Ok(about) if about.is_file() && about.len() <= MOST_OPTIONS => {
            std::fs::read_to_string(options).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn recordings_of_programs_end_where_their_options_say() {
        let directory = tempfile::tempdir().unwrap();
        let session = directory.path();
        let trace = session.join("ust/pid/program-7-20261125-130000");
        fs::create_dir_all(&trace).unwrap();
        assert_eq!(session_of(&trace).as_deref(), Some(session));
        assert_eq!(session_of(&session.join("kernel")), None);
        assert_eq!(session_of(Path::new("ust/pid/a")), Some(PathBuf::from(".")));
        let end = |options: &str| {
            fs::write(session.join("probe.conf"), options).unwrap();
            end_of_session(session)
        };
        assert_eq!(end("enable = *\n"), None);
        assert_eq!(
            end("recorder = 7\nenable = *\n"),
            Some(TraceEnd::Unfinished)
        );
        assert_eq!(
            end("ended = yes\nrecorder = 7\n"),
            Some(TraceEnd::Ended(None))
        );
        let lock = File::open(session.join("ust")).unwrap();
        lock.lock().unwrap();
        assert_eq!(end("recorder = 7\n"), Some(TraceEnd::Growing));
        drop(lock);
        assert_eq!(end("recorder = 7\n"), Some(TraceEnd::Unfinished));
    }

    #[test]
    fn the_message_contains_what_is_there() {
        assert!(kernel_message(Some(1_500_000_000)).contains("the first 1.5"));
        assert!(kernel_message(None).contains("no events"));
    }
}
