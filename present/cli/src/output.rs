//! Where results go: standard output or a file, written in large pieces.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};

use serde::Serialize;

use crate::failure::{Failure, INTERRUPTED as INTERRUPTED_CODE};

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
    /// Before the command restarted.
    before: HashSet<String>,
    since: HashSet<String>,
}

static SAID: LazyLock<Mutex<Said>> = LazyLock::new(Mutex::default);

fn said() -> MutexGuard<'static, Said> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes a line to standard error, unless the line was written before the command restarted.
pub(crate) fn say_once(line: &str) {
    let mut said = said();
    if !said.before.contains(line) {
        let _ = writeln!(io::stderr(), "{line}");
        said.since.insert(line.to_owned());
    }
}

/// Restarts: lines that were written until now are not repeated.
pub(crate) fn restart() {
    let mut said = said();
    said.before = std::mem::take(&mut said.since);
}

/// Bytes that are gathered before they are written.
pub(crate) const PIECE: usize = 64 * 1024;

/// Whether colours are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColourChoice {
    /// Never.
    Never,
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
}

/// An open output.
pub(crate) struct Output {
    target: Box<dyn Write>,
    terminal: bool,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was written.
    Yes,
    /// Nobody reads any more: end quietly.
    Closed,
}

impl Output {
    /// Standard output, or that file.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        match path {
            None => Ok(Output {
                target: Box::new(io::stdout()),
                terminal: io::stdout().is_terminal(),
            }),
            Some(path) => {
                let file = File::create(path).map_err(|error| {
                    Failure::output(format!("{}: cannot be written: {error}", path.display()))
                })?;
                Ok(Output {
                    target: Box::new(file),
                    terminal: false,
                })
            }
        }
    }

    /// True if a person looks at it.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether to use colours.
    pub(crate) fn colours(&self, choice: ColourChoice) -> bool {
        match choice {
            ColourChoice::Never => false,
            ColourChoice::Always => true,
            ColourChoice::Auto => {
                self.terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            }
        }
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When that is impossible for another reason than that the reader has gone.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<Written, Failure> {
        written(
            self.target
                .write_all(bytes)
                .and_then(|()| self.target.flush()),
        )
    }

    /// Writes lines to standard output.
    ///
    /// # Errors
    /// As [`Output::write`].
    pub(crate) fn print(text: &str) -> Result<Written, Failure> {
        Output::open(None)?.write(text.as_bytes())
    }

    /// Writes a value as JSON, in pieces: all of its text may be larger than what it is made from.
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

/// Writes a file, which has its name when it is whole; what is no plain file (a pipe, a device) is
/// written as it is.
///
/// # Errors
/// When it cannot be written: what had that name before is then still there.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    replace_with(path, |out| {
        out.write_all(bytes)
            .map_err(|error| cannot_be_written(path, &error))
    })
}

/// As `replace`, but with output written piece by piece.
///
/// # Errors
/// Those of `write` too; and when the user interrupts it.
pub(crate) fn replace_with(
    path: &Path,
    write: impl FnOnce(&mut Pieces) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let is_special = std::fs::metadata(path).is_ok_and(|known| !known.is_file());
    let mut part = path.file_name().unwrap_or_default().to_owned();
    part.push(".part");
    let part = if is_special {
        path.to_owned()
    } else {
        path.with_file_name(part)
    };
    let failed = |error: io::Error| cannot_be_written(path, &error);
    let interrupted = interruption();
    let written = File::create(&part).map_err(failed).and_then(|file| {
        let mut out = BufWriter::with_capacity(PIECE, Interruptible { file, interrupted });
        let done = write(&mut out).and_then(|()| out.flush().map_err(failed));
        // The rest of the buffer is useless after an error.
        let (out, _) = out.into_parts();
        match out.interrupted.load(Ordering::Relaxed) {
            true => Err(Failure::interrupted()),
            false => done,
        }
    });
    end_at_once();
    if is_special {
        return written;
    }
    let done = written.and_then(|()| std::fs::rename(&part, path).map_err(failed));
    if done.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    done
}

/// A file that is written in pieces.
pub(crate) type Pieces = BufWriter<Interruptible>;

/// A file that refuses further output after an interrupt by the user.
pub(crate) struct Interruptible {
    file: File,
    interrupted: Arc<AtomicBool>,
}

impl Write for Interruptible {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.interrupted.load(Ordering::Relaxed) {
            // Not `Interrupted`, which means: try again.
            true => Err(io::Error::other("interrupted")),
            false => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The failure of a file that cannot be written.
pub(crate) fn cannot_be_written(path: &Path, error: &io::Error) -> Failure {
    Failure::output(format!("{}: cannot be written: {error}", path.display()))
}

/// What became of it.
fn written(result: io::Result<()>) -> Result<Written, Failure> {
    match result {
        Ok(()) => Ok(Written::Yes),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Written::Closed),
        Err(error) => Err(Failure::output(format!(
            "the output cannot be written: {error}"
        ))),
    }
}

/// True when the user has interrupted the program, and somebody looks for that.
static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Somebody looks whether the user has interrupted the program.
static IS_LOOKED_FOR: AtomicBool = AtomicBool::new(false);

/// What is to be done when the user interrupts the program.
fn handle() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a handler Ctrl-C ends the program at once, which is sound too.
        let _ = ctrlc::set_handler(|| {
            INTERRUPTED.store(true, Ordering::Relaxed);
            if !IS_LOOKED_FOR.load(Ordering::Relaxed) {
                crate::imported::clean();
                std::process::exit(INTERRUPTED_CODE.into());
            }
        });
    });
}

/// Becomes true when the user interrupts the program.
pub(crate) fn interruption() -> Arc<AtomicBool> {
    IS_LOOKED_FOR.store(true, Ordering::Relaxed);
    handle();
    INTERRUPTED.clone()
}

/// From now on an interruption ends the program, and nothing is left of what it made for itself.
pub(crate) fn end_cleanly() {
    handle();
}

/// Nobody looks for interruptions any more: the next one ends the program.
pub(crate) fn end_at_once() {
    IS_LOOKED_FOR.store(false, Ordering::Relaxed);
}
