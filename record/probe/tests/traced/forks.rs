//! Forks, also in the middle of probes, and thousands of threads.

use std::collections::HashSet;

use crate::support::{Session, babeltrace, compile, read};

#[test]
fn forked_in_the_middle_of_probes() {
    for without in [false, true] {
        forked(&Session::new("packet_size = 4K\ncorrelation = off\n").without_sequences(without));
    }
}

fn forked(session: &Session) {
    let printed = session.run(&["forks"]);
    assert_eq!(printed[1], 0, "children failed");
    let traces = session.traces();
    assert_eq!(traces.len(), 41, "the parent's and one for each child");
    let mut parents = 0;
    for trace in &traces {
        let read = read(trace);
        assert_eq!(read.discarded, 0);
        assert_eq!(read.count("tracebraid:unfinished"), 0);
        let numbers = read.numbers("test:numbered");
        assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]));
        if read.count("test:after") == 0 {
            assert_eq!(numbers, Vec::from_iter(0..printed[0]));
            parents += 1;
        } else {
            assert_eq!(read.count("test:after"), 100);
        }
    }
    assert_eq!(parents, 1);
    babeltrace(session.path());
}

#[test]
fn a_child_that_traces_before_the_library_knows_of_the_fork() {
    // Enough events for several files.
    let session = Session::new("packet_size = 4K\ncorrelation = off\n");
    session.run(&["early", "50000"]);
    let traces = session.traces();
    assert_eq!(traces.len(), 2);
    for trace in &traces {
        let read = read(trace);
        assert_eq!(read.discarded, 0);
        match read.count("test:after") {
            0 => {
                let numbers = read.numbers("test:numbered");
                let wrong = numbers
                    .iter()
                    .zip(0..)
                    .find(|(number, place)| **number != *place);
                assert_eq!((numbers.len(), wrong), (50_000, None));
            }
            count => assert_eq!((count, read.count("test:numbered")), (2, 0)),
        }
    }
}

#[test]
fn ten_thousand_threads() {
    let session = Session::new("correlation = off\n");
    session.run(&["threads", "10000"]);
    let read = session.read();
    assert_eq!(read.discarded, 0);
    let mut numbers = read.numbers("test:numbered");
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..100_000));
    assert!(read.streams <= 80, "{} streams", read.streams);
    // A packet belongs to one thread: the ten records of each thread are in one packet.
    let mut owners = HashSet::new();
    for group in read.records.chunks(10) {
        assert!(group.iter().all(|record| record.tid == group[0].tid));
        assert!(
            group
                .iter()
                .all(|record| record.value("n") / 10 == group[0].value("n") / 10)
        );
        owners.insert(group[0].value("n") / 10);
    }
    assert_eq!(owners.len(), 10_000);
    assert_eq!(babeltrace(&session.trace()).len(), 100_000);
}

#[test]
fn threads_whose_exits_are_not_told() {
    // A program with many keys leaves no key below 32, whose values need no allocation, for the
    // thread-exit handler.
    let session = Session::new("correlation = off\n");
    let program = compile(
        "cc",
        "traced.c",
        "traced-keys",
        &["-std=c11", "-DMANY_KEYS"],
    );
    assert!(
        session
            .command(&program, &["threads", "2000"])
            .status()
            .unwrap()
            .success()
    );
    let read = session.read();
    let mut numbers = read.numbers("test:numbered");
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..20_000));
    assert!(read.streams <= 200, "{} streams", read.streams);
}

#[test]
fn programs_that_clear_their_environment_are_recorded() {
    let program = compile("cc", "cleared.c", "cleared", &[]);
    for when in ["never", "before", "parent", "child"] {
        let session = Session::new("");
        assert!(
            session
                .command(&program, &[when])
                .status()
                .unwrap()
                .success()
        );
        let mut steps: Vec<u64> = Vec::new();
        for trace in session.traces() {
            steps.extend(
                read(&trace)
                    .of("cleared:step")
                    .map(|record| record.value("n")),
            );
        }
        steps.sort_unstable();
        assert_eq!(steps, [0, 1], "{when}");
    }
}
