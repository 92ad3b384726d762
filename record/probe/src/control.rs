//! Switching event classes of running processes, from another process.
//!
//! Nothing in the traced process runs for it: its probes look at bytes of a file that both map or
//! write (`src/control/file.rs`).

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

/// An event class of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassState {
    /// `provider:event`.
    pub name: String,
    /// Whether its probes record.
    pub enabled: bool,
}

/// The traced part of a process: its trace's directory and control file.
#[derive(Debug)]
pub struct Control {
    directory: PathBuf,
    file: File,
    pid: u32,
    start: u64,
}

/// The traces that processes made in a session, in the order of their names.
///
/// # Errors
/// When the session's directory cannot be read; without any trace it is empty.
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

/// Whether there can be event classes with such names: patterns are names, `provider:event`, with
/// `*` and `?`.
///
/// # Errors
/// What is wrong with it.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let is_known = |sign: char| sign.is_ascii_alphanumeric() || "_:*?.-".contains(sign);
    match pattern.chars().find(|&sign| !is_known(sign)) {
        _ if pattern.is_empty() => Err("a pattern is empty".to_owned()),
        Some(sign) => Err(format!(
            "`{pattern}`: no name has `{sign}` in it; patterns are names with * and ?"
        )),
        None => Ok(()),
    }
}

/// Whether patterns to be switched on are for that event class.
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
    /// When there is none, or it is not one.
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

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where its trace is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether the process runs: one with its id began when it did.
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
    /// When the file cannot be read.
    pub fn classes(&self) -> io::Result<Vec<ClassState>> {
        let mut classes = self.places()?;
        classes.retain(|class| !class.name.is_empty());
        Ok(classes)
    }

    /// The same with places of classes that are not registered (again) by a process which became
    /// another user's.
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

    /// Switches classes whose names match the pattern, those that are registered later as well.
    /// Gives how many of the registered ones changed.
    ///
    /// # Errors
    /// When the file cannot be changed, or has no room for another rule.
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

    /// Switches everything off that is there or comes: the process records nothing any more.
    ///
    /// # Errors
    /// When the file cannot be changed.
    pub fn end(&self) -> io::Result<()> {
        let _lock = Lock::take(&self.file)?;
        // What is switched on only by its name is switched off by no pattern: no rule is left, and
        // none can be added.
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

/// Switches classes in all processes of a session, and in those that begin later. Gives how many
/// classes changed.
///
/// # Errors
/// When a control file or `probe.conf` cannot be changed, there are too many patterns, or the recording is over.
pub fn switch_session(session: &Path, pattern: &str, on: bool) -> io::Result<usize> {
    // First: a process that begins meanwhile finds it there.
    conf::switch(session, pattern, on)?;
    let mut changed = 0;
    for trace in traces(session)? {
        match Control::open(&trace) {
            Ok(control) => changed += control.switch(pattern, on)?,
            // That was not made by a process with probes.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {}
            Err(error) => return Err(error),
        }
    }
    Ok(changed)
}

/// Ends a recording: nothing that runs, or begins later, records any more, or makes a file longer.
/// There is no way back.
///
/// # Errors
/// When `probe.conf` or a control file cannot be changed; the others are then changed nevertheless.
pub fn end_session(session: &Path) -> io::Result<()> {
    let mut ended = conf::end(session);
    for trace in traces(session)? {
        ended = ended.and(Control::open(&trace).and_then(|control| control.end()));
    }
    ended
}

/// The rules with another one behind, in place of earlier ones on the same pattern.
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

/// How often a lock is tried to be had, and how much later each time.
const MOST_TRIES: u32 = 1000;
const BETWEEN_TRIES: Duration = Duration::from_millis(1);

/// The file's lock, until it is dropped.
struct Lock<'a>(&'a File);

impl<'a> Lock<'a> {
    /// Waits for it, but not for one who never gives it back.
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
