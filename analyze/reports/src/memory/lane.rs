//! Who runs on a CPU, and what was done there by whom only the chunks before know.

use serde::{Deserialize, Serialize};

use crate::memory::Done;

/// A CPU in a chunk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lane {
    /// By whoever ran when the chunk began.
    pub(super) head: Option<Box<Done>>,
    /// Who runs, if that is known; none: whoever ran when the chunk began.
    pub(super) now: Option<Option<i32>>,
}
