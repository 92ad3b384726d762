//! Measures execution graphs, with one thread and with all threads, and then the critical paths of
//! the 10,000 longest system calls of a trace in the page cache, in sequence. Prints
//! `name<TAB>seconds`, best of five, and `name<TAB>count`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_follow::{CallNames, KernelAnalysis, Selection};
use tracebraid_graph::{Asked, Graph, GraphAnalysis, GraphOptions};
use tracebraid_language::glob::Glob;

const EXECUTIONS: usize = 10_000;
const ROUNDS: usize = 5;

fn main() {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: tracebraid-bench-paths TRACE");
        std::process::exit(2);
    };
    if let Err(error) = measure(&path) {
        eprintln!("tracebraid-bench-paths: {error}");
        std::process::exit(3);
    }
}

fn measure(path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let set = TraceSet::open(&[path.to_owned()])?;
    let asked = GraphOptions {
        longest: CallNames(vec![Glob::new("*")]),
        rows: EXECUTIONS,
        ..GraphOptions::default()
    };
    let graph = |options: Options| {
        let analysis = GraphAnalysis::with(&set, Selection::default(), asked.clone());
        fold(&set, &analysis, options, &Control::default()).map(|outcome| outcome.report)
    };
    let one = Options {
        threads: 1,
        ..Options::default()
    };
    report("graph, 1 thread", || graph(one))?;
    let graph = report("graph, all threads", || graph(Options::default()))?;
    let asked = graph.longest();
    let name = format!("critical paths of {} executions, 1 thread", asked.len());
    let segments = report(&name, || {
        Ok::<_, std::convert::Infallible>(segments(&graph, &asked))
    })?;
    println!("segments of them\t{segments}");
    println!("bytes of the graph\t{}", graph.bytes());
    // The graph of the last tenth, from which earlier events are discarded.
    let head = &graph.head;
    let tenth = head.duration_ns / 10;
    let mut of_tenth = Selection::default();
    of_tenth.window.from = head
        .end
        .map(|end| Timestamp(end.0.saturating_sub_unsigned(tenth)));
    let analysis = GraphAnalysis::new(&set, of_tenth);
    let outcome = fold(&set, &analysis, Options::default(), &Control::default())?;
    println!(
        "bytes of that of the last tenth\t{}",
        outcome.report.bytes()
    );
    Ok(())
}

/// Number of segments of the paths.
fn segments(graph: &Graph, asked: &[Asked]) -> usize {
    let paths = asked
        .iter()
        .map(|asked| graph.path(asked.actor, asked.begin, asked.end));
    paths.map(|path| path.segments.len()).sum()
}

/// Runs `work` several times, prints the shortest time, and returns the last result.
fn report<T, E>(name: &str, mut work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut shortest = Duration::MAX;
    let mut timed = || {
        let start = Instant::now();
        let done = work();
        shortest = shortest.min(start.elapsed());
        done
    };
    for _ in 1..ROUNDS {
        timed()?;
    }
    let result = timed()?;
    println!("{name}\t{:.6}", shortest.as_secs_f64());
    Ok(result)
}
