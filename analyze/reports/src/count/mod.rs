//! The count report: numbers of event records by event class, stream, CPU and time.
//!
//! Each event record counts by its own time, whatever its packet: `count` selects the event records
//! that a plain pass would select, whereas other analyses hold clocks that go back. Event records
//! are counted inside the scanner and not decoded; where a boundary of time must be kept, the
//! scanner gets a range of clock values.

mod columns;
mod report;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::layout::StreamLayout;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::scan::{Counted, Counts, LANES, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_engine::{
    Analysis, Chunk, Feed, Record, Shared, StreamPart, StreamPlace, StreamRef,
};
use tracebraid_kernel_model::Cpus;

use columns::{Columns, Part, Parts};
pub use report::{CountReport, LossRow, Rate, StreamRow};
use tracebraid_follow::{CpuSet, Extent, GuessedEnd, Window};

/// Counts event records.
#[derive(Debug)]
pub struct Count<'t> {
    set: &'t TraceSet,
    cpus: CpuSet,
    columns: Columns,
    /// Guessed ends of streams, to be compared with the counted ones.
    guessed: Vec<GuessedEnd>,
    /// By trace: location of the CPU of its event records.
    places: Vec<Cpus>,
}

/// Counts of some chunks.
///
/// The size is bounded by the number of event classes, streams, CPUs and columns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountPartial {
    /// By trace and stream class: counts by event class.
    classes: BTreeMap<(u32, u32), Vec<u64>>,
    streams: BTreeMap<StreamRef, StreamCount>,
    by_cpu: BTreeMap<u32, u64>,
    /// Event records by column.
    rate: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StreamCount {
    events: u64,
    /// Times of the first and the last event record.
    times: Option<(i64, i64)>,
}

impl<'t> Count<'t> {
    /// Counts event records in the window and on the given CPUs, over `parts` columns of equal
    /// length.
    pub fn new(set: &'t TraceSet, window: Window, cpus: CpuSet, parts: usize) -> Self {
        let columns = Columns::new(Extent::of_packets(set), window, parts.max(1));
        Count::in_columns(set, cpus, columns, Vec::new())
    }

    /// Counts all event records, with the ends of streams guessed as in
    /// [`Extent::of_packets_guessed`]. If [`CountReport::has_wrong_guess`] is set, a guess was
    /// wrong: count again with [`Count::new`].
    pub fn with_guessed_ends(set: &'t TraceSet, parts: usize) -> Self {
        let (covered, guessed) = Extent::of_packets_guessed(set);
        let columns = Columns::new(covered, Window::default(), parts.max(1));
        Count::in_columns(set, CpuSet(None), columns, guessed)
    }

    fn in_columns(
        set: &'t TraceSet,
        cpus: CpuSet,
        columns: Columns,
        guessed: Vec<GuessedEnd>,
    ) -> Self {
        Count {
            set,
            cpus,
            columns,
            guessed,
            places: set.traces.iter().map(Cpus::new).collect(),
        }
    }

    /// A counter for callers that select single event records.
    pub fn counter(&self) -> Counter<'_> {
        Counter {
            count: self,
            partial: CountPartial::default(),
        }
    }

    fn is_chosen(&self, stream: StreamRef) -> bool {
        let is_mixed = stream
            .of(self.set)
            .is_some_and(|(_, content)| content.is_mixed);
        is_mixed || self.is_shared(stream) || self.contains(report::cpu_of(self.set, stream))
    }

    /// True if the CPU is a field of each event record of the stream.
    fn is_shared(&self, stream: StreamRef) -> bool {
        let class = stream.of(self.set).map(|(_, content)| content.class);
        let cpus = self.places.get(stream.trace as usize);
        cpus.zip(class)
            .is_some_and(|(cpus, class)| cpus.are_mixed(class))
    }

    /// Counts a single event record; `time` is `None` if its stream has no clock.
    fn one(
        &self,
        partial: &mut CountPartial,
        stream: StreamRef,
        (stream_class, class): (usize, usize),
        cpu: Option<u32>,
        time: Option<i64>,
    ) {
        let trace = self.set.traces.get(stream.trace as usize);
        let layout = trace.and_then(|trace| trace.layout.streams.get(stream_class));
        let classes = layout.map_or(0, |layout| layout.events.len());
        let counts = partial.classes.entry((stream.trace, stream_class as u32));
        let counts = counts.or_insert_with(|| vec![0; classes]);
        if let Some(count) = counts.get_mut(class) {
            *count += 1;
        }
        let count = StreamCount {
            events: 1,
            times: time.map(|time| (time, time)),
        };
        let column = time.map(|time| self.columns.at(time));
        partial.add(stream, count, (cpu, column));
    }

    fn contains(&self, cpu: Option<u32>) -> bool {
        self.cpus.0.is_none() || cpu.is_some_and(|cpu| self.cpus.contains(cpu))
    }

    /// Adds the counts of a part of a packet.
    fn close(&self, partial: &mut CountPartial, lane: &StreamPart<'_>, run: &Run) {
        if run.events == 0 {
            return;
        }
        let time = |cycles| Some(lane.time(Some(cycles))?.0);
        let (first, last) = (time(run.first), time(run.last));
        partial.add(
            lane.stream,
            StreamCount {
                events: run.events,
                times: first
                    .zip(last)
                    .map(|(first, last)| (first.min(last), first.max(last))),
            },
            (run.cpu, lane.clock.and(run.part.column)),
        );
    }

    /// Advances by one event record, one part or one packet.
    fn step(
        &self,
        partial: &mut CountPartial,
        lane: &mut StreamPart<'_>,
        run: &mut Run,
        of: &mut Counting<'_>,
    ) {
        if run.part.column.is_none() {
            // Event records that are not selected are skipped at once.
            let counted = lane
                .scanner
                .count(&mut of.unwanted, run.part.within.clone());
            run.go_on(&of.parts, &counted);
            return;
        }
        let counted = lane
            .scanner
            .count_next(&mut of.wanted, run.part.within.clone());
        run.add(&counted);
        run.waits = run.events == 0;
        if counted.ended || counted.refused.is_some() {
            self.close(partial, lane, run);
            run.go_on(&of.parts, &counted);
        }
    }

    /// Advances to the next packet of a selected CPU.
    fn open(&self, shared: &mut Shared<'_>, index: usize, run: &mut Run, of: &Counting<'_>) {
        run.state = State::Finished;
        while shared.next_packet(index, of.parts.window()) {
            let Some(lane) = shared.lanes.get(index) else {
                return;
            };
            run.cpu = report::packet_cpu(of.layout, lane.scanner.packet_head());
            if self.contains(run.cpu) {
                run.state = State::Open;
                run.go_to(of.parts.at(lane.scanner.clock()));
                return;
            }
        }
    }

    /// Counts in several packets of a stream at once, and in each of the remaining packets alone.
    fn stream(&self, partial: &mut CountPartial, shared: &mut Shared<'_>, of: &mut Counting<'_>) {
        let mut runs: [Run; LANES] = std::array::from_fn(|_| Run::default());
        loop {
            for (index, run) in runs.iter_mut().enumerate() {
                match (run.state, shared.lanes.get_mut(index)) {
                    (State::Closed, _) => self.open(shared, index, run, of),
                    (State::Open, Some(lane)) if run.waits => self.step(partial, lane, run, of),
                    _ => {}
                }
            }
            let [a, b, c] = &mut *shared.lanes else { break };
            if runs.iter().any(|run| run.state == State::Finished) {
                break;
            }
            let is_ready =
                |run: &Run| run.state == State::Open && run.part.column.is_some() && !run.waits;
            if runs.iter().all(is_ready) {
                let scanners = [&mut a.scanner, &mut b.scanner, &mut c.scanner];
                let limits = runs.each_ref().map(|run| run.part.within.end);
                let (counted, stopped) = Scanner::count_together(scanners, &mut of.wanted, limits);
                for ((run, events), lane) in runs.iter_mut().zip(counted).zip([&*a, &*b, &*c]) {
                    run.events += events;
                    run.last = lane.scanner.clock();
                }
                runs[stopped].waits = true;
            }
        }
        for (index, run) in runs.iter_mut().enumerate() {
            while run.state != State::Finished {
                match (run.state, shared.lanes.get_mut(index)) {
                    (State::Open, Some(lane)) => self.alone(partial, lane, run, of),
                    _ => self.open(shared, index, run, of),
                }
            }
        }
    }

    /// Counts the rest of a lane's packet.
    fn alone(
        &self,
        partial: &mut CountPartial,
        lane: &mut StreamPart<'_>,
        run: &mut Run,
        of: &mut Counting<'_>,
    ) {
        while run.state == State::Open {
            let is_wanted = run.part.column.is_some();
            let into = if is_wanted {
                &mut of.wanted
            } else {
                &mut of.unwanted
            };
            let counted = lane.scanner.count(into, run.part.within.clone());
            run.add(&counted);
            if is_wanted {
                self.close(partial, lane, run);
            }
            run.go_on(&of.parts, &counted);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Between packets.
    #[default]
    Closed,
    /// In a packet.
    Open,
    /// After the last packet.
    Finished,
}

/// The state of counting in a lane, and the counts of the current part of its packet.
#[derive(Clone, Debug, Default)]
struct Run {
    state: State,
    /// The CPU of the packet.
    cpu: Option<u32>,
    part: Part,
    /// A single step must come first: at the start of each part, to find its first event record,
    /// and where counting in several lanes at once stops.
    waits: bool,
    events: u64,
    first: u64,
    last: u64,
}

impl Run {
    fn go_to(&mut self, part: Part) {
        (self.part, self.waits, self.events) = (part, true, 0);
    }

    /// Advances to the part of the event record that stopped counting, or past the packet.
    fn go_on(&mut self, parts: &Parts, counted: &Counted) {
        match counted.refused {
            Some(clock) => self.go_to(parts.at(clock)),
            None if counted.ended => self.state = State::Closed,
            None => {}
        }
    }

    fn add(&mut self, counted: &Counted) {
        if self.events == 0 {
            self.first = counted.first;
        }
        self.events += counted.events;
        self.last = counted.last;
    }
}

/// Counts event records that the caller selects.
#[derive(Debug)]
pub struct Counter<'a> {
    count: &'a Count<'a>,
    partial: CountPartial,
}

impl Counter<'_> {
    /// Counts the current event record of a reader.
    pub fn add(&mut self, time: Timestamp, reader: &mut StreamReader<'_>) {
        let (trace, stream) = (reader.trace(), reader.stream());
        let Some((trace_index, stream_index)) = place(self.count.set, trace, stream) else {
            return;
        };
        let Some(layout) = trace.layout.streams.get(stream.class) else {
            return;
        };
        let in_packet = report::packet_cpu(layout, reader.packet_head());
        let time = trace.clock(stream).map(|_| time.0);
        let Some(event) = reader.event() else {
            return;
        };
        let class = (stream.class, event.class_index);
        let cpus = self.count.places.get(trace_index as usize);
        let own = cpus.and_then(|cpus| cpus.of_event(class, event.body, event.slots));
        let own = own.and_then(|cpu| u32::try_from(cpu).ok());
        let stream = StreamRef {
            trace: trace_index,
            stream: stream_index,
        };
        self.count
            .one(&mut self.partial, stream, class, in_packet.or(own), time);
    }

    /// The report on all counted event records.
    pub fn finish(self) -> CountReport {
        self.count.finish(self.partial)
    }
}

fn place(set: &TraceSet, trace: &Trace, stream: &Stream) -> Option<(u32, u32)> {
    let trace_index = set
        .traces
        .iter()
        .position(|other| std::ptr::eq(other, trace))?;
    let stream_index = trace
        .streams
        .iter()
        .position(|other| std::ptr::eq(other, stream))?;
    Some((trace_index as u32, stream_index as u32))
}

/// Counts of the selected event records, and of the others in packets across a boundary of the
/// range.
struct Counting<'l> {
    layout: &'l StreamLayout,
    parts: Parts,
    wanted: Counts,
    unwanted: Counts,
}

impl CountPartial {
    /// Adds counts of one CPU and one column.
    fn add(
        &mut self,
        stream: StreamRef,
        count: StreamCount,
        (cpu, column): (Option<u32>, Option<usize>),
    ) {
        self.add_stream(stream, count);
        if let Some(cpu) = cpu {
            *self.by_cpu.entry(cpu).or_default() += count.events;
        }
        if let Some(column) = column {
            if self.rate.len() <= column {
                self.rate.resize(column + 1, 0);
            }
            self.rate[column] += count.events;
        }
    }

    fn add_stream(&mut self, stream: StreamRef, count: StreamCount) {
        let known = self.streams.entry(stream).or_insert(StreamCount {
            events: 0,
            times: None,
        });
        known.events += count.events;
        known.times = match (known.times, count.times) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    fn add_classes(&mut self, key: (u32, u32), counts: Vec<u64>) {
        match self.classes.entry(key) {
            std::collections::btree_map::Entry::Vacant(place) => {
                place.insert(counts);
            }
            std::collections::btree_map::Entry::Occupied(mut place) => {
                place
                    .get_mut()
                    .iter_mut()
                    .zip(counts)
                    .for_each(|(sum, count)| *sum += count);
            }
        }
    }
}

impl Analysis for Count<'_> {
    type Partial = CountPartial;
    type Report = CountReport;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        StreamRef::all(set)
            .filter(|&stream| self.is_chosen(stream))
            .map(|stream| vec![stream])
            .collect()
    }

    /// Event records are decoded only where the CPU is one of their fields.
    fn wants(&self, trace: usize, stream_class: usize, _: usize) -> bool {
        let cpus = self.places.get(trace);
        cpus.is_some_and(|cpus| cpus.are_mixed(stream_class))
    }

    fn lanes(&self) -> usize {
        LANES
    }

    fn begin(&self, _: &Chunk) -> CountPartial {
        CountPartial::default()
    }

    fn packet(&self, _: &mut CountPartial, _: &StreamPlace<'_>) {}

    fn event(&self, partial: &mut CountPartial, record: &mut Record<'_>) {
        let (trace, Some((_, stream))) = (record.stream.trace, record.stream.of(self.set)) else {
            return;
        };
        let class = (stream.class, record.class);
        let cpus = self.places.get(trace as usize);
        let cpu = cpus.and_then(|cpus| cpus.of_event(class, record.body, record.slots));
        let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok());
        // Without a clock there are no times to select by.
        let time = (record.time.0 > i64::MIN).then_some(record.time.0);
        if self.contains(cpu) && self.columns.contain(time) {
            self.one(partial, record.stream, class, cpu, time);
        }
    }

    /// Counts in the scanner without decoding, unless the CPU is a field of the event records.
    fn chunk(&self, partial: &mut CountPartial, feed: &mut Feed<'_>) {
        let set = feed.set();
        let mut slices = feed.chunk().slices.iter();
        if slices.any(|slice| self.is_shared(slice.stream)) {
            return feed.run(self, partial);
        }
        for mut shared in feed.share(LANES) {
            let Some(stream_ref) = shared.lanes.first().map(|lane| lane.stream) else {
                continue;
            };
            let Some((trace, stream)) = stream_ref.of(set) else {
                continue;
            };
            let Some(layout) = trace.layout.streams.get(stream.class) else {
                continue;
            };
            let mut of = Counting {
                layout,
                parts: self.columns.of(trace.clock(stream)),
                wanted: Counts::new(layout),
                unwanted: Counts::new(layout),
            };
            self.stream(partial, &mut shared, &mut of);
            partial.add_classes(
                (stream_ref.trace, stream.class as u32),
                of.wanted.take(layout),
            );
            feed.give_back(shared);
        }
    }

    fn end(&self, _: &mut CountPartial, _: &Chunk) {}

    fn merge(&self, earlier: &mut CountPartial, later: CountPartial) {
        for (key, counts) in later.classes {
            earlier.add_classes(key, counts);
        }
        for (stream, count) in later.streams {
            earlier.add_stream(stream, count);
        }
        for (cpu, events) in later.by_cpu {
            *earlier.by_cpu.entry(cpu).or_default() += events;
        }
        if earlier.rate.len() < later.rate.len() {
            earlier.rate.resize(later.rate.len(), 0);
        }
        earlier
            .rate
            .iter_mut()
            .zip(later.rate)
            .for_each(|(sum, count)| *sum += count);
    }

    fn finish(&self, partial: CountPartial) -> CountReport {
        // Streams without event records are included: all their event records may be lost.
        let chosen = StreamRef::all(self.set).filter(|&stream| self.is_chosen(stream));
        let losses = chosen
            .flat_map(|stream| report::losses(self.set, stream))
            .collect();
        let is_wrong = |guess: &GuessedEnd| {
            let stream = StreamRef {
                trace: guess.trace as u32,
                stream: guess.stream as u32,
            };
            let counted = partial.streams.get(&stream).and_then(|count| count.times);
            counted.is_none_or(|(_, last)| last != guess.last.0)
        };
        let has_wrong_guess = self.guessed.iter().any(is_wrong);
        CountReport {
            has_wrong_guess,
            ..report::make(self.set, self.columns.bounds(), partial, losses)
        }
    }
}
