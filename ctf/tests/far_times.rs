//! The reader and the scanner report times that 64-bit nanoseconds cannot represent: once for a
//! file if its packets have times, else once for each packet.

use std::fs;
use std::sync::Arc;

use crate::formats_support::scan_counts;
use tracebraid_ctf::damage::Damage;
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::scan::{Progress, ScanTable, Scanner};
use tracebraid_ctf::trace::Trace;

/// Messages on opening, reading, counting and scanning the trace.
fn told(offset: &str, has_bounds: bool, packets: &[[u64; 2]]) -> [Vec<u64>; 4] {
    let bounds = if has_bounds {
        "time timestamp_begin; time timestamp_end;"
    } else {
        ""
    };
    let metadata = format!(
        "/* CTF 1.8 */ typealias integer {{ size = 64; align = 8; }} := u64;
        trace {{ major = 1; minor = 8; byte_order = le; }};
        clock {{ name = c; freq = 1000000000; offset_s = {offset}; }};
        typealias integer {{ size = 64; align = 8; map = clock.c.value; }} := time;
        stream {{ packet.context := struct {{ u64 packet_size; {bounds} }}; event.header := struct {{ time timestamp; }}; }};
        event {{ name = e; fields := struct {{ u64 a; }}; }};"
    );
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("metadata"), metadata).unwrap();
    let mut file = Vec::new();
    for times in packets {
        let head = if has_bounds { 24 } else { 8 };
        let mut words = vec![(head + 32) * 8];
        words.extend(times.iter().filter(|_| has_bounds));
        words.extend(times.iter().flat_map(|&time| [time, 7]));
        file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }
    fs::write(place.path().join("stream"), &file).unwrap();
    let trace = Trace::open(place.path()).unwrap();
    let stream = &trace.streams[0];
    let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 4096);
    let mut events = 0;
    while reader.peek().is_some() {
        events += 1;
        reader.advance();
    }
    assert_eq!(events, 2 * packets.len());
    let (counts, counting) = scan_counts(&trace, stream);
    assert_eq!(counts, [events as u64]);
    let table = ScanTable::new(&trace.layout.streams[stream.class], |_| true);
    let mut scanner =
        Scanner::new(&trace, stream, Arc::new(table), 0..stream.packets.len()).unwrap();
    while scanner.next_packet().is_some() {
        while scanner.scan() == Progress::More {}
    }
    let offsets = |damage: &[Damage]| {
        damage
            .iter()
            .for_each(|damage| assert!(damage.message.contains("292 years"), "{damage}"));
        damage
            .iter()
            .filter_map(|damage| damage.offset)
            .collect::<Vec<u64>>()
    };
    assert!(
        counting.iter().all(|told| told.contains("292 years")),
        "{counting:?}"
    );
    [
        offsets(&trace.damage),
        offsets(&reader.take_damage()),
        vec![0; counting.len()],
        offsets(&scanner.take_damage()),
    ]
}

#[test]
fn far_times_are_told() {
    let far = 9_300_000_000_000_000_000;
    let none: Vec<u64> = Vec::new();
    let packets = [[1, 2], [3, far], [far + 1, far + 2]];
    // The packets have 56 bytes with times, and 40 without.
    assert_eq!(
        told("0", true, &packets),
        [vec![56], none.clone(), none.clone(), none.clone()]
    );
    assert_eq!(
        told("0", false, &packets),
        [none.clone(), vec![40, 80], vec![0, 0], vec![40, 80]]
    );
    // All times are in range, but the zero of the clock is not.
    let packets = [[far, far + 1], [far + 2, far + 3]];
    for has_bounds in [true, false] {
        let nothing = [none.clone(), none.clone(), none.clone(), none.clone()];
        assert_eq!(told("-9300000000", has_bounds, &packets), nothing);
    }
}
