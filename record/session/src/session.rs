//! A recording of everything that was asked for.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use tracebraid_kernel_recorder::{
    EndReason, Held, Options, Processes, Progress, RecordError, Recording, Summary, clock_offset,
};
use tracebraid_probe::finish::Finished;

use crate::probes::{Modules, Probes, copy_probes, finish_probes, locked, preload, prepare};
use crate::{SessionError, symbols};

/// What is recorded, and where.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// The directory, which must not be there yet, or be empty.
    pub directory: PathBuf,
    /// Kernel events, if any.
    pub kernel: Option<Options>,
    /// Events of programs' own, if any.
    pub probes: Option<Probes>,
    /// The library that records modules of programs, if functions need it.
    pub modules: Option<Modules>,
}

/// A recording that runs.
#[derive(Debug)]
pub struct Session {
    directory: PathBuf,
    kernel: Option<Recording>,
    /// Where programs with probes write their traces.
    probes: Option<PathBuf>,
    /// They keep only the newest.
    keeps_probes: bool,
    /// They do, or the kernel's recorder does.
    keeps_newest: bool,
    /// Where maps of what was compiled meanwhile go, if call stacks need them; and since when they
    /// count.
    compiled: Option<(PathBuf, SystemTime)>,
    begun: Instant,
    /// Locked as long as programs with probes are recorded.
    _going_on: Option<File>,
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionSummary {
    /// Of the kernel.
    pub kernel: Option<Summary>,
    /// Of programs with probes.
    pub probes: Option<Finished>,
}

/// Makes a directory for a trace; false if it was there already.
///
/// # Errors
/// When it cannot be made, or has something in it.
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
            let why = "the directory is not empty: give another one by -o";
            Err(failed(std::io::Error::other(why)))
        }
    }
}

/// Whether two paths lead to the same directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(fs::canonicalize);
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

impl SessionOptions {
    /// Makes the directory; false if it was there already.
    ///
    /// # Errors
    /// When it cannot be made, or has something in it.
    pub fn make_directory(&self) -> Result<bool, SessionError> {
        make_empty(&self.directory)
    }

    /// Gives all traces the same relation to the time of day, and tells programs with probes what
    /// to record. Gives what the environment of such programs must have.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn prepare(&mut self) -> Result<Vec<(String, OsString)>, SessionError> {
        let offset = clock_offset();
        if let Some(kernel) = &mut self.kernel {
            kernel.clock_offset = Some(offset);
        }
        if self.modules.is_some() {
            let probes = self.probes.take().unwrap_or_default();
            self.probes = Some(probes.with_modules());
        }
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
        environment.extend(of_modules.or(of_probes).map(preload));
        Ok(environment)
    }
}

impl Session {
    /// Begins to record. When this returns, events are being recorded.
    ///
    /// # Errors
    /// When a recorder cannot be started; then none is.
    pub fn start(options: &SessionOptions) -> Result<Session, SessionError> {
        // Earlier than recording begins: file times are those of the last tick of the clock.
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

    /// How long it has been recording.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// What has been recorded up to now.
    pub fn progress(&self) -> Progress {
        self.kernel
            .as_ref()
            .map(Recording::progress)
            .unwrap_or_default()
    }

    /// Whether only the newest is kept, in memory.
    pub fn keeps_newest(&self) -> bool {
        self.keeps_newest
    }

    /// Conditions that have held since the last call: for each, [`Session::snapshot`] should be
    /// called.
    pub fn held(&self) -> Vec<Held> {
        self.kernel
            .as_ref()
            .map(Recording::held)
            .unwrap_or_default()
    }

    /// Writes what is kept in memory into that directory; the recording goes on.
    ///
    /// # Errors
    /// When nothing is kept in memory, the directory has something in it, or the trace cannot be written.
    pub fn snapshot(&self, directory: &Path) -> Result<Progress, SessionError> {
        if is_same(directory, &self.directory) {
            let why = "the session's own trace will be there: give another directory by -o";
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

    /// Ends the chunk of the kernel's trace now, and begins the next one; gives the directory of
    /// the one that has ended.
    ///
    /// # Errors
    /// When the recording is not written as chunks, or has ended.
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
            None => return Err(SessionError::Refused("nothing is kept in memory".into())),
        };
        if let (Some(session), true) = (&self.probes, self.keeps_probes) {
            copy_probes(session, directory)?;
        }
        Ok(progress)
    }

    /// True if a recorder has ended by itself: [`Session::stop`] says why.
    pub fn has_failed(&self) -> bool {
        self.kernel.as_ref().is_some_and(Recording::has_failed)
    }

    /// Processes as the kernel numbers them, if it is recorded.
    fn processes(&self) -> Option<&Processes> {
        self.kernel.as_ref().map(Recording::processes)
    }

    /// Processes that are followed and still run, by their numbers in the initial PID namespace:
    /// the command or the chosen processes, and their descendants. None are known where the kernel
    /// is not recorded.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn followed(&self) -> Result<Vec<u32>, SessionError> {
        let followed = self.processes().map(Processes::followed);
        Ok(followed.transpose()?.unwrap_or_default())
    }

    /// Descendants of followed processes that are not followed, since they existed before the
    /// recording.
    ///
    /// # Errors
    /// When the kernel does not list its threads.
    pub fn unfollowed_descendants(&self) -> Result<Vec<u32>, SessionError> {
        let found = self.processes().map(Processes::unfollowed_descendants);
        Ok(found.transpose()?.unwrap_or_default())
    }

    /// Ends the recording for that reason, which the kernel's trace contains: programs that go on
    /// record nothing any more.
    ///
    /// # Errors
    /// When something could not be written.
    pub fn stop(self, reason: EndReason) -> Result<SessionSummary, SessionError> {
        if let Some((directory, since)) = &self.compiled {
            symbols::keep(directory, *since, self.processes());
        }
        // Whatever became of the one, the other is ended.
        let kernel = self.kernel.map(|kernel| kernel.end(reason)).transpose();
        let probes = self.probes.map(|directory| finish_probes(&directory));
        let (kernel, probes) = (kernel?, probes.transpose()?);
        Ok(SessionSummary { kernel, probes })
    }
}
