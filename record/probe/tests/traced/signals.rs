//! Signal handlers that trace in the middle of probes, and handlers that do not return.

use crate::support::{Session, babeltrace};

#[test]
fn handlers_trace_in_the_middle_of_probes() {
    // Small packets: many handlers run while a packet is being changed.
    for (options, without) in [
        ("packet_size = 2K\n", false),
        ("packet_size = 2K\n", true),
        ("packet_size = 64K\n", false),
        ("packet_size = 64K\nclock = monotonic\n", false),
    ] {
        let session = Session::new(options).without_sequences(without);
        let fired = session.run(&["storm", "100000"]);
        let read = session.read();
        assert_eq!(read.discarded, 0);
        assert_eq!(read.count("tracebraid:unfinished"), 0);
        assert_eq!(read.numbers("test:numbered"), Vec::from_iter(0..fired[0]));
        let mut inner = read.numbers("test:inner");
        inner.sort_unstable();
        assert_eq!(inner, Vec::from_iter(0..fired[1]));
        assert!(fired[1] > 1000, "only {} signals", fired[1]);
        println!("{options}{} events, {} in handlers", fired[0], fired[1]);
    }
}

#[test]
fn handlers_in_a_child_that_shares_memory_lose_what_they_interrupt() {
    let session = Session::new("packet_size = 4K\n");
    let fired = session.run(&["vforked", "400000"]);
    assert_eq!(fired[2], 0, "the child failed");
    let read = session.read();
    assert_eq!(read.count("tracebraid:unfinished"), 0);
    assert_eq!(read.numbers("test:numbered"), Vec::from_iter(0..fired[0]));
    let inner = read.numbers("test:inner");
    assert!(inner.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(inner.len() as u64 + read.discarded, fired[1]);
    assert_eq!(read.count("test:after"), 1000, "the parent goes on");
    println!("{} in handlers, {} of them lost", fired[1], read.discarded);
    assert!(fired[1] > 100, "only {} signals", fired[1]);
}

#[test]
fn handlers_that_jump_away_leave_sound_packets() {
    for without in [false, true] {
        jump_away(&Session::new("packet_size = 2K\n").without_sequences(without));
    }
}

fn jump_away(session: &Session) {
    let fired = session.run(&["jump", "1000"]);
    let read = session.read();
    assert_eq!(read.count("test:after"), 1000, "tracing goes on");
    assert_eq!(read.discarded, 0);
    let numbers = read.numbers("test:numbered");
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
    let abandoned = read.count("tracebraid:unfinished") as u64;
    let complete = numbers.len() as u64;
    println!(
        "{} tried, {complete} complete, {abandoned} abandoned",
        fired[0]
    );
    // A difference remains for jumps between the count and the reservation.
    assert!(complete + abandoned <= fired[0]);
    assert!(complete + abandoned + 1000 >= fired[0]);
    assert!(abandoned > 0, "no jump hit a probe: the test shows nothing");
    assert_eq!(babeltrace(&session.trace()).len(), read.records.len());
}
