//! Executions that are made while the trace is read, and what is forgotten behind them.
//!
//! Executions come out in the order in which they end. Each is what is known of it a time behind its end: what ends a wait
//! that goes on there, who sent a segment that came by a clock that is ahead, who else had used the disk. Most are known for
//! good before; then they do not wait for that time, which changes nothing but the memory that they take.
//!
//! Time goes on part by part ([`Part`]). What ended in a part waits in batches, which are made on any thread once what is known
//! ([`Known`]) reaches to the end of the part. What is made of a batch is the same in whatever state that is done, up to the first
//! execution of which something may turn out to be something else: that one and those behind it are tried again after the next
//! part. One that must be made then is made here, before anything later becomes known; parts are so short that few are. Nothing
//! becomes known behind that time of any execution in a batch that is under way.
//!
//! Batches go to the sink in their order once all of their executions are made. What ended before the first execution begins that
//! is open, or not given to the sink yet, is dropped.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tracebraid_graph::PlayedPart;

use crate::build::{Sink, SinkDone, SinkJob, Union};
use crate::contexts::Contexts;
use crate::counts::Places;
use crate::delimit::{Block, PlayedCalls};
use crate::ecct::Common;
use crate::grid::{self, Stage};
use crate::known::Known;
use crate::made::{Made, Spare};
use crate::making::{Pending, Waits, make, make_all};
use crate::names::Names;
use crate::pass::{Pass, PassPartial};

/// What happened in parts of time, one behind the other.
pub(crate) struct Parts {
    /// Before which time each ends; without one, the last one goes to the end of everything.
    pub(crate) until: Vec<Option<i64>>,
    /// What the graph is made of in each.
    pub(crate) played: Vec<Option<PlayedPart>>,
    /// The calls, if they are found by themselves.
    pub(crate) calls: Option<PlayedCalls>,
}

/// A part of time, and what ended in it.
struct Part {
    until: Option<i64>,
    played: Option<PlayedPart>,
    blocks: Vec<Block>,
}

impl Part {
    /// When the first one of those began that ended in it.
    fn earliest(&self) -> Option<i64> {
        self.blocks.iter().map(|block| block.earliest).min()
    }
}

/// A batch that is under way.
pub(crate) struct Making {
    number: u64,
    pending: Pending,
    made: Made,
    must: bool,
    waits: Waits,
}

/// Work that any thread can do.
pub(crate) enum Job<S: Sink> {
    /// Makes the executions of a batch. In a box, so that lists of jobs are small.
    Make(Box<Making>),
    Sink(SinkJob<S>),
}

/// What was done.
pub(crate) enum Done<S: Sink> {
    Made(Box<Making>),
    Sink(SinkDone<S>),
}

impl<S: Sink> Job<S> {
    pub(crate) fn run(self, with: (&Pass, &RwLock<Known>)) -> Done<S> {
        match self {
            Job::Make(mut of) => {
                of.waits = make_all(with, &mut of.pending, &mut of.made, of.must);
                Done::Made(of)
            }
            Job::Sink(job) => Done::Sink(job.run()),
        }
    }
}

/// Executions that ended one after the other.
#[derive(Debug)]
struct Batch {
    /// Both are away while it is under way.
    pending: Pending,
    made: Made,
    is_out: bool,
    waits: Waits,
    /// When the first one has ended that is not made, or was not when it went away.
    first_end: Option<i64>,
    /// When the first one of all began.
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

    /// True if more can be added to it.
    fn has_room(&self) -> bool {
        self.executions < Block::FULL && !self.is_out && self.waits == Waits::IsAhead && self.made.is_empty()
    }

    fn is_complete(&self) -> bool {
        !self.is_out && self.pending.is_empty()
    }
}

/// Executions that are made while the trace is read.
pub(crate) struct Stream<'s, S: Sink> {
    /// What the trees that were given to the sink have in common.
    common: Common,
    /// What has ended and is not given to the sink, in its order, and the number of the first one.
    batches: VecDeque<Batch>,
    first_number: u64,
    /// Executions in them.
    executions: usize,
    /// What comes next: parts of which it is not known what ended in them, and those before of which it is.
    later: VecDeque<Parts>,
    parts: VecDeque<Part>,
    /// Up to when executions that have ended are in batches, but what happened is not known, and what that is.
    target: Option<(Option<i64>, Option<PlayedPart>)>,
    has_ended: bool,
    jobs: Vec<Job<S>>,
    spare: Arc<Spare>,
    sink: &'s mut S,
    error: Option<S::Error>,
    told: Told,
    /// Up to when stages go.
    watermark: i64,
}

/// What is told in the end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    /// Executions in which too much happened.
    pub(crate) given_up: u64,
    /// The most stretches of time lines that there were at a time.
    pub(crate) most_stretches: usize,
    /// Page faults of all threads.
    pub(crate) faults: u64,
}

/// So many are tried behind one that was made since it must be: often the next one must be, too.
const FEW: usize = 1;

fn read(known: &RwLock<Known>) -> RwLockReadGuard<'_, Known> {
    known.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(known: &RwLock<Known>) -> RwLockWriteGuard<'_, Known> {
    known.write().unwrap_or_else(PoisonError::into_inner)
}

/// What is due before anything more becomes known.
enum Due {
    Nothing,
    /// A batch that is under way may have something to be made before that.
    Wait,
    /// The batch at that place can be tried.
    Try(usize),
    /// The first one of the batch at that place must be made at that time.
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
            watermark: i64::MIN,
        }
    }

    /// The next stage, up to a watermark.
    pub(crate) fn stage(&mut self, watermark: i64) -> Option<Stage> {
        let stage = Stage::between(self.watermark, watermark);
        self.watermark = self.watermark.max(watermark);
        stage
    }

    pub(crate) fn take_jobs(&mut self) -> Vec<Job<S>> {
        std::mem::take(&mut self.jobs)
    }

    /// True if everything is known.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The next parts: they come in their order.
    pub(crate) fn take_parts(&mut self, parts: Parts) {
        self.later.push_back(parts);
    }

    /// What became of work.
    pub(crate) fn take_done(&mut self, done: Done<S>) {
        match done {
            Done::Made(of) => {
                let place = of.number.wrapping_sub(self.first_number) as usize;
                if let Some(batch) = self.batches.get_mut(place) {
                    let Making {
                        pending, made, waits, ..
                    } = *of;
                    batch.first_end = pending.first_end();
                    (batch.pending, batch.made) = (pending, made);
                    (batch.waits, batch.is_out) = (waits, false);
                    // It went away before everything was known.
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
        }
    }

    /// Further work of the sink, or why it takes no more.
    fn gives(&mut self, jobs: Result<Vec<SinkJob<S>>, S::Error>) {
        match jobs {
            Ok(jobs) => self.jobs.extend(jobs.into_iter().map(Job::Sink)),
            Err(error) => self.error = Some(error),
        }
    }

    /// Goes on as far as that is possible before work under way is done. False if the sink takes no more.
    pub(crate) fn go_on(
        &mut self,
        (pass, known): (&Pass, &RwLock<Known>),
        partial: &mut PassPartial,
    ) -> bool {
        self.give(known);
        while self.error.is_none() {
            let Some(until) = self.target.as_ref().map(|target| target.0) else {
                if let Some(part) = self.parts.pop_front() {
                    self.begin_part(part);
                } else if let Some(parts) = self.later.pop_front() {
                    self.find((pass, known), partial, parts);
                } else {
                    break;
                }
                continue;
            };
            let due = self.due(&read(known), until);
            match due {
                Due::Wait => break,
                Due::Try(place) => {
                    self.try_batch(place, false);
                    break;
                }
                Due::Make(place, deadline) => {
                    let known = &mut write(known);
                    // Nothing happened from what is known up to that time.
                    known.goes_on(pass, None, Some(deadline));
                    self.make_first(pass, known, place);
                }
                Due::Nothing => self.end_part((pass, known), partial, until),
            }
            self.give(known);
        }
        self.error.is_none()
    }

    /// Finds out what has ended in parts.
    fn find(
        &mut self,
        (pass, known): (&Pass, &RwLock<Known>),
        partial: &mut PassPartial,
        Parts { until, played, calls }: Parts,
    ) {
        let end = until.last().copied().flatten();
        if let Some(calls) = calls {
            calls.compose(&pass.periods, &mut partial.0);
        }
        pass.settle_periods(&mut partial.0, end);
        let cuts: Vec<i64> = until.iter().copied().flatten().collect();
        let (blocks, turns) = pass.periods.take_with_turns(&mut partial.0, &cuts);
        let known = &mut write(known);
        known.turns.extend(turns);
        pass.counts.settle_into(&mut partial.2, &mut known.lines, end);
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
        // Nothing ends behind the end.
        if let Some(last) = self.parts.back_mut() {
            last.blocks.extend(blocks);
        }
    }

    /// Puts what has ended in a part into batches.
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

    /// What is due before what happens in the part before that time becomes known.
    fn due(&self, known: &Known, until: Option<i64>) -> Due {
        let limits = &known.limits;
        let end = until.unwrap_or(limits.known_until);
        let begin = grid::begin_of_part(end, limits.interval);
        for (place, batch) in self.batches.iter().enumerate() {
            let Some(end) = batch.first_end else {
                continue;
            };
            let deadline = limits.deadline(end).filter(|deadline| *deadline <= begin);
            let Some(deadline) = deadline else {
                // Those behind it have ended later.
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

    /// Makes the first one that is not made of the batch at that place, which must be made now, and some of those behind it.
    fn make_first(&mut self, pass: &Pass, known: &Known, place: usize) {
        let Some(batch) = self.batches.get_mut(place) else {
            return;
        };
        // It may be known now, and those behind it, too.
        if let Waits::For(question) = batch.waits
            && !known.is_open(question)
        {
            batch.waits = Waits::No;
            return;
        }
        let (places, pending, made) = (&mut Places::default(), &mut batch.pending, &mut batch.made);
        make((pass, known, places), pending, made, (1, true));
        batch.waits = make((pass, known, places), pending, made, (FEW, false));
        batch.first_end = pending.first_end();
    }

    /// Has a batch tried.
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

    /// What happened in a part becomes known.
    fn end_part(
        &mut self,
        (pass, known): (&Pass, &RwLock<Known>),
        partial: &mut PassPartial,
        until: Option<i64>,
    ) {
        let known = &mut write(known);
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
            self.told.faults = known.lines.faults();
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

    /// Drops what no execution needs that is open or not given to the sink.
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

    /// What trees refer to, what else is to be told, and why the sink took no more.
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
