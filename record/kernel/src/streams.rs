//! The streams of a trace: one for each CPU.
//!
//! No two packets of a stream begin at the same time. Readers order the packets of joined chunks by
//! their begin timestamps, and babeltrace2 2.0.4 swaps packets with equal timestamps: it then
//! rejects the trace, or reports packets and events as lost that are not. So a packet always ends
//! later than it begins; an event that would start a packet with the same begin timestamp is
//! written one nanosecond later.

use std::sync::Arc;

use tracebraid_ctf::schema::TraceClass;
use tracebraid_ctf::write::stream::{PacketSink, StreamWriter};
use tracebraid_ctf::write::{EventPlan, WriteError};

use crate::contexts::OwnContext;
use crate::end_mark::EndReason;
use crate::lane::{AROUND_EVENT, Event};
use crate::recorder::Progress;
use crate::shared::kinds;

/// Size of an index of packets without entries, and of an entry (LTTng's format 1.1).
const INDEX_HEAD: u64 = 16;
const INDEX_ENTRY: u64 = 72;

/// All streams, with sinks for their packets.
pub(crate) struct Streams<S> {
    streams: Vec<Stream<S>>,
    events: Arc<Events>,
    written: u64,
}

/// The stream of one CPU.
struct Stream<S> {
    writer: StreamWriter<S>,
    /// Time of the last event.
    last: u64,
    /// Cumulative count of lost events at that time.
    lost: u64,
    /// Counts of lost events and packets in the previous chunk.
    before: (u64, u64),
    /// Events have been written since the last call of [`Stream::end_packet`] that ended a packet.
    has_events: bool,
    /// Context of the end mark, with the counters of the CPU.
    own_context: OwnContext,
}

/// Event classes by id.
pub(crate) struct Events(Vec<Option<Arc<EventPlan>>>);

impl Events {
    /// `plans` are those of the event classes, in the same order.
    pub(crate) fn new(
        class: &TraceClass,
        plans: impl IntoIterator<Item = Arc<EventPlan>>,
    ) -> Events {
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
    /// Streams by CPU that begin at a time.
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
                own_context: OwnContext::default(),
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
        })
    }

    /// Sets the context of the recorder's own events, if event records have contexts.
    pub(crate) fn set_own_context(&mut self, context: &OwnContext) {
        for stream in &mut self.streams {
            stream.own_context.clone_from(context);
        }
    }

    /// Continues packet numbers and counts of lost events from the streams of the previous chunk.
    /// Must be called before the first event.
    pub(crate) fn go_on(&mut self, ended: &Streams<S>) {
        for (stream, ended) in self.streams.iter_mut().zip(&ended.streams) {
            let sequence = ended.writer.sequence();
            stream.writer.set_sequence(sequence);
            stream.writer.discard(ended.lost);
            stream.lost = ended.lost;
            stream.before = (ended.lost, sequence);
        }
    }

    pub(crate) fn event(&mut self, cpu: usize, event: &Event<'_>) -> Result<(), WriteError> {
        let plan = self
            .events
            .0
            .get(usize::from(event.id))
            .and_then(Option::as_ref);
        let (Some(stream), Some(plan)) = (self.streams.get_mut(cpu), plan) else {
            return Ok(());
        };
        let time = stream.time_of(event);
        if event.lost != stream.lost {
            stream.lose(event.lost, time)?;
        }
        stream.own_context.see(event.payload);
        stream.writer.record_encoded(plan, time, event.payload)?;
        (stream.last, stream.has_events) = (time, true);
        self.written += 1;
        Ok(())
    }

    /// Sets the final cumulative count of events that a CPU has lost.
    pub(crate) fn lost(&mut self, cpu: usize, lost: u64) -> Result<(), WriteError> {
        match self.streams.get_mut(cpu) {
            Some(stream) if stream.lost != lost => stream.lose(lost, stream.last),
            _ => Ok(()),
        }
    }

    /// Time of the newest event, or the begin of the streams if that is later.
    pub(crate) fn newest(&self) -> u64 {
        self.streams
            .iter()
            .map(|stream| stream.last)
            .max()
            .unwrap_or(0)
    }

    /// Counts so far, without previous chunks.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            events: self.written,
            lost: self
                .streams
                .iter()
                .map(|stream| stream.lost - stream.before.0)
                .sum(),
            bytes: self
                .streams
                .iter()
                .map(|stream| stream.writer.bytes())
                .sum(),
            chunks: 0,
        }
    }

    /// Size in bytes of the files if the streams ended now: packets and their indices.
    pub(crate) fn file_bytes(&self) -> u64 {
        let of = |stream: &Stream<S>| {
            let (bytes, packets) = stream.writer.bytes_so_far();
            bytes + INDEX_HEAD + (packets - stream.before.1) * INDEX_ENTRY
        };
        self.streams.iter().map(of).sum()
    }

    /// The stream with the newest event.
    fn newest_stream(&self) -> Option<usize> {
        let streams = self.streams.iter().enumerate();
        let newest = streams.max_by_key(|(_, stream)| stream.last);
        newest.map(|(cpu, _)| cpu)
    }

    /// Ends packets of all streams, that of the stream with the newest event last: in memory, the
    /// newest packet, which contains the end mark, is always kept.
    fn end_each(
        &mut self,
        mut end: impl FnMut(&mut Stream<S>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        let newest = self.newest_stream();
        let streams = self.streams.iter_mut().enumerate();
        let others = streams.filter(|(cpu, _)| Some(*cpu) != newest);
        others.map(|(_, stream)| stream).try_for_each(&mut end)?;
        let newest = newest.and_then(|cpu| self.streams.get_mut(cpu));
        newest.map_or(Ok(()), end)
    }

    /// Ends all packets that contain events, each at its last event, so that later events keep
    /// their times.
    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        self.end_each(Stream::flush)
    }

    /// Ends all packets at a time.
    pub(crate) fn end(&mut self, time: u64) -> Result<(), WriteError> {
        self.end_each(|stream| {
            stream.last = stream.last.max(time);
            stream.writer.flush(stream.last)
        })
    }

    /// Writes the end mark, after which all packets must be ended. Its time is one nanosecond after
    /// the last event: it is the last event in the order of time, and no thread seems to run until
    /// the recorder stopped. It is in the stream of that event: after a snapshot, events of other
    /// CPUs that were not read yet may be earlier, and would get the time of the mark.
    pub(crate) fn mark_end(&mut self, reason: EndReason) -> Result<(), WriteError> {
        let progress = self.progress();
        let newest = self.newest_stream();
        let Some((cpu, stream)) = newest.and_then(|cpu| Some((cpu, self.streams.get(cpu)?))) else {
            return Ok(());
        };
        let payload = [&*stream.own_context.bytes, &reason.payload(progress)].concat();
        let mark = Event {
            time: stream.last.saturating_add(1),
            lost: stream.lost,
            id: kinds::TRACEBRAID_END,
            payload: &payload,
        };
        self.event(cpu, &mark)
    }

    /// Closes all streams.
    pub(crate) fn finish(self) -> Result<(), WriteError> {
        for stream in self.streams {
            stream.writer.finish()?;
        }
        Ok(())
    }
}

impl<S: PacketSink> Stream<S> {
    /// The time with which an event is written: that of the last event if the event is late, since
    /// time must not decrease in a stream.
    fn time_of(&self, event: &Event<'_>) -> u64 {
        let time = event.time.max(self.last);
        let begins = self.writer.packet_begin() == Some(time);
        let bytes = event.payload.len() as u64 + AROUND_EVENT;
        match begins && self.has_events && bytes > self.writer.packet_room() {
            true => time + 1,
            false => time,
        }
    }

    /// Ends the packet at `time`, if the packet begins earlier.
    fn end_packet(&mut self, time: u64) -> Result<(), WriteError> {
        if self.writer.packet_begin().is_some_and(|begin| begin < time) {
            self.writer.flush(time)?;
            (self.last, self.has_events) = (time, false);
        }
        Ok(())
    }

    /// Ends the packet at its last event. A packet whose events all have its begin timestamp stays
    /// open.
    fn flush(&mut self) -> Result<(), WriteError> {
        match self.has_events {
            true => self.end_packet(self.last),
            false => Ok(()),
        }
    }

    /// Records that events were lost between the last event and `time`: a packet ends before them,
    /// so that readers see the position. The first packet of a chunk ends even if it is empty: for
    /// a chunk that is read alone, the count in its first packet is that of earlier chunks.
    fn lose(&mut self, lost: u64, time: u64) -> Result<(), WriteError> {
        let is_first = self.writer.bytes() == 0;
        if self.has_events || is_first {
            let begin = self.writer.packet_begin().unwrap_or(self.last);
            self.end_packet(self.last.max(begin + 1).min(time))?;
        }
        self.writer.discard(lost - self.lost);
        self.lost = lost;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use tracebraid_ctf::index::IndexEntry;
    use tracebraid_ctf::write::StreamPlan;
    use tracebraid_ctf::write::stream::PacketSize;

    use super::*;
    use crate::contexts::ContextLayout;
    use crate::schema::schema_with;

    const BEGIN: u64 = 1000;

    /// A sink that keeps the index entries of packets.
    struct Entries(Rc<RefCell<Vec<IndexEntry>>>);

    impl PacketSink for Entries {
        type Output = ();

        fn packet(&mut self, _: &[u8], entry: &IndexEntry) -> Result<(), WriteError> {
            self.0.borrow_mut().push(*entry);
            Ok(())
        }

        fn finish(self) -> Result<(), WriteError> {
            Ok(())
        }
    }

    /// Streams, and the entries of their packets: begin, end and count of lost events.
    struct TestStreams {
        streams: Streams<Entries>,
        entries: Rc<RefCell<Vec<IndexEntry>>>,
    }

    impl TestStreams {
        fn new() -> TestStreams {
            TestStreams::with_cpus(1)
        }

        fn with_cpus(cpus: u32) -> TestStreams {
            let class = schema_with(&crate::calls::calls(), &ContextLayout::new(&[]).unwrap());
            let plan = StreamPlan::new(&class, 0).unwrap();
            let classes = class.streams.iter().flat_map(|stream| &stream.events);
            let plans = classes.map(|event| Arc::new(EventPlan::new(&plan, event).unwrap()));
            let events = Arc::new(Events::new(&class, plans));
            let entries = Rc::new(RefCell::new(Vec::new()));
            let writer = |cpu: u32| {
                let sink = Entries(entries.clone());
                let size = PacketSize::UpTo(4096);
                StreamWriter::new(&plan, sink, size, cpu.into(), &[("cpu_id", cpu.into())]).unwrap()
            };
            let streams = Streams::new((0..cpus).map(writer).collect(), events, BEGIN).unwrap();
            TestStreams { streams, entries }
        }

        fn event(&mut self, time: u64, lost: u64) {
            self.event_on(0, time, lost);
        }

        fn event_on(&mut self, cpu: usize, time: u64, lost: u64) {
            let payload = EndReason::Asked.payload(Progress::default());
            let event = Event {
                time,
                lost,
                id: kinds::TRACEBRAID_END,
                payload: &payload,
            };
            self.streams.event(cpu, &event).unwrap();
        }

        fn packets(&mut self, end: u64) -> Vec<(u64, u64, u64)> {
            self.streams.end(end).unwrap();
            let entries = self.entries.borrow();
            entries
                .iter()
                .map(|entry| (entry.begin, entry.end, entry.discarded))
                .collect()
        }
    }

    #[test]
    fn events_after_a_snapshot_keep_their_times() {
        let mut streams = TestStreams::with_cpus(2);
        streams.event_on(1, 1500, 0);
        streams.streams.mark_end(EndReason::Snapshot).unwrap();
        streams.streams.flush().unwrap();
        // Recorded before the snapshot, and read after it.
        streams.event_on(0, 1400, 0);
        assert_eq!(streams.streams.streams[0].last, 1400);
        assert_eq!(streams.streams.newest(), 1501);
        let packets = streams.packets(2000);
        assert_eq!(packets[0], (1000, 1501, 0), "the packet of the mark");
    }

    #[test]
    fn a_loss_before_the_first_event_is_in_the_second_packet() {
        let mut stream = TestStreams::new();
        stream.event(BEGIN + 50, 3);
        assert_eq!(stream.packets(2000), [(1000, 1001, 0), (1001, 2000, 3)]);
    }

    #[test]
    fn a_loss_that_leaves_no_time_is_in_the_packet_at_hand() {
        let mut stream = TestStreams::new();
        stream.event(BEGIN, 3);
        stream.event(BEGIN, 5);
        assert_eq!(stream.packets(2000), [(1000, 2000, 5)]);
    }

    #[test]
    fn a_loss_after_a_flush_makes_no_empty_packet() {
        let mut stream = TestStreams::new();
        stream.event(1100, 0);
        stream.streams.flush().unwrap();
        stream.streams.flush().unwrap();
        stream.event(1200, 7);
        assert_eq!(stream.packets(2000), [(1000, 1100, 0), (1100, 2000, 7)]);
    }

    #[test]
    fn packets_of_events_of_one_time_begin_at_different_times() {
        let mut stream = TestStreams::new();
        (0..1000).for_each(|_| stream.event(BEGIN, 0));
        assert_eq!(stream.streams.progress().events, 1000);
        let packets = stream.packets(2000);
        assert!(packets.len() > 4, "{packets:?}");
        for pair in packets.windows(2) {
            assert!(pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].0, "{pair:?}");
        }
        // A flush does not end a packet that would end at the time at which it begins.
        let mut stream = TestStreams::new();
        stream.event(BEGIN, 0);
        stream.streams.flush().unwrap();
        stream.event(1100, 0);
        assert_eq!(stream.packets(2000), [(1000, 2000, 0)]);
    }
}
