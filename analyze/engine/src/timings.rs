//! CPU time of each piece of a fold, and the share of it that only one thread can do at a time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::Serialize;

/// Measures the CPU time of the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(u64);

fn nanoseconds(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    (tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(tv_nsec as u64)
}

impl Stopwatch {
    /// Starts at the CPU time of the calling thread.
    pub fn start() -> Stopwatch {
        Stopwatch(nanoseconds(ClockId::ThreadCPUTime))
    }

    /// CPU time since the start in nanoseconds; call it on the thread that started the stopwatch.
    pub fn elapsed(self) -> u64 {
        nanoseconds(ClockId::ThreadCPUTime).saturating_sub(self.0)
    }
}

/// CPU time of the steps of a chunk in nanoseconds, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ChunkTimes {
    /// Size of the chunk's packets in bytes.
    pub bytes: u64,
    /// Folding the chunk, on any thread.
    pub fold_ns: u64,
    /// Merging the partial state and taking slices out, one chunk after the other.
    pub merge_ns: u64,
    /// Size of the encoded partial state in bytes.
    pub partial_bytes: u64,
    /// Measuring `partial_bytes`, which is not part of the fold.
    #[serde(skip)]
    pub measure_ns: u64,
}

/// CPU time of the steps of a slice of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SliceTimes {
    /// Index of the chunk whose merge completed the slice.
    pub after_chunk: usize,
    /// Index, in the order of composition, of the slice whose composition produced this one; `None`
    /// if the merge alone produced it.
    pub after_slice: Option<usize>,
    /// Playing the slice, on any thread.
    pub play_ns: u64,
    /// Composing the slice with the earlier ones, one slice after the other.
    pub compose_ns: u64,
}

/// One pass over the traces.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FoldTimes {
    /// Number of worker threads.
    pub threads: usize,
    /// Wall time in nanoseconds.
    pub wall_ns: u64,
    /// CPU time of planning the chunks, in nanoseconds.
    pub plan_ns: u64,
    /// Chunks in the order of merging.
    pub chunks: Vec<ChunkTimes>,
    /// Slices in the order of composition.
    pub slices: Vec<SliceTimes>,
    /// CPU time of making the report, without its parallel loops, in nanoseconds.
    pub finish_ns: u64,
    /// CPU time of the parallel loops of the report, in nanoseconds.
    pub rows_ns: u64,
}

impl FoldTimes {
    /// CPU time of all steps in nanoseconds.
    pub fn cpu_ns(&self) -> u64 {
        let chunks = self.chunks.iter().map(|chunk| chunk.fold_ns);
        let slices = self.slices.iter().map(|slice| slice.play_ns);
        chunks.chain(slices).sum::<u64>() + self.rows_ns + self.serial_ns()
    }

    /// CPU time of the steps that only one thread can do at a time, in nanoseconds.
    pub fn serial_ns(&self) -> u64 {
        let chunks = self.chunks.iter().map(|chunk| chunk.merge_ns);
        let slices = self.slices.iter().map(|slice| slice.compose_ns);
        chunks.chain(slices).sum::<u64>() + self.plan_ns + self.finish_ns
    }
}

/// CPU time of the process in nanoseconds.
pub fn process_cpu_ns() -> u64 {
    nanoseconds(ClockId::ProcessCPUTime)
}

/// Work outside of all folds that only one thread can do at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SerialWork {
    /// Name of the work, such as `history index` or `database`.
    pub name: &'static str,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
}

/// Collects the times of all folds of a command, and of serial work outside of them.
#[derive(Debug, Default)]
pub struct Timings(Mutex<Collected>);

#[derive(Debug, Default)]
struct Collected {
    folds: Vec<FoldTimes>,
    serial: Vec<SerialWork>,
}

impl Timings {
    /// The folds so far, in the order in which they ended.
    pub fn folds(&self) -> Vec<FoldTimes> {
        self.lock().folds.clone()
    }

    /// Serial work so far, in the order in which it ended.
    pub fn serial(&self) -> Vec<SerialWork> {
        self.lock().serial.clone()
    }

    /// Discards all collected times.
    pub fn forget(&self) {
        *self.lock() = Collected::default();
    }

    fn add(&self, fold: FoldTimes) {
        self.lock().folds.push(fold);
    }

    /// Adds CPU time in nanoseconds of serial work outside of the folds.
    pub fn add_serial(&self, name: &'static str, cpu_ns: u64) {
        self.lock().serial.push(SerialWork { name, cpu_ns });
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Times of a running fold; measures nothing without a collector.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    to: Option<&'a Timings>,
    begin: Instant,
    times: FoldTimes,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(to: Option<&'a Timings>) -> Meter<'a> {
        Meter {
            to,
            begin: Instant::now(),
            times: FoldTimes::default(),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.to.is_some()
    }

    pub(crate) fn times(&mut self) -> &mut FoldTimes {
        &mut self.times
    }

    /// The fold has ended.
    pub(crate) fn end(mut self) {
        if let Some(to) = self.to {
            self.times.wall_ns = self.begin.elapsed().as_nanos() as u64;
            to.add(self.times);
        }
    }
}
