//! Options of the report.

use tracebraid_files::FileChoice;
use tracebraid_follow::{By, CallNames, Groupings, Limits, Views};
use tracebraid_kernel_model::FdType;

/// Groupings of durations of calls.
pub const GROUPINGS: Groupings = Groupings {
    known: &[By::All, By::Operation, By::Process, By::Thread],
    usual: &[By::Operation],
};

/// Names of the types of files.
pub fn type_names() -> Vec<&'static str> {
    FdType::ALL.map(FdType::name).to_vec()
}

/// Options of the report.
#[derive(Clone, Debug, Default)]
pub struct FilesOptions {
    /// The views.
    pub views: Views,
    /// Restricts calls by size in bytes; calls without a size always match.
    pub sizes: Limits,
    /// The selected files.
    pub files: FileChoice,
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
