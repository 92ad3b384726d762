//! The scheduler: chunks to workers, partial states to one merge in the order of the plan.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;

use crate::analysis::Analysis;
use crate::chunk::{Chunk, Cut, DAWN, DUSK, Plan};
use crate::control::Control;
use crate::feed::{Feed, Tables};

/// How to fold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Threads; 0 for as many as the machine has.
    pub threads: usize,
    /// Bytes of packets from which on a chunk is closed; 0 for what suits the traces.
    pub chunk_bytes: u64,
    /// Packets that begin at or after this time are not read.
    pub until: Option<Timestamp>,
    /// Event records before this time are not given, nor packets read that end before it: whoever goes on
    /// knows what they told. Analyses that scan packets themselves get those that reach over it whole.
    pub since: Option<Timestamp>,
}

/// What a fold gives.
#[derive(Debug)]
pub struct Outcome<R> {
    /// The report.
    pub report: R,
    /// Damage that was met on the way, in the order of the plan.
    pub damage: Vec<Damage>,
}

/// Why there is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
}

/// More damage than this is counted, not kept: a trace may be damaged everywhere.
const MOST_DAMAGE: usize = 10_000;

/// Folds a trace set.
///
/// # Errors
/// When `control` was told to cancel.
pub fn fold<A: Analysis>(
    set: &TraceSet,
    analysis: &A,
    options: Options,
    control: &Control,
) -> Result<Outcome<A::Report>, FoldError> {
    let plan = Plan::new(
        set,
        &analysis.groups(set),
        Cut {
            threshold: options.chunk_bytes,
            packets: analysis.lanes(),
            until: options.until.unwrap_or(DUSK),
            since: options.since.unwrap_or(DAWN),
        },
    );
    control.plan(plan.bytes());
    let tables = Tables::new(set, analysis);
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let job = Job {
        set,
        analysis,
        plan: &plan,
        tables: &tables,
        control,
    };
    let mut merge = Merge {
        job: &job,
        state: None,
        damage: Vec::new(),
        dropped: 0,
    };
    if threads == 1 || plan.chunks.len() < 2 {
        for chunk in &plan.chunks {
            merge.add(chunk.index, job.run(chunk).ok_or(FoldError::Cancelled)?);
        }
    } else {
        parallel(&job, &mut merge, threads.min(plan.chunks.len()))?;
    }
    merge.finish().ok_or(FoldError::Cancelled)
}

struct Job<'a, A: Analysis> {
    set: &'a TraceSet,
    analysis: &'a A,
    plan: &'a Plan,
    tables: &'a Tables,
    control: &'a Control,
}

type Folded<A> = (<A as Analysis>::Partial, Vec<Damage>);

impl<A: Analysis> Job<'_, A> {
    fn run(&self, chunk: &Chunk) -> Option<Folded<A>> {
        if self.control.is_cancelled() {
            return None;
        }
        let mut partial = self.analysis.begin(chunk);
        let mut feed = Feed::new(self.set, chunk, self.tables);
        self.analysis.chunk(&mut partial, &mut feed);
        self.analysis.end(&mut partial, chunk);
        self.control.advance(chunk.bytes);
        Some((partial, feed.take_damage()))
    }
}

struct Merge<'a, A: Analysis> {
    job: &'a Job<'a, A>,
    state: Option<A::Partial>,
    damage: Vec<Damage>,
    dropped: usize,
}

impl<A: Analysis> Merge<'_, A> {
    fn add(&mut self, index: usize, (partial, mut damage): Folded<A>) {
        let analysis = self.job.analysis;
        let state = match self.state.take() {
            Some(mut state) => {
                analysis.merge(&mut state, partial);
                state
            }
            None => partial,
        };
        let state = self.state.insert(state);
        if let Some(&watermark) = self.job.plan.watermarks.get(index) {
            analysis.settle(state, watermark);
        }
        let room = MOST_DAMAGE.saturating_sub(self.damage.len());
        self.dropped += damage.len().saturating_sub(room);
        damage.truncate(room);
        self.damage.extend(damage);
    }

    fn finish(mut self) -> Option<Outcome<A::Report>> {
        let analysis = self.job.analysis;
        let state = match self.state.take() {
            Some(state) => state,
            None if self.job.control.is_cancelled() => return None,
            None => analysis.begin(&Chunk::nothing()),
        };
        // A packet that two chunks share reports its damage twice.
        let mut seen = std::collections::HashSet::new();
        self.damage.retain(|damage| seen.insert(damage.clone()));
        if self.dropped > 0 {
            let message = format!("{} more places are damaged", self.dropped);
            self.damage.push(Damage::of("(and more)", message));
        }
        Some(Outcome {
            report: analysis.finish(state),
            damage: self.damage,
        })
    }
}

impl Chunk {
    /// The chunk of a trace without packets.
    fn nothing() -> Chunk {
        let time = DAWN;
        Chunk {
            index: 0,
            group: 0,
            slices: Vec::new(),
            from: time,
            until: DUSK,
            earliest: time,
            bytes: 0,
        }
    }
}

/// Workers take chunks in the order of the plan and may run ahead of the merge by a bounded number,
/// so that a slow chunk does not let partial states pile up. Whoever brings the partial state that
/// the merge waits for merges it and all that follow: no thread exists for merging alone.
fn parallel<A: Analysis>(job: &Job<'_, A>, merge: &mut Merge<'_, A>, threads: usize) -> Result<(), FoldError>
where
    A::Partial: Send,
{
    let ahead = threads * 4;
    let next = AtomicUsize::new(0);
    let waiting = Mutex::new(Waiting {
        frontier: 0,
        parts: BTreeMap::new(),
        merging: false,
    });
    let moved = Condvar::new();
    let merge = Mutex::new(merge);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(chunk) = job.plan.chunks.get(index) else {
                return;
            };
            {
                let mut waiting = lock(&waiting);
                while index >= waiting.frontier + ahead && !job.control.is_cancelled() {
                    waiting = moved
                        .wait(waiting)
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                }
            }
            let Some(folded) = job.run(chunk) else {
                moved.notify_all();
                return;
            };
            let mut state = lock(&waiting);
            state.parts.insert(index, folded);
            if state.merging {
                continue;
            }
            state.merging = true;
            while let Some(folded) = {
                let frontier = state.frontier;
                state.parts.remove(&frontier)
            } {
                let index = state.frontier;
                drop(state);
                lock(&merge).add(index, folded);
                state = lock(&waiting);
                state.frontier = index + 1;
                moved.notify_all();
            }
            state.merging = false;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            // Nested fields are decoded by recursion.
            let _ = std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, work);
        }
        work();
    });
    if job.control.is_cancelled() {
        Err(FoldError::Cancelled)
    } else {
        Ok(())
    }
}

const STACK: usize = 16 << 20;

struct Waiting<P> {
    frontier: usize,
    parts: BTreeMap<usize, P>,
    merging: bool,
}

/// A worker that panicked leaves its chunk unmerged, which the scope reports; the data behind the
/// lock is whole all the same.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
