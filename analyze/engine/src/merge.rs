//! The merged state of all chunks so far, in the order of the plan.

use std::collections::HashSet;

use tracebraid_ctf::damage::Damage;

use crate::analysis::{Analysis, Composition, Slice};
use crate::chunk::{Chunk, DAWN, DUSK};
use crate::engine::{Folded, Job, Outcome};
use crate::parallel;
use crate::timings::{Meter, SliceTimes, Stopwatch};

/// Damage beyond this is counted but not kept: every packet of a trace may be damaged.
const MOST_DAMAGE: usize = 10_000;

/// A slice that waits to be played.
pub(crate) struct PendingSlice<'a, A: Analysis> {
    slice: Slice<'a, A::Partial>,
    times: SliceTimes,
}

/// A slice that has been played.
pub(crate) struct PlayedSlice<'a, A: Analysis> {
    composition: Composition<'a, A::Partial>,
    times: SliceTimes,
}

impl<'a, A: Analysis> PendingSlice<'a, A> {
    fn all(
        slices: Vec<Slice<'a, A::Partial>>,
        after_chunk: usize,
        after_slice: Option<usize>,
    ) -> Vec<PendingSlice<'a, A>> {
        let times = SliceTimes {
            after_chunk,
            after_slice,
            ..SliceTimes::default()
        };
        let pending = |slice| PendingSlice { slice, times };
        slices.into_iter().map(pending).collect()
    }

    pub(crate) fn play(self, resident: &mut A::Partial) -> PlayedSlice<'a, A> {
        let watch = Stopwatch::start();
        let composition = (self.slice)(resident);
        let mut times = self.times;
        times.play_ns = watch.elapsed();
        PlayedSlice { composition, times }
    }
}

/// Merges chunks, and composes slices, one after the other.
pub(crate) struct Merge<'a, A: Analysis> {
    job: &'a Job<'a, A>,
    state: Option<A::Partial>,
    damage: Vec<Damage>,
    dropped: usize,
    /// Bytes of chunks since slices were last taken out.
    unsliced: u64,
    slice_bytes: u64,
    meter: Meter<'a>,
}

impl<'a, A: Analysis> Merge<'a, A> {
    pub(crate) fn new(job: &'a Job<'a, A>, slice_bytes: u64, meter: Meter<'a>) -> Self {
        Merge {
            job,
            state: None,
            damage: Vec::new(),
            dropped: 0,
            unsliced: 0,
            slice_bytes,
            meter,
        }
    }

    /// Merges the next chunk of the plan; returns the slices that are now complete.
    pub(crate) fn merge(&mut self, index: usize, folded: Folded<A>) -> Vec<PendingSlice<'a, A>> {
        let watch = Stopwatch::start();
        let analysis = self.job.analysis;
        let state = match self.state.take() {
            Some(mut state) => {
                analysis.merge(&mut state, folded.partial);
                state
            }
            None => folded.partial,
        };
        self.state = Some(state);
        self.unsliced += folded.times.bytes;
        let slices = self.slices(index);
        self.keep(folded.damage);
        let mut times = folded.times;
        times.merge_ns = watch.elapsed();
        self.meter.times().chunks.push(times);
        slices
    }

    fn slices(&mut self, index: usize) -> Vec<PendingSlice<'a, A>> {
        let is_last = index + 1 == self.job.plan.chunks.len();
        let (Some(state), Some(&watermark)) =
            (&mut self.state, self.job.plan.watermarks.get(index))
        else {
            return Vec::new();
        };
        // If times go back, an event recorded late may belong to a slice that was already taken. So
        // there is only one slice then.
        let is_due = self.unsliced >= self.slice_bytes && self.job.plan.is_in_order;
        if !is_due && !is_last {
            return Vec::new();
        }
        self.unsliced = 0;
        if self.job.is_alone && self.job.analysis.resolve(state, watermark) {
            return Vec::new();
        }
        PendingSlice::all(self.job.analysis.slices(state, watermark), index, None)
    }

    /// Composes the next slice; returns the slices that follow from it.
    pub(crate) fn compose(&mut self, played: PlayedSlice<'a, A>) -> Vec<PendingSlice<'a, A>> {
        let watch = Stopwatch::start();
        let mut times = played.times;
        let mut further = Vec::new();
        if let Some(state) = &mut self.state {
            (played.composition)(state);
            let composed = self.meter.times().slices.len();
            let slices = self.job.analysis.follow_up(state);
            further = PendingSlice::all(slices, times.after_chunk, Some(composed));
        }
        times.compose_ns = watch.elapsed();
        self.meter.times().slices.push(times);
        further
    }

    fn keep(&mut self, mut damage: Vec<Damage>) {
        let room = MOST_DAMAGE.saturating_sub(self.damage.len());
        self.dropped += damage.len().saturating_sub(room);
        damage.truncate(room);
        self.damage.extend(damage);
    }

    /// Makes the report, with the resident states of all workers; `None` if the fold was cancelled
    /// before the first merge.
    pub(crate) fn finish(mut self, residents: Vec<A::Partial>) -> Option<Outcome<A::Report>> {
        let watch = Stopwatch::start();
        let analysis = self.job.analysis;
        let mut state = match self.state.take() {
            Some(state) => state,
            None if self.job.control.is_cancelled() => return None,
            None => analysis.begin(&Chunk::nothing()),
        };
        // A packet that two chunks share reports its damage twice.
        let mut seen = HashSet::new();
        self.damage.retain(|damage| seen.insert(damage.clone()));
        if self.dropped > 0 {
            let message = format!("{} more findings of damage are not listed", self.dropped);
            self.damage.push(Damage::of("(and more)", message));
        }
        let (report, beside) = parallel::with_threads(residents.len(), || {
            if let Some(resident) =
                parallel::join(residents, |own, other| analysis.merge(own, other))
            {
                analysis.merge(&mut state, resident);
            }
            analysis.finish(state)
        });
        let times = self.meter.times();
        times.finish_ns = watch.elapsed().saturating_sub(beside.own);
        times.rows_ns = beside.own + beside.others;
        self.meter.end();
        Some(Outcome {
            report,
            damage: self.damage,
        })
    }
}

impl Chunk {
    /// The chunk of a trace without packets.
    pub(crate) fn nothing() -> Chunk {
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
