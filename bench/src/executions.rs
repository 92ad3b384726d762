//! Measures executions of a trace in the page cache: in one pass and, alternating, in two passes
//! with the whole graph in memory. Prints `name<TAB>seconds`, best of five, and `name<TAB>count`.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Control, Options, fold};
use tracebraid_executions::{
    BuildRules, Builder, Built, Finished, Sampled, Sink, Union, build, executions, metrics,
    with_threads,
};
use tracebraid_follow::{KernelAnalysis, Selection, Window};
use tracebraid_graph::{Graph, GraphAnalysis};
use tracebraid_language::periods::Periods;
use tracebraid_periods::EndedAnalysis;
use tracebraid_profile::Samples;

const ROUNDS: usize = 5;

type Failure = Box<dyn std::error::Error>;

fn main() {
    let mut args = std::env::args_os().skip(1);
    let Some(path) = args.next().map(PathBuf::from) else {
        eprintln!("usage: tracebraid-bench-executions TRACE DEFINITION...");
        std::process::exit(2);
    };
    let definitions: Vec<String> = args.filter_map(|arg| arg.into_string().ok()).collect();
    if let Err(error) = measure(&path, &definitions) {
        eprintln!("tracebraid-bench-executions: {error}");
        std::process::exit(3);
    }
}

/// Counts executions and their steps.
#[derive(Default)]
struct Count {
    executions: u64,
    steps: u64,
}

impl Sink for Count {
    type Error = Infallible;

    fn take(&mut self, _: &Graph, finished: Finished) -> Result<(), Infallible> {
        self.executions += 1;
        self.steps += finished.steps.len() as u64;
        Ok(())
    }
}

fn measure(path: &Path, definitions: &[String]) -> Result<(), Failure> {
    let set = TraceSet::open(&[path.to_owned()])?;
    let mut periods = Periods::default();
    for definition in definitions {
        periods.period(definition)?;
    }
    let rules = BuildRules {
        definitions: periods.into(),
        ..BuildRules::default()
    };
    let mut times = [Duration::MAX; 4];
    let mut last = None;
    for _ in 0..ROUNDS {
        for (time, threads) in times
            .iter_mut()
            .zip([(false, 1), (true, 1), (false, 0), (true, 0)])
        {
            let (is_one, threads) = threads;
            let options = Options {
                threads,
                ..Options::default()
            };
            let start = Instant::now();
            let mut count = Count::default();
            match is_one {
                true => last = Some((in_one_pass(&set, &rules, options, &mut count)?, count)),
                false => in_two_passes(&set, &rules, options, &mut count)?,
            }
            *time = start.elapsed().min(*time);
        }
    }
    let names = [
        "two passes, 1 thread",
        "one pass, 1 thread",
        "two passes, all threads",
        "one pass, all threads",
    ];
    for (name, time) in names.into_iter().zip(times) {
        println!("{name}\t{:.6}", time.as_secs_f64());
    }
    if let Some((built, count)) = last {
        println!("executions\t{}", count.executions);
        println!("steps of them\t{}", count.steps);
        println!("contexts\t{}", built.union.contexts.count());
        println!("most stretches at a time\t{}", built.most_stretches);
    }
    Ok(())
}

fn in_one_pass(
    set: &TraceSet,
    rules: &BuildRules,
    options: Options,
    count: &mut Count,
) -> Result<Built, Failure> {
    let control = Control::default();
    let samples = Samples::default();
    Ok(build(
        set,
        rules,
        &samples,
        Union::default(),
        (options, &control),
        count,
    )?)
}

fn in_two_passes(
    set: &TraceSet,
    rules: &BuildRules,
    options: Options,
    count: &mut Count,
) -> Result<(), Failure> {
    let control = Control::default();
    let periods = EndedAnalysis::new(
        set,
        with_threads(rules.definitions.periods.clone()),
        Window::default(),
    )?;
    let ended = fold(set, &periods, options, &control)?.report;
    let graph = GraphAnalysis::new(set, Selection::default());
    let graph = fold(set, &graph, options, &control)?.report;
    let sampled = Sampled::new(set, &graph, &Samples::default(), Union::default().names);
    let mut builder = Builder::new(&graph, &sampled.stacks, &sampled.threads, sampled.names);
    for execution in executions(set, &graph, ended) {
        let Some(path) = execution.path(&graph) else {
            continue;
        };
        let (ecct, steps) = builder.ecct_and_steps(&path);
        let metrics = metrics(&graph, &path);
        let Ok(()) = count.take(
            &graph,
            Finished {
                execution,
                metrics,
                ecct,
                steps,
            },
        );
    }
    Ok(())
}
