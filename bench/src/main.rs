//! Measures, on the stream files of a trace in the page cache, in CPU seconds of one thread: a
//! plain sum of the bytes in memory, the counting loop in memory, and several methods of reading
//! the bytes. Prints `name<TAB>bytes<TAB>events<TAB>seconds` lines, best of several rounds.

// Mapping a file is the subject of the measurement; the files are this program's own input and are
// not truncated while it runs.
#![allow(unsafe_code)]

mod ways;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tracebraid_ctf::scan::{Counts, LANES, ScanTable, Scanner};
use tracebraid_ctf::stream::Stream;
use tracebraid_ctf::trace::{Trace, TraceSet};

const ROUNDS: usize = 5;

fn main() {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: tracebraid-bench TRACE");
        std::process::exit(2);
    };
    let set = match TraceSet::open(&[&path]) {
        Ok(set) => set,
        Err(error) => {
            eprintln!("tracebraid-bench: {error}");
            std::process::exit(3);
        }
    };
    let files: Vec<&Path> = set
        .traces
        .iter()
        .flat_map(|trace| &trace.streams)
        .flat_map(|stream| &stream.files)
        .map(|file| file.path.as_path())
        .collect();
    report("metadata: open", || {
        let opened = TraceSet::open(&[&path]);
        (
            opened.map_or(0, |set| {
                set.traces.iter().map(|trace| trace.metadata_bytes).sum()
            }),
            0,
        )
    });
    sum_in_memory(&files);
    count_in_memory(&set);
    ways::all(&files);
    write::all(|name, work| report(name, work));
}

/// The best of several rounds; `work` returns its numbers of bytes and event records.
fn report(name: &str, mut work: impl FnMut() -> (u64, u64)) {
    let mut best = f64::INFINITY;
    let mut done = (0, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        done = work();
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name}\t{}\t{}\t{best:.6}", done.0, done.1);
}

fn sum(bytes: &[u8]) -> u64 {
    bytes.iter().map(|&byte| u64::from(byte)).sum()
}

fn sum_in_memory(files: &[&Path]) {
    let content: Vec<Vec<u8>> = files
        .iter()
        .filter_map(|file| std::fs::read(file).ok())
        .collect();
    let bytes = content.iter().map(|bytes| bytes.len() as u64).sum();
    report("memory: sum of the bytes", || {
        std::hint::black_box(content.iter().map(|bytes| sum(bytes)).sum::<u64>());
        (bytes, 0)
    });
}

/// Each packet is read into memory outside the measured time.
fn count_in_memory(set: &TraceSet) {
    let mut best = f64::INFINITY;
    let mut total = Total::default();
    for _ in 0..ROUNDS {
        total = Total::default();
        for trace in &set.traces {
            for stream in &trace.streams {
                count_stream(trace, stream, &mut total);
            }
        }
        best = best.min(total.seconds);
    }
    println!(
        "memory: count\t{}\t{}\t{best:.6}",
        total.bytes, total.events
    );
}

#[derive(Default)]
struct Total {
    bytes: u64,
    events: u64,
    seconds: f64,
}

/// Counts like the count report: as many packets at once as there are lanes.
fn count_stream(trace: &Trace, stream: &Stream, total: &mut Total) {
    let Some(layout) = trace.layout.streams.get(stream.class) else {
        return;
    };
    let table = Arc::new(ScanTable::new(layout, |_| false));
    let mut counts = Counts::new(layout);
    let packets: Vec<usize> = (0..stream.packets.len()).collect();
    for group in packets.chunks(LANES) {
        let scanner =
            |&packet: &usize| Scanner::new(trace, stream, table.clone(), packet..packet + 1);
        let mut scanners: Vec<Scanner<'_>> = group.iter().filter_map(scanner).collect();
        for scanner in &mut scanners {
            total.bytes += scanner
                .next_packet()
                .map_or(0, |packet| packet.content_bits / 8);
            scanner.preload();
        }
        let start = Instant::now();
        total.events += count_together(&mut scanners, &mut counts);
        for scanner in &mut scanners {
            total.events += scanner.count(&mut counts, 0..u64::MAX).events;
        }
        total.seconds += start.elapsed().as_secs_f64();
    }
}

/// Runs until the first scanner ends.
fn count_together(scanners: &mut [Scanner<'_>], counts: &mut Counts) -> u64 {
    let mut events = 0;
    while let [a, b, c] = &mut *scanners {
        let (counted, stopped) =
            Scanner::count_together([&mut *a, &mut *b, &mut *c], counts, [u64::MAX; LANES]);
        events += counted.iter().sum::<u64>();
        let Some(scanner) = scanners.get_mut(stopped) else {
            break;
        };
        let counted = scanner.count_next(counts, 0..u64::MAX);
        events += counted.events;
        if counted.ended {
            break;
        }
    }
    events
}
