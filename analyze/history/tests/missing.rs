//! Traces without some CPUs or packets: each value equals that of the whole trace, or is absent.

use tracebraid_ctf::trace::TraceSet;
use tracebraid_history::{Attribute, AttributeKind, History, Since, Value};
use tracebraid_testkit::partial::{PartialTrace, whole};

use crate::{Scratch, WAYS, build_with, history};

/// True if an unrecorded CPU could have changed values of that kind.
fn is_uncertain(kind: AttributeKind) -> bool {
    matches!(
        kind,
        AttributeKind::CpuState
            | AttributeKind::CpuThread
            | AttributeKind::CpuIrq
            | AttributeKind::CpuSoftirq
            | AttributeKind::ThreadState
            | AttributeKind::ThreadCpu
            | AttributeKind::ThreadSyscall
            | AttributeKind::DiskDepth
    )
}

/// Stretches in which attributes have a value, in nanoseconds from the origin.
fn stretches(
    history: &History,
    attribute: Attribute,
    (begin, end): (i64, i64),
) -> Vec<(i64, i64, Value)> {
    let changes = history.changes(attribute, begin, end).unwrap();
    let ends = changes.iter().skip(1).map(|since| since.time).chain([end]);
    let stretches = changes.iter().zip(ends);
    let stretches = stretches.map(|(since, end)| (since.time.max(begin), end, since.value.clone()));
    stretches
        .filter(|(begin, end, value)| begin < end && *value != Value::Null)
        .collect()
}

/// True if the thread of a CPU is in a system call that it entered before that CPU was recorded:
/// the call is unknown, as at the start of any trace.
fn is_in_older_call(whole: &History, part: &History, state: Attribute, since: &Since) -> bool {
    let late = part
        .meta()
        .not_recorded
        .iter()
        .filter_map(|of| of.before_ns)
        .max();
    let last = |kind, id| {
        let attribute = Attribute::new(kind, state.host(), id);
        let changes = whole
            .changes(attribute, whole.meta().begin - 1, since.time + 1)
            .unwrap();
        changes.last().cloned()
    };
    let (Some(late), AttributeKind::CpuState) = (late, state.kind()) else {
        return false;
    };
    match last(AttributeKind::CpuThread, state.id()).map(|thread| thread.value) {
        Some(Value::Number(tid)) => last(AttributeKind::ThreadSyscall, tid as u32)
            .is_some_and(|call| call.value != Value::Null && call.time < late),
        _ => false,
    }
}

#[test]
fn a_value_is_that_of_the_whole_trace_or_none() {
    let (_whole_place, whole) = history(&TraceSet::open(&[whole()]).unwrap());
    let unknown = Value::Text("unknown".into());
    for (kept, copy) in PartialTrace::all() {
        let (_place, part) = history(&copy.open());
        let range = (part.meta().begin, part.meta().end);
        let attributes = part
            .met(range.0, range.1, |of| is_uncertain(of.kind()))
            .unwrap();
        let mut compared = 0;
        for attribute in attributes {
            let found = stretches(&part, attribute, range);
            for (begin, end, value) in found.into_iter().filter(|of| of.2 != unknown) {
                let expected = whole.changes(attribute, begin, end).unwrap();
                let path = part.path(attribute).to_string();
                let within = expected.iter().filter(|since| since.time < end);
                for since in within.filter(|since| since.value != value) {
                    assert!(
                        is_in_older_call(&whole, &part, attribute, since),
                        "{path} is {value} from {begin} to {end}; in the whole trace {since:?}, of CPUs {kept:?}"
                    );
                }
                compared += 1;
            }
        }
        assert!(compared > 10_000, "{kept:?}: {compared} values");
    }
}

#[test]
fn the_file_of_a_part_depends_neither_on_threads_nor_on_chunks() {
    for (kept, copy) in PartialTrace::all() {
        let (place, set) = (Scratch::new(), copy.open());
        let mut files = WAYS.iter().map(|&(threads, chunk)| {
            build_with(&set, &place.file("history"), threads, chunk);
            std::fs::read(place.file("history")).unwrap()
        });
        let first = files.next().unwrap();
        assert!(files.all(|file| file == first), "{kept:?}");
    }
}
