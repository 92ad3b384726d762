//! Sums of composed slices, which are merged in parallel with the next slices.

use std::any::Any;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_files::FileId;

use crate::files::tally::Tally;

/// Sums of a slice's calls by the slice's numbers of files, with the files of these numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Unmerged {
    tally: Tally,
    files: Vec<FileId>,
    /// The slice's tables. Freeing them takes as long as making them, so it must not happen while
    /// composing.
    #[serde(skip)]
    _garbage: Option<Arc<dyn Any + Send + Sync>>,
}

/// The file with a number of a slice.
pub(super) fn numbered(files: &[FileId], file: FileId) -> FileId {
    let at = (file.0 as usize).checked_sub(1);
    at.and_then(|at| files.get(at)).copied().unwrap_or_default()
}

impl Unmerged {
    pub(super) fn new(
        tally: Tally,
        files: Vec<FileId>,
        garbage: impl Any + Send + Sync,
    ) -> Unmerged {
        Unmerged {
            tally,
            files,
            _garbage: Some(Arc::new(garbage)),
        }
    }

    /// Merges the sums into `tally`.
    pub(super) fn merge_into(self, tally: &mut Tally, top: usize) {
        let files = self.files;
        tally.merge(self.tally, top, |file| numbered(&files, file));
    }
}
