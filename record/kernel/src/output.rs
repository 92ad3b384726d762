//! The trace that is written: one stream for each CPU, as lttng-modules names and describes it.

use std::path::Path;
use std::sync::Arc;

use tracebraid_ctf::schema::{CtfVersion, TraceClass};
use tracebraid_ctf::write::stream::{PacketSize, StreamWriter};
use tracebraid_ctf::write::trace::{self, Session, StreamFiles, TraceWriter};
use tracebraid_ctf::write::{EventPlan, WriteError};

use crate::error::RecordError;
use crate::lane::Event;
use crate::options::Options;
use crate::recorder::Progress;

/// The trace.
pub(crate) struct Output {
    session: Session,
    trace: TraceWriter,
    streams: Vec<Stream>,
    /// By id.
    events: Vec<Option<Arc<EventPlan>>>,
    written: u64,
}

/// What one CPU's events go to.
struct Stream {
    writer: StreamWriter<StreamFiles>,
    /// Time of the last event.
    last: u64,
    /// What was lost by then.
    lost: u64,
}

impl Output {
    /// Makes the directory, with streams that have begun at that time.
    pub(crate) fn new(
        directory: &Path,
        class: &TraceClass,
        options: &Options,
        cpus: usize,
        begin: u64,
    ) -> Result<Output, RecordError> {
        let session = Session::create_live(directory)?;
        let form = trace::Options {
            version: if options.ctf2 {
                CtfVersion::V2_0
            } else {
                CtfVersion::V1_8
            },
            packet_size: PacketSize::UpTo(options.packet_bytes),
            ..trace::Options::default()
        };
        let mut trace = session.trace(Path::new(""), class, form)?;
        let events = by_id(class, &trace);
        let mut streams = Vec::new();
        for cpu in 0..cpus {
            let mut writer = trace.stream(
                0,
                &format!("channel0_{cpu}"),
                cpu as u64,
                &[("cpu_id", cpu as i64)],
            )?;
            writer.start(begin)?;
            streams.push(Stream {
                writer,
                last: begin,
                lost: 0,
            });
        }
        Ok(Output {
            session,
            trace,
            streams,
            events,
            written: 0,
        })
    }

    /// Writes an event of a CPU.
    pub(crate) fn event(&mut self, cpu: usize, event: &Event<'_>) -> Result<(), RecordError> {
        let plan = self.events.get(usize::from(event.id)).and_then(Option::as_ref);
        let (Some(stream), Some(plan)) = (self.streams.get_mut(cpu), plan) else {
            return Ok(());
        };
        // What still comes too late happens now: time does not go back in a stream.
        let time = event.time.max(stream.last);
        if event.lost != stream.lost {
            stream.lose(event.lost, time)?;
        }
        stream.writer.record_encoded(plan, time, event.payload)?;
        stream.last = time;
        self.written += 1;
        Ok(())
    }

    /// What a CPU has lost in all by the end.
    pub(crate) fn lost(&mut self, cpu: usize, lost: u64) -> Result<(), RecordError> {
        match self.streams.get_mut(cpu) {
            Some(stream) if stream.lost != lost => Ok(stream.lose(lost, stream.last)?),
            _ => Ok(()),
        }
    }

    /// What has been written up to now.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            events: self.written,
            lost: self.streams.iter().map(|stream| stream.lost).sum(),
            bytes: self.streams.iter().map(|stream| stream.writer.bytes()).sum(),
        }
    }

    /// Ends all streams at that time.
    pub(crate) fn finish(mut self, end: u64) -> Result<Progress, RecordError> {
        for stream in &mut self.streams {
            stream.writer.flush(end.max(stream.last))?;
        }
        let progress = self.progress();
        for stream in self.streams {
            stream.writer.finish()?;
        }
        drop(self.trace);
        self.session.finish()?;
        Ok(progress)
    }
}

impl Stream {
    /// Between the last event and that time events were lost: a packet ends before them, so that readers see
    /// where.
    fn lose(&mut self, lost: u64, time: u64) -> Result<(), WriteError> {
        self.writer.flush(self.last.min(time))?;
        self.writer.discard(lost - self.lost);
        self.lost = lost;
        Ok(())
    }
}

fn by_id(class: &TraceClass, trace: &TraceWriter) -> Vec<Option<Arc<EventPlan>>> {
    let classes = class.streams.iter().flat_map(|stream| &stream.events);
    let mut events = Vec::new();
    for (event, plan) in classes.zip(trace.events(0)) {
        let id = event.id as usize;
        if id >= events.len() {
            events.resize(id + 1, None);
        }
        if let Some(place) = events.get_mut(id) {
            *place = Some(plan.clone());
        }
    }
    events
}
