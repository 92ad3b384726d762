//! The CPUs of a trace whose event records each contain their CPU.

use std::collections::BTreeSet;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Control, Options, Record, StreamPlace, StreamRef, fold};
use tracebraid_kernel_model::Cpus;

/// The CPUs of a trace's events in streams that several CPUs share, in ascending order. Reads all
/// such streams, once per trace.
pub fn seen_cpus(set: &TraceSet, trace: usize) -> &[u32] {
    let Some(content) = set.traces.get(trace) else {
        return &[];
    };
    content.mixed_cpus.get_or_init(|| {
        let cpus = Cpus::new(content);
        let classes = 0..content.layout.streams.len();
        if !classes.into_iter().any(|class| cpus.are_mixed(class)) {
            return Vec::new();
        }
        let finder = Finder { set, trace, cpus };
        // CPU numbers do not depend on packet times.
        let options = Options {
            accepts_wrong_indexes: true,
            ..Options::default()
        };
        let outcome = fold(set, &finder, options, &Control::default());
        outcome.map(|outcome| outcome.report).unwrap_or_default()
    })
}

struct Finder<'t> {
    set: &'t TraceSet,
    trace: usize,
    cpus: Cpus,
}

impl Finder<'_> {
    fn class(&self, stream: StreamRef) -> Option<usize> {
        Some(stream.of(self.set)?.1.class)
    }
}

impl Analysis for Finder<'_> {
    type Partial = BTreeSet<u32>;
    type Report = Vec<u32>;

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        let is_mixed = |stream: &StreamRef| {
            let class = self.class(*stream);
            stream.trace as usize == self.trace
                && class.is_some_and(|class| self.cpus.are_mixed(class))
        };
        let streams = StreamRef::all(set).filter(is_mixed);
        streams.map(|stream| vec![stream]).collect()
    }

    fn wants(&self, trace: usize, stream_class: usize, class: usize) -> bool {
        trace == self.trace && self.cpus.has_field(stream_class, class)
    }

    fn begin(&self, _: &Chunk) -> Self::Partial {
        BTreeSet::new()
    }

    fn packet(&self, _: &mut Self::Partial, _: &StreamPlace<'_>) {}

    #[inline]
    fn event(&self, seen: &mut Self::Partial, record: &mut Record<'_>) {
        let Some(class) = self.class(record.stream) else {
            return;
        };
        let cpu = self
            .cpus
            .of_event((class, record.class), record.body, record.slots);
        seen.extend(cpu.and_then(|cpu| u32::try_from(cpu).ok()));
    }

    fn end(&self, _: &mut Self::Partial, _: &Chunk) {}

    fn merge(&self, earlier: &mut Self::Partial, later: Self::Partial) {
        earlier.extend(later);
    }

    fn finish(&self, seen: Self::Partial) -> Vec<u32> {
        seen.into_iter().collect()
    }
}
