//! Makes executions while the trace is read, and drops data that is no longer needed.
//!
//! Executions are output in the order of their ends. Each reflects the state of the traces a fixed
//! time after its end: for example, the event that ends a wait in progress, the sender of a segment
//! if a clock is ahead, or the other users of the disk. Most executions are final earlier and are
//! made without the delay, which affects the memory but not the result.
//!
//! Time advances part by part ([`Part`]). Executions that ended in a part are put into batches,
//! which are made on any thread once the state ([`Known`]) reaches the end of the part. The result
//! does not depend on the state from which a batch is made, up to the first execution with an open
//! question: that execution and the later ones of the batch are tried again after the next part. An
//! execution that must be made by then is made here, before later events become known; parts are so
//! short that this is rare. Events after the deadline of any execution in a batch do not become
//! known while that batch is being made.
//!
//! Batches are given to the sink in order, each once all of its executions are made. Data from
//! before the earliest begin of the executions that are open or not yet given to the sink is
//! dropped.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tracebraid_graph::{PlayedPart, RetiredSlices};

use crate::build::{Sink, SinkDone, SinkJob, Union};
use crate::contexts::Contexts;
use crate::counts::SeriesCursors;
use crate::delimit::{Block, PlayedCalls};
use crate::ecct::Common;
use crate::grid::{Intervals, Stage};
use crate::known::Known;
use crate::made::{Made, Spare};
use crate::making::{Pending, Waits, make, make_all};
use crate::names::Names;
use crate::pass::{Pass, PassPartial};

/// Events of consecutive parts of time.
pub(crate) struct Parts {
    /// End of each part, exclusive; `None`: the end of all traces (only the last part).
    pub(crate) until: Vec<Option<i64>>,
    /// Graph input of each part.
    pub(crate) played: Vec<Option<PlayedPart>>,
    /// System calls, if they are found separately.
    pub(crate) calls: Option<PlayedCalls>,
}

/// Part of time and the executions that ended in it.
struct Part {
    until: Option<i64>,
    played: Option<PlayedPart>,
    blocks: Vec<Block>,
}

impl Part {
    /// Earliest begin of the executions that ended in the part.
    fn earliest(&self) -> Option<i64> {
        self.blocks.iter().map(|block| block.earliest).min()
    }
}

/// Batch whose executions are being made.
pub(crate) struct Making {
    number: u64,
    pending: Pending,
    made: Made,
    must: bool,
    waits: Waits,
}

/// Work for any thread.
pub(crate) enum Job<S: Sink> {
    /// Makes the executions of a batch. Boxed to keep lists of jobs small.
    Make(Box<Making>),
    Sink(SinkJob<S>),
    /// Frees slices that the graph has composed.
    Free(RetiredSlices),
}

/// Result of a [`Job`].
pub(crate) enum Done<S: Sink> {
    Made(Box<Making>),
    Sink(SinkDone<S>),
    Freed,
}

impl<S: Sink> Job<S> {
    pub(crate) fn run(self, with: (&Pass, &RwLock<Known>)) -> Done<S> {
        match self {
            Job::Make(mut of) => {
                of.waits = make_all(with, &mut of.pending, &mut of.made, of.must);
                Done::Made(of)
            }
            Job::Sink(job) => Done::Sink(job.run()),
            Job::Free(over) => {
                drop(over);
                Done::Freed
            }
        }
    }
}

/// Executions that ended consecutively.
#[derive(Debug)]
struct Batch {
    /// Empty, like `made`, while the batch is out (`is_out`).
    pending: Pending,
    made: Made,
    is_out: bool,
    waits: Waits,
    /// End of the first execution that is not made; while the batch is out, as of the time it was
    /// sent.
    first_end: Option<i64>,
    /// Earliest begin of all executions of the batch.
    earliest: i64,
    executions: usize,
}

impl Batch {
    fn new(made: Made) -> Batch {
        Batch {
            pending: Pending::default(),
            made,
            is_out: false,
            waits: Waits::IsAhead,
            first_end: None,
            earliest: i64::MAX,
            executions: 0,
        }
    }

    fn push(&mut self, block: Block) {
        self.earliest = self.earliest.min(block.earliest);
        self.executions += block.len();
        self.pending.push(block);
        if self.first_end.is_none() {
            self.first_end = self.pending.first_end();
        }
    }

    /// True if more executions can be added.
    fn has_room(&self) -> bool {
        self.executions < Block::FULL
            && !self.is_out
            && self.waits == Waits::IsAhead
            && self.made.is_empty()
    }

    fn is_complete(&self) -> bool {
        !self.is_out && self.pending.is_empty()
    }
}

/// Makes executions while the trace is read.
pub(crate) struct Stream<'s, S: Sink> {
    /// Contexts and names of all trees that were given to the sink.
    common: Common,
    /// Ended executions that are not yet given to the sink, in output order. `first_number` is the
    /// number of the first batch.
    batches: VecDeque<Batch>,
    first_number: u64,
    /// Number of executions in `batches`.
    executions: usize,
    /// Further parts: `parts` contains those whose ended executions are determined, `later` the
    /// parts after these.
    later: VecDeque<Parts>,
    parts: VecDeque<Part>,
    /// Part whose ended executions are in batches but whose events are not known yet: its end and
    /// its graph input.
    target: Option<(Option<i64>, Option<PlayedPart>)>,
    has_ended: bool,
    jobs: Vec<Job<S>>,
    spare: Arc<Spare>,
    sink: &'s mut S,
    error: Option<S::Error>,
    told: Told,
    /// End of the last stage.
    staged: i64,
}

/// Totals of the build.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Number of executions given up because of their size.
    pub(crate) given_up: u64,
    /// Maximum number of time line stretches held at once.
    pub(crate) most_stretches: usize,
    /// Number of page faults of all threads.
    pub(crate) faults: u64,
}

/// Number of executions to try after one that had to be made: often the next one must be made, too.
const FEW: usize = 1;

fn read(known: &RwLock<Known>) -> RwLockReadGuard<'_, Known> {
    known.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(known: &RwLock<Known>) -> RwLockWriteGuard<'_, Known> {
    known.write().unwrap_or_else(PoisonError::into_inner)
}

/// Action required before more events become known.
enum Due {
    Nothing,
    /// Wait for a batch that is out: it may contain an execution that must be made first.
    Wait,
    /// Try the batch at this index.
    Try(usize),
    /// Make the first pending execution of the batch at this index, at this time.
    Make(usize, i64),
}

impl<'s, S: Sink> Stream<'s, S> {
    pub(crate) fn new((contexts, names): (Contexts, Names), sink: &'s mut S) -> Self {
        Stream {
            common: Common {
                contexts,
                names,
                ..Common::default()
            },
            batches: VecDeque::new(),
            first_number: 0,
            executions: 0,
            later: VecDeque::new(),
            parts: VecDeque::new(),
            target: None,
            has_ended: false,
            jobs: Vec::new(),
            spare: Arc::default(),
            sink,
            error: None,
            told: Told::default(),
            staged: i64::MIN,
        }
    }

    /// Next stage if all events before `watermark` are merged; see [`Intervals::stage`].
    pub(crate) fn stage(&mut self, intervals: &Intervals, watermark: i64) -> Option<Stage> {
        let stage = intervals.stage(self.staged, watermark)?;
        self.staged = stage.until;
        Some(stage)
    }

    pub(crate) fn take_jobs(&mut self) -> Vec<Job<S>> {
        std::mem::take(&mut self.jobs)
    }

    /// True if the state covers the whole traces.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Takes the next parts; must be called in the order of time.
    pub(crate) fn take_parts(&mut self, parts: Parts) {
        self.later.push_back(parts);
    }

    /// Takes the result of a job.
    pub(crate) fn take_done(&mut self, done: Done<S>) {
        match done {
            Done::Made(of) => {
                let place = of.number.wrapping_sub(self.first_number) as usize;
                if let Some(batch) = self.batches.get_mut(place) {
                    let Making {
                        pending,
                        made,
                        waits,
                        ..
                    } = *of;
                    batch.first_end = pending.first_end();
                    (batch.pending, batch.made) = (pending, made);
                    (batch.waits, batch.is_out) = (waits, false);
                    // The batch was sent out before the state was complete.
                    if self.has_ended && !batch.is_complete() {
                        self.try_batch(place, true);
                    }
                }
            }
            Done::Sink(done) => {
                if self.error.is_none() {
                    let further = done(self.sink);
                    self.gives(further);
                }
            }
            Done::Freed => {}
        }
    }

    /// Queues further jobs of the sink, or keeps its error.
    fn gives(&mut self, jobs: Result<Vec<SinkJob<S>>, S::Error>) {
        match jobs {
            Ok(jobs) => self.jobs.extend(jobs.into_iter().map(Job::Sink)),
            Err(error) => self.error = Some(error),
        }
    }

    /// Advances as far as possible without the results of outstanding jobs. False if the sink has
    /// failed.
    pub(crate) fn go_on(
        &mut self,
        (pass, known): (&Pass, &RwLock<Known>),
        partial: &mut PassPartial,
    ) -> bool {
        self.give(known);
        if self.error.is_none() && self.can_advance(&read(known)) {
            // Takes the lock once for many parts: each time, all threads that make executions
            // pause.
            let known = &mut write(known);
            while self.advance(pass, known, partial) {}
            self.jobs
                .extend(known.growing.take_retired().map(Job::Free));
        }
        self.give(known);
        self.error.is_none()
    }

    fn can_advance(&self, known: &Known) -> bool {
        match &self.target {
            Some(target) => !matches!(self.due(known, target.0), Due::Wait),
            None => !self.parts.is_empty() || !self.later.is_empty(),
        }
    }

    /// Takes one step. Returns false if results of jobs or further parts are required first.
    fn advance(&mut self, pass: &Pass, known: &mut Known, partial: &mut PassPartial) -> bool {
        let Some(until) = self.target.as_ref().map(|target| target.0) else {
            if let Some(part) = self.parts.pop_front() {
                self.begin_part(part);
            } else if let Some(parts) = self.later.pop_front() {
                self.find((pass, known), partial, parts);
            } else {
                return false;
            }
            return true;
        };
        match self.due(known, until) {
            Due::Wait => return false,
            Due::Try(place) => {
                self.try_batch(place, false);
                return false;
            }
            Due::Make(place, deadline) => {
                // The graph has no events between the known time and the deadline.
                known.goes_on(pass, None, Some(deadline));
                self.make_first(pass, known, place);
            }
            Due::Nothing => self.end_part((pass, known), partial, until),
        }
        true
    }

    /// Determines the executions that ended in each of the parts.
    fn find(
        &mut self,
        (pass, known): (&Pass, &mut Known),
        partial: &mut PassPartial,
        Parts {
            until,
            played,
            calls,
        }: Parts,
    ) {
        let end = until.last().copied().flatten();
        if let Some(calls) = calls {
            calls.compose(&pass.periods, &mut partial.0);
        }
        pass.settle_periods(&mut partial.0, end);
        let cuts: Vec<i64> = until.iter().copied().flatten().collect();
        let (blocks, turns) = pass.periods.take_with_turns(&mut partial.0, &cuts);
        known.turns.extend(turns);
        pass.counts
            .settle_into(&mut partial.2, &mut known.series, end);
        let mut blocks = blocks.into_iter().peekable();
        for (until, played) in until.into_iter().zip(played) {
            let is_in = |block: &Block| {
                let told = block.told().map(|told| told.0);
                until.is_none_or(|until| told.is_none_or(|told| told < until))
            };
            let of_part = std::iter::from_fn(|| blocks.next_if(is_in));
            let blocks = of_part.collect();
            self.parts.push_back(Part {
                until,
                played,
                blocks,
            });
        }
        // No execution ends after the last part.
        if let Some(last) = self.parts.back_mut() {
            last.blocks.extend(blocks);
        }
    }

    /// Puts the executions that ended in a part into batches.
    fn begin_part(&mut self, part: Part) {
        for block in part.blocks {
            self.executions += block.len();
            match self.batches.back_mut().filter(|batch| batch.has_room()) {
                Some(batch) => batch.push(block),
                None => {
                    let mut batch = Batch::new(self.spare.made());
                    batch.push(block);
                    self.batches.push_back(batch);
                }
            }
        }
        self.target = Some((part.until, part.played));
    }

    /// Action required before the events of the part that ends at `until` become known.
    fn due(&self, known: &Known, until: Option<i64>) -> Due {
        let limits = &known.limits;
        let end = until.unwrap_or(limits.known_until);
        let begin = limits.intervals.begin_of_part(end);
        for (place, batch) in self.batches.iter().enumerate() {
            let Some(end) = batch.first_end else {
                continue;
            };
            let deadline = limits.deadline(end).filter(|deadline| *deadline <= begin);
            let Some(deadline) = deadline else {
                // Later batches ended later.
                return Due::Nothing;
            };
            if batch.is_out {
                return Due::Wait;
            }
            let is_open = match batch.waits {
                Waits::For(question) => known.is_open(question),
                Waits::IsAhead => end >= known.growing.until(),
                Waits::No => false,
            };
            return match is_open {
                true => Due::Make(place, deadline),
                false => Due::Try(place),
            };
        }
        Due::Nothing
    }

    /// Makes the first pending execution of a batch, which must be made now, and tries [`FEW`]
    /// more.
    fn make_first(&mut self, pass: &Pass, known: &Known, place: usize) {
        let Some(batch) = self.batches.get_mut(place) else {
            return;
        };
        // The question may be settled by now, for the later executions as well.
        if let Waits::For(question) = batch.waits
            && !known.is_open(question)
        {
            batch.waits = Waits::No;
            return;
        }
        let (cursors, pending, made) = (
            &mut SeriesCursors::default(),
            &mut batch.pending,
            &mut batch.made,
        );
        make((pass, known, cursors), pending, made, (1, true));
        batch.waits = make((pass, known, cursors), pending, made, (FEW, false));
        batch.first_end = pending.first_end();
    }

    /// Sends a batch out to be tried.
    fn try_batch(&mut self, place: usize, must: bool) {
        if let Some(batch) = self.batches.get_mut(place) {
            batch.is_out = true;
            self.jobs.push(Job::Make(Box::new(Making {
                number: self.first_number + place as u64,
                pending: std::mem::take(&mut batch.pending),
                made: std::mem::take(&mut batch.made),
                must,
                waits: batch.waits,
            })));
        }
    }

    /// Makes the events of a part known.
    fn end_part(
        &mut self,
        (pass, known): (&Pass, &mut Known),
        partial: &mut PassPartial,
        until: Option<i64>,
    ) {
        let played = self.target.take().and_then(|target| target.1);
        known.goes_on(pass, played, until);
        self.forget(pass, known, partial);
        self.has_ended |= until.is_none();
        for place in 0..self.batches.len() {
            let Some(batch) = self.batches.get(place) else {
                continue;
            };
            let waits = match batch.waits {
                _ if until.is_none() => false,
                Waits::For(question) => known.is_open(question),
                Waits::IsAhead | Waits::No => false,
            };
            if !batch.is_out && !waits && !batch.is_complete() {
                self.try_batch(place, until.is_none());
            }
        }
        if until.is_none() {
            self.told.faults = known.series.faults();
        }
    }

    /// Gives complete batches to the sink.
    fn give(&mut self, known: &RwLock<Known>) {
        while self.error.is_none()
            && self.batches.front().is_some_and(Batch::is_complete)
            && let Some(mut batch) = self.batches.pop_front()
        {
            self.first_number += 1;
            self.executions -= batch.executions;
            self.told.given_up += batch.made.given_up;
            batch.made.number(&mut self.common);
            let known = read(known);
            let jobs = self.sink.take_all(known.growing.graph(), batch.made);
            self.gives(jobs);
        }
    }

    /// Drops data needed neither by open executions nor by those not yet given to the sink.
    fn forget(&mut self, pass: &Pass, known: &mut Known, partial: &PassPartial) {
        let looked_at = pass.periods.room(&partial.0) + self.executions + self.parts.len();
        if !known.growing.is_due(looked_at) {
            return;
        }
        let until = known.growing.until();
        let open = pass.periods.open(&partial.0);
        let open = open.filter(|begin| !known.is_too_much((*begin, until)));
        let pending = self.batches.iter().map(|batch| batch.earliest);
        let pending = pending.chain(self.parts.iter().filter_map(Part::earliest));
        let cut = open.chain(pending).min().unwrap_or(until).min(until);
        let stretches = known.growing.stretches();
        self.told.most_stretches = self.told.most_stretches.max(stretches);
        if cut > known.cut {
            known.drop_before(cut);
        }
    }

    /// Contexts and names of all trees, the totals, and the error of the sink.
    pub(crate) fn into_parts(mut self, known: &Known) -> (Union, Told, Option<S::Error>) {
        let stretches = known.growing.stretches();
        self.told.most_stretches = self.told.most_stretches.max(stretches);
        let union = Union {
            contexts: self.common.contexts,
            names: self.common.names,
        };
        (union, self.told, self.error)
    }
}
