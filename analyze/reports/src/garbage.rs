//! Memory that is not needed any more.
//!
//! Freeing many small things takes about as long as making them. Where one thread only may work, as while slices are composed, what
//! is left is kept, and freed by who plays the next slice.

use std::any::Any;
use std::sync::Arc;

use tracebraid_engine::parallel;

/// Things that are to be freed elsewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Garbage(Vec<Arc<dyn Any + Send + Sync>>);

impl Garbage {
    /// Adds something.
    pub(crate) fn put(&mut self, garbage: impl Any + Send + Sync) {
        self.0.push(Arc::new(garbage));
    }

    /// Takes all of it out; it is freed where it is dropped.
    pub(crate) fn take(&mut self) -> Garbage {
        std::mem::take(self)
    }

    /// Frees it, at the end of a fold.
    pub(crate) fn free(self) {
        parallel::map_large(self.0, drop);
    }
}
