//! Why a command ends without doing what it was asked for.

use std::process::ExitCode;

/// The exit code for damage under `--strict`, and for output that cannot be written.
pub(crate) const DAMAGED: u8 = 1;
/// The exit code for wrong usage.
pub(crate) const USAGE: u8 = 2;
/// The exit code when nothing could be read.
pub(crate) const NOTHING_READABLE: u8 = 3;
/// The exit code after Ctrl-C, as shells give it.
pub(crate) const INTERRUPTED: u8 = 130;

/// A reason, and the exit code that goes with it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// The command line asks for what cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure {
            code: USAGE,
            message: message.into(),
        }
    }

    /// There is no trace.
    pub(crate) fn nothing_readable(message: impl Into<String>) -> Self {
        Failure {
            code: NOTHING_READABLE,
            message: message.into(),
        }
    }

    /// The results cannot be written.
    pub(crate) fn output(message: impl Into<String>) -> Self {
        Failure {
            code: DAMAGED,
            message: message.into(),
        }
    }

    /// The user stopped it.
    pub(crate) fn interrupted() -> Self {
        Failure {
            code: INTERRUPTED,
            message: "interrupted".to_owned(),
        }
    }

    /// Says why, and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        eprintln!("error: {}", self.message);
        ExitCode::from(self.code)
    }
}
