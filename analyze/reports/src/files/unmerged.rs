//! Sums of slices that were composed: they are merged beside what is played next.

use std::any::Any;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tracebraid_files::FileId;

use crate::files::tally::Tally;

/// What the calls of a slice add up to, by the slice's files, and what these turned out to be.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Unmerged {
    tally: Tally,
    files: Vec<FileId>,
    /// What the slice was played with. To free it takes as long as to make it: that is not for who composes.
    #[serde(skip)]
    _garbage: Option<Arc<dyn Any + Send + Sync>>,
}

/// The file that has that number in a slice with these files.
pub(super) fn numbered(files: &[FileId], file: FileId) -> FileId {
    let at = (file.0 as usize).checked_sub(1);
    at.and_then(|at| files.get(at)).copied().unwrap_or_default()
}

impl Unmerged {
    pub(super) fn new(tally: Tally, files: Vec<FileId>, garbage: impl Any + Send + Sync) -> Unmerged {
        Unmerged {
            tally,
            files,
            _garbage: Some(Arc::new(garbage)),
        }
    }

    /// Adds all of it to others.
    pub(super) fn merge_into(self, tally: &mut Tally, top: usize) {
        let files = self.files;
        tally.merge(self.tally, top, |file| numbered(&files, file));
    }
}
