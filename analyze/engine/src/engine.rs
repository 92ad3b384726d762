//! Folding a trace set: from the plan of chunks to the report.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::trace::TraceSet;

use crate::analysis::Analysis;
use crate::chunk::{Chunk, Cut, DAWN, DUSK, Plan};
use crate::control::Control;
use crate::edges;
use crate::feed::{Feed, Tables};
use crate::merge::Merge;
use crate::schedule;
use crate::timings::{ChunkTimes, Meter, Stopwatch};

/// Parameters of a fold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Number of threads; 0 for the number of CPUs available.
    pub threads: usize,
    /// Size of packets in bytes at which a chunk is closed; 0 for the default of the traces.
    pub chunk_bytes: u64,
    /// Bytes of merged chunks after which a slice of time is taken out of the state
    /// ([`Analysis::slices`]); 0 for the default of the chunks.
    pub slice_bytes: u64,
    /// Packets that begin at or after this time are not read.
    pub until: Option<Timestamp>,
    /// Event records before this time are not passed on, and packets that end before it are not
    /// read: a caller that resumes has already processed them. Analyses that scan packets
    /// themselves get packets that cross this time as a whole.
    pub since: Option<Timestamp>,
    /// Continue if the index of a stream file contradicts the file. For reports that do not depend
    /// on packet times.
    pub accepts_wrong_indexes: bool,
    /// Cut groups of one stream into slices of time too, as groups of several streams are.
    pub by_time: bool,
}

/// Result of a fold.
#[derive(Debug)]
pub struct Outcome<R> {
    /// Report of the analysis.
    pub report: R,
    /// Damage found while reading, in the order of the plan.
    pub damage: Vec<Damage>,
}

/// Reason why a fold has no report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// [`Control::cancel`] was called.
    #[error("cancelled")]
    Cancelled,
    /// Stream files whose indexes contradict them, ordered by path; there may be more. The plan
    /// depends on the indexes. Traces opened with
    /// [`IndexCheck::Every`](tracebraid_ctf::index::IndexCheck) do not use such indexes.
    #[error("{}", wrong_indexes(.0))]
    WrongIndexes(Vec<PathBuf>),
}

fn wrong_indexes(files: &[PathBuf]) -> String {
    let files: Vec<String> = files
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    format!(
        "{}: the index contradicts the packet heads",
        files.join(", ")
    )
}

impl FoldError {
    /// The error for damage, if any of the damage contradicts an index.
    pub(crate) fn of_damage(damage: &[Damage]) -> Option<FoldError> {
        let files = damage.iter().filter(|damage| damage.contradicts_index);
        let files: BTreeSet<PathBuf> = files.map(|damage| damage.path.clone()).collect();
        (!files.is_empty()).then(|| FoldError::WrongIndexes(files.into_iter().collect()))
    }
}

/// Default size of a slice of time, in bytes of merged chunks. The cost of composing a slice
/// depends on the number of its threads, descriptors and the like: longer slices cost less, shorter
/// ones need less memory.
const SLICE_BYTES: u64 = 16 << 20;

/// Folds a trace set.
///
/// # Errors
/// Fails when `control` cancels the fold, and when an index contradicts its stream file, unless
/// `options` accept that.
pub fn fold<A: Analysis>(
    set: &TraceSet,
    analysis: &A,
    options: Options,
    control: &Control,
) -> Result<Outcome<A::Report>, FoldError> {
    let mut meter = Meter::new(control.timings());
    let watch = Stopwatch::start();
    let groups = analysis.groups(set);
    let cut = Cut {
        threshold: options.chunk_bytes,
        packets: analysis.lanes(),
        until: options.until.unwrap_or(DUSK),
        since: options.since.unwrap_or(DAWN),
        by_time: options.by_time,
    };
    let plan = Plan::new(set, &groups, cut);
    control.plan(plan.bytes());
    let tables = Tables::new(set, analysis);
    if !options.accepts_wrong_indexes
        && let Some(error) = FoldError::of_damage(&edges::damage(set, &groups, cut, &tables))
    {
        return Err(error);
    }
    let threads = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let threads = threads.min(plan.chunks.len()).max(1);
    let job = Job {
        set,
        analysis,
        plan: &plan,
        tables: &tables,
        control,
        accepts_wrong_indexes: options.accepts_wrong_indexes,
        is_timed: meter.is_on(),
        // Timings with one thread predict the work of several threads, which includes slices.
        is_alone: threads == 1 && !meter.is_on(),
    };
    meter.times().threads = threads;
    meter.times().plan_ns = watch.elapsed();
    let slice_bytes = match (options.slice_bytes, options.chunk_bytes) {
        (0, 0) => SLICE_BYTES,
        (0, chunk_bytes) => chunk_bytes.saturating_mul(2),
        (slice_bytes, _) => slice_bytes,
    };
    let merge = Merge::new(&job, slice_bytes, meter);
    let (merge, residents) = schedule::run(&job, merge, threads)?;
    merge.finish(residents).ok_or(FoldError::Cancelled)
}

/// The fold as all workers see it.
pub(crate) struct Job<'a, A: Analysis> {
    pub(crate) set: &'a TraceSet,
    pub(crate) analysis: &'a A,
    pub(crate) plan: &'a Plan,
    pub(crate) tables: &'a Tables,
    pub(crate) control: &'a Control,
    accepts_wrong_indexes: bool,
    pub(crate) is_timed: bool,
    /// The fold has one thread, so no other thread can play slices.
    pub(crate) is_alone: bool,
}

/// A chunk that has been folded.
pub(crate) struct Folded<A: Analysis> {
    pub(crate) partial: A::Partial,
    pub(crate) damage: Vec<Damage>,
    pub(crate) times: ChunkTimes,
}

impl<A: Analysis> Job<'_, A> {
    /// The state that stays with a worker.
    pub(crate) fn resident(&self) -> A::Partial {
        // The index marks this state as not the first chunk: the first chunk knows that nothing
        // came earlier.
        self.analysis.begin(&Chunk {
            index: usize::MAX,
            ..Chunk::nothing()
        })
    }

    /// Folds a chunk.
    ///
    /// # Errors
    /// Fails when the fold is cancelled, or an index contradicts a packet of the chunk.
    pub(crate) fn run(
        &self,
        chunk: &Chunk,
        resident: &mut A::Partial,
    ) -> Result<Folded<A>, FoldError> {
        if self.control.is_cancelled() {
            return Err(FoldError::Cancelled);
        }
        let watch = Stopwatch::start();
        let mut partial = self.analysis.begin(chunk);
        self.analysis.exchange(&mut partial, resident);
        let mut feed = Feed::new(self.set, chunk, self.tables);
        self.analysis.chunk(&mut partial, &mut feed);
        self.analysis.end(&mut partial, chunk);
        self.analysis.exchange(&mut partial, resident);
        self.control.advance(chunk.bytes);
        let damage = feed.take_damage();
        // Unmapping the files is part of the chunk's time.
        drop(feed);
        if !self.accepts_wrong_indexes
            && let Some(error) = FoldError::of_damage(&damage)
        {
            return Err(error);
        }
        let mut times = ChunkTimes {
            bytes: chunk.bytes,
            fold_ns: watch.elapsed(),
            ..ChunkTimes::default()
        };
        if self.is_timed {
            let watch = Stopwatch::start();
            times.partial_bytes = encoded_bytes(&partial);
            times.measure_ns = watch.elapsed();
        }
        Ok(Folded {
            partial,
            damage,
            times,
        })
    }
}

/// Size of a state in bytes as it would be sent over a network.
fn encoded_bytes<T: serde::Serialize>(state: &T) -> u64 {
    postcard::experimental::serialized_size(state).map_or(0, |bytes| bytes as u64)
}
