//! `Analysis::slices`: slices are played on any thread and composed in time order.
#![allow(missing_docs)]

use std::sync::Arc;

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{
    Analysis, Chunk, Control, Options, Record, Slice, StreamPlace, Timings, fold,
};
use tracebraid_testkit::recorded::unpacked;

/// Puts the event records of all streams in order, slice by slice.
#[derive(Default)]
struct Sorted {
    /// Resolve the state without slices if there is one thread.
    resolves: bool,
    /// Time at which playing a slice panics.
    breaks_at: Option<i64>,
}

#[derive(Default, serde::Serialize, serde::Deserialize)]
struct Partial {
    waiting: Vec<(i64, u32)>,
    sorted: Vec<(i64, u32)>,
    /// Event records that were played.
    played: usize,
    folded: usize,
    /// Number of times the state was resolved without slices.
    resolved: usize,
}

impl Analysis for Sorted {
    type Partial = Partial;
    type Report = Partial;

    fn wants(&self, _: usize, _: usize, class: usize) -> bool {
        class.is_multiple_of(3)
    }

    fn begin(&self, _: &Chunk) -> Partial {
        Partial::default()
    }

    fn packet(&self, _: &mut Partial, _: &StreamPlace<'_>) {}

    fn event(&self, partial: &mut Partial, record: &mut Record<'_>) {
        partial.waiting.push((record.time.0, record.number));
        partial.folded += 1;
    }

    fn end(&self, _: &mut Partial, _: &Chunk) {}

    fn merge(&self, earlier: &mut Partial, later: Partial) {
        earlier.waiting.extend(later.waiting);
        earlier.played += later.played;
        earlier.folded += later.folded;
    }

    fn exchange(&self, partial: &mut Partial, resident: &mut Partial) {
        std::mem::swap(&mut partial.folded, &mut resident.folded);
    }

    fn slices<'a>(
        &'a self,
        partial: &mut Partial,
        watermark: Timestamp,
    ) -> Vec<Slice<'a, Partial>> {
        let (mut before, after) = std::mem::take(&mut partial.waiting)
            .into_iter()
            .partition::<Vec<_>, _>(|event| event.0 < watermark.0);
        partial.waiting = after;
        let play = move |resident: &mut Partial| {
            resident.played += before.len();
            assert!(
                !before.iter().any(|event| Some(event.0) == self.breaks_at),
                "asked for"
            );
            before.sort_unstable();
            let compose = move |partial: &mut Partial| {
                let last = partial.sorted.last().map_or(i64::MIN, |event| event.0);
                assert!(
                    before.first().is_none_or(|first| last <= first.0),
                    "slices are in order"
                );
                partial.sorted.extend(before);
            };
            Box::new(compose) as Box<dyn FnOnce(&mut Partial) + Send>
        };
        vec![Box::new(play)]
    }

    fn resolve(&self, partial: &mut Partial, watermark: Timestamp) -> bool {
        if self.resolves {
            let mut resident = Partial::default();
            for slice in self.slices(partial, watermark) {
                slice(&mut resident)(partial);
            }
            partial.played += resident.played;
            partial.resolved += 1;
        }
        self.resolves
    }

    fn finish(&self, partial: Partial) -> Partial {
        partial
    }
}

fn opened() -> TraceSet {
    let name = "kernel-mix-small";
    TraceSet::open(&[unpacked(name).join(name)]).unwrap()
}

#[test]
fn slices_are_composed_in_the_order_of_time() {
    let set = opened();
    let sorted = Sorted::default();
    let folded = |(threads, chunk_bytes, slice_bytes)| {
        let options = Options {
            threads,
            chunk_bytes,
            slice_bytes,
            ..Options::default()
        };
        let report = fold(&set, &sorted, options, &Control::default())
            .unwrap()
            .report;
        assert!(report.waiting.is_empty(), "the last watermark is the end");
        let events = report.sorted.len();
        assert_eq!((report.played, report.folded), (events, events));
        report.sorted
    };
    let expected = folded((1, 0, 0));
    assert!(expected.len() > 10_000 && expected.is_sorted());
    for way in [(1, 1, 1), (2, 1, 1), (3, 300_000, 1), (8, 1, 2_000_000)] {
        assert!(folded(way) == expected, "{way:?}");
    }
}

#[test]
fn one_thread_needs_no_slices_unless_it_is_timed() {
    let set = opened();
    let expected = fold(
        &set,
        &Sorted::default(),
        Options::default(),
        &Control::default(),
    );
    let expected = expected.unwrap().report.sorted;
    let sorted = Sorted {
        resolves: true,
        ..Sorted::default()
    };
    let timed = Control::default();
    timed.collect(Arc::<Timings>::default());
    for (threads, control, resolves) in [
        (1, &Control::default(), true),
        (2, &Control::default(), false),
        (1, &timed, false),
    ] {
        let options = Options {
            threads,
            chunk_bytes: 300_000,
            slice_bytes: 1_000_000,
            ..Options::default()
        };
        let report = fold(&set, &sorted, options, control).unwrap().report;
        assert!(report.sorted == expected && report.played == expected.len());
        assert_eq!(report.resolved > 2, resolves, "{threads} threads");
    }
}

#[test]
fn a_slice_that_panics_ends_the_fold() {
    let set = opened();
    let times = fold(
        &set,
        &Sorted::default(),
        Options::default(),
        &Control::default(),
    );
    let times = times.unwrap().report.sorted;
    let breaks_at = Some(times[times.len() / 2].0);
    let options = Options {
        threads: 4,
        chunk_bytes: 1,
        slice_bytes: 1,
        ..Options::default()
    };
    let sorted = Sorted {
        breaks_at,
        ..Sorted::default()
    };
    let run = std::panic::AssertUnwindSafe(|| fold(&set, &sorted, options, &Control::default()));
    assert!(std::panic::catch_unwind(run).is_err());
}

#[test]
fn the_times_of_all_steps_are_collected() {
    let set = opened();
    let control = Control::default();
    let timings = Arc::<Timings>::default();
    control.collect(timings.clone());
    let options = Options {
        threads: 2,
        chunk_bytes: 300_000,
        slice_bytes: 1_000_000,
        ..Options::default()
    };
    fold(&set, &Sorted::default(), options, &control).unwrap();
    let [times] = &timings.folds()[..] else {
        panic!("one fold");
    };
    assert_eq!(times.threads, 2);
    assert!(times.chunks.len() > times.slices.len() && times.slices.len() > 2);
    assert_eq!(
        times.chunks.iter().map(|chunk| chunk.bytes).sum::<u64>(),
        control.total()
    );
    assert!(
        times
            .chunks
            .iter()
            .all(|chunk| chunk.fold_ns > 0 && chunk.partial_bytes > 0)
    );
    assert!(times.slices.is_sorted_by_key(|slice| slice.after_chunk));
    assert!(times.slices.iter().all(|slice| slice.after_slice.is_none()));
    assert!(times.serial_ns() > 0 && times.serial_ns() < times.cpu_ns());
}
