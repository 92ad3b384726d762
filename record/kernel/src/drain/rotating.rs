//! Begins new chunks by size, by time and on request.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use super::Drain;
use crate::chunks::Rotated;
use crate::error::RecordError;
use crate::lane::{CpuQueue, Event};
use crate::machine::now;
use crate::options::Options;

/// The state that decides when a new chunk begins; times are in nanoseconds of CLOCK_MONOTONIC.
pub(super) struct Rotations {
    /// Begin of the current chunk.
    begun: u64,
    /// Time at which the next chunk is due.
    next: Option<u64>,
    /// Time of a request for a new chunk, and the callers that wait for it.
    pub(super) asked: Option<u64>,
    pub(super) callers: Vec<Sender<Result<PathBuf, RecordError>>>,
    /// Lower bound of the size limit in bytes, since symbols alone may exceed a smaller one.
    pub(super) least_bytes: u64,
    /// All records that were in the rings at this time have been taken.
    pub(super) emptied: u64,
    /// The recording is ending: no new chunk begins.
    pub(super) is_over: bool,
}

/// Upper bound, in nanoseconds, of the time between an event's timestamp and its arrival in the
/// ring.
const LATE: u64 = 200_000_000;

impl Rotations {
    pub(super) fn new(options: &Options, begin: u64) -> Rotations {
        let mut rotations = Rotations {
            begun: begin,
            next: Some(begin),
            asked: None,
            callers: Vec::new(),
            least_bytes: 0,
            emptied: 0,
            is_over: false,
        };
        rotations.has_begun(begin, 0, options);
        rotations
    }

    /// Notes the begin of a chunk, and its size in bytes.
    fn has_begun(&mut self, time: u64, bytes: u64, options: &Options) {
        self.begun = time;
        self.asked = None;
        let rotation = options.rotation.as_ref();
        let chunk_bytes = rotation.and_then(|rotation| rotation.bytes).unwrap_or(0);
        self.least_bytes = bytes + chunk_bytes / 4;
        let period = rotation.and_then(|rotation| rotation.period);
        let period = period.map(|period| period.as_nanos() as u64);
        // Counted from the time at which the chunk was due, so that chunks do not drift. A chunk
        // that began for another reason has the full length; after this process was stopped, chunks
        // that would be empty are skipped.
        self.next = period.map(|period| match self.next {
            Some(due) if due == time && due + 2 * period > now() => due + period,
            _ => time.max(now().saturating_sub(period)) + period,
        });
    }

    /// True if all events before a time have been taken, even if none has arrived since.
    fn is_past(&self, time: u64) -> bool {
        time + LATE <= self.emptied
    }
}

impl Drain<'_> {
    /// Begins the chunks that are due before `until`. No chunk begins during a state dump, so that
    /// each chunk contains a complete one.
    pub(super) fn rotate(&mut self, until: Option<u64>) -> Result<(), RecordError> {
        while self.dump.is_none()
            && self.full_since.is_none()
            && let Some(time) = self.due(until)
        {
            if let (Some(meanings), true) = (self.meanings, until.is_some_and(|until| until < time))
            {
                meanings.unwind(self.lanes, Some(time));
            }
            self.release(Some(time))?;
            if self.full_since.is_none() {
                self.begin_chunk(time)?;
            }
        }
        Ok(())
    }

    /// Time at which the chunk must end, if all earlier events have been taken.
    fn due(&self, until: Option<u64>) -> Option<u64> {
        let options = self.options.rotation.filter(|_| !self.rotations.is_over)?;
        let rotations = &self.rotations;
        let is_settled =
            |time: &u64| until.is_some_and(|until| *time <= until) || rotations.is_past(*time);
        let timed = rotations.asked.into_iter().chain(rotations.next);
        let timed = timed.min().filter(is_settled);
        let bytes = options.bytes.map(|bytes| bytes.max(rotations.least_bytes));
        let full =
            bytes.and_then(|bytes| self.over(self.room(bytes, self.output.chunk_bytes()), until));
        // A chunk without events does not end by its size.
        let full = full.filter(|time| *time > rotations.begun);
        // Events lost just before this event are reported in the new chunk, between its beginning
        // and the event.
        let full = full.map(|time| time - 1);
        // Events of the state dump arrive late: the first one that does not fit may be older than
        // events that have been written. The chunk must not end before these.
        let due = timed.into_iter().chain(full).min();
        due.map(|time| time.max(self.output.newest() + 1))
    }

    fn begin_chunk(&mut self, time: u64) -> Result<(), RecordError> {
        let ended = self.output.chunk().map(Path::to_owned).unwrap_or_default();
        let (output, reserve) = (&mut self.output, &mut self.reserve);
        let mut is_full =
            output.rotate(time, &mut |error| reserve.gives(error))? == Rotated::DiskFull;
        // Before all other events of the chunk, and not through the CPU's lane, which may already
        // hold later events.
        if let (Some(meanings), Some(first), false) = (self.meanings, self.lanes.first(), is_full) {
            let mut lane = CpuQueue::new(self.own_context.clone());
            meanings.again(time, &mut lane);
            let lost = first.borrow().lost();
            lane.release(None, |event| {
                match output.event(0, &Event { lost, ..event }) {
                    Err(error) if is_full || reserve.gives(&error) => {
                        is_full = true;
                        Ok(())
                    }
                    result => result,
                }
            })?;
        }
        if is_full {
            self.full_since = Some(time);
            return Ok(());
        }
        self.begin_dump();
        self.rotations
            .has_begun(time, self.output.chunk_bytes(), self.options);
        for caller in self.rotations.callers.drain(..) {
            // The caller may be gone.
            let _ = caller.send(Ok(ended.clone()));
        }
        Ok(())
    }
}
