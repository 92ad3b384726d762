//! Measures, on the stream files of a trace in the page cache, in CPU seconds of one thread: a
//! plain sum of the bytes in memory, the counting loop in memory, and the ways of bringing the
//! bytes in. Prints `name<TAB>bytes<TAB>events<TAB>seconds` lines, best of several rounds.

// Mapping a file is what is measured here; the files are this program's own input and are not
// truncated while it runs.
#![allow(unsafe_code)]

mod ways;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tracebraid_ctf::scan::{Counts, ScanTable, Scanner};
use tracebraid_ctf::trace::TraceSet;

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
        (opened.map_or(0, |set| set.traces.iter().map(|trace| trace.metadata_bytes).sum()), 0)
    });
    sum_in_memory(&files);
    count_in_memory(&set);
    ways::all(&files);
}

/// The best of several rounds; the work says how many bytes and event records it did.
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
    let content: Vec<Vec<u8>> = files.iter().filter_map(|file| std::fs::read(file).ok()).collect();
    let bytes = content.iter().map(|bytes| bytes.len() as u64).sum();
    report("memory: sum of the bytes", || {
        std::hint::black_box(content.iter().map(|bytes| sum(bytes)).sum::<u64>());
        (bytes, 0)
    });
}

/// Each packet is brought into memory outside of the measured time.
fn count_in_memory(set: &TraceSet) {
    let mut best = f64::INFINITY;
    let (mut events, mut bytes) = (0, 0);
    for _ in 0..ROUNDS {
        (events, bytes) = (0, 0);
        let mut seconds = 0.0;
        for trace in &set.traces {
            for stream in &trace.streams {
                let Some(layout) = trace.layout.streams.get(stream.class) else { continue };
                let table = Arc::new(ScanTable::new(layout, |_| false));
                let mut counts = Counts::new(layout);
                let Some(mut scanner) = Scanner::new(trace, stream, table, 0..stream.packets.len()) else { continue };
                while let Some(packet) = scanner.next_packet() {
                    scanner.preload();
                    let start = Instant::now();
                    events += scanner.count(&mut counts, u64::MAX).events;
                    seconds += start.elapsed().as_secs_f64();
                    bytes += packet.content_bits / 8;
                }
            }
        }
        best = best.min(seconds);
    }
    println!("memory: count\t{bytes}\t{events}\t{best:.6}");
}
