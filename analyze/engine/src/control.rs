//! Progress, cancellation and timings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::timings::{Stopwatch, Timings};

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

    /// Does work besides all folds, which is counted among what only one thread can do at a time.
    pub fn serially<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let watch = Stopwatch::start();
        let done = work();
        self.add_serial(name, watch.elapsed());
        done
    }

    /// Counts CPU time in nanoseconds of a thread besides those of folds.
    pub fn add_serial(&self, name: &'static str, cpu_ns: u64) {
        if let Some(timings) = self.timings() {
            timings.add_serial(name, cpu_ns);
        }
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
