//! Options of the report.

use tracebraid_follow::{CallNames, Limits, Views};
use tracebraid_language::glob::Glob;

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct FilesOptions {
    /// The views.
    pub views: Views,
    /// Restricts calls by size in bytes; calls without a size always match.
    pub sizes: Limits,
    /// Patterns of file names; empty: all.
    pub paths: Vec<Glob>,
    /// The selected system calls.
    pub calls: CallNames,
}

impl From<Views> for FilesOptions {
    fn from(views: Views) -> FilesOptions {
        FilesOptions {
            views,
            ..FilesOptions::default()
        }
    }
}
