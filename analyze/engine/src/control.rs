//! Progress, cancellation and timings.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::timings::{Stopwatch, Timings};

/// State shared between the engine and the caller that watches it.
#[derive(Debug, Default)]
pub struct Control {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
    timings: OnceLock<Arc<Timings>>,
}

impl Control {
    /// Collects the times of all later folds in `timings`.
    pub fn collect(&self, timings: Arc<Timings>) {
        let _ = self.timings.set(timings);
    }

    /// Does work outside of any fold and counts its CPU time as serial work.
    pub fn serially<T>(&self, name: &'static str, work: impl FnOnce() -> T) -> T {
        let watch = Stopwatch::start();
        let done = work();
        self.add_serial(name, watch.elapsed());
        done
    }

    /// Adds `cpu_ns` nanoseconds of serial work that was done outside of any fold.
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

    /// Bytes of trace in the whole plan.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Stops the fold as soon as the chunks in progress are done.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// True after [`cancel`](Control::cancel).
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Reports the progress of reading outside of any fold: bytes that were read, of all. 0 of 0
    /// ends it.
    pub fn progress(&self, done: u64, total: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    pub(crate) fn plan(&self, bytes: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}
