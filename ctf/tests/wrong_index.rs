//! Contradictions between an index and its stream file are distinguished from other damage.

use std::fs;

use crate::formats_support::lttng::{self, METADATA, Packet};
use crate::formats_support::scan_counts;
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::index::IndexCheck;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_testkit::index::{IndexEntry, decode, encode};

const PACKET: usize = 4096;

/// Six packets that begin at 0, 100, 200 and so on, each 20 cycles long.
fn packets() -> Vec<Packet> {
    let packet = |number: u64| {
        let mut packet = Packet::new(0, number, &[100 * number, 100 * number + 20]);
        packet.padding += PACKET - packet.bytes().len();
        packet
    };
    (0..6).map(packet).collect()
}

/// Whether the index is used, the messages when the trace is opened, and the damage found by
/// reading.
fn read(file: &[u8], index: &[u8], check: IndexCheck) -> (bool, Vec<String>, Vec<Damage>) {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("metadata"), METADATA).unwrap();
    fs::write(place.path().join("stream"), file).unwrap();
    fs::create_dir(place.path().join("index")).unwrap();
    fs::write(place.path().join("index/stream.idx"), index).unwrap();
    let set = TraceSet::open_checking(&[place.path()], check).unwrap();
    let trace = &set.traces[0];
    let told = trace.damage.iter().map(ToString::to_string).collect();
    let [stream] = &trace.streams[..] else {
        panic!("one stream");
    };
    let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 16);
    while reader.peek().is_some() {
        reader.advance();
    }
    let damage = reader.take_damage();
    let texts: Vec<String> = damage.iter().map(ToString::to_string).collect();
    assert_eq!(scan_counts(trace, stream).1, texts);
    (stream.files[0].indexed, told, damage)
}

type Change = fn(&mut IndexEntry);

#[test]
fn a_wrong_entry_in_the_middle_is_a_contradiction() {
    let changes: [(&str, Change); 6] = [
        ("begin", |entry| entry.begin += 10),
        ("end", |entry| entry.end += 10),
        ("no end", |entry| entry.end = 0),
        ("content", |entry| entry.content_length += 64),
        ("discarded", |entry| entry.discarded_events = 1),
        ("number", |entry| entry.sequence_number = 7),
    ];
    let sound = lttng::index(&packets(), 1);
    let file = lttng::file(&packets());
    for check in [IndexCheck::Ends, IndexCheck::Every] {
        let (is_indexed, told, damage) = read(&file, &sound, check);
        assert!(
            is_indexed && told.is_empty() && damage.is_empty(),
            "{told:?}"
        );
    }
    for (what, change) in changes {
        let mut entries = decode(&sound).unwrap();
        change(&mut entries[2]);
        let (is_indexed, told, damage) = read(&file, &encode(&entries), IndexCheck::Ends);
        assert!(is_indexed && told.is_empty(), "{what}: {told:?}");
        let [damage] = &damage[..] else {
            panic!("{what}: {damage:?}");
        };
        assert!(damage.contradicts_index, "{what}: {damage}");
        assert_eq!(damage.offset, Some(2 * PACKET as u64), "{what}: {damage}");

        let (is_indexed, told, damage) = read(&file, &encode(&entries), IndexCheck::Every);
        assert!(!is_indexed && damage.is_empty(), "{what}: {damage:?}");
        let [told] = &told[..] else {
            panic!("{what}: {told:?}");
        };
        let message = format!("byte {}: its index is not used", 2 * PACKET);
        assert!(told.contains(&message), "{what}: {told}");
    }
}

/// `misplaced` determines the right times before packets are read, so it needs the right index.
#[test]
fn every_entry_is_checked_where_times_are_in_no_order() {
    let changes: [Change; 4] = [
        |entry| entry.begin = 20,
        |entry| entry.begin = 410,
        |entry| entry.end = 190,
        |entry| entry.content_length = 64,
    ];
    let file = lttng::file(&packets());
    for change in changes {
        let mut entries = decode(&lttng::index(&packets(), 1)).unwrap();
        change(&mut entries[2]);
        let (is_indexed, told, damage) = read(&file, &encode(&entries), IndexCheck::Ends);
        assert!(!is_indexed && damage.is_empty(), "{damage:?}");
        assert!(
            told.len() == 1 && told[0].contains("its index is not used"),
            "{told:?}"
        );
    }
    // If the heads have the same times, the index is right.
    let mut packets = packets();
    packets[2].begin = 410;
    let (is_indexed, told, damage) = read(
        &lttng::file(&packets),
        &lttng::index(&packets, 1),
        IndexCheck::Ends,
    );
    assert!(is_indexed, "{told:?}");
    assert!(
        damage.iter().all(|damage| !damage.contradicts_index),
        "{damage:?}"
    );
}

/// The adjacent packets show that the head is wrong and the index is right.
#[test]
fn a_damaged_head_does_not_make_an_index_wrong() {
    let index = lttng::index(&packets(), 1);
    let mut files = Vec::new();
    for total in [4095 * 8, 4097 * 8, 8192 * 8, 4095] {
        let mut packets = packets();
        packets[2].sizes = Some(((lttng::HEAD + packets[2].events.len()) as u64 * 8, total));
        files.push(lttng::file(&packets));
    }
    let mut other_magic = lttng::file(&packets());
    other_magic[2 * PACKET] ^= 1;
    files.push(other_magic);
    for file in files {
        for check in [IndexCheck::Ends, IndexCheck::Every] {
            let (is_indexed, told, damage) = read(&file, &index, check);
            assert!(is_indexed && told.is_empty(), "{told:?}");
            let [damage] = &damage[..] else {
                panic!("{damage:?}");
            };
            assert!(!damage.contradicts_index, "{damage}");
        }
    }
}

/// The boundary between two packets is wrong or missing.
#[test]
fn a_wrong_border_is_a_contradiction() {
    let file = lttng::file(&packets());
    let changes: [fn(&mut Vec<IndexEntry>); 3] = [
        |entries| {
            entries[2].total_length -= 512;
            entries[3].offset -= 64;
            entries[3].total_length += 512;
        },
        |entries| {
            entries[2].total_length += 512;
            entries[3].offset += 64;
            entries[3].total_length -= 512;
        },
        |entries| {
            entries.remove(3);
            entries[2].total_length *= 2;
        },
    ];
    for change in changes {
        let mut entries = decode(&lttng::index(&packets(), 1)).unwrap();
        change(&mut entries);
        let (is_indexed, told, damage) = read(&file, &encode(&entries), IndexCheck::Ends);
        assert!(is_indexed && told.is_empty(), "{told:?}");
        let first = damage.first().expect("damage");
        assert!(
            first.contradicts_index && first.offset == Some(2 * PACKET as u64),
            "{first}"
        );
        let (is_indexed, told, damage) = read(&file, &encode(&entries), IndexCheck::Every);
        assert!(
            !is_indexed && told.len() == 1 && damage.is_empty(),
            "{told:?}, {damage:?}"
        );
    }
}
