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
    may_be_of_indexes: bool,
}

impl From<FoldError> for Failure {
    fn from(error: FoldError) -> Failure {
        match error {
            FoldError::Cancelled => Failure::interrupted(),
            FoldError::WrongIndexes(_) => Failure {
                code: DAMAGED,
                message: error.to_string(),
                may_be_of_indexes: true,
            },
        }
    }
}

impl Failure {
    /// The command line asks for what cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure {
            code: USAGE,
            message: message.into(),
            may_be_of_indexes: false,
        }
    }

    /// There is no trace.
    pub(crate) fn nothing_readable(message: impl Into<String>) -> Self {
        Failure {
            code: NOTHING_READABLE,
            message: message.into(),
            may_be_of_indexes: false,
        }
    }

    /// The results cannot be written.
    pub(crate) fn output(message: impl Into<String>) -> Self {
        Failure {
            code: DAMAGED,
            message: message.into(),
            may_be_of_indexes: false,
        }
    }

    /// A command that was to be run cannot be: 127 if it is not there, 126 else, as shells have it.
    pub(crate) fn command(error: &std::io::Error, message: impl Into<String>) -> Self {
        Failure {
            code: match error.kind() {
                std::io::ErrorKind::NotFound => NOT_FOUND,
                _ => NOT_RUN,
            },
            message: message.into(),
            may_be_of_indexes: false,
        }
    }

    /// What another process said, with the exit code that it had.
    pub(crate) fn said(code: u8, message: impl Into<String>) -> Self {
        Failure {
            code,
            message: message.into(),
            may_be_of_indexes: false,
        }
    }

    /// The user stopped it.
    pub(crate) fn interrupted() -> Self {
        Failure {
            code: INTERRUPTED,
            message: "interrupted".to_owned(),
            may_be_of_indexes: false,
        }
    }

    /// True if the command may succeed when it restarts without the wrong indexes of stream files.
    pub(crate) fn may_be_of_indexes(&self) -> bool {
        self.may_be_of_indexes
    }

    /// The same failure, which wrong indexes of stream files may have caused.
    pub(crate) fn unless_of_indexes(self) -> Self {
        Failure {
            may_be_of_indexes: true,
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
