//! Why a command ends without doing what it was asked for.

use std::process::ExitCode;

use tracebraid_engine::FoldError;

use crate::output::say;

/// The exit code for damage under `--strict`, and for output that cannot be written.
pub(crate) const DAMAGED: u8 = 1;
/// The exit code for wrong usage.
pub(crate) const USAGE: u8 = 2;
/// The exit code when nothing could be read.
pub(crate) const NOTHING_READABLE: u8 = 3;
/// The exit code when a comparison found what it was to find: `compare --fail-if`.
pub(crate) const REGRESSION: u8 = 4;
/// The exit code after Ctrl-C, as shells give it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Exit codes of shells: of a command that is not there, and of one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// A reason, and the exit code that goes with it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    /// Wrong indexes of stream files may be the cause.
    restarts: bool,
}

impl From<FoldError> for Failure {
    fn from(error: FoldError) -> Failure {
        match error {
            FoldError::Cancelled => Failure::interrupted(),
            FoldError::WrongIndexes(_) => Failure::new(DAMAGED, error.to_string()).restarting(),
        }
    }
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Self {
        Failure {
            code,
            message: message.into(),
            restarts: false,
        }
    }

    /// The command line asks for what cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(USAGE, message)
    }

    /// There is no trace.
    pub(crate) fn nothing_readable(message: impl Into<String>) -> Self {
        Failure::new(NOTHING_READABLE, message)
    }

    /// The results cannot be written.
    pub(crate) fn output(message: impl Into<String>) -> Self {
        Failure::new(DAMAGED, message)
    }

    /// A command that was to be run cannot be: 127 if it is not there, 126 else, as shells have it.
    pub(crate) fn command(error: &std::io::Error, message: impl Into<String>) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_RUN,
        };
        Failure::new(code, message)
    }

    /// What another process said, with the exit code that it had.
    pub(crate) fn said(code: u8, message: impl Into<String>) -> Self {
        Failure::new(code, message)
    }

    /// The user stopped it.
    pub(crate) fn interrupted() -> Self {
        Failure::new(INTERRUPTED, "interrupted")
    }

    /// True if the command may succeed when it restarts without the wrong indexes of stream files.
    pub(crate) fn restarts(&self) -> bool {
        self.restarts
    }

    /// The same failure, which wrong indexes of stream files may have caused.
    pub(crate) fn restarting(self) -> Self {
        Failure {
            restarts: true,
            ..self
        }
    }

    /// Why.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Says why, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        say!("error: {}", crate::imported::named(&self.message));
        ExitCode::from(self.code)
    }
}
