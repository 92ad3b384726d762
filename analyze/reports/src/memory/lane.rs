//! Who runs on a CPU, and what was done there by whom only the chunks before know.

use serde::{Deserialize, Serialize};

use crate::memory::Done;

/// A CPU in a chunk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct MemoryCpu {
    /// By whoever ran when the chunk began.
    pub(super) head: Option<Box<Done>>,
    pub(super) now: Running,
}

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Running {
    /// Whoever ran when the chunk began.
    #[default]
    Before,
    Thread(i32),
    /// It is not known.
    Unknown,
}
