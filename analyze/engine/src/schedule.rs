//! The scheduler: hands chunks and slices of time to workers, and their results to one merge, in
//! order.
//!
//! Workers take chunks in the order of the plan and may run ahead of the merge by a bounded number,
//! so that a slow chunk does not let partial states pile up. Slices of time go first, since they
//! hold the memory of many chunks. The worker that completes the item the merge waits for merges it
//! and all that are ready after it: there is no thread only for merging.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::analysis::Analysis;
use crate::engine::{FoldError, Folded, Job};
use crate::merge::{Merge, PendingSlice, PlayedSlice};

/// Stack size of a worker in bytes of address space: conditions, which users may nest, are
/// evaluated recursively.
const STACK: usize = 16 << 20;

/// Chunks and slices that may be in progress per thread.
const AHEAD: usize = 4;

/// Folds all chunks and plays all slices on `threads` threads.
///
/// # Errors
/// Fails when the fold is cancelled, or an index is wrong.
pub(crate) fn run<'a, A: Analysis>(
    job: &'a Job<'a, A>,
    mut merge: Merge<'a, A>,
    threads: usize,
) -> Result<(Merge<'a, A>, Vec<A::Partial>), FoldError> {
    if threads == 1 {
        let mut resident = job.resident();
        for chunk in &job.plan.chunks {
            let folded = job.run(chunk, &mut resident)?;
            let mut slices = VecDeque::from(merge.merge(chunk.index, folded));
            while let Some(slice) = slices.pop_front() {
                slices.extend(merge.compose(slice.play(&mut resident)));
            }
        }
        return Ok((merge, vec![resident]));
    }
    let board = Board {
        job,
        ahead: threads * AHEAD,
        work: Mutex::new(Work::default()),
        moved: Condvar::new(),
        merge: Mutex::new(merge),
        residents: Mutex::new(Vec::with_capacity(threads)),
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let _ = std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, || board.work());
        }
        board.work();
    });
    if job.control.is_cancelled() {
        return Err(FoldError::Cancelled);
    }
    let work = board
        .work
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = work.error {
        return Err(error);
    }
    let merge = board
        .merge
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let residents = board.residents.into_inner();
    Ok((merge, residents.unwrap_or_else(PoisonError::into_inner)))
}

struct Board<'a, A: Analysis> {
    job: &'a Job<'a, A>,
    ahead: usize,
    work: Mutex<Work<'a, A>>,
    /// Signalled when an item was merged, slices were added, or all work is done.
    moved: Condvar,
    merge: Mutex<Merge<'a, A>>,
    /// The resident states of workers that have ended.
    residents: Mutex<Vec<A::Partial>>,
}

/// Queues of pending and completed work.
struct Work<'a, A: Analysis> {
    /// The next chunk to fold.
    next_chunk: usize,
    merged: usize,
    folded: BTreeMap<usize, Folded<A>>,
    /// Slices that wait for a worker, with their numbers.
    pending: VecDeque<(usize, PendingSlice<'a, A>)>,
    next_slice: usize,
    composed: usize,
    played: BTreeMap<usize, PlayedSlice<'a, A>>,
    /// Some worker merges.
    is_merging: bool,
    /// Number of workers that wait for a turn.
    waiting: usize,
    /// A worker panicked: items that wait for it will not come.
    is_broken: bool,
    /// The first error of a chunk, which ends the fold.
    error: Option<FoldError>,
}

impl<A: Analysis> Default for Work<'_, A> {
    fn default() -> Self {
        Work {
            next_chunk: 0,
            merged: 0,
            folded: BTreeMap::new(),
            pending: VecDeque::new(),
            next_slice: 0,
            composed: 0,
            played: BTreeMap::new(),
            is_merging: false,
            waiting: 0,
            is_broken: false,
            error: None,
        }
    }
}

enum Turn<'a, A: Analysis> {
    Fold(usize),
    Play(usize, PendingSlice<'a, A>),
    Wait,
    End,
}

enum MergeStep<'a, A: Analysis> {
    Merge(usize, Folded<A>),
    Compose(PlayedSlice<'a, A>),
}

impl<'a, A: Analysis> Work<'a, A> {
    fn turn(&mut self, chunks: usize, ahead: usize) -> Turn<'a, A> {
        if self.is_broken || self.error.is_some() {
            return Turn::End;
        }
        if let Some((number, slice)) = self.pending.pop_front() {
            return Turn::Play(number, slice);
        }
        if self.room(chunks, ahead) > 0 {
            self.next_chunk += 1;
            return Turn::Fold(self.next_chunk - 1);
        }
        match self.merged == chunks && self.composed == self.next_slice {
            true => Turn::End,
            false => Turn::Wait,
        }
    }

    /// Number of chunks that may be folded now.
    fn room(&self, chunks: usize, ahead: usize) -> usize {
        match self.next_slice >= self.composed + ahead {
            true => 0,
            false => chunks
                .min(self.merged + ahead)
                .saturating_sub(self.next_chunk),
        }
    }

    /// Slices go before chunks: composing them frees memory.
    fn step(&mut self) -> Option<MergeStep<'a, A>> {
        if let Some(played) = self.played.remove(&self.composed) {
            return Some(MergeStep::Compose(played));
        }
        let index = self.merged;
        let folded = self.folded.remove(&index)?;
        Some(MergeStep::Merge(index, folded))
    }
}

impl<'a, A: Analysis> Board<'a, A> {
    fn lock(&self) -> MutexGuard<'_, Work<'a, A>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let _broken = Broken(self);
        let mut resident = self.job.resident();
        while self.do_next(&mut resident) {}
        self.moved.notify_all();
        let mut residents = self
            .residents
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        residents.push(resident);
    }

    /// Folds a chunk or plays a slice; false if there is no more work.
    fn do_next(&self, resident: &mut A::Partial) -> bool {
        let turn = self.turn();
        if self.job.control.is_cancelled() {
            return false;
        }
        match turn {
            Turn::Fold(index) => {
                let Some(chunk) = self.job.plan.chunks.get(index) else {
                    return false;
                };
                let folded = self.job.run(chunk, resident);
                let mut work = self.lock();
                match folded {
                    Ok(folded) => {
                        work.folded.insert(index, folded);
                        self.merge(work);
                    }
                    Err(error) => {
                        work.error.get_or_insert(error);
                        return false;
                    }
                }
            }
            Turn::Play(number, slice) => {
                let played = slice.play(resident);
                let mut work = self.lock();
                work.played.insert(number, played);
                self.merge(work);
            }
            Turn::Wait => {}
            Turn::End => return false,
        }
        true
    }

    /// Waits until there is work, or there will be no more.
    fn turn(&self) -> Turn<'a, A> {
        let mut work = self.lock();
        loop {
            let turn = work.turn(self.job.plan.chunks.len(), self.ahead);
            if !matches!(turn, Turn::Wait) || self.job.control.is_cancelled() {
                return turn;
            }
            work.waiting += 1;
            work = self
                .moved
                .wait(work)
                .unwrap_or_else(PoisonError::into_inner);
            work.waiting -= 1;
        }
    }

    /// Wakes one waiting worker for each available turn. Waking all workers would make them contend
    /// for the lock that the merge takes for each step.
    fn wake(&self, work: &Work<'a, A>) {
        let turns = work.pending.len() + work.room(self.job.plan.chunks.len(), self.ahead);
        for _ in 0..turns.min(work.waiting) {
            self.moved.notify_one();
        }
    }

    /// Merges all items that are ready, unless another worker is merging.
    fn merge<'w>(&'w self, mut work: MutexGuard<'w, Work<'a, A>>) {
        if work.is_merging {
            return;
        }
        work.is_merging = true;
        while let Some(step) = work.step() {
            drop(work);
            let mut merge = self.merge.lock().unwrap_or_else(PoisonError::into_inner);
            let (slices, is_merged) = match step {
                MergeStep::Merge(index, folded) => (merge.merge(index, folded), true),
                MergeStep::Compose(played) => (merge.compose(played), false),
            };
            drop(merge);
            work = self.lock();
            match is_merged {
                true => work.merged += 1,
                false => work.composed += 1,
            }
            for slice in slices {
                let number = work.next_slice;
                work.next_slice += 1;
                work.pending.push_back((number, slice));
            }
            self.wake(&work);
        }
        work.is_merging = false;
    }
}

/// Ends the other workers if one panics.
struct Broken<'b, 'a, A: Analysis>(&'b Board<'a, A>);

impl<A: Analysis> Drop for Broken<'_, '_, A> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().is_broken = true;
            self.0.moved.notify_all();
        }
    }
}
