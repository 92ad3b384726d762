//! Folds one report and prints where its time goes: `serial REPORT TRACE THREADS [SLICE_BYTES [CHUNK_BYTES]]`. The report goes to standard output.
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_fold::{Analysis, Control, Options, Timings, fold};
use tracebraid_reports::files::FilesAnalysis;
use tracebraid_reports::io::IoAnalysis;
use tracebraid_reports::kernel::{KernelAnalysis, Selection};
use tracebraid_reports::report::View;

fn run<A: KernelAnalysis + Analysis<Report: Serialize>>(set: &TraceSet, options: Options) {
    let selection = Selection {
        views: vec![View::Stats, View::Top, View::Log],
        ..Selection::default()
    };
    let selection = if std::env::var("NOLOG").is_ok() {
        Selection::default()
    } else {
        selection
    };
    let analysis = A::new(set, selection);
    let control = Control::default();
    let timings = Arc::new(Timings::default());
    control.collect(Arc::clone(&timings));
    let outcome = fold(set, &analysis, options, &control).expect("nobody cancels");
    for f in timings.folds() {
        let ms = |ns: u64| ns as f64 / 1e6;
        let fold: u64 = f.chunks.iter().map(|c| c.fold_ns).sum();
        let merge: u64 = f.chunks.iter().map(|c| c.merge_ns).sum();
        let play: u64 = f.slices.iter().map(|s| s.play_ns).sum();
        let compose: u64 = f.slices.iter().map(|s| s.compose_ns).sum();
        eprintln!(
            "cpu {:.0} ms: fold {:.0} merge {:.1} play {:.0} compose {:.1} finish {:.1} plan {:.1}; serial {:.1} %; chunks {} slices {}",
            ms(f.cpu_ns()),
            ms(fold),
            ms(merge),
            ms(play),
            ms(compose),
            ms(f.finish_ns),
            ms(f.plan_ns),
            f.serial_ns() as f64 * 100.0 / f.cpu_ns() as f64,
            f.chunks.len(),
            f.slices.len()
        );
        if std::env::var("EACH").is_ok() {
            let each: Vec<_> = f
                .slices
                .iter()
                .map(|s| format!("{:.1}/{:.1}", ms(s.play_ns), ms(s.compose_ns)))
                .collect();
            eprintln!("{}", each.join(" "));
        }
    }
    if std::env::var("QUIET").is_err() {
        println!(
            "{}",
            serde_json::to_string_pretty(&outcome.report).expect("it can")
        );
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let set = TraceSet::open(&[Path::new(&args[2])]).expect("a trace");
    let number = |at: usize, other: u64| args.get(at).and_then(|a| a.parse().ok()).unwrap_or(other);
    let options = Options {
        threads: number(3, 1) as usize,
        slice_bytes: number(4, 0),
        ..Options::default()
    };
    let options = match args.get(5) {
        Some(bytes) => Options {
            chunk_bytes: bytes.parse().expect("a number"),
            ..options
        },
        None => options,
    };
    match args[1].as_str() {
        "files" => run::<FilesAnalysis>(&set, options),
        _ => run::<IoAnalysis>(&set, options),
    }
}
