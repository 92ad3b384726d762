//! A recording of kernel and user space.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use tracebraid_kernel_recorder::{
    EndReason, Held, Options, Processes, Progress, RecordError, Recording, Summary, clock_offset,
};
use tracebraid_probe::finish::Finished;

use crate::probes::{
    Levels, Modules, Probes, copy_probes, finish_probes, injection, layer, locked, preload, prepare,
};
use crate::{SessionError, symbols};

/// The recorders of a recording, and its directory.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// The directory, which must be empty or not exist.
    pub directory: PathBuf,
    /// Kernel events; `None` to leave them out.
    pub kernel: Option<Options>,
    /// User-space events; `None` to leave them out.
    pub probes: Option<Probes>,
    /// The library that records modules of programs, if functions are recorded.
    pub modules: Option<Modules>,
    /// Nanoseconds from the Epoch to the zero of CLOCK_MONOTONIC, the same in all traces of the
    /// recording; set by [`SessionOptions::prepare`].
    pub clock_offset: u64,
}

/// A recording in progress.
#[derive(Debug)]
pub struct Session {
    directory: PathBuf,
    kernel: Option<Recording>,
    /// The directory of user-space traces.
    probes: Option<PathBuf>,
    /// Programs keep only the newest events.
    keeps_probes: bool,
    /// Programs or the kernel recorder keep only the newest events.
    keeps_newest: bool,
    /// Destination of the maps of compiled code, if call stacks need them, and the time from which
    /// maps count.
    compiled: Option<(PathBuf, SystemTime)>,
    begun: Instant,
    /// Held as long as programs with probes are recorded.
    _going_on: Option<File>,
}

/// The result of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSummary {
    /// Summary of the kernel trace.
    pub kernel: Option<Summary>,
    /// Summary of the user-space traces.
    pub probes: Option<Finished>,
}

/// Creates the directory of a trace; false if it existed.
///
/// # Errors
/// If it cannot be created, or is not empty.
fn make_empty(directory: &Path) -> Result<bool, SessionError> {
    let failed = |source| SessionError::File {
        path: directory.to_owned(),
        source,
    };
    let is_new = !directory.exists();
    fs::create_dir_all(directory).map_err(failed)?;
    match fs::read_dir(directory).map_err(failed)?.next() {
        None => Ok(is_new),
        Some(_) => {
            let why = "the directory is not empty: choose another with -o";
            Err(failed(std::io::Error::other(why)))
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(fs::canonicalize);
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

impl SessionOptions {
    /// Creates the directory of the recording; false if it existed.
    ///
    /// # Errors
    /// If it cannot be created, or is not empty.
    pub fn make_directory(&self) -> Result<bool, SessionError> {
        make_empty(&self.directory)
    }

    /// Gives all traces the same offset to the wall clock, and writes the options for programs with
    /// probes. Returns the variables to add to their environment.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn prepare(&mut self) -> Result<Vec<(String, OsString)>, SessionError> {
        let offset = clock_offset();
        self.clock_offset = offset;
        if let Some(kernel) = &mut self.kernel {
            kernel.clock_offset = Some(offset);
        }
        if self.modules.is_some() {
            let probes = self.probes.take().unwrap_or_default();
            self.probes = Some(probes.with_modules());
        }
        self.probes = self
            .probes
            .take()
            .map(|probes| probes.with_gpu().with_levels());
        let mut environment = match &self.probes {
            Some(probes) => prepare(probes, &self.directory, offset)?,
            None => Vec::new(),
        };
        let of_modules = self
            .modules
            .as_ref()
            .map(|modules| modules.library.as_path());
        let of_probes = self
            .probes
            .as_ref()
            .and_then(|probes| probes.library.as_deref());
        let of_gpu = self
            .probes
            .as_ref()
            .and_then(|probes| probes.gpu.as_deref());
        environment.extend(of_gpu.or(of_modules).or(of_probes).map(preload));
        environment.extend(of_gpu.map(layer));
        environment.extend(of_gpu.and_then(injection));
        let of_levels = (self.probes.as_ref()).and_then(|probes| probes.levels.as_ref());
        environment.extend(of_levels.map(Levels::variables).unwrap_or_default());
        Ok(environment)
    }
}

impl Session {
    /// Starts recording. Events are being recorded when this returns.
    ///
    /// # Errors
    /// If a recorder cannot be started; the others are stopped then.
    pub fn start(options: &SessionOptions) -> Result<Session, SessionError> {
        // Before recording begins, since file times are those of the last tick.
        let since = SystemTime::now();
        let kernel = match &options.kernel {
            Some(kernel) => {
                // Chunks are below the recording's directory, each with its own `kernel`.
                let below = if kernel.rotation.is_some() {
                    ""
                } else {
                    "kernel"
                };
                let directory = options.directory.join(below);
                Some(Recording::start(kernel.clone(), &directory)?)
            }
            None => None,
        };
        let probes = options.probes.is_some().then(|| options.directory.clone());
        let kernel_stacks = options
            .kernel
            .as_ref()
            .and_then(|kernel| kernel.stacks.as_ref());
        let takes_stacks = options.modules.is_some() || kernel_stacks.is_some();
        let compiled = takes_stacks.then(|| (options.directory.clone(), since));
        let keeps_probes = options.probes.as_ref().is_some_and(|probes| probes.ring);
        let keeps_kernel = options
            .kernel
            .as_ref()
            .is_some_and(|kernel| kernel.keep.is_some());
        let begun = Instant::now();
        let going_on = probes.as_deref().and_then(locked);
        Ok(Session {
            directory: options.directory.clone(),
            kernel,
            probes,
            keeps_probes,
            keeps_newest: keeps_probes || keeps_kernel,
            compiled,
            begun,
            _going_on: going_on,
        })
    }

    /// Duration of the recording so far.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Counts so far.
    pub fn progress(&self) -> Progress {
        self.kernel
            .as_ref()
            .map(Recording::progress)
            .unwrap_or_default()
    }

    /// True if only the newest events are kept, in memory.
    pub fn keeps_newest(&self) -> bool {
        self.keeps_newest
    }

    /// Conditions that have become true since the last call: for each, call [`Session::snapshot`].
    pub fn held(&self) -> Vec<Held> {
        self.kernel
            .as_ref()
            .map(Recording::held)
            .unwrap_or_default()
    }

    /// Writes the events kept in memory to a directory; recording continues.
    ///
    /// # Errors
    /// If no events are kept in memory, the directory is not empty, or the trace cannot be written.
    pub fn snapshot(&self, directory: &Path) -> Result<Progress, SessionError> {
        if is_same(directory, &self.directory) {
            let why = "the session writes its own trace there: choose another directory with -o";
            return Err(SessionError::Refused(format!(
                "{}: {why}",
                directory.display()
            )));
        }
        let is_new = make_empty(directory)?;
        let written = self.write_newest(directory);
        if is_new && written.is_err() {
            let _ = fs::remove_dir(directory);
        }
        let progress = written?;
        if let Some((_, since)) = &self.compiled {
            symbols::keep(directory, *since, self.processes());
        }
        Ok(progress)
    }

    /// Ends the current chunk of the kernel trace and begins the next; returns the directory of the
    /// chunk that ended.
    ///
    /// # Errors
    /// If the recording is not written as chunks, or has ended.
    pub fn rotate(&self) -> Result<PathBuf, SessionError> {
        match &self.kernel {
            Some(kernel) => Ok(kernel.rotate()?),
            None => Err(SessionError::Kernel(RecordError::NoChunks)),
        }
    }

    fn write_newest(&self, directory: &Path) -> Result<Progress, SessionError> {
        let progress = match &self.kernel {
            Some(kernel) => kernel.snapshot(&directory.join("kernel"))?,
            None if self.keeps_probes => Progress::default(),
            None => {
                return Err(SessionError::Refused(
                    "this session keeps no events in memory".into(),
                ));
            }
        };
        if let (Some(session), true) = (&self.probes, self.keeps_probes) {
            copy_probes(session, directory)?;
        }
        Ok(progress)
    }

    /// True if a recorder has ended by itself: [`Session::stop`] returns the reason.
    pub fn has_failed(&self) -> bool {
        self.kernel.as_ref().is_some_and(Recording::has_failed)
    }

    /// Processes by their ids in the kernel trace, if the kernel is recorded.
    fn processes(&self) -> Option<&Processes> {
        self.kernel.as_ref().map(Recording::processes)
    }

    /// Running processes that are followed, by their ids in the initial PID namespace: the command
    /// or the chosen processes, and their descendants. Empty if the kernel is not recorded.
    ///
    /// # Errors
    /// If the kernel does not list its threads.
    pub fn followed(&self) -> Result<Vec<u32>, SessionError> {
        let followed = self.processes().map(Processes::followed);
        Ok(followed.transpose()?.unwrap_or_default())
    }

    /// Descendants of followed processes that are not followed, since they existed before the
    /// recording.
    ///
    /// # Errors
    /// If the kernel does not list its threads.
    pub fn unfollowed_descendants(&self) -> Result<Vec<u32>, SessionError> {
        let found = self.processes().map(Processes::unfollowed_descendants);
        Ok(found.transpose()?.unwrap_or_default())
    }

    /// Ends the recording, and stops recording in programs that continue to run. The reason is
    /// written to the kernel trace.
    ///
    /// # Errors
    /// If a file could not be written.
    pub fn stop(self, reason: EndReason) -> Result<SessionSummary, SessionError> {
        if let Some((directory, since)) = &self.compiled {
            symbols::keep(directory, *since, self.processes());
        }
        // Each recorder is ended, even if the other fails.
        let kernel = self.kernel.map(|kernel| kernel.end(reason)).transpose();
        let probes = self.probes.map(|directory| finish_probes(&directory));
        let (kernel, probes) = (kernel?, probes.transpose()?);
        Ok(SessionSummary { kernel, probes })
    }
}
