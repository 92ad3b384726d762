//! Output of results to standard output or a file, in large pieces.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::failure::{Failure, INTERRUPTED as INTERRUPTED_CODE};
use crate::part_file::PartFile;
use crate::settings;

/// Writes a line to standard error. Unlike `eprintln`, it does not panic if standard error is
/// closed. A command that restarts does not repeat lines.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::output::say_once(&$crate::terminal_text::message(&format!($($text)*)))
    };
}
pub(crate) use say;

/// Lines that were written to standard error.
#[derive(Default)]
struct Said {
    /// Lines written before the command restarted.
    before: HashSet<String>,
    since: HashSet<String>,
}

static SAID: LazyLock<Mutex<Said>> = LazyLock::new(Mutex::default);

fn said() -> MutexGuard<'static, Said> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a line to standard error, unless the line was written before the command restarted. With
/// `--quiet`, only errors are written.
pub(crate) fn say_once(line: &str) {
    if line.starts_with("error:") || !settings::is_quiet() {
        say_reason(line);
    }
}

/// Writes the reason for an exit code to standard error, even with `--quiet`.
pub(crate) fn say_reason(line: &str) {
    let (label, style) = match line.split_once(':') {
        Some((label @ "warning", _)) => (label, AnsiColor::Yellow.on_default().bold()),
        Some((label @ "error", _)) => (label, AnsiColor::Red.on_default().bold()),
        _ => ("", Style::new()),
    };
    let mut said = said();
    if !said.before.contains(line) {
        let style = match settings::has_coloured_messages() {
            true => style,
            false => Style::new(),
        };
        let rest = &line[label.len()..];
        let _ = writeln!(io::stderr(), "{style}{label}{style:#}{rest}");
        said.since.insert(line.to_owned());
    }
}

/// Prepares a restart: lines that have been written are not repeated.
pub(crate) fn restart() {
    let mut said = said();
    said.before = std::mem::take(&mut said.since);
}

/// Number of bytes that are gathered before a write.
pub(crate) const PIECE: usize = 64 * 1024;

/// An open output. An unfinished file is removed.
pub(crate) struct Output {
    target: Box<dyn Write>,
    terminal: bool,
    part: Option<PartFile>,
}

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Yes,
    /// The reader has closed the pipe: the command ends without an error.
    Closed,
}

impl Output {
    /// Opens standard output, or a file if a path other than `-` is given.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path.filter(|path| *path != Path::new("-")) {
            None => Ok(Output {
                target: Box::new(io::stdout()),
                terminal: io::stdout().is_terminal(),
                part: None,
            }),
            Some(path) => {
                // An interrupt must be noticed from the moment the temporary file exists.
                interruption();
                let (file, part) = PartFile::create(path)?;
                Ok(Output {
                    target: Box::new(file),
                    terminal: false,
                    part,
                })
            }
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    pub(crate) fn has_colours(&self) -> bool {
        settings::has_colours(self.terminal)
    }

    /// Writes and flushes all bytes.
    ///
    /// # Errors
    /// When the write fails for a reason other than a closed pipe.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Written, Failure> {
        written(
            self.target
                .write_all(bytes)
                .and_then(|()| self.target.flush()),
        )
    }

    /// Completes the output: a file gets its name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        self.part.map_or(Ok(()), PartFile::finish)
    }

    /// Writes text to standard output.
    ///
    /// # Errors
    /// As [`Output::write`].
    pub(crate) fn print(text: &str) -> Result<Written, Failure> {
        Output::open(None)?.write(text.as_bytes())
    }

    /// Writes a value as JSON, in pieces: its text may be larger than the value in memory.
    ///
    /// # Errors
    /// As [`Output::write`].
    pub(crate) fn write_json(&mut self, value: &impl Serialize) -> Result<Written, Failure> {
        let mut pieces = BufWriter::with_capacity(PIECE, &mut self.target);
        let json = serde_json::to_writer_pretty(&mut pieces, value).map_err(io::Error::from);
        let ended = json.and_then(|()| pieces.write_all(b"\n"));
        let (target, left) = pieces.into_parts();
        written(
            ended
                .and_then(|()| target.write_all(&left.unwrap_or_default()))
                .and_then(|()| target.flush()),
        )
    }
}

/// Writes a file, which gets its name when it is complete. A pipe or a device is written directly.
///
/// # Errors
/// When the file cannot be written; a previous file of that name is left unchanged.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace_with(path, |out| {
        out.write_all(bytes)
            .map_err(|error| cannot_be_written(path, &error))
    })
}

/// As [`replace`], but with output written piece by piece.
///
/// # Errors
/// Also those of `write`, and when the user interrupts it.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut Pieces) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let interrupted = interruption();
    let (file, part) = PartFile::create(path)?;
    let mut out = BufWriter::with_capacity(PIECE, Interruptible { file, interrupted });
    let failed = |error: io::Error| cannot_be_written(path, &error);
    let written = write(&mut out).and_then(|()| out.flush().map_err(failed));
    // The rest of the buffer is useless after an error.
    let (out, _) = out.into_parts();
    let is_interrupted = out.interrupted.load(Ordering::Relaxed);
    end_at_once();
    match is_interrupted {
        true => Err(Failure::interrupted()),
        false => written.and_then(|()| part.map_or(Ok(()), PartFile::finish)),
    }
}

/// A file that is written in pieces.
pub(crate) type Pieces = BufWriter<Interruptible>;

/// A file that refuses further output after the user has interrupted the program.
pub(crate) struct Interruptible {
    file: File,
    interrupted: Arc<AtomicBool>,
}

impl Write for Interruptible {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.interrupted.load(Ordering::Relaxed) {
            // Not `Interrupted`, which asks the caller to try again.
            true => Err(io::Error::other("interrupted")),
            false => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

pub(crate) fn cannot_be_written(path: &Path, error: &io::Error) -> Failure {
    Failure::output(format!("{}: cannot be written: {error}", path.display()))
}

/// A closed pipe is not a failure.
fn written(result: io::Result<()>) -> Result<Written, Failure> {
    match result {
        Ok(()) => Ok(Written::Yes),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::Closed),
        Err(error) => Err(Failure::output(format!(
            "the output cannot be written: {error}"
        ))),
    }
}

/// Set when the user interrupts the program while it polls for interrupts.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether the program polls for interrupts; otherwise an interrupt ends it.
static IS_LOOKED_FOR: AtomicBool = AtomicBool::new(false);

/// Installs the handler for Ctrl-C.
fn handle() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a handler Ctrl-C ends the program at once, which is acceptable.
        let _ = ctrlc::set_handler(|| {
            INTERRUPTED.store(true, Ordering::Relaxed);
            if !IS_LOOKED_FOR.load(Ordering::Relaxed) {
                crate::imported::clean();
                std::process::exit(INTERRUPTED_CODE.into());
            }
        });
    });
}

/// Starts polling: returns a flag that is set when the user interrupts the program.
pub(crate) fn interruption() -> Arc<AtomicBool> {
    IS_LOOKED_FOR.store(true, Ordering::Relaxed);
    handle();
    INTERRUPTED.clone()
}

/// From now on an interrupt removes the temporary files and ends the program.
pub(crate) fn end_cleanly() {
    handle();
}

/// Stops polling: the next interrupt ends the program.
pub(crate) fn end_at_once() {
    IS_LOOKED_FOR.store(false, Ordering::Relaxed);
}
