//! Failures of commands: a message and an exit code.

use std::process::ExitCode;

use tracebraid_engine::FoldError;

use crate::output::say;

/// Exit code for damage under `--strict`, and for output that cannot be written.
pub(crate) const DAMAGED: u8 = 1;
/// Exit code for wrong usage.
pub(crate) const USAGE: u8 = 2;
/// Exit code if no input could be read.
pub(crate) const NOTHING_READABLE: u8 = 3;
/// Exit code if a condition of `compare --fail-if` holds.
pub(crate) const REGRESSION: u8 = 4;
/// Exit code after Ctrl-C, as in shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// Exit codes of shells for a command that does not exist and for one that cannot be executed.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// An error message with its exit code.
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

    /// The command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::new(USAGE, message)
    }

    /// No trace could be read.
    pub(crate) fn nothing_readable(message: impl Into<String>) -> Self {
        Failure::new(NOTHING_READABLE, message)
    }

    /// The results cannot be written.
    pub(crate) fn output(message: impl Into<String>) -> Self {
        Failure::new(DAMAGED, message)
    }

    /// A command could not be started: exit code 127 if it does not exist, else 126, as in shells.
    pub(crate) fn command(error: &std::io::Error, message: impl Into<String>) -> Self {
        let code = match error.kind() {
            std::io::ErrorKind::NotFound => NOT_FOUND,
            _ => NOT_RUN,
        };
        Failure::new(code, message)
    }

    /// The message and the exit code of another process.
    pub(crate) fn said(code: u8, message: impl Into<String>) -> Self {
        Failure::new(code, message)
    }

    /// The user interrupted the command.
    pub(crate) fn interrupted() -> Self {
        Failure::new(INTERRUPTED, "interrupted")
    }

    /// Whether the command may succeed if it restarts without the wrong indexes of stream files.
    pub(crate) fn restarts(&self) -> bool {
        self.restarts
    }

    /// Marks the failure as possibly caused by wrong indexes of stream files.
    pub(crate) fn restarting(self) -> Self {
        Failure {
            restarts: true,
            ..self
        }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Prints the message and returns the exit code.
    pub(crate) fn report(self) -> ExitCode {
        say!("error: {}", crate::origins::named(&self.message));
        ExitCode::from(self.code)
    }
}
