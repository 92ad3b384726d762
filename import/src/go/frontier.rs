//! The next event records of all threads of a generation, the earliest first.
//!
//! Times of several threads may be equal, and the order of such event records decides how later
//! times are corrected. So that goroutines have the times of Go's own reader, to the nanosecond,
//! the heap works as that of `internal/trace/batchcursor.go` does.

use super::clock::Unit;
use super::event_kind::{Kind, MOST_ARGUMENTS, kind_of};
use super::generation::{Generation, ThreadBatches};
use crate::bytes::Bytes;
use crate::error::ImportError;
use crate::input::Input;

/// An event record of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) kind: Kind,
    /// Nanoseconds.
    pub(super) time: u64,
    pub(super) arguments: [u64; MOST_ARGUMENTS],
}

/// Reads the event records of a thread.
#[derive(Debug)]
struct Cursor {
    /// Index of the thread in its generation.
    index: usize,
    thread: u64,
    next_batch: usize,
    /// The current batch, and the position in it.
    data: Vec<u8>,
    at: usize,
    /// Offset of the batch in the file.
    base: u64,
    /// Nanoseconds of the last event record, or of the batch.
    time: u64,
    event: Event,
}

/// The threads that have event records left.
#[derive(Debug)]
pub(super) struct Frontier {
    unit: Unit,
    heap: Vec<Cursor>,
}

impl Cursor {
    fn new(index: usize, thread: u64) -> Cursor {
        Cursor {
            index,
            thread,
            next_batch: 0,
            data: Vec::new(),
            at: 0,
            base: 0,
            time: 0,
            event: Event {
                kind: Kind::Experimental,
                time: 0,
                arguments: [0; MOST_ARGUMENTS],
            },
        }
    }

    /// Reads the next event record; false after the last.
    fn advance(
        &mut self,
        input: &Input,
        of: &ThreadBatches,
        unit: Unit,
    ) -> Result<bool, ImportError> {
        while self.at == self.data.len() {
            let Some(batch) = of.batches.get(self.next_batch) else {
                return Ok(false);
            };
            self.data = input.part(batch.offset, batch.size)?;
            self.base = batch.offset;
            self.at = 0;
            self.next_batch += 1;
            self.time = unit.nanoseconds(batch.time);
        }
        let rest = self.data.get(self.at..).unwrap_or_default();
        let begin = self.base + self.at as u64;
        let mut bytes = Bytes::new(rest, begin, false);
        let number = bytes.u8()?;
        let Some((kind, count)) = kind_of(number) else {
            let what = format!("an event of the unknown kind {number}");
            return Err(ImportError::malformed(begin, what));
        };
        let units = bytes.uvarint()?;
        let mut arguments = [0; MOST_ARGUMENTS];
        for argument in arguments.iter_mut().take(count) {
            *argument = bytes.uvarint()?;
        }
        self.at += (bytes.offset() - begin) as usize;
        self.time = self.time.saturating_add(unit.nanoseconds(units));
        self.event = Event {
            kind,
            time: self.time,
            arguments,
        };
        Ok(true)
    }
}

impl Frontier {
    /// The first event records of all threads.
    pub(super) fn new(
        generation: &Generation,
        input: &Input,
        unit: Unit,
    ) -> Result<Frontier, ImportError> {
        let mut frontier = Frontier {
            unit,
            heap: Vec::new(),
        };
        for (index, of) in generation.threads.iter().enumerate() {
            let mut cursor = Cursor::new(index, of.thread);
            if cursor.advance(input, of, unit)? {
                frontier.heap.push(cursor);
                frontier.sift_up(frontier.heap.len() - 1);
            }
        }
        Ok(frontier)
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The next event record of the thread at this index, and the thread; index 0 is the earliest.
    pub(super) fn get(&self, index: usize) -> Option<(u64, Event)> {
        let cursor = self.heap.get(index)?;
        Some((cursor.thread, cursor.event))
    }

    /// Goes on to the next event record of the thread at this index.
    pub(super) fn advance(
        &mut self,
        index: usize,
        input: &Input,
        generation: &Generation,
    ) -> Result<(), ImportError> {
        let Some(cursor) = self.heap.get_mut(index) else {
            return Ok(());
        };
        let has_more = match generation.threads.get(cursor.index) {
            Some(of) => cursor.advance(input, of, self.unit)?,
            None => false,
        };
        match has_more {
            true if self.sift_up(index) == index => self.sift_down(index),
            true => {}
            false => self.remove(index),
        }
        Ok(())
    }

    /// Reads all that is left; returns the number of event records by thread.
    pub(super) fn rest(self, input: &Input, generation: &Generation) -> Vec<(u64, u64)> {
        let unit = self.unit;
        let counted = self.heap.into_iter().map(|mut cursor| {
            let mut count = 1;
            if let Some(of) = generation.threads.get(cursor.index) {
                while matches!(cursor.advance(input, of, unit), Ok(true)) {
                    count += 1;
                }
            }
            (cursor.thread, count)
        });
        counted.collect()
    }

    /// Sorts the threads by the times of their next event records. They remain a heap.
    pub(super) fn sort(&mut self) {
        self.heap.sort_by_key(|cursor| cursor.event.time);
    }

    fn time(&self, index: usize) -> u64 {
        self.heap
            .get(index)
            .map_or(u64::MAX, |cursor| cursor.event.time)
    }

    fn sift_up(&mut self, mut index: usize) -> usize {
        while index > 0 && self.time((index - 1) / 2) > self.time(index) {
            self.heap.swap((index - 1) / 2, index);
            index = (index - 1) / 2;
        }
        index
    }

    fn sift_down(&mut self, mut index: usize) {
        loop {
            let mut least = index;
            for child in [2 * index + 1, 2 * index + 2] {
                if child < self.heap.len() && self.time(child) < self.time(least) {
                    least = child;
                }
            }
            if least == index {
                return;
            }
            self.heap.swap(index, least);
            index = least;
        }
    }

    fn remove(&mut self, mut index: usize) {
        while index > 0 {
            self.heap.swap((index - 1) / 2, index);
            index = (index - 1) / 2;
        }
        self.heap.swap_remove(0);
        self.sift_down(0);
    }
}

/// Calls `give` for all event records of a generation, thread by thread.
pub(super) fn each_event(
    generation: &Generation,
    input: &Input,
    unit: Unit,
    mut give: impl FnMut(u64, &Event),
) -> Result<(), ImportError> {
    for (index, of) in generation.threads.iter().enumerate() {
        let mut cursor = Cursor::new(index, of.thread);
        while cursor.advance(input, of, unit)? {
            give(of.thread, &cursor.event);
        }
    }
    Ok(())
}
