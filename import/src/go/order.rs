//! Puts the event records of a generation in order, and corrects their times to increase.

use super::clock::Unit;
use super::frontier::Frontier;
use super::generation::{CpuSample, Generation};
use super::scheduler::{Advance, Ordered, Scheduler};
use crate::error::ImportError;
use crate::input::Input;

/// An event in the order of a generation.
pub(super) enum Next {
    Event(Ordered),
    Sample(CpuSample),
}

impl Next {
    /// The time as recorded, in nanoseconds.
    pub(super) fn time(&self) -> u64 {
        match self {
            Next::Event(event) => event.time,
            Next::Sample(sample) => sample.time,
        }
    }
}

/// The latest time. Go's reader sets each time that is not later than its predecessor to one
/// nanosecond after it; so are the times here.
#[derive(Debug, Default)]
pub(super) struct Times {
    last: u64,
}

/// Event records that could not be put in order.
#[derive(Debug, Default)]
pub(super) struct Broken {
    pub(super) why: String,
    /// Number of event records left out, by thread.
    pub(super) left_out: Vec<(u64, u64)>,
}

impl Times {
    pub(super) fn correct(&mut self, time: u64) -> u64 {
        self.last = match time > self.last {
            true => time,
            false => self.last.saturating_add(1),
        };
        self.last
    }
}

/// Plays a generation: calls `give` for each event in order, with its corrected time. Ends early if
/// no event record can be next.
pub(super) fn play(
    (generation, input, unit): (&Generation, &Input, Unit),
    scheduler: &mut Scheduler,
    times: &mut Times,
    mut give: impl FnMut(u64, Next) -> Result<(), ImportError>,
) -> Result<Option<Broken>, ImportError> {
    let mut samples = generation.samples.clone();
    for sample in &mut samples {
        sample.time = unit.nanoseconds(sample.time);
    }
    samples.sort_by_key(|sample| sample.time);
    let mut samples = samples.into_iter().peekable();
    let mut frontier = match Frontier::new(generation, input, unit) {
        Ok(frontier) => frontier,
        Err(error) => {
            let threads = generation.threads.iter().map(|of| (of.thread, 1));
            return broken_by(error, threads.collect()).map(Some);
        }
    };
    scheduler.begin(generation.number);
    loop {
        let first = frontier.get(0);
        let before = |sample: &CpuSample| first.is_none_or(|(_, event)| sample.time < event.time);
        if let Some(sample) = samples.next_if(before) {
            give(times.correct(sample.time), Next::Sample(sample))?;
            continue;
        }
        if first.is_none() {
            return Ok(None);
        }
        let advanced = advance(&mut frontier, scheduler);
        while let Some(event) = scheduler.take() {
            give(times.correct(event.time), Next::Event(event))?;
        }
        let index = match advanced {
            Ok(index) => index,
            Err(why) => {
                let left_out = frontier.rest(input, generation);
                return Ok(Some(Broken { why, left_out }));
            }
        };
        if let Err(error) = frontier.advance(index, input, generation) {
            let left_out = frontier.rest(input, generation);
            return broken_by(error, left_out).map(Some);
        }
    }
}

/// Finds the thread whose event record is next; an error is the reason why no record can be next.
fn advance(frontier: &mut Frontier, scheduler: &mut Scheduler) -> Result<usize, String> {
    for index in 0..frontier.len() {
        if index == 1 {
            // Rarely needed: nearly always, the earliest event record is next.
            frontier.sort();
        }
        let Some((thread, event)) = frontier.get(index) else {
            break;
        };
        match scheduler.advance(thread, &event) {
            Advance::Done => return Ok(index),
            Advance::Later => {}
            Advance::Broken(why) => {
                return Err(format!("{why} ({:?} of thread {thread})", event.kind));
            }
        }
    }
    Err("no event can be next: event records are missing".to_owned())
}

/// Damage ends a generation; other errors end the import.
fn broken_by(error: ImportError, left_out: Vec<(u64, u64)>) -> Result<Broken, ImportError> {
    match error {
        ImportError::Malformed { offset, what } => Ok(Broken {
            why: format!("byte {offset}: {what}"),
            left_out,
        }),
        error => Err(error),
    }
}
