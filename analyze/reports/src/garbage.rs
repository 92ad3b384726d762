//! Memory that is no longer needed.
//!
//! Freeing many small objects takes about as long as making them. Where only one thread can work,
//! as while slices are composed, the objects are kept, and the thread that plays the next slice
//! frees them.

use std::any::Any;
use std::sync::Arc;

use tracebraid_engine::parallel;

/// Objects to free later.
#[derive(Clone, Debug, Default)]
pub(crate) struct Garbage(Vec<Arc<dyn Any + Send + Sync>>);

impl Garbage {
    pub(crate) fn put(&mut self, garbage: impl Any + Send + Sync) {
        self.0.push(Arc::new(garbage));
    }

    /// Removes and returns all objects; dropping the result frees them.
    pub(crate) fn take(&mut self) -> Garbage {
        std::mem::take(self)
    }

    /// Frees all objects, at the end of a fold.
    pub(crate) fn free(self) {
        parallel::map_large(self.0, drop);
    }
}
