//! Traces without some CPUs or packets: each value equals that of the whole trace, or is absent.

use std::collections::BTreeMap;

use tracebraid_ctf::trace::TraceSet;
use tracebraid_history::{History, Kind, Value};
use tracebraid_testkit::partial::{PartialTrace, whole};

use crate::law::random_times;
use crate::{Place, WAYS, build_with, history};

/// True if an unrecorded CPU could have changed values of that kind.
fn is_uncertain(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::CpuState
            | Kind::CpuThread
            | Kind::CpuIrq
            | Kind::CpuSoftirq
            | Kind::ThreadState
            | Kind::DiskDepth
    )
}

fn values(history: &History, time: i64) -> BTreeMap<String, Value> {
    let values = history.at(time, |attribute| is_uncertain(attribute.kind()));
    let named = values.unwrap().into_iter();
    named
        .filter(|(_, value)| *value != Value::Null)
        .map(|(attribute, value)| (history.path(attribute).to_string(), value))
        .collect()
}

#[test]
fn a_value_is_that_of_the_whole_trace_or_none() {
    let (_whole_place, whole) = history(&TraceSet::open(&[whole()]).unwrap());
    for (kept, copy) in PartialTrace::all() {
        let (_place, part) = history(&copy.open());
        let (mut states, mut running) = (0, 0);
        for time in random_times(part.meta().begin, part.meta().end, 500) {
            let expected = values(&whole, time);
            for (path, value) in values(&part, time) {
                assert_eq!(
                    expected.get(&path),
                    Some(&value),
                    "{path} at {time}, of CPUs {kept:?}"
                );
                states += usize::from(path.ends_with("/state"));
                running += usize::from(path.ends_with("/thread"));
            }
        }
        assert!(
            states > 400 && running > 400,
            "{kept:?}: {states} states, {running} running threads"
        );
    }
}

#[test]
fn the_file_of_a_part_depends_neither_on_threads_nor_on_chunks() {
    for (kept, copy) in PartialTrace::all() {
        let (place, set) = (Place::new(), copy.open());
        let mut files = WAYS.iter().map(|&(threads, chunk)| {
            build_with(&set, &place.file("history"), threads, chunk);
            std::fs::read(place.file("history")).unwrap()
        });
        let first = files.next().unwrap();
        assert!(files.all(|file| file == first), "{kept:?}");
    }
}
