//! A packet with a wrong size hides no other packet, with and without an index.

use std::fs;
use std::path::Path;

use crate::formats_support::lttng::{self, METADATA, Packet};
use crate::formats_support::scan_counts;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::{Trace, TraceSet};

/// Event records by reading and by counting, and all reported damage.
fn read(place: &Path) -> (u64, u64, Vec<String>) {
    let trace = Trace::open(place).unwrap();
    let mut told: Vec<String> = trace.damage.iter().map(ToString::to_string).collect();
    let (mut events, mut counted) = (0, 0);
    for stream in &trace.streams {
        let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 1 << 16);
        while reader.peek().is_some() {
            events += 1;
            reader.advance();
        }
        told.extend(reader.take_damage().iter().map(ToString::to_string));
        counted += scan_counts(&trace, stream).0.iter().sum::<u64>();
        assert_eq!(stream.losses(), [], "{told:?}");
    }
    (events, counted, told)
}

fn packets() -> Vec<Packet> {
    (0..5)
        .map(|number| {
            let mut packet = Packet::new(0, number, &[100 * number + 1, 100 * number + 2]);
            packet.padding += 4096 - packet.bytes().len();
            packet
        })
        .collect()
}

/// The packet of this number claims to be `more` bytes larger than it is.
fn lies(number: usize, more: u64) -> Vec<u8> {
    let mut packets = packets();
    let packet = &mut packets[number];
    let content = (lttng::HEAD + packet.events.len()) as u64 * 8;
    packet.sizes = Some((content, (4096 + more) * 8));
    lttng::file(&packets)
}

#[test]
fn a_packet_that_claims_too_much_hides_no_other() {
    for has_index in [false, true] {
        for number in 0..5 {
            for more in [1, 8, 1000, 4095, 4096, 5000, 8192, 3 * 4096] {
                let place = tempfile::tempdir().unwrap();
                fs::write(place.path().join("metadata"), METADATA).unwrap();
                fs::write(place.path().join("stream"), lies(number, more)).unwrap();
                if has_index {
                    fs::create_dir(place.path().join("index")).unwrap();
                    let index = lttng::index(&packets(), 1);
                    fs::write(place.path().join("index/stream.idx"), index).unwrap();
                }
                let (events, counted, told) = read(place.path());
                let case = format!("index {has_index}, packet {number}, {more} more: {told:?}");
                assert_eq!((events, counted), (10, 10), "{case}");
                let at = format!("stream: byte {}: ", number * 4096);
                assert!(told.len() == 1 && told[0].contains(&at), "{case}");
            }
        }
    }
}

/// Two consecutive packets.
#[test]
fn several_may_claim_too_much() {
    let mut packets = packets();
    for packet in &mut packets[1..3] {
        packet.sizes = Some(((lttng::HEAD + packet.events.len()) as u64 * 8, 2 * 4096 * 8));
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("metadata"), METADATA).unwrap();
    fs::write(place.path().join("stream"), lttng::file(&packets)).unwrap();
    let (events, counted, told) = read(place.path());
    assert_eq!((events, counted, told.len()), (10, 10, 2), "{told:?}");
}

/// The tracer of probes writes the head of the next packet before it shortens the open packet, and
/// may be killed in between.
#[test]
fn an_empty_packet_at_the_end_of_an_open_one_is_not_yet_there() {
    // Whether the packet is also at the end of the file, the number of discarded event records, and
    // the number of damage reports.
    for (is_last, discarded, damage) in [(true, 0, 0), (true, 1, 1), (false, 0, 1)] {
        let mut packets = packets();
        let mut empty = Packet::new(0, 5, &[]);
        (empty.begin, empty.end, empty.discarded) = (500, 500, discarded);
        empty.padding += 4096 - empty.bytes().len();
        packets[4].sizes = Some((
            (lttng::HEAD + packets[4].events.len()) as u64 * 8,
            2 * 4096 * 8,
        ));
        packets.push(empty);
        if !is_last {
            packets.push(Packet::new(0, 6, &[601]));
        }
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("metadata"), METADATA).unwrap();
        fs::write(place.path().join("stream"), lttng::file(&packets)).unwrap();
        let trace = Trace::open(place.path()).unwrap();
        let case = format!("{is_last}, {discarded}: {:?}", trace.damage);
        assert_eq!(trace.damage.len(), damage, "{case}");
        let found = packets.len() - usize::from(damage == 0);
        assert_eq!(trace.streams[0].packets.len(), found, "{case}");
        assert_eq!(
            trace.streams[0].losses().len(),
            discarded as usize,
            "{case}"
        );
    }
}

/// Remains from earlier use of a buffer may look like an earlier packet.
#[test]
fn remains_in_padding_are_no_packets() {
    let packets = packets();
    let mut bytes = lttng::file(&packets);
    let old = packets[0].bytes();
    bytes[4096 * 4 + 2000..][..300].copy_from_slice(&old[..300]);
    bytes[4096 * 4 + 3000..][..300].copy_from_slice(&old[..300]);
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("metadata"), METADATA).unwrap();
    fs::write(place.path().join("stream"), bytes).unwrap();
    assert_eq!(read(place.path()), (10, 10, vec![]));
}

#[test]
fn a_clock_that_goes_back_is_told_of_once_in_a_packet() {
    let mut packets = packets();
    let mut packet = Packet::new(0, 1, &[101]);
    packet.end = 200;
    for time in [150, 140, 160, 130] {
        packet
            .events
            .extend(lttng::extended(0, time, &[1, 0, 0, 0]));
    }
    packets[1] = packet;
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("metadata"), METADATA).unwrap();
    fs::write(place.path().join("stream"), lttng::file(&packets)).unwrap();
    let (events, _, told) = read(place.path());
    assert_eq!(events, 13);
    let at = 4096 + lttng::HEAD + 8 + 17;
    let expected = format!("stream: byte {at}: the clock goes back by 10 cycles here");
    assert!(told.len() == 1 && told[0].ends_with(&expected), "{told:?}");
}

#[test]
fn a_stream_in_the_other_byte_order_is_called_that() {
    let place = tempfile::tempdir().unwrap();
    let metadata = METADATA.replace("byte_order = le", "byte_order = be");
    fs::write(place.path().join("metadata"), metadata).unwrap();
    fs::write(place.path().join("stream"), lttng::file(&packets())).unwrap();
    let (events, _, told) = read(place.path());
    assert_eq!(events, 0);
    assert!(
        told[0].contains("byte 0: ")
            && told[0].contains("the byte order of the stream seems to differ"),
        "{told:?}"
    );
}

/// Damaged packets do not count as lost by the tracer; packets that the tracer lost elsewhere still
/// do.
#[test]
fn packets_that_are_damaged_are_not_lost_by_the_tracer() {
    let mut packets = packets();
    packets[4].sequence = 6;
    let mut bytes = lttng::file(&packets);
    bytes[2 * 4096] ^= 1;
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("metadata"), METADATA).unwrap();
    fs::write(place.path().join("stream"), bytes).unwrap();
    let trace = Trace::open(place.path()).unwrap();
    assert_eq!(trace.damage.len(), 1, "{:?}", trace.damage);
    let losses = trace.streams[0].losses();
    let lost: Vec<_> = losses
        .iter()
        .map(|loss| (loss.packet, loss.count))
        .collect();
    assert_eq!(lost, [(3, Some(2))]);
}

#[test]
fn a_file_instead_of_a_directory_is_told_what_to_give() {
    let place = tempfile::tempdir().unwrap();
    lttng::write(place.path(), METADATA, &[("stream", &packets())]);
    for name in ["metadata", "stream"] {
        let file = place.path().join(name);
        let expected = format!(
            "{}: this is a file, but a trace is a directory; use the directory of this file: {}",
            file.display(),
            place.path().display()
        );
        let error = TraceSet::open(&[&file]).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(Trace::open(&file).unwrap_err().to_string(), expected);
    }
}
