//! The running thread on a CPU, and the activity of a thread that only earlier chunks know.

use serde::{Deserialize, Serialize};

use crate::memory::Done;

/// The state of a CPU in a chunk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MemoryCpu {
    /// Activity of the thread that ran when the chunk began.
    pub(super) head: Option<Box<Done>>,
    pub(super) now: Running,
}

/// The running thread on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Running {
    /// The thread that ran when the chunk began.
    #[default]
    Before,
    Thread(i32),
    /// Unknown.
    Unknown,
}
