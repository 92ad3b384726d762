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
    /// Only what is that large, in bytes; what has no size is as large as may be.
    pub sizes: Limits,
    /// Selected files.
    pub files: FileChoice,
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
