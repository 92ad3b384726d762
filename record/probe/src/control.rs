//! Enabling and disabling event classes of running processes, from another process.
//!
//! No code runs in the traced process for this: its probes read bytes of a file that both processes
//! map or write (`src/control/file.rs`).

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod conf;
pub(crate) mod file;

use crate::guarded;
use file::{CLASSES, ENDED, MAGIC, MOST_CLASSES, NAME, NAMES, PID, RULES, START, STATES};

/// An event class that a process has registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassState {
    /// `provider:event`.
    pub name: String,
    /// True if its probes record events.
    pub enabled: bool,
}

/// The control file of a traced process, and the directory of its trace.
#[derive(Debug)]
pub struct Control {
    directory: PathBuf,
    file: File,
    pid: u32,
    start: u64,
}

/// The user-space traces of a session, sorted by name.
///
/// # Errors
/// If the session's directory cannot be read. A session without traces is no error.
pub fn traces(session: &Path) -> io::Result<Vec<PathBuf>> {
    let parent = session.join("ust").join("pid");
    if !session.is_dir() || !parent.exists() {
        return std::fs::read_dir(session).map(|_| Vec::new());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent)? {
        let entry = entry?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let is_trace = || {
            let control = entry.path().join(".control");
            std::fs::symlink_metadata(control).is_ok_and(|about| about.is_file())
        };
        if !is_hidden && entry.file_type()?.is_dir() && is_trace() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// Checks that a pattern can match event classes. Patterns are names, `provider:event`, with `*`
/// and `?`.
///
/// # Errors
/// The reason why the pattern is invalid.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let is_known = |sign: char| sign.is_ascii_alphanumeric() || "_:*?.-".contains(sign);
    match pattern.chars().find(|&sign| !is_known(sign)) {
        _ if pattern.is_empty() => {
            Err("empty pattern: write PROVIDER:EVENT, with * and ? as wildcards".to_owned())
        }
        Some(sign) => Err(format!(
            "invalid pattern `{pattern}`: `{sign}` does not occur in names; write PROVIDER:EVENT, with * and ? as wildcards"
        )),
        None => Ok(()),
    }
}

/// True if any of the patterns to enable matches the event class.
pub fn switches_on(patterns: &[String], class: &str) -> bool {
    let rules: String = patterns
        .iter()
        .map(|pattern| format!("+{pattern}\n"))
        .collect();
    file::decide(rules.as_bytes(), class.as_bytes())
}

impl Control {
    /// Opens the control file of a process's trace.
    ///
    /// # Errors
    /// If the file does not exist, or is not a control file.
    pub fn open(trace: &Path) -> io::Result<Control> {
        let file = guarded::open(&trace.join(".control"), true)?;
        let mut head = [0; 24];
        file.read_exact_at(&mut head, 0)?;
        if !head.starts_with(MAGIC) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "not a control file",
            ));
        }
        let word =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let start = [START, START + 4].map(|at| word(at).to_ne_bytes()).concat();
        Ok(Control {
            directory: trace.to_owned(),
            file,
            pid: word(PID),
            start: u64::from_ne_bytes(start.try_into().unwrap_or_default()),
        })
    }

    /// Id of the traced process.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The directory of its trace.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// True if the process still runs: a process with its id exists and has the same start time.
    pub fn is_running(&self) -> bool {
        std::fs::read(format!("/proc/{}/stat", self.pid)).is_ok_and(|stat| {
            let is_zombie = stat
                .rsplit(|&byte| byte == b')')
                .next()
                .is_some_and(|rest| rest.starts_with(b" Z"));
            file::start_in_stat(&stat) == self.start && !is_zombie
        })
    }

    /// Event classes that the process has registered.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn classes(&self) -> io::Result<Vec<ClassState>> {
        let mut classes = self.places()?;
        classes.retain(|class| !class.name.is_empty());
        Ok(classes)
    }

    /// All slots of classes, including those that a process which changed its user has not
    /// registered again.
    fn places(&self) -> io::Result<Vec<ClassState>> {
        let mut count = [0; 4];
        self.file.read_exact_at(&mut count, CLASSES as u64)?;
        let count = (u32::from_ne_bytes(count) as usize).min(MOST_CLASSES);
        let mut states = vec![0; count];
        self.file.read_exact_at(&mut states, STATES as u64)?;
        states
            .iter()
            .enumerate()
            .map(|(at, &state)| {
                let mut name = [0; NAME];
                self.file
                    .read_exact_at(&mut name, (NAMES + at * NAME) as u64)?;
                let name = String::from_utf8_lossy(until_nul(&name)).into_owned();
                Ok(ClassState {
                    name,
                    enabled: state != 0,
                })
            })
            .collect()
    }

    /// Enables or disables the classes that match the pattern, including classes registered later.
    /// Returns how many registered classes changed.
    ///
    /// # Errors
    /// If the file cannot be written, or has no room for another rule.
    pub fn switch(&self, pattern: &str, on: bool) -> io::Result<usize> {
        let _lock = Lock::take(&self.file)?;
        if self.has_ended()? {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the recording is over",
            ));
        }
        let mut rules = vec![0; STATES - RULES];
        self.file.read_exact_at(&mut rules, RULES as u64)?;
        let rules = with_rule(until_nul(&rules), pattern, on);
        if rules.len() >= STATES - RULES {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "too many patterns",
            ));
        }
        let mut whole = rules.clone();
        whole.resize(STATES - RULES, 0);
        self.file.write_all_at(&whole, RULES as u64)?;
        let mut changed = 0;
        for (at, class) in self.places()?.iter().enumerate() {
            let is_on = !class.name.is_empty() && file::decide(&rules, class.name.as_bytes());
            if is_on != class.enabled {
                self.file
                    .write_all_at(&[is_on.into()], (STATES + at) as u64)?;
                changed += 1;
            }
        }
        Ok(changed)
    }

    /// Disables all classes, registered or not, for good: the process records no more events.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn end(&self) -> io::Result<()> {
        let _lock = Lock::take(&self.file)?;
        // A pattern such as `*` does not disable classes that are enabled by name only. So all
        // rules are removed, and none can be added.
        self.file.write_all_at(&[1], ENDED as u64)?;
        self.file.write_all_at(&[0; STATES - RULES], RULES as u64)?;
        let count = self.places()?.len();
        self.file.write_all_at(&vec![0; count], STATES as u64)
    }

    fn has_ended(&self) -> io::Result<bool> {
        let mut ended = [0];
        self.file.read_exact_at(&mut ended, ENDED as u64)?;
        Ok(ended != [0])
    }
}

/// Enables or disables classes in all processes of a session, including processes that start later.
/// Returns how many classes changed.
///
/// # Errors
/// If a control file or `probe.conf` cannot be written, there are too many patterns, or the
/// recording is over.
pub fn switch_session(session: &Path, pattern: &str, on: bool) -> io::Result<usize> {
    // First, so that a process that starts meanwhile reads the new rule.
    conf::switch(session, pattern, on)?;
    let mut changed = 0;
    for trace in traces(session)? {
        match Control::open(&trace) {
            Ok(control) => changed += control.switch(pattern, on)?,
            // Not created by a process with probes.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Err(error),
        }
    }
    Ok(changed)
}

/// Ends a recording, irreversibly: no process that runs, or starts later, records events or
/// lengthens a file.
///
/// # Errors
/// If `probe.conf` or a control file cannot be written; the remaining files are written
/// nevertheless.
pub fn end_session(session: &Path) -> io::Result<()> {
    let mut ended = conf::end(session);
    for trace in traces(session)? {
        ended = ended.and(Control::open(&trace).and_then(|control| control.end()));
    }
    ended
}

/// Appends a rule to the rules; it replaces earlier rules with the same pattern.
fn with_rule(rules: &[u8], pattern: &str, on: bool) -> Vec<u8> {
    let is_other = |line: &&[u8]| line.get(1..).is_some_and(|old| old != pattern.as_bytes());
    let mut lines: Vec<&[u8]> = rules
        .split(|&byte| byte == b'\n')
        .filter(is_other)
        .collect();
    let rule = format!(
        "{}{}",
        if on { '+' } else { '-' },
        pattern.replace('\n', "")
    );
    lines.push(rule.as_bytes());
    let mut text = lines.join(&b'\n');
    text.push(b'\n');
    text
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Number of attempts to take a lock; the pause between attempts grows.
const MOST_TRIES: u32 = 1000;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

struct Lock<'a>(&'a File);

impl<'a> Lock<'a> {
    /// Waits for the lock, but not forever: its holder may be stopped.
    fn take(file: &'a File) -> io::Result<Lock<'a>> {
        for _ in 0..MOST_TRIES {
            // SAFETY: an open file.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
                break;
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            std::thread::sleep(BETWEEN_TRIES);
        }
        Ok(Lock(file))
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // SAFETY: an open file.
        unsafe {
            libc::flock(self.0.as_raw_fd(), libc::LOCK_UN);
        }
    }
}
