//! A command that waits until recording has begun.
//!
//! Its process must be known before it does anything: a launcher, which is this very program, waits at a
//! gate (a named pipe) and becomes the command when the gate opens.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;

use crate::SessionError;

/// A command that has been launched, or waits at the gate.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    gate: PathBuf,
}

/// The end of the environment among the launcher's arguments; no variable has such a name.
const END: &str = "=";

/// What goes through the gate.
const GO: u8 = b'g';

impl Launched {
    /// Launches a command, which waits. `launcher` is a program that calls [`wait_and_become`] with what follows
    /// `first` on its command line. `environment` is what the command gets besides its own; `directory` is where
    /// the gate can be.
    ///
    /// # Errors
    /// When the launcher cannot be started.
    pub fn new(
        launcher: &Path,
        first: &OsStr,
        command: &[OsString],
        environment: &[(String, OsString)],
        directory: &Path,
    ) -> Result<Launched, SessionError> {
        let gate = directory.join(".gate");
        let failed = |source: io::Error| SessionError::File {
            path: gate.clone(),
            source,
        };
        nix::unistd::mkfifo(&gate, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|error| failed(error.into()))?;
        let mut launch = Command::new(launcher);
        // Not in the environment of the launcher, which is no part of what is recorded.
        let environment = environment
            .iter()
            .flat_map(|(name, value)| [OsStr::new(name), value]);
        launch
            .arg(first)
            .arg(&gate)
            .args(environment)
            .arg(END)
            .args(command);
        let child = launch.spawn().map_err(|source| SessionError::Launch { source });
        match child {
            Ok(child) => Ok(Launched { child, gate }),
            Err(error) => {
                let _ = std::fs::remove_file(&gate);
                Err(error)
            }
        }
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Opens the gate.
    ///
    /// # Errors
    /// When the launcher has ended instead of waiting.
    pub fn release(&mut self) -> Result<(), SessionError> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
        loop {
            match options.open(&self.gate) {
                Ok(mut gate) => {
                    let opened = gate.write_all(&[GO]);
                    let _ = std::fs::remove_file(&self.gate);
                    return opened.map_err(|source| SessionError::Launch { source });
                }
                // Nobody is at the gate yet.
                Err(error) if error.raw_os_error() == Some(Errno::ENXIO as i32) => {}
                Err(source) => return Err(SessionError::Launch { source }),
            }
            if let Some(status) = self.try_wait()? {
                let source = io::Error::other(format!("it ended at once: {status}"));
                return Err(SessionError::Launch { source });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, SessionError> {
        self.child
            .try_wait()
            .map_err(|source| SessionError::Launch { source })
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // If the gate was never opened, whoever waits there reads its end, and ends.
        if self.gate.exists() {
            let mut options = OpenOptions::new();
            let _ = options
                .write(true)
                .custom_flags(OFlag::O_NONBLOCK.bits())
                .open(&self.gate);
            let _ = std::fs::remove_file(&self.gate);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits at the gate, and becomes the command. Comes back only with the reason why not, and the name of the
/// command.
pub fn wait_and_become(mut arguments: impl Iterator<Item = OsString>) -> (OsString, io::Error) {
    let gate = arguments.next().unwrap_or_default();
    let mut environment = Vec::new();
    while let Some(name) = arguments.next().filter(|name| name != END) {
        environment.push((name, arguments.next().unwrap_or_default()));
    }
    let program = arguments.next().unwrap_or_default();
    let mut go = [0];
    if let Err(error) = File::open(gate).and_then(|mut gate| gate.read_exact(&mut go)) {
        return (program, error);
    }
    let error = Command::new(&program).args(arguments).envs(environment).exec();
    (program, error)
}
