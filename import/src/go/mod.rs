//! Execution traces of Go (`runtime/trace`, the pprof endpoint, the flight recorder), versions 1.22 to
//! 1.26.
//!
//! In: a file that begins with `go 1.22 trace`, `1.23`, `1.25` or `1.26`. Out: a trace of domain
//! `ust` whose user-level threads are goroutines, with a stream for each thread of the program.
//!
//! A file consists of generations (`generation`), each with the batches of threads, strings, stacks
//! and clocks. Batches of a thread are in the order of time; `frontier` offers the next event record
//! of each thread, `scheduler` decides which comes next, `order` joins both and corrects times,
//! and `writer` writes CTF. In memory are the tables of a generation and a batch of each thread.
//!
//! Events of a generation that cannot be put in order are left out and reported, and the next one is
//! read as if the trace began there.
//!
//! Source of the format: `internal/trace` and `internal/trace/tracev2` of Go 1.26.

mod classes;
mod clock;
mod event_kind;
mod frontier;
mod generation;
mod order;
mod scheduler;
mod spans;
mod stacks;
mod streams;
mod version;
mod writer;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tracebraid_ctf::schema::Uuid;
use tracebraid_ctf::write::trace::Session;

use crate::error::ImportError;
use crate::input::Input;
use crate::summary::Summary;
use clock::{Relation, Unit};
use event_kind::Kind;
use generation::{Ending, Generation, Generations};
use order::{Times, play};
use scheduler::Scheduler;
use streams::{Facts, Streams};
use version::{HEAD_BYTES, Version};
use writer::Writer;

pub(crate) use version::is_magic;

/// Events between two checks whether the import must stop.
const PATIENCE: u64 = 1 << 12;

/// The process that recorded a trace, as far as it is known: the file does not contain it.
#[derive(Clone, Debug, Default)]
pub struct GoProcess {
    /// Process id.
    pub pid: Option<u32>,
    /// Name of the process.
    pub name: Option<String>,
    /// Name of the host.
    pub hostname: Option<String>,
    /// UUID of the monotonic clock of the boot, and nanoseconds from the Epoch to its zero, as in
    /// other traces of the same recording.
    pub clock: Option<(Uuid, i64)>,
    /// Write all times as Go's own reader corrects them, however far. A thread that is preempted
    /// between an act and its record makes such times late for all other threads.
    pub has_times_of_go: bool,
}

/// Largest correction of a time that is written, in nanoseconds.
const MOST_CORRECTION_NS: u64 = 1_000;

/// Imports the file into the directory `below` that of the session.
pub(crate) fn import(
    mut input: Input,
    (session, below): (&Session, &Path),
    process: &GoProcess,
    stop: &AtomicBool,
) -> Result<Summary, ImportError> {
    let version = Version::of(&input.head(HEAD_BYTES)?)?;
    let mut summary = Summary {
        format: format!("execution trace of Go {version}"),
        ..Summary::default()
    };
    let uuid = input.uuid()?;
    let mut generations = Generations::new(version, HEAD_BYTES);
    let Some(first) = next(&mut generations, &mut input, &mut summary)? else {
        return Err(nothing(&summary));
    };
    let unit = unit(&first).unwrap_or_else(|| Unit::of(1_000_000_000));
    let relation = Relation::of(first.snapshot.as_ref(), unit);
    let process = GoProcess {
        pid: process.pid.or_else(|| first.least_thread()),
        ..process.clone()
    };
    let facts = Facts {
        uuid,
        version,
        relation,
        resolution: unit.resolution(),
        process: &process,
    };
    let streams = Streams::new(session, below, &facts)?;
    let mut reading = Reading {
        writer: Writer::new(streams, &mut summary, &process),
        has_times_of_go: process.has_times_of_go,
        scheduler: Scheduler::default(),
        times: Times::default(),
        is_known: false,
        played: 0,
        lacks: Lacks::default(),
        damage: Vec::new(),
    };
    let mut generation = Some(first);
    while let Some(current) = generation {
        reading.generation(&current, &input, stop)?;
        generation = next(&mut generations, &mut input, reading.writer.summary)?;
    }
    let is_timeless = relation.offset.is_none() && process.clock.is_none();
    reading.finish(is_timeless)?;
    Ok(summary)
}

/// Reads the next generation that is complete; reports one that is not.
fn next(
    generations: &mut Generations,
    input: &mut Input,
    summary: &mut Summary,
) -> Result<Option<Generation>, ImportError> {
    let Some((generation, ending)) = generations.next(input)? else {
        return Ok(None);
    };
    let number = generation.number;
    let why = match ending {
        Ending::Whole if unit(&generation).is_some() => return Ok(Some(generation)),
        Ending::Whole => "the file ends before its strings and clocks".to_owned(),
        // In an old format, the damage may be in the next generation.
        Ending::Cut(what) if generation.is_usable() => {
            summary.damage.push(format!("{what}; the rest is left out"));
            generations.stop(input);
            return Ok(Some(generation));
        }
        Ending::Cut(what) => what,
    };
    let bytes = input.length().saturating_sub(generation.from);
    summary.damage.push(format!(
        "byte {}: generation {number} is incomplete and left out, {bytes} bytes: {why}",
        generation.from
    ));
    Ok(None)
}

/// Why nothing of a file could be read.
fn nothing(summary: &Summary) -> ImportError {
    let what = match summary.damage.first() {
        Some(damage) => format!(
            "the trace ends within its first second, before the runtime wrote the names ({damage}): \
             stop the trace (trace.Stop) before the program ends"
        ),
        None => "the trace is empty".to_owned(),
    };
    ImportError::malformed(HEAD_BYTES, what)
}

fn unit(generation: &Generation) -> Option<Unit> {
    generation.frequency.map(Unit::of)
}

/// Counts of what the trace contains and the import leaves out.
#[derive(Default)]
struct Lacks {
    experimental_bytes: u64,
}

/// The state of an import from one generation to the next.
struct Reading<'a> {
    writer: Writer<'a>,
    has_times_of_go: bool,
    scheduler: Scheduler,
    times: Times,
    /// Whether the states of all goroutines are known.
    is_known: bool,
    played: u64,
    lacks: Lacks,
    damage: Vec<String>,
}

impl Reading<'_> {
    fn generation(
        &mut self,
        generation: &Generation,
        input: &Input,
        stop: &AtomicBool,
    ) -> Result<(), ImportError> {
        let unit = unit(generation).unwrap_or_else(|| Unit::of(1_000_000_000));
        self.lacks.experimental_bytes += generation.experimental;
        self.writer.begin_generation();
        let begin = self.times.correct(unit.nanoseconds(generation.begin));
        if !self.is_known {
            self.states((generation, input, unit), begin)?;
            self.is_known = true;
        }
        let (writer, played) = (&mut self.writer, &mut self.played);
        let has_times_of_go = self.has_times_of_go;
        let broken = play(
            (generation, input, unit),
            &mut self.scheduler,
            &mut self.times,
            |time, next| {
                *played += 1;
                if played.is_multiple_of(PATIENCE) && stop.load(Ordering::Relaxed) {
                    return Err(ImportError::Interrupted);
                }
                let recorded = next.time();
                let is_near = time.saturating_sub(recorded) <= MOST_CORRECTION_NS;
                let time = match has_times_of_go || is_near {
                    true => time,
                    false => recorded,
                };
                writer.write(generation, time, next)
            },
        )?;
        if let Some(broken) = broken {
            let count: u64 = broken.left_out.iter().map(|(_, count)| count).sum();
            self.damage.push(format!(
                "byte {}: {count} event records of generation {} are left out: {}",
                generation.from, generation.number, broken.why
            ));
            for (thread, count) in broken.left_out {
                self.writer.streams.discard(thread, count)?;
            }
            self.writer.lose_sight();
            self.scheduler = Scheduler::default();
            self.is_known = false;
        }
        Ok(())
    }

    /// Writes the states of all goroutines that exist at the begin of a generation. Each is recorded
    /// at the first event of its goroutine, and was the same up to there.
    fn states(
        &mut self,
        (generation, input, unit): (&Generation, &Input, Unit),
        begin: u64,
    ) -> Result<(), ImportError> {
        let mut written = Ok(());
        let writer = &mut self.writer;
        let read = frontier::each_event(generation, input, unit, |thread, event| {
            let is_status = matches!(event.kind, Kind::GoStatus | Kind::GoStatusStack);
            if is_status && written.is_ok() {
                written = writer.state(generation, begin, thread, event);
            }
        });
        written?;
        match read {
            // Playing the generation finds the damage again, and reports it.
            Err(ImportError::Malformed { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn finish(self, is_timeless: bool) -> Result<(), ImportError> {
        let writer = self.writer;
        let summary = writer.summary;
        summary.damage.splice(0..0, self.damage);
        if writer.streams.left_out > 0 {
            summary.damage.push(format!(
                "{} event records with values that CTF cannot express were left out",
                writer.streams.left_out
            ));
        }
        if is_timeless {
            let what = "the time of day is unknown (recorded since Go 1.25)";
            summary.lacks.push(what.to_owned());
        }
        if writer.experimental > 0 || self.lacks.experimental_bytes > 0 {
            let what = format!(
                "{} experimental events and {} bytes of experimental batches are not imported",
                writer.experimental, self.lacks.experimental_bytes
            );
            summary.lacks.push(what);
        }
        writer.streams.finish()
    }
}
