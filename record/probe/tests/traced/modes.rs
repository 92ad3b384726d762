//! Full buffers: lost events are counted, or the oldest events are lost.

use std::collections::HashSet;

use tracebraid_probe::finish;
use tracebraid_testkit::processes::until;

use crate::support::{Session, babeltrace, compile, numbers, progress_in, read, traced};

#[test]
fn overrun_is_counted_exactly() {
    let session =
        Session::new("mode = discard\npacket_size = 16K\npackets = 8\ncorrelation = off\n");
    let printed = session.run(&["overrun", "1000000"]);
    let read = session.read();
    let written = read.numbers("test:numbered").len() as u64;
    assert_eq!(written + read.discarded, printed[0]);
    assert!(written > 1000);
    println!(
        "{} events/s, {written} of {} written",
        printed[0] * 1_000_000_000 / printed[1],
        printed[0]
    );
    babeltrace(&session.trace());
}

/// Checks that only the newest records remain, without gaps, and that they fill a good part of the
/// ring.
fn check_ring(numbers: &[u64], newest: Option<u64>) {
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert!(
        numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "gaps between {first} and {last}"
    );
    if let Some(newest) = newest {
        assert_eq!(last, newest);
    }
    // 28 bytes each, in at least two of four packets of 4 KiB.
    assert!(numbers.len() > 2 * 140, "{}", numbers.len());
    assert!(first > 0);
}

const RING: &str = "mode = ring\npacket_size = 4K\npackets = 4\ncorrelation = off\n";

#[test]
fn a_ring_keeps_the_newest() {
    let session = Session::new(RING);
    session.run(&["limited", "100000"]);
    assert!(
        read(&session.trace()).records.is_empty(),
        "readers must not see a ring before it is in order"
    );
    session.finish();
    let found = read(&session.trace());
    check_ring(&found.numbers("test:numbered"), Some(99_999));
    assert_eq!(found.discarded, 0);
    assert_eq!(babeltrace(&session.trace()).len(), found.records.len());
    // Repeating it changes nothing.
    session.finish();
    assert_eq!(read(&session.trace()).records, found.records);
}

#[test]
fn a_ring_survives_sigkill() {
    for round in 0..40 {
        let session = Session::new(RING);
        let progress = session.path().join("progress");
        let mut child = session
            .command(&traced(), &["killed", progress.to_str().unwrap()])
            .spawn()
            .unwrap();
        until("the ring was overwritten", || {
            progress_in(&progress) > 2000 + round * 1370
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let written = progress_in(&progress);
        session.finish();
        let numbers = read(&session.trace()).numbers("test:numbered");
        check_ring(&numbers, None);
        assert!(numbers[numbers.len() - 1] + 1 >= written);
    }
}

#[test]
fn a_ring_is_copied_while_it_is_written() {
    let session = Session::new("mode = ring\npacket_size = 64K\npackets = 16\ncorrelation = off\n");
    let progress = session.path().join("progress");
    let mut child = session
        .command(&traced(), &["killed", progress.to_str().unwrap()])
        .spawn()
        .unwrap();
    let (mut last, mut round) = (0, 0);
    // Until more was written than the ring holds, so that it was overwritten meanwhile.
    until("the ring was overwritten and copied", || {
        std::thread::sleep(std::time::Duration::from_micros(10_000 + round * 137));
        let copy = session.path().join(format!("copy{round}"));
        if finish::copy(session.path(), &copy).unwrap() == 0 {
            return false;
        }
        round += 1;
        let trace = std::fs::read_dir(copy.join("ust/pid"))
            .unwrap()
            .next()
            .unwrap()
            .unwrap();
        let numbers = read(&trace.path()).numbers("test:numbered");
        let pairs = numbers.windows(2);
        assert!(
            pairs.clone().all(|pair| pair[0] + 1 == pair[1]),
            "gaps in round {round}"
        );
        if let Some(&newest) = numbers.last() {
            assert!(newest >= last, "{newest} after {last}");
            last = newest;
        }
        let is_done = round >= 12 && last > 100_000;
        if is_done {
            babeltrace(&trace.path());
        }
        is_done
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_ring_never_writes_over_a_record_that_is_not_finished() {
    for without in [false, true] {
        let session = Session::new(RING).without_sequences(without);
        session.run(&["held", "100000"]);
        session.finish();
        let read = read(&session.trace());
        let held: Vec<u64> = read
            .of("test:after")
            .map(|record| record.value("n"))
            .collect();
        assert_eq!(held, [7], "kept by its packet");
        assert_eq!(read.count("tracebraid:unfinished"), 0);
        let numbers = read.numbers("test:numbered");
        assert_eq!(numbers.last(), Some(&99_999));
        // The later records of its packet, and the newest records in the other three slots.
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(babeltrace(&session.trace()).len(), read.records.len());
    }
}

#[test]
fn a_ring_that_goes_from_thread_to_thread_keeps_records_that_are_not_finished() {
    let program = compile("cc", "handed.c", "handed", &[]);
    // Combinations of threads that leave records open and threads that write meanwhile, watched or
    // not.
    for threads in [
        "OF", "oNF", "oNfF", "ONF", "oF", "oN", "ON", "oFNF", "OfoNF",
    ] {
        let session =
            Session::new("mode = ring\npacket_size = 4K\npackets = 16\ncorrelation = off\n");
        let output = session.command(&program, &[threads]).output().unwrap();
        let left = numbers(&output)[0];
        session.finish();
        let read = read(&session.trace());
        assert_eq!(
            read.streams, 2,
            "{threads}: the stream of losses, and one buffer for all"
        );
        let mut kept = read.numbers("test:open");
        kept.sort_unstable();
        assert_eq!(kept, Vec::from_iter(0..left), "{threads}");
        assert_eq!(read.count("tracebraid:unfinished"), 0, "{threads}");
        read.numbers("test:numbered");
        assert_eq!(
            babeltrace(&session.trace()).len(),
            read.records.len(),
            "{threads}"
        );
    }
}

#[test]
fn a_ring_keeps_what_many_threads_wrote_one_after_the_other() {
    let program = compile("cc", "handed.c", "handed", &[]);
    for without in [false, true] {
        let session = Session::new("mode = ring\n").without_sequences(without);
        let output = session
            .command(&program, &[&"s".repeat(3000)])
            .output()
            .unwrap();
        numbers(&output);
        session.finish();
        let found = read(&session.trace());
        assert_eq!(found.numbers("test:numbered"), Vec::from_iter(0..3000));
        let threads: HashSet<u64> = found.of("test:numbered").map(|record| record.tid).collect();
        assert_eq!(
            (found.streams, threads.len()),
            (2, 3000),
            "each thread is recorded"
        );
        assert_eq!(babeltrace(&session.trace()).len(), found.records.len());
    }
}

#[test]
fn a_ring_of_many_threads_is_full_of_the_newest() {
    let program = compile("cc", "handed.c", "handed", &[]);
    let session = Session::new("mode = ring\npacket_size = 4K\npackets = 16\ncorrelation = off\n");
    let output = session
        .command(&program, &[&"s".repeat(3000)])
        .output()
        .unwrap();
    numbers(&output);
    session.finish();
    let found = read(&session.trace()).numbers("test:numbered");
    // 116 bytes each, and at least 15 of 16 packets are full.
    assert!(
        found.len() >= 15 * (4096 / 120) && found.len() < 700,
        "{}",
        found.len()
    );
    assert!(found.windows(2).all(|pair| pair[0] + 1 == pair[1]));
    assert_eq!(found.last(), Some(&2999));
}

#[test]
fn a_ring_of_many_threads_is_copied_while_it_is_written() {
    let program = compile("cc", "handed.c", "handed", &[]);
    let session = Session::new("mode = ring\npacket_size = 4K\npackets = 16\ncorrelation = off\n");
    let mut child = session.command(&program, &["se"]).spawn().unwrap();
    let (mut last, mut copies) = (0, 0);
    // Until more was written than the ring holds, so that it was overwritten meanwhile.
    until("the ring was overwritten and copied", || {
        let copy = session.path().join(format!("copy{copies}"));
        if finish::copy(session.path(), &copy).unwrap() == 0 {
            return false;
        }
        copies += 1;
        let mut traces = std::fs::read_dir(copy.join("ust/pid")).unwrap();
        let found = read(&traces.next().unwrap().unwrap().path()).numbers("test:numbered");
        let gap = found.windows(2).find(|pair| pair[0] + 1 != pair[1]);
        assert_eq!(
            gap,
            None,
            "in copy {copies}: {:?} to {:?}",
            found.first(),
            found.last()
        );
        if let Some(&newest) = found.last() {
            assert!(newest >= last, "{newest} after {last}");
            last = newest;
        }
        last > 5000 && copies > 5
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_copy_has_the_classes_of_all_its_records() {
    let session = Session::new("mode = ring\npacket_size = 64K\npackets = 16\ncorrelation = off\n");
    let mut child = session
        .command(&traced(), &["late", "100000"])
        .spawn()
        .unwrap();
    let (mut newest, mut round) = (0, 0);
    until("copies have many classes", || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let copy = session.path().join(format!("copy{round}"));
        if finish::copy(session.path(), &copy).unwrap() == 0 {
            return false;
        }
        round += 1;
        let mut traces = std::fs::read_dir(copy.join("ust/pid")).unwrap();
        // An id without a class would be damage.
        let read = read(&traces.next().unwrap().unwrap().path());
        newest = newest.max(read.records.len());
        newest > 100 && round >= 20
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_ring_with_handlers_that_jump_away() {
    let session = Session::new(RING);
    let output = session
        .command(&traced(), &["jump", "3000"])
        .output()
        .unwrap();
    numbers(&output);
    session.finish();
    let found = read(&session.trace());
    // The newest thousand records take 20 KB; a packet whose last writer jumped away is kept beside
    // them.
    let after: Vec<u64> = found
        .of("test:after")
        .map(|record| record.value("n"))
        .collect();
    assert_eq!(after.last(), Some(&999));
    let newest = after
        .chunk_by(|early, late| early + 1 == *late)
        .next_back()
        .unwrap();
    assert!(newest.len() > 200, "{}", newest.len());
    assert_eq!(babeltrace(&session.trace()).len(), found.records.len());
}
