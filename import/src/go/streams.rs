//! The trace: a stream for each thread of the Go program.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use tracebraid_ctf::schema::build::{Align, Fields, clock, event, identified};
use tracebraid_ctf::schema::{
    ByteOrder, ClockIndex, ClockOrigin, EnvValue, Scope, TraceClass, Uuid,
};
use tracebraid_ctf::write::fields::Fields as Values;
use tracebraid_ctf::write::lttng::{HeaderKind, stream_class, trace_class};
use tracebraid_ctf::write::stream::{PacketSize, StreamWriter};
use tracebraid_ctf::write::trace::{Options, Session, StreamFiles, TraceWriter};
use tracebraid_ctf::write::{EventPlan, WriteError};

use super::classes::Class;
use super::clock::Relation;
use super::scheduler::NO_THREAD;
use super::{GoProcess, version::Version};
use crate::error::ImportError;
use crate::output::sound;
use crate::summary::Summary;

/// Limit for the number of threads with a stream of their own, since each has an open file; the
/// others share one.
const MOST_STREAMS: usize = 256;

/// Size of packets: small, since there may be many streams.
const PACKET_BYTES: u32 = 1 << 17;

/// The streams while they are written.
pub(super) struct Streams {
    trace: TraceWriter,
    /// With the times of their last event records.
    streams: Vec<(StreamWriter<StreamFiles>, u64)>,
    by_thread: HashMap<u64, usize>,
    plans: Vec<Arc<EventPlan>>,
    /// Stream of all threads beyond the limit.
    shared: Option<usize>,
    /// Goroutine and state of threads that run one when they begin, for their first event record.
    pub(super) initial: HashMap<u64, (u64, u64)>,
    /// Event records that the trace cannot hold.
    pub(super) left_out: u64,
}

/// Properties of the trace in its metadata.
pub(super) struct Facts<'a> {
    pub(super) uuid: Uuid,
    pub(super) version: Version,
    pub(super) relation: Relation,
    /// Of the clock, in nanoseconds.
    pub(super) resolution: u64,
    pub(super) process: &'a GoProcess,
}

/// The Linux id of a thread; -1 for none. Ids of other systems are shortened.
pub(super) fn tid(thread: u64) -> i64 {
    match thread {
        NO_THREAD => -1,
        _ => (thread & i32::MAX as u64) as i64,
    }
}

impl Streams {
    pub(super) fn new(
        session: &Session,
        below: &Path,
        facts: &Facts<'_>,
    ) -> Result<Streams, ImportError> {
        let options = Options {
            packet_size: PacketSize::UpTo(PACKET_BYTES),
            ..Options::default()
        };
        let trace = session.trace(below, &schema(facts), options)?;
        let plans = trace.events(0).to_vec();
        Ok(Streams {
            trace,
            streams: Vec::new(),
            by_thread: HashMap::new(),
            plans,
            shared: None,
            initial: HashMap::new(),
            left_out: 0,
        })
    }

    /// The stream of a thread, and whether the thread is new.
    fn stream(&mut self, thread: u64) -> Result<(usize, bool), ImportError> {
        if let Some(&index) = self.by_thread.get(&thread) {
            return Ok((index, false));
        }
        let next = self.streams.len();
        let index = match self.shared {
            Some(shared) => shared,
            None => {
                let name = match thread {
                    _ if next == MOST_STREAMS => "lwp_others".to_owned(),
                    NO_THREAD => "lwp_none".to_owned(),
                    _ => format!("lwp_{thread}"),
                };
                let stream = self.trace.stream(0, &name, next as u64, &[])?;
                self.streams.push((stream, 0));
                next
            }
        };
        if next == MOST_STREAMS {
            self.shared = Some(index);
        }
        self.by_thread.insert(thread, index);
        Ok((index, true))
    }

    /// Writes an event record of a thread, at this time or that of the stream's last record.
    pub(super) fn record(
        &mut self,
        (thread, time): (u64, u64),
        class: Class,
        summary: &mut Summary,
        give: impl FnMut(&mut Values<'_>),
    ) -> Result<(), ImportError> {
        let (index, is_new) = self.stream(thread)?;
        if is_new && thread != NO_THREAD {
            self.put(index, (thread, time), Class::LwpBegin, summary, |fields| {
                fields.string("go");
            })?;
            if let Some((goroutine, state)) = self.initial.remove(&thread) {
                self.put(index, (thread, time), Class::UltState, summary, |fields| {
                    let fields = fields.uint(goroutine).int(tid(thread)).uint(state);
                    fields.string("").string("");
                })?;
            }
        }
        self.put(index, (thread, time), class, summary, give)
    }

    fn put(
        &mut self,
        index: usize,
        (thread, time): (u64, u64),
        class: Class,
        summary: &mut Summary,
        mut give: impl FnMut(&mut Values<'_>),
    ) -> Result<(), ImportError> {
        let (Some((stream, last)), Some(plan)) =
            (self.streams.get_mut(index), self.plans.get(class as usize))
        else {
            return Ok(());
        };
        *last = time.max(*last);
        let time = *last;
        let written = stream.record(plan, time, |fields| {
            fields.int(tid(thread));
            give(fields);
        });
        match written {
            Ok(()) => summary.event(class.name()),
            Err(WriteError::Field { .. } | WriteError::EventTooLarge { .. }) => self.left_out += 1,
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Counts event records of a thread that were lost.
    pub(super) fn discard(&mut self, thread: u64, events: u64) -> Result<(), ImportError> {
        let (index, _) = self.stream(thread)?;
        if let Some((stream, _)) = self.streams.get_mut(index) {
            stream.discard(events);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), ImportError> {
        for (stream, _) in self.streams {
            stream.finish()?;
        }
        Ok(())
    }
}

fn schema(facts: &Facts<'_>) -> TraceClass {
    let order = ByteOrder::Little;
    let process = facts.process;
    let mut class = trace_class(facts.uuid, order);
    let name = match facts.relation.is_monotonic {
        true => "monotonic",
        false => "go",
    };
    let of_recording = process.clock.filter(|_| facts.relation.is_monotonic);
    let offset = of_recording.map(|(_, offset)| offset);
    let offset = offset.or(facts.relation.offset);
    let mut clock = clock(name, 1_000_000_000, offset.unwrap_or_default());
    if offset.is_none() {
        clock.origin = ClockOrigin::Unknown;
    }
    clock.precision = Some(facts.resolution);
    if let Some((uuid, _)) = of_recording {
        clock = identified(clock, uuid);
    }
    class.clocks.push(clock);
    let mut stream = stream_class(0, order, ClockIndex::default(), HeaderKind::Large, &[]);
    let context = Fields::new(Scope::CommonContext, order, Align::Bytes);
    stream.common_context = Some(context.int("tid", 32).build());
    let events = Class::ALL.iter().enumerate();
    let events = events.map(|(id, class)| event(id as u64, class.name(), class.layout()));
    stream.events = events.collect();
    class.streams.push(stream);
    let text = |text: &str| EnvValue::Str(sound(text));
    let version = facts.version.to_string();
    let known = [
        ("hostname", process.hostname.as_deref().map(text)),
        ("domain", Some(text("ust"))),
        ("tracer_name", Some(text("go"))),
        ("go_trace_version", Some(text(&version))),
        ("vpid", process.pid.map(|pid| EnvValue::Int(pid.into()))),
        ("procname", process.name.as_deref().map(text)),
    ];
    let known = known.into_iter();
    class.environment = known
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect();
    class
}
