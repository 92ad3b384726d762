//! Which event records tell of stacks, and reading those alone, in the order of time.

use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};

use serde::{Deserialize, Serialize};
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::{Trace, TraceSet};
use tracebraid_ctf::walk::walk;
use tracebraid_fold::{Analysis, Chunk, Control, Options, Record, StreamPlace, StreamRef, fold};

use crate::events::{Kind, Place};
use crate::fields::Fields;

/// Which event classes of a trace matter.
pub(crate) struct Kinds(HashMap<(usize, usize), Kind>);

impl Kinds {
    pub(crate) fn new(trace: &Trace) -> Kinds {
        let mut kinds = HashMap::new();
        for (class, stream) in trace.layout.streams.iter().enumerate() {
            for (event, layout) in stream.events.iter().enumerate() {
                if let Some(kind) = Kind::named(&layout.name) {
                    kinds.insert((class, event), kind);
                }
            }
        }
        Kinds(kinds)
    }

    pub(crate) fn any(&self, is_wanted: impl Fn(Kind) -> bool) -> bool {
        self.0.values().any(|&kind| is_wanted(kind))
    }

    /// Those that tell what addresses mean.
    pub(crate) fn without_stacks(&self) -> Kinds {
        let is_stack = |kind: &Kind| kind.is_kernels() || kind.is_own();
        let others = self.0.iter().filter(|(_, kind)| !is_stack(kind));
        Kinds(others.map(|(&class, &kind)| (class, kind)).collect())
    }

    /// Gives all events of a trace that matter, in the order of time.
    pub(crate) fn read(
        &self,
        (set, threads): (&TraceSet, usize),
        trace: &Trace,
        mut to: impl FnMut(&Place, Kind, Fields),
    ) {
        let index = set.traces.iter().position(|of| std::ptr::eq(of, trace));
        let Some(index) = index else {
            return;
        };
        let (found, events) = sync_channel(WAITING);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let finder = Finder {
                    kinds: self,
                    set,
                    index,
                    found,
                };
                let options = Options {
                    threads,
                    ..Options::default()
                };
                // Nobody cancels it; what is damaged is told by whoever reads all of the trace.
                let _ = fold(set, &finder, options, &Control::default());
            });
            for event in events.into_iter().flatten() {
                to(&event.place, event.kind, event.fields);
            }
        });
    }
}

/// How many batches of events may wait.
const WAITING: usize = 4;

/// An event that matters.
#[derive(Debug)]
struct Found {
    place: Place,
    /// The number of its stream: of several at one time the first stream's come first.
    stream: u32,
    kind: Kind,
    fields: Fields,
}

/// Finds them.
struct Finder<'t> {
    kinds: &'t Kinds,
    set: &'t TraceSet,
    /// The trace in which they are.
    index: usize,
    found: SyncSender<Vec<Found>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct FinderPartial {
    /// What was found and is not given away yet: only that of all chunks is, which stays where it is.
    #[serde(skip)]
    found: Vec<Found>,
    /// The CPU and the thread of the packet that is read: a chunk is of one stream.
    #[serde(skip)]
    packet: (Option<u64>, Option<i64>),
}

impl Finder<'_> {
    fn of(&self, stream: StreamRef) -> Option<(usize, &Trace)> {
        let trace = self.set.traces.get(stream.trace as usize)?;
        Some((trace.streams.get(stream.stream as usize)?.class, trace))
    }

    fn see(&self, partial: &mut FinderPartial, record: &mut Record<'_>) -> Option<()> {
        let (class, trace) = self.of(record.stream)?;
        let kind = *self.kinds.0.get(&(class, record.class))?;
        let stream = trace.layout.streams.get(class)?;
        let event = stream.events.get(record.class)?;
        let mut fields = Fields::default();
        let mut cursor = record.body;
        for part in [&stream.common_context, &event.specific_context, &event.payload] {
            if let Some(root) = part.root() {
                // Only sound event records are handed out.
                let _ = walk(root, &mut cursor, record.slots, &mut fields);
            }
        }
        let (cpu, tid) = partial.packet;
        partial.found.push(Found {
            place: Place {
                time: record.time,
                cpu,
                tid,
            },
            stream: record.number,
            kind,
            fields,
        });
        Some(())
    }

    /// Gives away what is from before that time; without one, all.
    fn give(&self, partial: &mut FinderPartial, before: Option<Timestamp>) {
        // Stable: those of one stream follow each other as they were read.
        partial
            .found
            .sort_by_key(|found| (found.place.time, found.stream));
        let count = match before {
            Some(before) => partial.found.partition_point(|found| found.place.time < before),
            None => partial.found.len(),
        };
        if count > 0 {
            // Whoever takes them takes all.
            let _ = self.found.send(partial.found.drain(..count).collect());
        }
    }
}

impl Analysis for Finder<'_> {
    type Partial = FinderPartial;
    type Report = ();

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let is_read = |stream: &StreamRef| {
            let class = self.of(*stream).map(|(class, _)| class);
            stream.trace as usize == self.index && self.kinds.0.keys().any(|(of, _)| Some(*of) == class)
        };
        let streams = StreamRef::all(set).filter(is_read);
        streams.map(|stream| vec![stream]).collect()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        trace == self.index && self.kinds.0.contains_key(&(stream_class, class))
    }

    fn begin(&self, _: &Chunk) -> FinderPartial {
        FinderPartial::default()
    }

    fn packet(&self, partial: &mut FinderPartial, packet: &StreamPlace<'_>) {
        let layout = self.of(packet.stream);
        let layout = layout.and_then(|(class, trace)| trace.layout.streams.get(class));
        let value = |name: &str| packet.head.value(layout?, name);
        let cpu = value("cpu_id").or_else(|| value("begin_cpu_id"));
        let tid = value("tid").map(|tid| tid as i64);
        partial.packet = (cpu, tid);
    }

    fn event(&self, partial: &mut FinderPartial, record: &mut Record<'_>) {
        self.see(partial, record);
    }

    fn end(&self, partial: &mut FinderPartial, _: &Chunk) {
        partial.packet = (None, None);
    }

    fn merge(&self, earlier: &mut FinderPartial, later: FinderPartial) {
        earlier.found.extend(later.found);
    }

    fn settle(&self, partial: &mut FinderPartial, watermark: Timestamp) {
        self.give(partial, Some(watermark));
    }

    fn finish(&self, mut partial: FinderPartial) {
        self.give(&mut partial, None);
    }
}
