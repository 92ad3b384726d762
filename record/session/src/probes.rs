//! Options for programs with probes, and the completion of their traces.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use tracebraid_probe::control::{end_session, switches_on};
use tracebraid_probe::finish::{Finished, copy, finish};
use tracebraid_probe::parents;

use crate::SessionError;

/// Options for recording user-space events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Probes {
    /// Patterns (`*`, `?`) of event classes.
    pub patterns: Vec<String>,
    /// Keep only the newest events.
    pub ring: bool,
    /// Maximum bytes that a process may write; `None` for the default.
    pub limit: Option<u64>,
    /// Library to preload into programs that are not linked with it; unnecessary if the library for
    /// modules is preloaded.
    pub library: Option<PathBuf>,
    /// Library that records OpenCL and CUDA: preloaded, a layer, and injected. It contains the others.
    pub gpu: Option<PathBuf>,
    /// Nanoseconds that a probe takes, for the traces' environment.
    pub cost: Option<u64>,
    /// Recorders of user-level schedulers; `None` to leave them out.
    pub levels: Option<Levels>,
}

/// Recording of the modules of programs, with which addresses of functions are resolved to names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modules {
    /// The library to preload.
    pub library: PathBuf,
}

/// Recorders of user-level schedulers in unmodified programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// The tool library for OpenMP runtimes.
    pub openmp: Option<PathBuf>,
    /// The directory of a `sitecustomize.py` with which Python programs record asyncio.
    pub python: Option<PathBuf>,
    /// The directory of `libtracebraid_probe.so`, which Python programs load.
    pub libraries: Option<PathBuf>,
}

impl Levels {
    /// Variables to add to the environment of programs.
    pub(crate) fn variables(&self) -> Vec<(String, OsString)> {
        let openmp = (self.openmp.as_deref()).map(|library| last_of("OMP_TOOL_LIBRARIES", library));
        let python = (self.python.as_deref()).map(|directory| first_of("PYTHONPATH", directory));
        let libraries = (self.libraries.as_deref()).map(|directory| {
            let directory = directory.as_os_str().to_owned();
            ("TRACEBRAID_LIBRARIES".to_owned(), directory)
        });
        [openmp, python, libraries].into_iter().flatten().collect()
    }
}

const MODULES: &str = "lttng_ust_lib:*";

/// The value of `LD_PRELOAD` that loads a library ahead of the user's own.
pub(crate) fn preload(library: &Path) -> (String, OsString) {
    first_of("LD_PRELOAD", library)
}

/// The value of `OPENCL_LAYERS` that makes a library the innermost layer: it records the calls that
/// reach the device's driver.
pub(crate) fn layer(library: &Path) -> (String, OsString) {
    first_of("OPENCL_LAYERS", library)
}

/// The variable that names the library which the driver of CUDA loads.
const INJECTION: &str = "CUDA_INJECTION64_PATH";

/// The value of `CUDA_INJECTION64_PATH`; `None` if the environment names another library, since the
/// driver loads only one.
pub(crate) fn injection(library: &Path) -> Option<(String, OsString)> {
    (!is_cuda_taken(library)).then(|| (INJECTION.to_owned(), library.as_os_str().to_owned()))
}

/// True if the environment already makes the driver of CUDA load another library, so that this one
/// cannot record CUDA.
pub fn is_cuda_taken(library: &Path) -> bool {
    let named = std::env::var_os(INJECTION).filter(|named| !named.is_empty());
    named.is_some_and(|named| named != library)
}

/// A variable whose list of paths begins with this one.
fn first_of(variable: &str, path: &Path) -> (String, OsString) {
    let mut paths = path.as_os_str().to_owned();
    if let Some(others) = std::env::var_os(variable).filter(|others| !others.is_empty()) {
        paths.push(":");
        paths.push(others);
    }
    (variable.to_owned(), paths)
}

/// A variable whose list of paths ends with this one: those of the user have precedence.
fn last_of(variable: &str, path: &Path) -> (String, OsString) {
    let mut paths = std::env::var_os(variable).unwrap_or_default();
    if !paths.is_empty() {
        paths.push(":");
    }
    paths.push(path);
    (variable.to_owned(), paths)
}

/// Event classes of OpenCL and CUDA.
const OF_GPU: [&str; 4] = [
    "lttng_ust_opencl*",
    "tracebraid_opencl:*",
    "lttng_ust_cuda*",
    "tracebraid_cuda:*",
];

/// Event classes of user-level schedulers.
const OF_LEVELS: [&str; 5] = [
    "tracebraid:ult_*",
    "tracebraid:lwp_*",
    "tracebraid:span_*",
    "tracebraid_openmp:*",
    "tracebraid_asyncio:*",
];

/// True if the options of a recording, the content of `probe.conf`, are those of one with
/// [`Probes::gpu`].
pub fn records_gpu(options: &str) -> bool {
    enables(options, OF_GPU[0])
}

/// True if the options of a recording, the content of `probe.conf`, are those of one with
/// [`Probes::levels`].
pub fn records_levels(options: &str) -> bool {
    enables(options, OF_LEVELS[0])
}

fn enables(options: &str, pattern: &str) -> bool {
    options
        .lines()
        .any(|line| line.strip_prefix("enable = ") == Some(pattern))
}

impl Probes {
    /// True if functions of programs compiled with `-finstrument-functions` are recorded.
    pub fn has_functions(&self) -> bool {
        switches_on(&self.patterns, "lttng_ust_cyg_profile:func_entry")
    }

    /// Adds the event classes of OpenCL and CUDA, if they are recorded.
    pub(crate) fn with_gpu(mut self) -> Probes {
        if self.gpu.is_some() {
            self.patterns.extend(OF_GPU.map(str::to_owned));
        }
        self
    }

    /// Adds the event classes of user-level schedulers, if they are recorded.
    pub(crate) fn with_levels(mut self) -> Probes {
        if self.levels.is_some() {
            self.patterns.extend(OF_LEVELS.map(str::to_owned));
        }
        self
    }

    /// Adds the event classes of modules.
    pub(crate) fn with_modules(mut self) -> Probes {
        self.patterns.push(MODULES.to_owned());
        self
    }
}

/// Writes the options where programs look for them; returns the variables to add to their
/// environment.
pub(crate) fn prepare(
    probes: &Probes,
    directory: &Path,
    clock_offset: u64,
) -> Result<Vec<(String, OsString)>, SessionError> {
    // Programs ignore the last key. Readers expect `ended = yes` only where it is present.
    let recorder = std::process::id();
    let mut text = format!("clock_offset = {clock_offset}\nrecorder = {recorder}\n");
    if probes.ring {
        text.push_str("mode = ring\n");
    }
    if let Some(limit) = probes.limit {
        let _ = writeln!(text, "limit = {limit}");
    }
    if let Some(cost) = probes.cost {
        let _ = writeln!(text, "cost = {cost}");
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

/// A lock of the directory of user-space traces, which lasts as long as this process, however it
/// ends: by the lock, readers distinguish a running recording from one whose recorder was killed.
/// `None` on file systems without locks. (The session's own directory is locked when `probe.conf`
/// is changed.)
pub(crate) fn locked(directory: &Path) -> Option<fs::File> {
    let directory = fs::File::open(directory.join("ust")).ok()?;
    directory.try_lock().is_ok().then_some(directory)
}

/// Removes the files prepared for programs with probes if no program used them.
pub fn forget_probes(directory: &Path) {
    let _ = fs::remove_file(directory.join("probe.conf"));
    parents::remove_if_empty(directory);
}

/// Writes the buffers of programs with probes to another directory.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn copy_probes(session: &Path, directory: &Path) -> Result<usize, SessionError> {
    copy(session, directory).map_err(|source| SessionError::File {
        path: directory.to_owned(),
        source,
    })
}

/// Stops recording in programs that continue to run, and completes the traces of programs that have
/// ended.
///
/// # Errors
/// If the directory cannot be read, or `probe.conf` cannot be written.
pub fn finish_probes(directory: &Path) -> Result<Finished, SessionError> {
    // Failures for single processes are reported by `finish`.
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
