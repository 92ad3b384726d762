//! Progress, cancellation and timings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::timings::Timings;

/// Shared between the engine and whoever watches it.
#[derive(Debug, Default)]
pub struct Control {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
    timings: OnceLock<Arc<Timings>>,
}

impl Control {
    /// Collects the times of all folds from now on.
    pub fn collect(&self, timings: Arc<Timings>) {
        let _ = self.timings.set(timings);
    }

    pub(crate) fn timings(&self) -> Option<&Timings> {
        self.timings.get().map(Arc::as_ref)
    }

    /// Bytes of trace that have been folded.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Bytes of trace that will be.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Stops the fold as soon as the chunks under way are done.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True if it has been stopped.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn plan(&self, bytes: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}
