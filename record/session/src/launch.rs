//! A command that waits until recording has begun.
//!
//! Its process id must be known before it runs: a launcher, which is this program itself, waits at
//! a gate (a named pipe) and becomes the command when the gate opens. The launcher keeps its end of
//! the gate open until the kernel closes it during `execve`, which indicates that the command runs.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::stat::Mode;
use nix::unistd::{AccessFlags, Pid, getpgid, getpgrp};
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::dispositions::{ignore_only, ignored_at_start, keep_children, take_over};
use crate::standard_streams;
use crate::{Received, SessionError};

/// A command that runs, or whose launcher waits at the gate.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    gate: PathBuf,
    /// This process's end of the gate, while the launcher waits at the other end.
    opened: Option<File>,
    is_released: bool,
    name: OsString,
}

/// Marks a background recorder in its environment; removed from the environment of its command. The
/// value is the mask of ignored signals in hexadecimal.
const IN_BACKGROUND: &str = "TRACEBRAID_IN_BACKGROUND";

/// Makes `command`, which runs this program, a background recorder: see [`is_in_background`].
pub fn put_in_background(command: &mut Command) -> &mut Command {
    keep_children();
    command
        .env(IN_BACKGROUND, format!("{:x}", ignored_at_start()))
        .process_group(0)
}

/// Whether this process is a background recorder. If so, it takes over the mask of ignored signals
/// of the process that spawned it.
pub fn is_in_background() -> bool {
    let Some(ignored) = std::env::var_os(IN_BACKGROUND) else {
        return false;
    };
    take_over(parse_mask(&ignored));
    true
}

fn parse_mask(text: &OsStr) -> u64 {
    let number = text.to_str().map(|text| u64::from_str_radix(text, 16));
    number.and_then(Result::ok).unwrap_or(0)
}

/// Ends the list of environment variables in the launcher's arguments; no variable has this name.
const END: &str = "=";

/// The byte sent through the gate.
const GO: u8 = b'g';

/// Suffix of the file beside the gate to which the launcher writes the `errno` if it could not
/// become the command.
const REFUSED: &str = ".refused";

/// Maximum wait for a launcher that is stopped, or whose program loads over a slow network.
const LONGEST: Duration = Duration::from_secs(10);

impl Launched {
    /// Starts the launcher of a command, which then waits. `launcher` is a program that calls
    /// [`wait_and_become`] with the arguments that follow `first` on its command line.
    /// `environment` is added to the environment of the command; `directory` is where the gate can
    /// be created.
    ///
    /// # Errors
    /// If the launcher cannot be started.
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
        nix::unistd::mkfifo(&gate, Mode::S_IRUSR | Mode::S_IWUSR)
            .map_err(|error| failed(error.into()))?;
        let mut launch = Command::new(launcher);
        // Passed as arguments and not in the environment of the launcher, which is not part of the
        // recording.
        let environment = environment
            .iter()
            .flat_map(|(name, value)| [OsStr::new(name), value]);
        launch
            .arg(first)
            .arg(&gate)
            .arg(std::process::id().to_string())
            .arg(format!("{:x}", ignored_at_start()))
            .arg(format!("{:x}", standard_streams::closed_at_start()))
            .args(environment)
            .arg(END)
            .args(command);
        keep_children();
        let child = launch
            .spawn()
            .map_err(|source| SessionError::Launch { source });
        match child {
            Ok(child) => Ok(Launched {
                child,
                gate,
                opened: None,
                is_released: false,
                name: command.first().cloned().unwrap_or_default(),
            }),
            Err(error) => {
                let _ = std::fs::remove_file(&gate);
                Err(error)
            }
        }
    }

    /// Process id of the launcher, and later of the command.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the launcher is at the gate. By then it has taken the name of the command, so
    /// that a recording that begins now contains no other name for it.
    ///
    /// # Errors
    /// If the launcher has ended instead.
    pub fn wait_until_ready(&mut self) -> Result<(), SessionError> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(OFlag::O_NONBLOCK.bits());
        while self.opened.is_none() {
            match options.open(&self.gate) {
                Ok(gate) => self.opened = Some(gate),
                // The launcher is not at the gate yet.
                Err(error) if error.raw_os_error() == Some(Errno::ENXIO as i32) => {
                    if let Some(status) = self.try_wait()? {
                        let source =
                            io::Error::other(format!("the launcher ended immediately: {status}"));
                        return Err(SessionError::Launch { source });
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(source) => return Err(SessionError::Launch { source }),
            }
        }
        Ok(())
    }

    /// Opens the gate. The command runs when this returns.
    ///
    /// # Errors
    /// If the command does not exist or cannot be executed, or if the launcher has ended instead of
    /// waiting.
    pub fn release(&mut self) -> Result<(), SessionError> {
        let refused = self.gate.with_file_name(REFUSED);
        self.open()?;
        let Ok(number) = std::fs::read_to_string(&refused) else {
            return Ok(());
        };
        let _ = std::fs::remove_file(&refused);
        let _ = self.child.wait();
        let source = match number.trim().parse() {
            Ok(number) => io::Error::from_raw_os_error(number),
            Err(_) => io::Error::other("the launcher ended without giving a reason"),
        };
        let name = self.name.clone();
        Err(SessionError::Command { name, source })
    }

    /// Opens the gate and waits until the launcher has closed its end.
    fn open(&mut self) -> Result<(), SessionError> {
        self.wait_until_ready()?;
        let Some(mut gate) = self.opened.take() else {
            return Ok(());
        };
        let opened = gate.write_all(&[GO]);
        self.is_released = true;
        let _ = std::fs::remove_file(&self.gate);
        wait_for_end(&gate);
        opened.map_err(|source| SessionError::Launch { source })
    }

    /// Forwards a signal that the recorder received to the command, or to its process group if it
    /// leads one. A signal from the terminal is forwarded only if the terminal has not sent it to
    /// the command itself. The recorder's own group is never signalled, since it may contain other
    /// processes of the user.
    pub fn pass_on(&self, signal: Received) {
        let Ok(number) = Signal::try_from(signal.number) else {
            return;
        };
        // rustix rejects group 0, which the kernel returns for groups created outside this PID
        // namespace.
        let command = Pid::from_raw(self.child.id() as i32);
        let group = getpgid(Some(command)).ok();
        let is_ours = group == Some(getpgrp());
        if signal.is_of_terminal && is_ours {
            return;
        }
        // A command that has just ended needs no signal.
        let _ = match group == Some(command) && !is_ours {
            true => killpg(command, number),
            false => kill(command, number),
        };
    }

    /// The exit status, if the command has ended.
    ///
    /// # Errors
    /// If `waitpid` fails.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>, SessionError> {
        self.child
            .try_wait()
            .map_err(|source| SessionError::Launch { source })
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        // Without `release` the launcher would wait forever.
        if !self.is_released {
            let _ = std::fs::remove_file(&self.gate);
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits until no process holds the other end of a pipe.
fn wait_for_end(pipe: &File) {
    let since = Instant::now();
    let pause = Timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    while since.elapsed() < LONGEST {
        // `POLLERR`, which indicates that the other end is closed, is reported without being
        // requested.
        let mut asked = [PollFd::new(pipe, PollFlags::empty())];
        if rustix::event::poll(&mut asked, Some(&pause)).is_ok_and(|found| found > 0) {
            return;
        }
    }
}

/// Has this process killed if the process that launched it is killed; fails if that has already
/// ended.
fn die_with(parent: Option<&str>) -> io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    let now = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().to_string());
    match now.as_deref() == parent {
        true => Ok(()),
        false => Err(io::Error::other("the recorder has ended")),
    }
}

/// Gives this process the name of the command, so that its work until then is attributed to
/// starting the command.
fn take_name(program: &OsStr) {
    let name = Path::new(program).file_name().unwrap_or(program);
    if let Ok(name) = CString::new(name.as_bytes()) {
        let _ = rustix::thread::set_name(&name);
    }
}

/// The first executable file of this name in `PATH`, as `execvp` finds it; `None` for names with a
/// slash.
fn found_in_path(program: &OsStr) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return None;
    }
    let path = std::env::var_os("PATH")?;
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(program));
    candidates.find(|file| file.is_file() && nix::unistd::access(file, AccessFlags::X_OK).is_ok())
}

/// Replaces this process by a program; returns only on error. `Command::exec` is not used, since it
/// resets SIGPIPE to its default action.
fn become_program(
    program: &OsStr,
    found: Option<&Path>,
    arguments: impl Iterator<Item = OsString>,
    environment: Vec<(OsString, OsString)>,
) -> io::Error {
    let is_kept =
        |name: &OsStr| name != IN_BACKGROUND && environment.iter().all(|(other, _)| other != name);
    let variables = std::env::vars_os().filter(|(name, _)| is_kept(name));
    let variables = variables.chain(environment.iter().cloned());
    let variables: Result<Vec<CString>, _> = variables
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect();
    let words = std::iter::once(program.to_owned()).chain(arguments);
    let words: Result<Vec<CString>, _> = words.map(|word| CString::new(word.into_vec())).collect();
    let (Ok(words), Ok(variables)) = (words, variables) else {
        return io::ErrorKind::InvalidInput.into();
    };
    let Some(path) = words.first() else {
        return io::ErrorKind::InvalidInput.into();
    };
    // If this fails, `execvpe` determines the error, or runs a script that has no `#!` line.
    if let Some(Ok(found)) = found.map(|found| CString::new(found.as_os_str().as_bytes())) {
        let _ = nix::unistd::execve(&found, &words, &variables);
    }
    match nix::unistd::execvpe(path, &words, &variables) {
        Ok(never) => match never {},
        Err(error) => error.into(),
    }
}

/// Waits at the gate, and becomes the command. Returns only on failure, with the name of the
/// command and the error, which the recorder receives, too.
pub fn wait_and_become(mut arguments: impl Iterator<Item = OsString>) -> (OsString, io::Error) {
    let gate = PathBuf::from(arguments.next().unwrap_or_default());
    let parent = arguments.next();
    let ignored = arguments.next().unwrap_or_default();
    ignore_only(parse_mask(&ignored));
    let closed = arguments.next().unwrap_or_default();
    let mut environment = Vec::new();
    while let Some(name) = arguments.next().filter(|name| name != END) {
        environment.push((name, arguments.next().unwrap_or_default()));
    }
    let program = arguments.next().unwrap_or_default();
    take_name(&program);
    // Searched before the recording begins, so that the search is not recorded as work of the
    // command.
    let found = found_in_path(&program);
    let mut go = [0];
    let opened = die_with(parent.as_deref().and_then(OsStr::to_str)).and_then(|()| {
        let mut opened = File::open(&gate)?;
        // The recorder holds the other end of the gate: if it ends from here on, the read ends.
        rustix::process::set_parent_process_death_signal(None)?;
        opened.read_exact(&mut go)?;
        Ok(opened)
    });
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => return (program, error),
    };
    standard_streams::close(parse_mask(&closed));
    let error = become_program(&program, found.as_deref(), arguments, environment);
    let number = error.raw_os_error().unwrap_or(Errno::EINVAL as i32);
    let _ = std::fs::write(gate.with_file_name(REFUSED), number.to_string());
    drop(opened);
    (program, error)
}
