//! Starts and stops the recorders as one recording, in one directory.
//!
//! In: the events to record, and the processes ([`SessionOptions`]). Out: a directory with a trace
//! of the kernel (`kernel/`) and a trace of each process with probes (`ust/`), laid out as by
//! LTTng. Promise: a command is recorded from its first instruction ([`Launched`]).
//!
//! A command is launched by this same program, which waits at a named pipe until recording has
//! begun and then becomes the command (`launch`). No file descriptor is inherited, and the end of
//! the pipe shows that the command runs, or why it does not. The command inherits the signals
//! ignored and the standard streams closed when the recorder was started (`dispositions`,
//! `standard_streams`; the only `unsafe` code of the crate).
//!
//! A background session is a process with a socket ([`control`]). When a recording ends,
//! `probe.conf` and the control files of processes are marked, so that programs that continue, or
//! start later, write no more events (`probes`).

pub mod control;
mod dispositions;
mod file_size;
mod launch;
pub mod logs;
mod perf_maps;
pub mod probe_cost;
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
pub use probes::{
    Levels, Modules, Probes, finish_probes, forget_probes, is_cuda_taken, records_gpu,
    records_levels,
};
pub use session::{Session, SessionOptions, SessionSummary};
pub use signals::{Received, Signals};
pub use target::Target;
pub use tracebraid_kernel_recorder as kernel;
/// Enables and disables event classes of running programs.
pub use tracebraid_probe::control as classes;

pub use tracebraid_probe::finish::Finished;

/// Why a session cannot be recorded or controlled.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The recorder of kernel events failed.
    #[error(transparent)]
    Kernel(#[from] RecordError),
    /// A command cannot be launched.
    #[error("cannot launch the command: {source}")]
    Launch {
        /// Cause.
        source: io::Error,
    },
    /// A command does not exist or cannot be executed.
    #[error("{}: {source}", name.display())]
    Command {
        /// The command as given.
        name: OsString,
        /// Cause.
        source: io::Error,
    },
    /// No session has this name.
    #[error("no session is named `{0}`: `tracebraid list` prints the sessions")]
    NoSession(String),
    /// The session exists and does not answer.
    #[error("session `{0}` does not answer: its process is stopped or very busy")]
    Silent(String),
    /// A session of this name exists already.
    #[error(
        "session `{0}` exists already: stop it with `tracebraid stop {0}`, or choose another name"
    )]
    Exists(String),
    /// The name of a session is invalid.
    #[error("invalid session name `{0}`: use only letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// A session rejected a request, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The process does not exist.
    #[error("no process has the id {0}")]
    NoProcess(u32),
    /// The number is the id of a thread, not of a process.
    #[error("{thread} is a thread of process {process}: give --pid {process}")]
    Thread {
        /// Thread id.
        thread: u32,
        /// Id of the process that the thread belongs to.
        process: u32,
    },
    /// A file cannot be created, read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}
