//! The streams of a trace: one for each CPU.

use std::sync::Arc;

use tracebraid_ctf::schema::TraceClass;
use tracebraid_ctf::write::stream::{PacketSink, StreamWriter};
use tracebraid_ctf::write::{EventPlan, WriteError};

use crate::contexts::OwnContext;
use crate::end_mark::EndReason;
use crate::lane::Event;
use crate::recorder::Progress;
use crate::shared::kinds;

/// Bytes of an index of packets, and of its entry for each (LTTng's format 1.1).
const INDEX_HEAD: u64 = 16;
const INDEX_ENTRY: u64 = 72;

/// All streams, whose packets go to sinks of that kind.
pub(crate) struct Streams<S> {
    streams: Vec<Stream<S>>,
    events: Arc<Events>,
    written: u64,
    /// Context of the mark of the end, with the counters of the first CPU.
    own_context: OwnContext,
}

/// What one CPU's events go to.
struct Stream<S> {
    writer: StreamWriter<S>,
    /// Time of the last event.
    last: u64,
    /// What was lost by then.
    lost: u64,
    /// In the chunk before: what was lost, and the number of packets.
    before: (u64, u64),
    /// The packet has events.
    has_events: bool,
}

/// Event classes by id.
pub(crate) struct Events(Vec<Option<Arc<EventPlan>>>);

impl Events {
    /// `plans` are those of the classes, in their order.
    pub(crate) fn new(class: &TraceClass, plans: impl IntoIterator<Item = Arc<EventPlan>>) -> Events {
        let classes = class.streams.iter().flat_map(|stream| &stream.events);
        let mut events = Vec::new();
        for (event, plan) in classes.zip(plans) {
            let id = event.id as usize;
            if id >= events.len() {
                events.resize(id + 1, None);
            }
            if let Some(place) = events.get_mut(id) {
                *place = Some(plan);
            }
        }
        Events(events)
    }
}

impl<S: PacketSink> Streams<S> {
    /// Of those writers, by CPU, which begin at that time.
    pub(crate) fn new(
        writers: Vec<StreamWriter<S>>,
        events: Arc<Events>,
        begin: u64,
    ) -> Result<Streams<S>, WriteError> {
        let start = |mut writer: StreamWriter<S>| {
            writer.start(begin)?;
            Ok(Stream {
                writer,
                last: begin,
                lost: 0,
                before: (0, 0),
                has_events: false,
            })
        };
        let streams = writers
            .into_iter()
            .map(start)
            .collect::<Result<_, WriteError>>()?;
        Ok(Streams {
            streams,
            events,
            written: 0,
            own_context: OwnContext::default(),
        })
    }

    /// Sets the context of the recorder's own events, if event records have contexts.
    pub(crate) fn set_own_context(&mut self, context: OwnContext) {
        self.own_context = context;
    }

    /// Goes on where the streams of the chunk before have ended, with the numbers of packets and the counts of lost events.
    /// Nothing must have been written yet.
    pub(crate) fn go_on(&mut self, ended: &Streams<S>) {
        for (stream, ended) in self.streams.iter_mut().zip(&ended.streams) {
            let sequence = ended.writer.sequence();
            stream.writer.set_sequence(sequence);
            stream.writer.discard(ended.lost);
            stream.lost = ended.lost;
            stream.before = (ended.lost, sequence);
        }
    }

    /// Writes an event of a CPU.
    pub(crate) fn event(&mut self, cpu: usize, event: &Event<'_>) -> Result<(), WriteError> {
        let plan = self.events.0.get(usize::from(event.id)).and_then(Option::as_ref);
        let (Some(stream), Some(plan)) = (self.streams.get_mut(cpu), plan) else {
            return Ok(());
        };
        // What still comes too late happens now: time does not go back in a stream.
        let time = event.time.max(stream.last);
        if event.lost != stream.lost {
            stream.lose(event.lost, time)?;
        }
        if cpu == 0 {
            self.own_context.see(event.payload);
        }
        stream.writer.record_encoded(plan, time, event.payload)?;
        (stream.last, stream.has_events) = (time, true);
        self.written += 1;
        Ok(())
    }

    /// What a CPU has lost in all by the end.
    pub(crate) fn lost(&mut self, cpu: usize, lost: u64) -> Result<(), WriteError> {
        match self.streams.get_mut(cpu) {
            Some(stream) if stream.lost != lost => stream.lose(lost, stream.last),
            _ => Ok(()),
        }
    }

    /// What has been written up to now, without the chunks before.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            events: self.written,
            lost: self
                .streams
                .iter()
                .map(|stream| stream.lost - stream.before.0)
                .sum(),
            bytes: self.streams.iter().map(|stream| stream.writer.bytes()).sum(),
            chunks: 0,
        }
    }

    /// Bytes of the files, if they ended here: packets and their indices.
    pub(crate) fn file_bytes(&self) -> u64 {
        let of = |stream: &Stream<S>| {
            let (bytes, packets) = stream.writer.bytes_so_far();
            bytes + INDEX_HEAD + (packets - stream.before.1) * INDEX_ENTRY
        };
        self.streams.iter().map(of).sum()
    }

    /// Ends all packets that have events, each at its last one, so that what comes still has its own time. The first
    /// stream's packet is the newest: of what is kept in memory the newest packet with the mark of the end stays.
    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        self.streams.iter_mut().rev().try_for_each(Stream::flush)
    }

    /// Ends all packets at that time, in the order of [`Streams::flush`].
    pub(crate) fn end(&mut self, time: u64) -> Result<(), WriteError> {
        for stream in self.streams.iter_mut().rev() {
            stream.last = stream.last.max(time);
            stream.writer.flush(stream.last)?;
        }
        Ok(())
    }

    /// Writes the mark of the end, to be followed by the end of all packets. It is one nanosecond after the last event: the
    /// last one in the order of time, and no thread seems to run on until the recorder stopped.
    pub(crate) fn mark_end(&mut self, reason: EndReason) -> Result<(), WriteError> {
        let payload = [&*self.own_context.bytes, &reason.payload(self.progress())].concat();
        let last = self.streams.iter().map(|stream| stream.last).max();
        let (Some(first), Some(last)) = (self.streams.first(), last) else {
            return Ok(());
        };
        let mark = Event {
            time: last.saturating_add(1),
            lost: first.lost,
            id: kinds::TRACEBRAID_END,
            payload: &payload,
        };
        self.event(0, &mark)
    }

    /// Ends all streams.
    pub(crate) fn finish(self) -> Result<(), WriteError> {
        for stream in self.streams {
            stream.writer.finish()?;
        }
        Ok(())
    }
}

impl<S: PacketSink> Stream<S> {
    fn flush(&mut self) -> Result<(), WriteError> {
        match std::mem::take(&mut self.has_events) {
            true => self.writer.flush(self.last),
            false => Ok(()),
        }
    }

    /// Between the last event and that time events were lost: a packet ends before them, so that readers see
    /// where.
    fn lose(&mut self, lost: u64, time: u64) -> Result<(), WriteError> {
        self.writer.flush(self.last.min(time))?;
        self.writer.discard(lost - self.lost);
        self.lost = lost;
        Ok(())
    }
}
