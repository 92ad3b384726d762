//! `Options::since`: exactly the event records from a time on are passed on, and packets before it
//! are not read.
#![allow(missing_docs)]

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Chunk, Control, Options, Record, StreamPlace, StreamRef, fold};
use tracebraid_testkit::recorded::unpacked;

/// Keeps all packets and event records it receives.
struct Keep {
    /// All streams in one group: chunks are slices of time.
    together: bool,
}

/// For each event record: time, stream and class.
type Events = Vec<(i64, u32, usize)>;
/// For each packet: stream and begin time.
type Packets = Vec<(u32, i64)>;

impl Analysis for Keep {
    type Partial = (Events, Packets);
    type Report = (Events, Packets);

    fn groups(&self, set: &TraceSet) -> Vec<Vec<StreamRef>> {
        match self.together {
            true => vec![StreamRef::all(set).collect()],
            false => StreamRef::all(set).map(|stream| vec![stream]).collect(),
        }
    }

    fn wants(&self, _: usize, _: usize, class: usize) -> bool {
        class.is_multiple_of(2)
    }

    fn begin(&self, _: &Chunk) -> (Events, Packets) {
        Default::default()
    }

    fn packet(&self, partial: &mut (Events, Packets), packet: &StreamPlace<'_>) {
        let begin = packet.begin.map_or(i64::MIN, |begin| begin.0);
        partial.1.push((packet.stream.stream, begin));
    }

    fn event(&self, partial: &mut (Events, Packets), record: &mut Record<'_>) {
        partial
            .0
            .push((record.time.0, record.stream.stream, record.class));
    }

    fn end(&self, _: &mut (Events, Packets), _: &Chunk) {}

    fn merge(&self, earlier: &mut (Events, Packets), later: (Events, Packets)) {
        earlier.0.extend(later.0);
        earlier.1.extend(later.1);
    }

    fn finish(&self, (mut events, packets): (Events, Packets)) -> (Events, Packets) {
        // The stable sort keeps the order within each stream.
        events.sort_by_key(|event| (event.0, event.1));
        (events, packets)
    }
}

fn kept(set: &TraceSet, together: bool, options: Options) -> (Events, Packets, u64) {
    let control = Control::default();
    let outcome = fold(set, &Keep { together }, options, &control).unwrap();
    assert!(outcome.damage.is_empty(), "{:?}", outcome.damage);
    (outcome.report.0, outcome.report.1, control.total())
}

#[test]
fn what_is_from_a_time_on_is_given_and_nothing_else() {
    let name = "kernel-mix-small";
    let set = TraceSet::open(&[unpacked(name).join(name)]).unwrap();
    let trace = &set.traces[0];
    let (all, packets, bytes) = kept(&set, false, Options::default());
    let (first, last) = (all[0].0, all[all.len() - 1].0);
    let mut times: Vec<i64> = (0..6)
        .map(|part| first + (last - first) / 5 * part)
        .collect();
    // Times at which packets begin and end, between two event records, and at an event record.
    for stream in &trace.streams {
        let clock = trace.clock(stream).unwrap();
        let middle = &stream.packets[stream.packets.len() / 2];
        let begin = clock.timestamp(middle.begin.unwrap()).0;
        let end = clock.timestamp(middle.end.unwrap()).0;
        times.extend([begin, begin + 1, end, end + 1]);
    }
    let middle = all[all.len() / 2].0;
    times.extend([middle, middle + 1, first - 1, last, last + 1]);
    for since in times {
        let expected: Events = all
            .iter()
            .copied()
            .filter(|event| event.0 >= since)
            .collect();
        for together in [false, true] {
            for (threads, chunk_bytes) in [(1, u64::MAX), (2, 1), (3, 40_000)] {
                let options = Options {
                    threads,
                    chunk_bytes,
                    since: Some(Timestamp(since)),
                    ..Options::default()
                };
                let (found, read, total) = kept(&set, together, options);
                let way =
                    format!("since {since}, together {together}, {threads} threads, {chunk_bytes}");
                assert!(
                    found == expected,
                    "{way}: {} of {}",
                    found.len(),
                    expected.len()
                );
                if !together {
                    assert!(total <= bytes, "{way}");
                    for stream in 0..trace.streams.len() as u32 {
                        let early = read
                            .iter()
                            .filter(|packet| packet.0 == stream && packet.1 < since);
                        assert!(early.count() <= 1, "{way}: more than one packet crosses it");
                    }
                }
            }
        }
    }
    let late = Options {
        since: Some(Timestamp(last)),
        ..Options::default()
    };
    let (_, read, total) = kept(&set, false, late);
    assert!(
        read.len() < packets.len() / 2 && total < bytes / 2,
        "{total} of {bytes}"
    );
}
