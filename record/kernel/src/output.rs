//! The trace, in files or in memory, with the names and metadata of lttng-modules.

use std::cell::RefCell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use tracebraid_ctf::schema::{CtfVersion, TraceClass};
use tracebraid_ctf::write::stream::{PacketSize, StreamWriter};
use tracebraid_ctf::write::trace::{self, Session, StreamFiles, TraceWriter};
use tracebraid_ctf::write::{EventPlan, StreamPlan, WriteError};

use crate::chunks::{self, Chunks, Gives, Rotated};
use crate::contexts::OwnContext;
use crate::end_mark::EndReason;
use crate::lane::Event;
use crate::memory::{Kept, Memory, stream_name};
use crate::options::Options;
use crate::recorder::Progress;
use crate::streams::{Events, Streams};

pub(crate) enum Output {
    Files(Box<InFiles>),
    Memory(Box<InMemory>),
}

/// A trace in files; it can be read while it grows.
pub(crate) struct InFiles {
    current: Growing,
    /// The other chunks, if the trace is written as chunks.
    chunks: Option<Chunks>,
    form: Form,
}

/// Common input for the metadata and the streams of all chunks.
struct Form {
    class: TraceClass,
    form: trace::Options,
    cpus: usize,
    own_context: OwnContext,
}

/// A trace in one directory.
struct Growing {
    session: Session,
    /// Size in bytes of the metadata, which does not grow.
    described: u64,
    trace: TraceWriter,
    streams: Streams<StreamFiles>,
    /// Lock that is held as long as the recording continues.
    _going_on: Option<File>,
}

/// A trace that keeps only the newest events, in memory.
pub(crate) struct InMemory {
    directory: PathBuf,
    class: TraceClass,
    form: trace::Options,
    cpus: usize,
    kept: Rc<RefCell<Kept>>,
    streams: Streams<Memory>,
}

impl Output {
    /// A trace of `cpus` CPUs that begins at `begin`.
    pub(crate) fn new(
        directory: &Path,
        class: &TraceClass,
        options: &Options,
        cpus: usize,
        begin: u64,
        own_context: OwnContext,
    ) -> Result<Output, WriteError> {
        let form = trace::Options {
            version: if options.ctf2 {
                CtfVersion::V2_0
            } else {
                CtfVersion::V1_8
            },
            packet_size: PacketSize::UpTo(packet_bytes(options, cpus)),
            ..trace::Options::default()
        };
        let mut output = match options.keep {
            Some(most) => Output::in_memory(directory, class, form, cpus, begin, most),
            None => {
                let class = class.clone();
                let chunks = options
                    .rotation
                    .map(|rotation| Chunks::new(directory, rotation));
                let own_context = own_context.clone();
                let form = Form {
                    class,
                    form,
                    cpus,
                    own_context,
                };
                Output::in_files(directory, form, chunks, begin)
            }
        }?;
        if let Output::Memory(memory) = &mut output {
            memory.streams.set_own_context(&own_context);
        }
        Ok(output)
    }

    fn in_files(
        directory: &Path,
        form: Form,
        mut chunks: Option<Chunks>,
        begin: u64,
    ) -> Result<Output, WriteError> {
        let current = match &mut chunks {
            Some(chunks) => {
                let first = Growing::new(&chunks.next(), &form, None, begin)?;
                chunks.has_begun();
                first
            }
            None => Growing::new(directory, &form, None, begin)?,
        };
        Ok(Output::Files(Box::new(InFiles {
            current,
            chunks,
            form,
        })))
    }

    fn in_memory(
        directory: &Path,
        class: &TraceClass,
        form: trace::Options,
        cpus: usize,
        begin: u64,
        most: u64,
    ) -> Result<Output, WriteError> {
        let plan = StreamPlan::new(class, 0)?;
        let classes = class.streams.iter().flat_map(|stream| &stream.events);
        let plans = classes.map(|event| EventPlan::new(&plan, event).map(Arc::new));
        let plans: Vec<Arc<EventPlan>> = plans.collect::<Result<_, _>>()?;
        let kept = Rc::new(RefCell::new(Kept::new(most)));
        let writer = |cpu: usize| {
            let memory = Memory {
                cpu,
                kept: kept.clone(),
            };
            StreamWriter::new(
                &plan,
                memory,
                form.packet_size,
                cpu as u64,
                &[("cpu_id", cpu as i64)],
            )
        };
        let writers = (0..cpus).map(writer).collect::<Result<_, _>>()?;
        let streams = Streams::new(writers, Arc::new(Events::new(class, plans)), begin)?;
        Ok(Output::Memory(Box::new(InMemory {
            directory: directory.to_owned(),
            class: class.clone(),
            form,
            cpus,
            kept,
            streams,
        })))
    }

    pub(crate) fn event(&mut self, cpu: usize, event: &Event<'_>) -> Result<(), WriteError> {
        match self {
            Output::Files(files) => files.current.streams.event(cpu, event),
            Output::Memory(memory) => memory.streams.event(cpu, event),
        }
    }

    /// Sets the final cumulative count of events that a CPU has lost.
    pub(crate) fn lost(&mut self, cpu: usize, lost: u64) -> Result<(), WriteError> {
        match self {
            Output::Files(files) => files.current.streams.lost(cpu, lost),
            Output::Memory(memory) => memory.streams.lost(cpu, lost),
        }
    }

    /// Counts so far; for a trace in memory, of the kept packets.
    pub(crate) fn progress(&self) -> Progress {
        match self {
            Output::Files(files) => files.progress(),
            Output::Memory(memory) => Progress {
                bytes: memory.kept.borrow().bytes(),
                ..memory.streams.progress()
            },
        }
    }

    /// Size in bytes of all files if the trace ended now; 0 for a trace in memory.
    pub(crate) fn file_bytes(&self) -> u64 {
        match self {
            Output::Files(files) => {
                let finished = files.chunks.as_ref().map_or(0, Chunks::file_bytes);
                finished + files.current.file_bytes()
            }
            Output::Memory(_) => 0,
        }
    }

    /// Size in bytes of the files of the current chunk if it ended now.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        match self {
            Output::Files(files) => files.current.file_bytes(),
            Output::Memory(_) => 0,
        }
    }

    /// Time of the newest written event, or the begin of the chunk if that is later.
    pub(crate) fn newest(&self) -> u64 {
        match self {
            Output::Files(files) => files.current.streams.newest(),
            Output::Memory(memory) => memory.streams.newest(),
        }
    }

    /// Ends the chunk at `time` and begins the next one. All events before `time` must have been
    /// written, and none after.
    pub(crate) fn rotate(
        &mut self,
        time: u64,
        gives: &mut Gives<'_>,
    ) -> Result<Rotated, WriteError> {
        match self {
            Output::Files(files) => files.rotate(time, gives),
            Output::Memory(_) => Ok(Rotated::Done),
        }
    }

    /// The directory of the current chunk.
    pub(crate) fn chunk(&self) -> Option<&Path> {
        match self {
            Output::Files(files) if files.chunks.is_some() => files.current.session.path().parent(),
            _ => None,
        }
    }

    /// True if only the newest events are kept, in memory.
    pub(crate) fn keeps(&self) -> bool {
        matches!(self, Output::Memory(_))
    }

    /// Ends the packets that contain events, so that the events reach the files or the memory.
    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        match self {
            Output::Files(files) => files.current.streams.flush(),
            Output::Memory(_) => Ok(()),
        }
    }

    /// Writes the packets in memory to a directory.
    pub(crate) fn snapshot(&mut self, directory: &Path) -> Result<Progress, WriteError> {
        let Output::Memory(memory) = self else {
            let message =
                "this recording writes all events to files: snapshots need a recording in memory";
            return Err(WriteError::Misuse(message.into()));
        };
        memory.streams.mark_end(EndReason::Snapshot)?;
        memory.streams.flush()?;
        memory.write(directory)?;
        Ok(self.progress())
    }

    /// Ends the trace at a time, for a reason.
    pub(crate) fn finish(mut self, end: u64, reason: EndReason) -> Result<Progress, WriteError> {
        match &mut self {
            Output::Files(files) => {
                files.current.streams.mark_end(reason)?;
                files.current.streams.end(end)?;
            }
            Output::Memory(memory) => {
                memory.streams.mark_end(reason)?;
                memory.streams.end(end)?;
                memory.write(&memory.directory)?;
            }
        }
        let progress = self.progress();
        if let Output::Files(files) = self {
            files.current.finish()?;
        }
        Ok(progress)
    }
}

impl InFiles {
    fn progress(&self) -> Progress {
        let written = self.current.streams.progress();
        self.chunks
            .as_ref()
            .map_or(written, |chunks| chunks.total(written))
    }

    fn rotate(&mut self, time: u64, gives: &mut Gives<'_>) -> Result<Rotated, WriteError> {
        let Some(chunks) = &mut self.chunks else {
            return Ok(Rotated::Done);
        };
        // First the steps that need disk space, so that a full disk leaves the chunk as it is.
        match self.current.streams.flush() {
            Err(error) if gives(&error) => return Ok(Rotated::DiskFull),
            result => result?,
        }
        let directory = chunks.next();
        let mut next = match Growing::new(&directory, &self.form, Some(&self.current), time) {
            Err(error) => {
                chunks::forget(&directory);
                return if gives(&error) {
                    Ok(Rotated::DiskFull)
                } else {
                    Err(error)
                };
            }
            Ok(next) => next,
        };
        chunks.has_begun();
        let mut rotated = Rotated::Done;
        self.current.streams.mark_end(EndReason::Rotated)?;
        match self.current.streams.end(time) {
            Err(error) if gives(&error) => {
                rotated = Rotated::DiskFull;
                self.current.streams.end(time)?;
            }
            result => result?,
        }
        next.streams.go_on(&self.current.streams);
        let ended = std::mem::replace(&mut self.current, next);
        let (written, bytes) = (ended.streams.progress(), ended.file_bytes());
        let path = ended.finish()?;
        chunks.has_finished(&path, written, bytes);
        Ok(rotated)
    }
}

impl Growing {
    /// Reuses the compiled form of the previous chunk, since rings would overflow during
    /// compilation.
    fn new(
        directory: &Path,
        form: &Form,
        before: Option<&Growing>,
        begin: u64,
    ) -> Result<Growing, WriteError> {
        let session = Session::create_live(directory)?;
        let going_on = locked(directory);
        let mut trace = match before {
            Some(before) => session.trace_like(Path::new(""), &before.trace)?,
            None => session.trace(Path::new(""), &form.class, form.form)?,
        };
        let events = Events::new(&form.class, trace.events(0).iter().cloned());
        let writer =
            |cpu| trace.stream(0, &stream_name(cpu), cpu as u64, &[("cpu_id", cpu as i64)]);
        let writers = (0..form.cpus).map(writer).collect::<Result<_, _>>()?;
        let mut streams = Streams::new(writers, Arc::new(events), begin)?;
        streams.set_own_context(&form.own_context);
        let described = std::fs::metadata(directory.join("metadata")).map_or(0, |file| file.len());
        Ok(Growing {
            session,
            described,
            trace,
            streams,
            _going_on: going_on,
        })
    }

    fn file_bytes(&self) -> u64 {
        self.described + self.streams.file_bytes()
    }

    fn finish(self) -> Result<PathBuf, WriteError> {
        self.streams.finish()?;
        drop(self.trace);
        self.session.finish()
    }
}

impl InMemory {
    fn write(&self, directory: &Path) -> Result<(), WriteError> {
        let kept = self.kept.borrow();
        kept.write(directory, &self.class, self.form, self.cpus)
    }
}

/// A lock of the directory of a growing trace, which lasts as long as this process, however it
/// ends: by the lock, readers distinguish a running recording from one whose recorder was killed.
/// `None` on file systems without locks.
fn locked(directory: &Path) -> Option<File> {
    let directory = File::open(directory).ok()?;
    directory.try_lock().is_ok().then_some(directory)
}

/// Maximum size of a packet in bytes. In memory each CPU fills a packet, so that smaller packets
/// leave more of the limit to complete ones.
fn packet_bytes(options: &Options, cpus: usize) -> u32 {
    const LEAST: u64 = 16 << 10;
    let Some(keep) = options.keep else {
        return options.packet_bytes;
    };
    let share = (keep / (4 * cpus.max(1) as u64)).max(LEAST);
    u32::try_from(share)
        .unwrap_or(u32::MAX)
        .min(options.packet_bytes)
}
