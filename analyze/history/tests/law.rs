//! The file is the same for all numbers of threads and chunk sizes, and its values equal those of
//! the plain state machine.

use std::fs;

use tracebraid_history::Asked;

use crate::model::{Model, Values, entries};
use crate::{WAYS, build_in_ways, history};
use tracebraid_models::synthetic::{Shape, trace};
use tracebraid_models::traces::kernel_trace;

#[test]
fn the_file_depends_neither_on_threads_nor_on_chunks() {
    for (name, files) in [
        ("kernel-mix-small", false),
        ("kernel-mix-small", true),
        ("kernel-ust-requests", true),
        ("kernel-discarded", true),
        ("perf-mix", false),
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let asked = Asked {
            files,
            ..Asked::default()
        };
        build_in_ways(&set, &asked, &WAYS, name);
    }
}

/// Ascending times that are independent of the trace.
pub(crate) fn random_times(begin: i64, end: i64, count: usize) -> Vec<i64> {
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut times: Vec<i64> = (0..count)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            begin + (state % (end - begin + 1) as u64) as i64
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn every_attribute_is_what_a_plain_state_machine_says_at_ten_thousand_times() {
    for (name, count) in [
        ("kernel-mix-small", 10_000),
        ("kernel-ust-requests", 2_000),
        ("kernel-discarded", 10_000),
    ] {
        let Some(set) = kernel_trace(name) else {
            continue;
        };
        let (_place, history) = history(&set);
        let meta = history.meta();
        let (mut model, entries) = (Model::default(), entries(&set));
        let mut next = entries.iter().peekable();
        for time in random_times(meta.begin, meta.end, count) {
            while let Some(entry) = next.next_if(|entry| entry.time <= time) {
                model.step(entry);
            }
            let found = history.at(time, |_| true).unwrap();
            let found: Values = found
                .iter()
                .map(|(attribute, value)| (attribute.path().to_string(), value.to_string()))
                .collect();
            let differs =
                |(found, expected): &((&String, &String), (&String, &String))| found != expected;
            let expected = model.with_cpu_states();
            if found != expected {
                let first = found.iter().zip(&expected).find(differs);
                panic!(
                    "{name} at {time}: {} and {} attributes, first {first:?}",
                    found.len(),
                    expected.len()
                );
            }
        }
    }
}

pub(crate) const SHAPE: Shape = Shape {
    cpus: 3,
    threads: 9,
    steps: 12_000,
    packet: 900,
    ties: true,
    ..Shape::PLAIN
};

#[test]
fn histories_of_descriptors_do_not_tell_how_made_up_traces_were_cut() {
    let lossy = Shape {
        silent_losses: 60,
        lost_packets: 60,
        counted_losses: 60,
        ..SHAPE
    };
    let told = Shape {
        tid_context: true,
        pid_context: true,
        two_streams: true,
        ..lossy
    };
    for (seed, shape) in (0..).zip([SHAPE, SHAPE, lossy, lossy, told, told]) {
        let (directory, set) = trace(seed, shape);
        let asked = Asked {
            files: true,
            ..Asked::default()
        };
        let ways = [(1, u64::MAX), (1, 1), (2, 5000), (3, 0)];
        build_in_ways(&set, &asked, &ways, &format!("seed {seed}"));
        fs::remove_dir_all(directory).unwrap();
    }
}
