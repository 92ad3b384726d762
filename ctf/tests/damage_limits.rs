//! No input takes unbounded time or memory. A single test, so that the memory of each case can be
//! measured in the process.

mod formats_support;

use std::io::{Seek, SeekFrom, Write};
use std::time::Duration;

use formats_support::lttng::{self, METADATA, Packet};
use formats_support::{scan_counts, scan_hits};
use tracebraid_ctf::reader::StreamReader;
use tracebraid_ctf::trace::Trace;
use tracebraid_ctf::walk::Silent;
use tracebraid_testkit::processes::thread_time;

/// Peak memory of the process in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        << 10
}

struct Outcome {
    events: u64,
    told: Vec<String>,
}

/// Opens a trace and reads it completely, with all readers.
fn read_all(place: &std::path::Path) -> Outcome {
    let trace = Trace::open(place).unwrap();
    let mut told: Vec<String> = trace.damage.iter().map(ToString::to_string).collect();
    let mut events = 0;
    for stream in &trace.streams {
        let mut reader = StreamReader::new(&trace, stream, 0..stream.packets.len(), 1 << 17);
        while reader.peek().is_some() {
            events += 1;
            let mut event = reader.event().unwrap();
            event.walk_body(&mut Silent, |_, _| {}).unwrap();
            reader.advance();
        }
        told.extend(reader.take_damage().iter().map(ToString::to_string));
        assert_eq!(
            scan_counts(&trace, stream).0.iter().sum::<u64>(),
            events_of(&trace, stream)
        );
        assert_eq!(
            scan_hits(&trace, stream, |_| true).len() as u64,
            events_of(&trace, stream)
        );
    }
    Outcome { events, told }
}

fn events_of(trace: &Trace, stream: &tracebraid_ctf::stream::Stream) -> u64 {
    let mut reader = StreamReader::new(trace, stream, 0..stream.packets.len(), 1 << 17);
    let mut events = 0;
    while reader.peek().is_some() {
        events += 1;
        reader.advance();
    }
    events
}

/// Runs a case within bounds: seconds of CPU time (generous, since machines differ) and additional
/// memory.
fn bounded(name: &str, metadata: &str, stream: &[u8], most_memory: u64) -> Outcome {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("metadata"), metadata).unwrap();
    std::fs::write(place.path().join("stream"), stream).unwrap();
    bounded_place(name, place.path(), most_memory)
}

fn bounded_place(name: &str, place: &std::path::Path, most_memory: u64) -> Outcome {
    let (start, before) = (thread_time(), peak_memory());
    let outcome = read_all(place);
    let added = peak_memory().saturating_sub(before);
    assert!(
        thread_time() - start < Duration::from_secs(20),
        "{name}: {:?}",
        thread_time() - start
    );
    assert!(added <= most_memory, "{name}: {added} bytes of memory");
    outcome
}

const MIB: u64 = 1 << 20;

const LENGTHS: &str = "/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le; };
stream { event.header := struct { u8 id; }; };
event { name = bytes; id = 0; fields := struct { u64 _n; u8 _list[_n]; }; };
event { name = nothing; id = 1; fields := struct { u64 _n; struct { } _list[_n]; }; };
event { name = lists; id = 2; fields := struct { u64 _a; u64 _b; struct { u8 _x[_b]; struct { } _y[_b]; } _list[_a]; }; };
event { name = text; id = 3; fields := struct { string _s; }; };
event { name = few; id = 4; fields := struct { u8 _n; struct { } _list[_n]; }; };
";

fn with_length(id: u8, lengths: &[u64]) -> Vec<u8> {
    let mut bytes = vec![id];
    lengths
        .iter()
        .for_each(|length| bytes.extend(length.to_le_bytes()));
    bytes.extend([0; 64]);
    bytes
}

#[test]
fn time_and_memory_are_bounded() {
    // Loads the memory that the test itself needs before the first measurement.
    drop(bounded("warm up", LENGTHS, &[3, b'x', 0], 64 * MIB));

    for length in [1 << 21, 1 << 32, 1 << 60, u64::MAX] {
        let outcome = bounded("a length of 2^60", LENGTHS, &with_length(0, &[length]), MIB);
        assert!(
            outcome.told[0].contains(&format!(
                "byte 0: this event record cannot be decoded: a length of {length} is more than the packet can hold"
            )),
            "{:?}",
            outcome.told
        );
        let outcome = bounded(
            "elements without bits",
            LENGTHS,
            &with_length(1, &[length]),
            MIB,
        );
        assert!(
            outcome.told[0].contains("too many array elements"),
            "{:?}",
            outcome.told
        );
        let outcome = bounded(
            "lists of nothing",
            LENGTHS,
            &with_length(2, &[length, 0]),
            MIB,
        );
        assert!(
            outcome.told[0].contains("too many array elements"),
            "{:?}",
            outcome.told
        );
        let outcome = bounded(
            "nested nothing",
            LENGTHS,
            &with_length(2, &[1 << 15, 0]),
            MIB,
        );
        assert!(!outcome.told[0].contains("too many"), "{:?}", outcome.told);
    }

    // Many records, each with elements of zero bits: the number is bounded for the whole packet.
    let bomb: Vec<u8> = [4, 255].repeat(500_000);
    let outcome = bounded("many records with empty elements", LENGTHS, &bomb, 8 * MIB);
    assert!(
        outcome.events >= 4000 && outcome.told.len() == 1,
        "{} {:?}",
        outcome.events,
        outcome.told
    );

    // An unterminated string is read only a few times, and is in memory once or twice.
    let mut endless = vec![b'x'; 24 << 20];
    endless[0] = 3;
    let outcome = bounded("a string without end", LENGTHS, &endless, 160 * MIB);
    assert!(
        outcome.told[0].contains("a string is not terminated"),
        "{:?}",
        outcome.told
    );

    lttng_cases();
}

fn lttng_cases() {
    // Wrong sizes.
    for bits in [8, 1 << 13, 1 << 50, u64::MAX - 7] {
        let mut lie = Packet::new(0, 1, &[20, 21]);
        lie.sizes = Some((bits, bits));
        let stream = lttng::file(&[Packet::new(0, 0, &[10]), lie, Packet::new(0, 2, &[30])]);
        let outcome = bounded("packet sizes that lie", METADATA, &stream, 8 * MIB);
        assert!(
            outcome.events >= 2,
            "{bits}: {} {:?}",
            outcome.events,
            outcome.told
        );
        assert!(
            outcome
                .told
                .iter()
                .any(|told| told.contains("stream: byte 108: ")),
            "{:?}",
            outcome.told
        );
    }

    // Only magic numbers: the search for the next packet must not start over.
    let magic = 0xc1fc_1fc1_u32.to_le_bytes();
    let mut stream = Packet::new(0, 0, &[10]).bytes();
    stream.extend(magic.repeat(2 << 20));
    stream.extend(Packet::new(0, 1, &[20]).bytes());
    let outcome = bounded("magic numbers", METADATA, &stream, 24 * MIB);
    assert!(
        outcome.events >= 1 && !outcome.told.is_empty(),
        "{} {:?}",
        outcome.events,
        outcome.told
    );

    // All packets are damaged, but not all are reported individually.
    let mut bad = Packet::new(0, 0, &[10]);
    bad.end = 1;
    let outcome = bounded(
        "many damaged packets",
        METADATA,
        &lttng::file(&vec![bad; 20_000]),
        24 * MIB,
    );
    assert_eq!((outcome.events, outcome.told.len()), (20_000, 1001));
    assert!(
        outcome.told[1000].contains("19000 more"),
        "{}",
        outcome.told[1000]
    );

    // A file that is mostly a hole, in a packet that was never closed.
    let place = tempfile::tempdir().unwrap();
    let mut open = Packet::new(0, 0, &[10, 11]);
    open.sizes = Some((u64::MAX, u64::MAX));
    lttng::write(place.path(), METADATA, &[("stream", &[open])]);
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open(place.path().join("stream"))
        .unwrap();
    file.seek(SeekFrom::Start((1 << 30) - 1)).unwrap();
    file.write_all(&[0]).unwrap();
    let outcome = bounded_place("a hole of a gigabyte", place.path(), 8 * MIB);
    assert_eq!(
        (outcome.events, outcome.told.len()),
        (2, 1),
        "{:?}",
        outcome.told
    );
}
