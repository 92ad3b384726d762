//! Packets with a UUID other than that of the metadata are read, with one warning for each file,
//! with and without an index.

use std::fs;

use crate::formats_support::lttng::{self, METADATA, Packet};
use crate::formats_support::scan_counts;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::Trace;

const PACKET: usize = 4096;

/// Four packets of two event records each.
fn packets() -> Vec<Packet> {
    let packet = |number: u64| {
        let mut packet = Packet::new(0, number, &[100 * number + 1, 100 * number + 2]);
        packet.padding += PACKET - packet.bytes().len();
        packet
    };
    (0..4).map(packet).collect()
}

/// The file, with another UUID in the packets of these numbers.
fn foreign(packets: &[Packet], numbers: &[usize]) -> Vec<u8> {
    let mut file = lttng::file(packets);
    for number in numbers {
        file[number * PACKET + 4] ^= 0xff;
    }
    file
}

/// Values of the event records in order, and all messages. The scanner must agree.
fn read(file: &[u8], index: Option<Vec<u8>>) -> (Vec<u64>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("metadata"), METADATA).unwrap();
    fs::write(place.path().join("stream"), file).unwrap();
    if let Some(index) = index {
        fs::create_dir(place.path().join("index")).unwrap();
        fs::write(place.path().join("index/stream.idx"), index).unwrap();
    }
    let trace = Trace::open(place.path()).unwrap();
    let mut told: Vec<String> = trace.damage.iter().map(ToString::to_string).collect();
    let mut times = Vec::new();
    for stream in &trace.streams {
        let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 1 << 16);
        while let Some(time) = reader.peek() {
            times.push(time.unwrap().0 as u64 - 5);
            reader.advance();
        }
        let (counts, scanned) = scan_counts(&trace, stream);
        assert_eq!(counts.iter().sum::<u64>(), times.len() as u64);
        let damage: Vec<String> = reader
            .take_damage()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(scanned, damage);
        told.extend(damage);
    }
    (times, told)
}

fn all_times() -> Vec<u64> {
    (0..4)
        .flat_map(|number| [100 * number + 1, 100 * number + 2])
        .collect()
}

#[test]
fn foreign_packets_are_read_with_one_warning() {
    let packets = packets();
    for (numbers, offset) in [
        (&[0, 1, 2, 3][..], 0),
        (&[0], 0),
        (&[3], 3 * PACKET),
        (&[2], 2 * PACKET),
        (&[1, 2], PACKET),
    ] {
        let file = foreign(&packets, numbers);
        let (times, told) = read(&file, None);
        assert_eq!(times, all_times(), "{told:?}");
        let [told] = &told[..] else {
            panic!("{told:?}")
        };
        assert!(told.contains(&format!("byte {offset}: ")), "{told}");
        let own = "a38aef6e-4bf1-4b68-8a36-d4a98fb3ee38";
        let other = "5c8aef6e-4bf1-4b68-8a36-d4a98fb3ee38";
        assert!(told.contains(own) && told.contains(other), "{told}");
        let count = format!("the UUIDs of {} packets", numbers.len());
        assert_eq!(told.contains(&count), numbers.len() > 1, "{told}");

        let (times, told) = read(&file, Some(lttng::index(&packets, 1)));
        assert_eq!(times, all_times(), "{told:?}");
        // With an index, packets in the middle are reported only when they are read.
        let is_at_end = numbers.contains(&0) || numbers.contains(&3);
        assert_eq!(
            told.len(),
            if is_at_end { 1 } else { numbers.len() },
            "{told:?}"
        );
        assert!(told.iter().all(|told| told.contains(other)), "{told:?}");
    }
}

#[test]
fn a_foreign_packet_whose_size_is_wrong_is_skipped() {
    for size in [1 << 40, 4096 * 8 - 64] {
        let mut packets = packets();
        let content = (lttng::HEAD + packets[1].events.len()) as u64 * 8;
        packets[1].sizes = Some((content, size));
        let (times, told) = read(&foreign(&packets, &[1]), None);
        assert_eq!(times, [1, 2, 201, 202, 301, 302], "{told:?}");
        let [told] = &told[..] else {
            panic!("{told:?}")
        };
        assert!(
            told.contains("belongs to another trace") && told.contains("skipped 4096 bytes"),
            "{told}"
        );
    }
}

#[test]
fn a_foreign_file_is_read_to_where_it_was_cut() {
    // One packet, and several.
    for (count, numbers) in [(1, &[0][..]), (4, &[0, 1, 2, 3])] {
        let packets = &packets()[..count];
        let mut file = foreign(packets, numbers);
        file.truncate(file.len() - 100);
        let (times, told) = read(&file, None);
        assert_eq!(times, all_times()[..2 * count], "{told:?}");
        assert!(
            told.iter()
                .any(|told| told.contains("100 bytes before the packet does")),
            "{told:?}"
        );
    }
}
