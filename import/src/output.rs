//! The output trace: a stream for each CPU, and event classes as they are encountered.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use tracebraid_ctf::schema::build::{Align, Fields, clock, event, identified};
use tracebraid_ctf::schema::{
    ByteOrder, ClockIndex, ClockOrigin, EnvValue, Scope, TraceClass, Uuid,
};
use tracebraid_ctf::write::fields::Fields as Values;
use tracebraid_ctf::write::lttng::{HeaderKind, stream_class, trace_class};
use tracebraid_ctf::write::stream::StreamWriter;
use tracebraid_ctf::write::trace::{Options, Session, StreamFiles, TraceWriter};
use tracebraid_ctf::write::{EventPlan, WriteError};

use crate::error::ImportError;

/// Larger than the largest number of CPUs that Linux supports.
const MOST_CPUS: u32 = 1 << 14;

/// Size of a thread's name in bytes.
const NAME_BYTES: u64 = 16;

/// Properties of a trace that become part of its metadata.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) uuid: Uuid,
    /// `perf` or `ftrace`.
    pub(crate) tracer: &'static str,
    pub(crate) hostname: Option<String>,
    pub(crate) release: Option<String>,
    pub(crate) machine: Option<String>,
    pub(crate) clock: Clock,
    /// Whether events contain their CPUs.
    pub(crate) has_cpus: bool,
    /// Version and command line of the program that wrote the file, and similar properties.
    pub(crate) more: Vec<(&'static str, String)>,
}

/// The clock of all events; it counts nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    pub(crate) name: String,
    /// Nanoseconds from the Epoch to the zero of the clock, if known.
    pub(crate) offset: Option<i64>,
    /// Clocks with the same UUID are considered the same clock.
    pub(crate) uuid: Option<Uuid>,
}

/// Result of writing an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// The event is older than an event of its CPU that has been written already.
    Late,
    /// The values are not those of the event class.
    Broken,
}

/// A trace while it is being written.
pub(crate) struct Output {
    trace: TraceWriter,
    /// By CPU.
    streams: BTreeMap<u32, Stream>,
    has_cpus: bool,
    classes: u64,
}

struct Stream {
    writer: StreamWriter<StreamFiles>,
    /// Time of the last event.
    last: u64,
}

/// The payload of an event class, without any fields yet.
pub(crate) fn payload() -> Fields {
    Fields::new(Scope::Payload, ByteOrder::Little, Align::Bytes)
}

impl Output {
    /// Begins a trace below the session's directory.
    pub(crate) fn new(
        session: &Session,
        below: &Path,
        facts: &Facts,
    ) -> Result<Output, ImportError> {
        let trace = session.trace(below, &schema(facts), Options::default())?;
        Ok(Output {
            trace,
            streams: BTreeMap::new(),
            has_cpus: facts.has_cpus,
            classes: 0,
        })
    }

    /// Adds an event class; `None` if CTF cannot express it.
    pub(crate) fn class(
        &mut self,
        name: &str,
        fields: Fields,
    ) -> Result<Option<Arc<EventPlan>>, ImportError> {
        match self.trace.add_event(0, &event(self.classes, name, fields)) {
            Ok(plan) => {
                self.classes += 1;
                Ok(Some(plan))
            }
            Err(error @ WriteError::Io { .. }) => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    fn stream(&mut self, cpu: u32) -> Result<&mut Stream, ImportError> {
        let cpu = if self.has_cpus { cpu.min(MOST_CPUS) } else { 0 };
        if !self.streams.contains_key(&cpu) {
            let context = [("cpu_id", i64::from(cpu))];
            let context = if self.has_cpus { &context[..] } else { &[] };
            let name = format!("channel0_{cpu}");
            let writer = self.trace.stream(0, &name, u64::from(cpu), context)?;
            self.streams.insert(cpu, Stream { writer, last: 0 });
        }
        let lost = || ImportError::Unsupported("a stream is missing".to_owned());
        self.streams.get_mut(&cpu).ok_or_else(lost)
    }

    /// Writes an event of this CPU; `comm` is the name of its thread, empty if unknown.
    pub(crate) fn record(
        &mut self,
        cpu: u32,
        class: &EventPlan,
        time: u64,
        comm: &[u8],
        mut give: impl FnMut(&mut Values<'_>),
    ) -> Result<Kept, ImportError> {
        let comm = comm.get(..NAME_BYTES as usize).unwrap_or(comm);
        let stream = self.stream(cpu)?;
        if time < stream.last {
            return Ok(Kept::Late);
        }
        let written = stream.writer.record(class, time, |fields| {
            fields.bytes(comm);
            give(fields);
        });
        match written {
            Ok(()) => {
                stream.last = time;
                Ok(Kept::Yes)
            }
            Err(WriteError::Field { .. } | WriteError::EventTooLarge { .. }) => Ok(Kept::Broken),
            Err(error) => Err(error.into()),
        }
    }

    /// Records that events were lost on the CPU after its last event, and before `until` if that is
    /// known. The count goes into a separate packet, so that readers can locate the loss.
    pub(crate) fn discard(
        &mut self,
        cpu: u32,
        until: Option<u64>,
        events: u64,
    ) -> Result<(), ImportError> {
        let stream = self.stream(cpu)?;
        match until.filter(|&time| time > stream.last) {
            // There was no earlier event, so the beginning of the loss is unknown.
            Some(time) if stream.last == 0 => stream.last = time,
            Some(time) => {
                stream.writer.flush(stream.last)?;
                stream.writer.discard(events);
                stream.last = time;
                return Ok(stream.writer.flush(time)?);
            }
            None => {}
        }
        stream.writer.flush(stream.last)?;
        stream.writer.discard(events);
        Ok(())
    }

    /// Ends the stream of this CPU.
    pub(crate) fn finish_cpu(&mut self, cpu: u32) -> Result<(), ImportError> {
        match self.streams.remove(&cpu) {
            Some(stream) => Ok(stream.writer.finish()?),
            None => Ok(()),
        }
    }

    /// Ends all streams.
    pub(crate) fn finish(self) -> Result<(), ImportError> {
        for (_, stream) in self.streams {
            stream.writer.finish()?;
        }
        Ok(())
    }
}

fn schema(facts: &Facts) -> TraceClass {
    let order = ByteOrder::Little;
    let mut class = trace_class(facts.uuid, order);
    let mut clock = clock(
        &facts.clock.name,
        1_000_000_000,
        facts.clock.offset.unwrap_or_default(),
    );
    if facts.clock.offset.is_none() {
        clock.origin = ClockOrigin::Unknown;
    }
    if let Some(uuid) = facts.clock.uuid {
        clock = identified(clock, uuid);
    }
    class.clocks.push(clock);
    let context: &[(&str, u32)] = if facts.has_cpus {
        &[("cpu_id", 32)]
    } else {
        &[]
    };
    let mut stream = stream_class(0, order, ClockIndex::default(), HeaderKind::Large, context);
    let common = Fields::new(Scope::CommonContext, order, Align::Bytes);
    stream.common_context = Some(common.text("procname", NAME_BYTES).build());
    class.streams.push(stream);
    let own = [
        ("hostname", &facts.hostname),
        ("kernel_release", &facts.release),
        ("machine", &facts.machine),
    ];
    let own = own
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.clone()?)));
    let first = [
        ("domain", "kernel"),
        ("sysname", "Linux"),
        ("tracer_name", facts.tracer),
    ];
    class.environment = first
        .into_iter()
        .map(|(name, value)| (name, value.to_owned()))
        .chain(own)
        .chain(facts.more.iter().cloned())
        .map(|(name, value)| (name.to_owned(), EnvValue::Str(sound(&value))))
        .collect();
    class
}

/// Replaces characters that a string of CTF 1.8 metadata cannot contain.
pub(crate) fn sound(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}
