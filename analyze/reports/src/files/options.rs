//! Options of the report.

use tracebraid_follow::{By, CallNames, Groupings, Limits, Views};
use tracebraid_language::glob::Glob;

/// Groupings of durations of calls.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Operation, By::Process, By::Thread],
    usual: &[By::Operation],
};

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct FilesOptions {
    /// The views.
    pub views: Views,
    /// Only what is that large, in bytes; what has no size is as large as may be.
    pub sizes: Limits,
    /// Patterns of names of files; none: all.
    pub paths: Vec<Glob>,
    /// System calls.
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
