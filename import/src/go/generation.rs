//! The batches of a file by generation, and the tables of a generation.
//!
//! A file is a sequence of batches: a head, and at most 64 KiB of event records of one thread, of
//! strings, of stacks, of CPU samples, or of clocks. Every second or so the runtime begins a new
//! generation, which has strings, stacks and clocks of its own. Until Go 1.25, a generation ends
//! where the next begins; since 1.26 its end is marked.
//!
//! Source: `internal/trace/batch.go` and `generation.go` of Go 1.26.

use std::collections::HashMap;

use super::clock::Snapshot;
use super::version::Version;
use crate::bytes::Bytes;
use crate::error::ImportError;
use crate::input::Input;

const EVENT_BATCH: u8 = 1;
const STACKS: u8 = 2;
const STACK: u8 = 3;
const STRINGS: u8 = 4;
const STRING: u8 = 5;
const CPU_SAMPLES: u8 = 6;
const CPU_SAMPLE: u8 = 7;
const FREQUENCY: u8 = 8;
const EXPERIMENTAL_BATCH: u8 = 49;
const SYNC: u8 = 50;
const CLOCK_SNAPSHOT: u8 = 51;
const END_OF_GENERATION: u8 = 52;

/// Limits of the format.
const MOST_BATCH_BYTES: u64 = 64 << 10;
const MOST_STRING_BYTES: u64 = 1 << 10;
const MOST_FRAMES: u64 = 128;

/// Bytes of the head of a batch: the kind, the experiment and four numbers.
const MOST_HEAD_BYTES: usize = 2 + 4 * 10;

/// A batch of event records in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch {
    /// Of the first byte after the head, and the number of bytes.
    pub(super) offset: u64,
    pub(super) size: u64,
    /// In units of the trace's clock.
    pub(super) time: u64,
}

/// The batches of a thread, in the order of the file.
#[derive(Debug)]
pub(super) struct ThreadBatches {
    pub(super) thread: u64,
    pub(super) batches: Vec<Batch>,
}

/// A function of a stack by its string.
type Function = u64;

/// A sample of a running thread, with its time in units of the trace's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpuSample {
    pub(super) time: u64,
    pub(super) thread: u64,
    pub(super) processor: u64,
    pub(super) goroutine: u64,
    pub(super) stack: u64,
}

/// A generation. All sizes are limited by the size of the file.
#[derive(Debug, Default)]
pub(super) struct Generation {
    pub(super) number: u64,
    /// In the order of their first batches, which decides between equal times.
    pub(super) threads: Vec<ThreadBatches>,
    by_thread: HashMap<u64, usize>,
    /// Earliest time of a batch, of all kinds.
    pub(super) begin: u64,
    strings: HashMap<u64, String>,
    /// Program counters, leaf first.
    stacks: HashMap<u64, Vec<u64>>,
    functions: HashMap<u64, Function>,
    pub(super) samples: Vec<CpuSample>,
    /// Units of the trace's clock per second.
    pub(super) frequency: Option<u64>,
    pub(super) snapshot: Option<Snapshot>,
    /// Bytes of experimental batches, which are not imported.
    pub(super) experimental: u64,
    /// Of its first batch and of its end in the file.
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Why a generation ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// As the format prescribes.
    Whole,
    /// The file ends or is damaged within it.
    Cut(String),
}

/// Reads generations from the file.
pub(super) struct Generations {
    version: Version,
    at: u64,
}

struct Head {
    kind: u8,
    generation: u64,
    thread: u64,
    batch: Batch,
}

impl Generations {
    /// Begins after the head of the file.
    pub(super) fn new(version: Version, at: u64) -> Generations {
        Generations { version, at }
    }

    /// Reads no further generation.
    pub(super) fn stop(&mut self, input: &Input) {
        self.at = input.length();
    }

    /// Reads the next generation; `None` at the end of the file.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
    ) -> Result<Option<(Generation, Ending)>, ImportError> {
        let mut generation = Generation {
            from: self.at,
            ..Generation::default()
        };
        let ending = loop {
            generation.to = self.at;
            if self.at >= input.length() {
                let is_whole = !self.version.marks_ends();
                break match is_whole || generation.is_empty() {
                    true => Ending::Whole,
                    false => Ending::Cut("the file ends within a generation".to_owned()),
                };
            }
            match self.batch(input, &mut generation) {
                Ok(true) => {}
                Ok(false) => break Ending::Whole,
                Err(ImportError::Malformed { offset, what }) => {
                    break Ending::Cut(format!("byte {offset}: {what}"));
                }
                Err(error) => return Err(error),
            }
        };
        if generation.is_empty() && ending == Ending::Whole {
            return Ok(None);
        }
        Ok(Some((generation, ending)))
    }

    /// Reads a batch; false at the end of the generation.
    fn batch(&mut self, input: &mut Input, to: &mut Generation) -> Result<bool, ImportError> {
        let head = head(input, self.at)?;
        if head.kind == END_OF_GENERATION {
            self.at += 1;
            return Ok(false);
        }
        let malformed = |what: &str| ImportError::malformed(self.at, what);
        if head.generation == 0 {
            return Err(malformed("a batch of generation 0"));
        }
        if !to.is_empty() && head.generation != to.number {
            let is_next = head.generation == to.number.wrapping_add(1);
            if is_next && !self.version.marks_ends() {
                return Ok(false);
            }
            return Err(malformed("a batch of another generation"));
        }
        let batch = head.batch;
        if batch.size > input.length().saturating_sub(batch.offset) {
            return Err(malformed("the file ends within a batch"));
        }
        if to.is_empty() {
            to.number = head.generation;
            to.begin = batch.time;
        }
        to.begin = to.begin.min(batch.time);
        to.add(&head, input, self.version)?;
        self.at = batch.offset + batch.size;
        Ok(true)
    }
}

/// Reads the head of the batch at this offset.
fn head(input: &mut Input, at: u64) -> Result<Head, ImportError> {
    let bytes = input.at(at, MOST_HEAD_BYTES)?;
    let mut bytes = Bytes::new(bytes, at, false);
    let kind = bytes.u8()?;
    let mut head = Head {
        kind,
        generation: 0,
        thread: 0,
        batch: Batch {
            offset: at,
            size: 0,
            time: 0,
        },
    };
    match kind {
        END_OF_GENERATION => return Ok(head),
        EVENT_BATCH => {}
        EXPERIMENTAL_BATCH => {
            bytes.u8()?;
        }
        _ => {
            let what = format!("a batch of the unknown kind {kind}");
            return Err(ImportError::malformed(at, what));
        }
    }
    head.generation = bytes.uvarint()?;
    head.thread = bytes.uvarint()?;
    head.batch.time = bytes.uvarint()?;
    head.batch.size = bytes.uvarint()?;
    if head.batch.size > MOST_BATCH_BYTES {
        let what = format!("a batch of {} bytes is too large", head.batch.size);
        return Err(ImportError::malformed(at, what));
    }
    head.batch.offset = bytes.offset();
    Ok(head)
}

impl Generation {
    fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// True if the generation has what the runtime writes at its end.
    pub(super) fn is_usable(&self) -> bool {
        self.frequency.is_some() && !self.strings.is_empty()
    }

    fn add(&mut self, head: &Head, input: &mut Input, version: Version) -> Result<(), ImportError> {
        let batch = head.batch;
        if head.kind == EXPERIMENTAL_BATCH {
            self.experimental += batch.size;
            return Ok(());
        }
        let data = input.at(batch.offset, batch.size as usize)?;
        let mut data = Bytes::new(data, batch.offset, false);
        match data.rest().first() {
            Some(&STRINGS) => self.add_strings(&mut data),
            Some(&STACKS) => self.add_stacks(&mut data),
            Some(&CPU_SAMPLES) => self.add_samples(&mut data),
            Some(&FREQUENCY) if !version.has_snapshots() => self.add_clocks(&mut data, batch.time),
            Some(&SYNC) if version.has_snapshots() => {
                data.u8()?;
                self.add_clocks(&mut data, batch.time)
            }
            _ => {
                self.add_events(head.thread, batch);
                Ok(())
            }
        }
    }

    fn add_events(&mut self, thread: u64, batch: Batch) {
        let next = self.threads.len();
        let index = *self.by_thread.entry(thread).or_insert(next);
        if index == next {
            let batches = Vec::new();
            self.threads.push(ThreadBatches { thread, batches });
        }
        if let Some(of_thread) = self.threads.get_mut(index) {
            of_thread.batches.push(batch);
        }
    }

    fn add_strings(&mut self, data: &mut Bytes<'_>) -> Result<(), ImportError> {
        data.u8()?;
        while !data.rest().is_empty() {
            expect(data, STRING, "string")?;
            let id = data.uvarint()?;
            let length = data.uvarint()?;
            if length > MOST_STRING_BYTES {
                let what = format!("a string of {length} bytes is too long");
                return Err(ImportError::malformed(data.offset(), what));
            }
            let text = String::from_utf8_lossy(data.take(length)?);
            // A null character would end the string in CTF.
            self.strings.insert(id, text.replace('\0', " "));
        }
        Ok(())
    }

    fn add_stacks(&mut self, data: &mut Bytes<'_>) -> Result<(), ImportError> {
        data.u8()?;
        while !data.rest().is_empty() {
            expect(data, STACK, "stack")?;
            let id = data.uvarint()?;
            let count = data.uvarint()?;
            if count > MOST_FRAMES {
                let what = format!("a stack of {count} frames is too large");
                return Err(ImportError::malformed(data.offset(), what));
            }
            let mut frames = Vec::with_capacity(count as usize);
            for _ in 0..count {
                let counter = data.uvarint()?;
                let function = data.uvarint()?;
                // File and line.
                data.uvarint()?;
                data.uvarint()?;
                frames.push(counter);
                self.functions.entry(counter).or_insert(function);
            }
            self.stacks.insert(id, frames);
        }
        Ok(())
    }

    fn add_samples(&mut self, data: &mut Bytes<'_>) -> Result<(), ImportError> {
        data.u8()?;
        while !data.rest().is_empty() {
            expect(data, CPU_SAMPLE, "sample")?;
            let mut next = || data.uvarint();
            self.samples.push(CpuSample {
                time: next()?,
                thread: next()?,
                processor: next()?,
                goroutine: next()?,
                stack: next()?,
            });
        }
        Ok(())
    }

    fn add_clocks(&mut self, data: &mut Bytes<'_>, begin: u64) -> Result<(), ImportError> {
        while !data.rest().is_empty() {
            let offset = data.offset();
            match data.u8()? {
                FREQUENCY => self.frequency = Some(data.uvarint()?).filter(|of| *of > 0),
                CLOCK_SNAPSHOT => {
                    self.snapshot = Some(Snapshot {
                        trace: begin.saturating_add(data.uvarint()?),
                        monotonic: data.uvarint()?,
                        seconds: data.uvarint()?,
                        nanoseconds: data.uvarint()?,
                    });
                }
                kind => {
                    let what = format!("an event of kind {kind} among clocks");
                    return Err(ImportError::malformed(offset, what));
                }
            }
        }
        Ok(())
    }

    /// The smallest id of a thread. On Linux it is that of the process, unless the main thread is idle
    /// for the whole generation.
    pub(super) fn least_thread(&self) -> Option<u32> {
        let threads = self.threads.iter().map(|of| of.thread).min();
        threads.and_then(|thread| u32::try_from(thread).ok())
    }

    /// A string; empty if the file lacks it. The number 0 is the empty string.
    pub(super) fn string(&self, id: u64) -> &str {
        self.strings.get(&id).map_or("", String::as_str)
    }

    /// The functions of a stack, leaf first.
    pub(super) fn functions(&self, stack: u64) -> impl DoubleEndedIterator<Item = &str> {
        let counters = self.stacks.get(&stack).into_iter().flatten();
        counters.map(|counter| {
            let function = self.functions.get(counter).copied();
            self.string(function.unwrap_or(0))
        })
    }

    /// The function that begins a stack: for all stacks of a goroutine, the one it was started with.
    pub(super) fn root(&self, stack: u64) -> &str {
        self.functions(stack).next_back().unwrap_or_default()
    }
}

fn expect(data: &mut Bytes<'_>, kind: u8, what: &str) -> Result<(), ImportError> {
    let offset = data.offset();
    match data.u8()? {
        found if found == kind => Ok(()),
        found => {
            let what = format!("expected a {what}, found kind {found}");
            Err(ImportError::malformed(offset, what))
        }
    }
}
