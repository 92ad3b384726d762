//! Measures queries to a history in the page cache: all attributes at random times, and 200 threads
//! on a screen of 2,000 pixels, over the whole trace and over random ranges of all lengths. Prints
//! `name<TAB>median<TAB>99 %<TAB>most` in microseconds.

use std::path::PathBuf;
use std::time::Instant;

use tracebraid_history::{Attribute, AttributeKind, History, HistoryError};

const PIXELS: usize = 2000;
const THREADS: usize = 200;

fn main() {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: tracebraid-bench-history HISTORY");
        std::process::exit(2);
    };
    if let Err(error) = measure(&path) {
        eprintln!("tracebraid-bench-history: {error}");
        std::process::exit(3);
    }
}

fn measure(path: &std::path::Path) -> Result<(), HistoryError> {
    // Each query opens the file anew: cached blocks would make all but the first query faster.
    let fresh = || History::open(path);
    report("open", 20, || fresh().map(drop))?;
    let history = fresh()?;
    let (begin, end) = (history.meta().begin, history.meta().end);
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    report("all attributes at a random time", 2000, || {
        history.at(random.between(begin, end), |_| true).map(drop)
    })?;
    let threads = busiest(&history)?;
    println!("threads\t{}\t\t", threads.len());
    report("2,000 pixels of 200 threads: all of it", 20, || {
        fresh()?.sampled(&threads, (begin, end), PIXELS).map(drop)
    })?;
    report("2,000 pixels of 200 threads: a random range", 200, || {
        let (from, to) = (random.between(begin, end), random.between(begin, end));
        history
            .sampled(&threads, (from.min(to), from.max(to)), PIXELS)
            .map(drop)
    })?;
    report("2,000 pixels of 200 threads: a thousandth", 200, || {
        let from = random.between(begin, end);
        history
            .sampled(&threads, (from, from + (end - begin) / 1000), PIXELS)
            .map(drop)
    })
}

/// The states of the threads that change most often.
fn busiest(history: &History) -> Result<Vec<Attribute>, HistoryError> {
    let (begin, end) = (history.meta().begin, history.meta().end);
    let states = history.met(begin, end, |attribute| {
        attribute.kind() == AttributeKind::ThreadState
    })?;
    let middle = begin + (end - begin) / 2;
    let mut counted = Vec::new();
    for state in states {
        let changes = history.changes(state, middle, middle + (end - begin) / 50)?;
        counted.push((std::cmp::Reverse(changes.len()), state));
    }
    counted.sort_unstable();
    Ok(counted
        .into_iter()
        .map(|(_, state)| state)
        .take(THREADS)
        .collect())
}

fn report(
    name: &str,
    rounds: usize,
    mut work: impl FnMut() -> Result<(), HistoryError>,
) -> Result<(), HistoryError> {
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
    println!("{name}\t{:.0}\t{:.0}\t{:.0}", at(50), at(99), at(100));
    Ok(())
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn between(&mut self, from: i64, to: i64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from + (self.0 % from.abs_diff(to).max(1)) as i64
    }
}
