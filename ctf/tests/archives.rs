//! LTTng's directories: sessions, archives of rotated sessions, rings of tracefiles, indexes, and
//! the remains of a tracer that crashed.

use std::fs;
use std::path::Path;

use crate::formats_support::lttng::{
    self, LATER_CLASS, METADATA, Packet, extended, index, number, write,
};
use tracebraid_ctf::losses::LossKind;
use tracebraid_ctf::reader::MergedReader;
use tracebraid_ctf::trace::{OpenError, Trace, TraceSet};

/// Times of all event records of all traces below a directory, from their clock's start.
fn times(set: &TraceSet) -> Vec<i64> {
    let mut reader = MergedReader::new(set);
    let mut times = Vec::new();
    while let Some((time, _)) = reader.next() {
        times.push(time.0 - 5);
    }
    times
}

fn told(set: &TraceSet) -> Vec<String> {
    let mut reader = MergedReader::new(set);
    while reader.next().is_some() {}
    let read = reader.take_damage();
    set.damage()
        .map(ToString::to_string)
        .chain(read.iter().map(ToString::to_string))
        .collect()
}

fn open(directory: &Path) -> TraceSet {
    TraceSet::open(&[directory]).unwrap()
}

#[test]
fn a_session_of_kernel_and_user_space_is_two_traces_in_one_order_of_time() {
    let session = tempfile::tempdir().unwrap();
    let user = METADATA.replace("a38aef6e", "b38aef6e");
    write(
        &session.path().join("kernel"),
        METADATA,
        &[("channel0_0", &[Packet::new(0, 0, &[10, 30])])],
    );
    let mut bytes = Packet::new(0, 0, &[20, 40]).bytes();
    bytes[4] = 0xb3;
    let place = session.path().join("ust/uid/1000/64-bit");
    write(&place, &user, &[]);
    fs::write(place.join("channel0_0"), bytes).unwrap();
    let set = open(session.path());
    assert_eq!(set.traces.len(), 2);
    assert_eq!(times(&set), [10, 20, 30, 40]);
    assert_eq!(told(&set), [""; 0]);
}

#[test]
fn what_cannot_be_looked_into_is_told() {
    let session = tempfile::tempdir().unwrap();
    let packets = [Packet::new(0, 0, &[10])];
    write(
        &session.path().join("b/inner"),
        METADATA,
        &[("channel0_0", &packets)],
    );
    // A cycle of links, which not even root can follow.
    for directory in ["a", "b"] {
        let circle = session.path().join(directory).join("metadata");
        fs::create_dir_all(circle.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink("metadata", circle).unwrap();
    }
    let set = open(session.path());
    assert_eq!(times(&set), [10]);
    let failed: Vec<_> = set
        .failed
        .iter()
        .map(|(_, reason)| reason.as_str())
        .collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    for (reason, directory) in failed.iter().zip(["a", "b"]) {
        let place = session.path().join(directory).join("metadata");
        assert!(
            reason.starts_with(&format!("{}: ", place.display())),
            "{reason}"
        );
    }
    let nothing = TraceSet::open(&[session.path().join("a")]);
    assert!(matches!(nothing, Err(OpenError::Io { .. })), "{nothing:?}");
}

#[test]
fn archives_of_a_rotated_session_are_one_trace() {
    for (first, second) in [("0-first", "1-second"), ("1-first", "0-second")] {
        let session = tempfile::tempdir().unwrap();
        let more = format!("{METADATA}{LATER_CLASS}");
        let mut late = Packet::new(0, 4, &[70]);
        late.events.extend(extended(40, 80, &[7]));
        let archives = session.path().join("archives");
        let early = [Packet::new(0, 0, &[10]), Packet::new(0, 1, &[20, 30])];
        write(
            &archives.join(first).join("kernel"),
            METADATA,
            &[("channel0_0", &early)],
        );
        write(
            &archives.join(second).join("kernel"),
            &more,
            &[("channel0_0", &[late])],
        );
        let set = open(session.path());
        assert_eq!((set.traces.len(), set.traces[0].paths.len()), (1, 2));
        let trace = &set.traces[0];
        assert_eq!(
            (trace.streams.len(), trace.streams[0].packets.len()),
            (1, 3)
        );
        assert_eq!(trace.layout.streams[0].events.len(), 3, "what says most");
        assert_eq!(times(&set), [10, 20, 30, 70, 80]);
        assert_eq!(told(&set), [""; 0]);
        let losses = trace.streams[0].losses();
        assert_eq!(losses.len(), 1, "{losses:?}");
        assert_eq!(
            (losses[0].kind, losses[0].count),
            (LossKind::Packets, Some(2))
        );
    }
}

#[test]
fn traces_of_other_sessions_stay_apart() {
    let place = tempfile::tempdir().unwrap();
    let other = METADATA.replace("freq = 1000000000", "freq = 1000000001");
    write(
        &place.path().join("a"),
        METADATA,
        &[("s", &[Packet::new(0, 0, &[10])])],
    );
    write(
        &place.path().join("b"),
        &other,
        &[("s", &[Packet::new(0, 1, &[20])])],
    );
    assert_eq!(open(place.path()).traces.len(), 2);
}

#[test]
fn a_ring_of_tracefiles_is_read_in_the_order_of_time() {
    let place = tempfile::tempdir().unwrap();
    let newest = [Packet::new(3, 4, &[50]), Packet::new(3, 5, &[60, 65])];
    let oldest = [Packet::new(3, 2, &[10, 15]), Packet::new(3, 3, &[20])];
    write(
        place.path(),
        METADATA,
        &[("channel0_3_0", &newest), ("channel0_3_1", &oldest)],
    );
    let set = open(place.path());
    assert_eq!(set.traces[0].streams.len(), 1);
    assert_eq!(times(&set), [10, 15, 20, 50, 60, 65]);
    assert!(set.traces[0].streams[0].losses().is_empty());
}

#[test]
fn packets_that_two_snapshots_have_are_read_once() {
    let place = tempfile::tempdir().unwrap();
    let packets = [
        Packet::new(0, 0, &[10]),
        Packet::new(0, 1, &[20]),
        Packet::new(0, 2, &[30]),
    ];
    write(
        &place.path().join("snapshot-1/kernel"),
        METADATA,
        &[("channel0_0", &packets[..2])],
    );
    write(
        &place.path().join("snapshot-2/kernel"),
        METADATA,
        &[("channel0_0", &packets[1..])],
    );
    assert_eq!(times(&open(place.path())), [10, 20, 30]);
}

#[test]
fn whatever_the_index_is_the_event_records_are_read() {
    let packets = [
        Packet::new(0, 0, &[10, 11]),
        Packet::new(0, 1, &[20]),
        Packet::new(0, 2, &[30]),
    ];
    let right = index(&packets, 1);
    let stale = index(&packets[..2], 1);
    let mut lying = right.clone();
    // The content size of the packet in the middle: as if it had no event records.
    lying[16 + 72 + 16..][..8].copy_from_slice(&(lttng::HEAD as u64 * 8).to_be_bytes());
    let mut shifted = right.clone();
    shifted[16 + 7] = 8;
    let cases: [(&str, Option<&[u8]>, usize); 8] = [
        ("none", None, 0),
        ("right", Some(&right), 0),
        ("version 1.0", Some(&index(&packets, 0)), 0),
        ("stale", Some(&stale), 1),
        ("cut", Some(&right[..right.len() - 8]), 1),
        (
            "garbage",
            Some(b"this is no index at all, but text of some length"),
            1,
        ),
        ("lying in the middle", Some(&lying), 1),
        ("shifted", Some(&shifted), 1),
    ];
    for (name, index, faults) in cases {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), METADATA, &[("channel0_0", &packets)]);
        if let Some(index) = index {
            fs::create_dir(place.path().join("index")).unwrap();
            fs::write(place.path().join("index/channel0_0.idx"), index).unwrap();
        }
        let set = open(place.path());
        assert_eq!(times(&set), [10, 11, 20, 30], "{name}");
        assert_eq!(told(&set).len(), faults, "{name}: {:?}", told(&set));
        let (counts, damage) =
            crate::formats_support::scan_counts(&set.traces[0], &set.traces[0].streams[0]);
        assert_eq!(counts, [4, 0], "{name}");
        assert_eq!(
            damage.len() + set.traces[0].damage.len(),
            faults,
            "{name}: {damage:?}"
        );
    }
}

#[test]
fn an_open_packet_of_a_crashed_tracer_gives_what_was_written() {
    for sizes in [
        (u64::MAX, u64::MAX),
        (0, 0),
        (u64::from(u32::MAX), u64::from(u32::MAX)),
    ] {
        let mut open_packet = Packet::new(0, 1, &[20, 21, 22]);
        // The last record's payload ends with zeros, like the unwritten rest.
        open_packet.events.extend(number(23, 5));
        open_packet.end = 0;
        open_packet.padding = 1000;
        open_packet.sizes = Some(sizes);
        for followed in [false, true] {
            let place = tempfile::tempdir().unwrap();
            let mut packets = vec![Packet::new(0, 0, &[10]), open_packet.clone()];
            let mut expected = vec![10, 20, 21, 22, 23];
            if followed {
                packets.push(Packet::new(0, 2, &[30]));
                expected.push(30);
            }
            write(place.path(), METADATA, &[("channel0_0", &packets)]);
            let set = open(place.path());
            assert_eq!(times(&set), expected, "{sizes:?}, followed: {followed}");
            let told = told(&set);
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(
                told[0].contains("byte 108: the tracer did not close this packet"),
                "{told:?}"
            );
            assert_eq!(set.traces[0].streams[0].packets[1].end, None);
        }
    }
}

#[test]
fn an_empty_file_is_worth_a_note() {
    let place = tempfile::tempdir().unwrap();
    write(
        place.path(),
        METADATA,
        &[
            ("channel0_0", &[]),
            ("channel0_1", &[Packet::new(1, 0, &[1])]),
        ],
    );
    let trace = Trace::open(place.path()).unwrap();
    assert!(trace.damage.is_empty());
    assert_eq!(trace.notes.len(), 1);
    assert!(
        trace.notes[0]
            .to_string()
            .ends_with("channel0_0: the stream file is empty: it has no packets")
    );
    assert_eq!(trace.streams.len(), 1);
}

#[test]
fn what_is_not_ready_is_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let streams: [(&str, &[Packet]); 2] = [
        ("channel0_0", &[]),
        ("channel0_1", &[Packet::new(1, 0, &[1])]),
    ];
    let trace = place.path().join("trace");
    write(&trace, METADATA, &streams);
    // The state in which a recorder is killed or is still writing.
    std::fs::create_dir(trace.join("index")).unwrap();
    for name in ["index/.channel0_0.idx.part", ".gate", "channel0_2.part"] {
        std::fs::write(trace.join(name), [1]).unwrap();
    }
    write(&place.path().join(".hidden"), METADATA, &streams);
    let set = TraceSet::open(&[place.path()]).unwrap();
    assert_eq!(set.traces.len(), 1);
    let trace = &set.traces[0];
    assert_eq!((trace.streams.len(), trace.paths.len()), (1, 1));
    assert!(
        trace.damage.is_empty() && trace.notes.is_empty(),
        "{trace:?}"
    );
}

#[test]
fn one_file_may_have_packets_of_several_streams() {
    let place = tempfile::tempdir().unwrap();
    let packets = [
        Packet::new(0, 0, &[10]),
        Packet::new(1, 0, &[5, 15]),
        Packet::new(0, 1, &[20]),
    ];
    write(place.path(), METADATA, &[("all", &packets)]);
    let set = open(place.path());
    assert_eq!(set.traces[0].streams.len(), 2);
    assert_eq!(times(&set), [5, 10, 15, 20]);
}

#[test]
fn compact_times_wrap_and_extended_headers_set_them() {
    let place = tempfile::tempdir().unwrap();
    let wrap = 1u64 << 27;
    let mut packet = Packet::new(0, 0, &[wrap - 2, wrap - 1, wrap, wrap + 5]);
    packet
        .events
        .extend(extended(0, 40 * wrap + 7, &[1, 0, 0, 0]));
    packet.events.extend(number(40 * wrap + 8, 2));
    // After the packet's end, and the next packet begins earlier.
    packet.end = wrap;
    let next = Packet::new(0, 1, &[wrap + 9]);
    write(place.path(), METADATA, &[("channel0_0", &[packet, next])]);
    let set = open(place.path());
    let expected = [
        wrap - 2,
        wrap - 1,
        wrap,
        wrap + 5,
        40 * wrap + 7,
        40 * wrap + 8,
        wrap + 9,
    ];
    assert_eq!(times(&set), expected.map(|time| time as i64));
    assert_eq!(told(&set), [""; 0]);
}

#[test]
fn a_packet_that_ends_before_it_begins_is_told() {
    let place = tempfile::tempdir().unwrap();
    let mut packet = Packet::new(0, 0, &[100, 101]);
    packet.end = 99;
    write(place.path(), METADATA, &[("channel0_0", &[packet])]);
    let set = open(place.path());
    assert_eq!(times(&set), [100, 101]);
    assert!(
        told(&set)[0]
            .contains("byte 0: the packet's end (99 cycles) is before its beginning (100 cycles)")
    );
}
