//! Starts and stops the recorders as one recording, in one directory.
//!
//! In: what is recorded, and of which processes ([`SessionOptions`]). Out: a directory with a trace
//! of the kernel (`kernel/`) and one of each process that has probes (`ust/`), laid out as LTTng
//! does. Promise: nothing of a command to be recorded is missed ([`Launched`]).
//!
//! A command is launched by this same program, which waits at a named pipe until recording has
//! begun and then becomes the command (`launch`). No file descriptor is inherited, and the end of
//! the pipe shows that the command runs, or why it does not. The command ignores the signals, and
//! lacks the standard streams, that were ignored or closed when the recorder was started
//! (`dispositions`, `standard_streams`; the only `unsafe` code of the crate).
//!
//! A session in the background is a process with a socket ([`control`]). When a recording ends,
//! `probe.conf` and the control files of processes are marked, so that programs that go on, or
//! begin later, write no more events (`probes`).

pub mod control;
mod dispositions;
mod file_size;
mod launch;
pub mod logs;
mod perf_maps;
mod probes;
mod session;
mod signals;
mod standard_streams;
mod symbols;
mod target;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;
use tracebraid_kernel_recorder::RecordError;

pub use file_size::file_size_limit;
pub use launch::{Launched, is_in_background, put_in_background, wait_and_become};
pub use probes::{Modules, Probes, finish_probes, forget_probes};
pub use session::{Session, SessionOptions, SessionSummary};
pub use signals::{Received, Signals};
pub use target::Target;
pub use tracebraid_kernel_recorder as kernel;
/// Switching event classes of programs that run.
pub use tracebraid_probe::control as classes;

pub use tracebraid_probe::finish::Finished;

/// What can keep a session from being recorded.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The recorder of kernel events fails.
    #[error(transparent)]
    Kernel(#[from] RecordError),
    /// A command cannot be launched.
    #[error("the command cannot be launched: {source}")]
    Launch {
        /// Why.
        source: io::Error,
    },
    /// A command is not there, or cannot be run.
    #[error("{}: {source}", name.display())]
    Command {
        /// Its name.
        name: OsString,
        /// Why.
        source: io::Error,
    },
    /// There is no session of that name.
    #[error("there is no session `{0}`: see `tracebraid list`")]
    NoSession(String),
    /// There is one, which does not answer.
    #[error("session `{0}` does not answer: it is stopped, or very busy")]
    Silent(String),
    /// There is one already.
    #[error(
        "there is a session `{0}` already: stop it by `tracebraid stop {0}`, or take another name"
    )]
    Exists(String),
    /// This cannot be the name of a session.
    #[error("`{0}` cannot be a session's name: letters, digits, - _ and . can")]
    Name(String),
    /// A session cannot do what it was asked for.
    #[error("{0}")]
    Refused(String),
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It is a thread.
    #[error("{thread} is a thread of process {process}: give --pid {process}")]
    Thread {
        /// Which.
        thread: u32,
        /// Of which process.
        process: u32,
    },
    /// A file cannot be made.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}
