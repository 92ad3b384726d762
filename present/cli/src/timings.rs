//! `--timings`: where the CPU time of a command went, and how much of it only one thread could spend at a time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::Serialize;
use tracebraid_engine::{Control, FoldTimes, SerialWork, Stopwatch, Timings, process_cpu_ns};

use crate::failure::Failure;

/// The file, and what is written to it when the command ends.
struct Asked {
    path: PathBuf,
    begin: Instant,
    timings: Arc<Timings>,
}

static ASKED: OnceLock<Asked> = OnceLock::new();

/// Collects what happens under this control for the file.
pub(crate) fn collect(path: &Path, control: &Control) {
    let asked = ASKED.get_or_init(|| Asked {
        path: path.to_owned(),
        begin: Instant::now(),
        timings: Arc::default(),
    });
    control.collect(asked.timings.clone());
}

/// Counts the CPU time of work that only one thread can do, besides the folds: gives what the work gives, which also
/// gives the CPU time in nanoseconds of a thread of its own.
pub(crate) fn serially<T>(name: &'static str, work: impl FnOnce() -> (T, u64)) -> T {
    let watch = Stopwatch::start();
    let (done, of_thread) = work();
    if let Some(asked) = ASKED.get() {
        asked.timings.add_serial(name, watch.elapsed() + of_thread);
    }
    done
}

/// Contents of the file.
#[derive(Serialize)]
struct Document {
    /// CPU time of the whole command, in seconds.
    cpu_s: f64,
    /// Time from the beginning of the first fold to the end of the command.
    wall_s: f64,
    /// Threads of the fold that had most.
    threads: usize,
    /// CPU time that only one thread can spend at a time: planning, merging, composing and finishing of folds, and
    /// `serial_work`.
    serial_s: f64,
    /// `serial_s` over the CPU time of the folds and of `serial_work`.
    serial_share: f64,
    /// CPU time outside of both: opening the traces, showing the answer.
    outside_s: f64,
    /// Work besides the folds that one thread does: writing a database, an index.
    serial_work: Vec<SerialWork>,
    /// Bytes of the largest partial state of a chunk.
    partial_bytes: u64,
    folds: Vec<FoldTimes>,
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

impl Document {
    fn new(asked: &Asked) -> Document {
        let folds = asked.timings.folds();
        let sum = |of: fn(&FoldTimes) -> u64| folds.iter().map(of).sum::<u64>();
        let chunks = || folds.iter().flat_map(|fold| &fold.chunks);
        let measured: u64 = chunks().map(|chunk| chunk.measure_ns).sum();
        let cpu = process_cpu_ns().saturating_sub(measured);
        let serial_work = asked.timings.serial();
        let besides: u64 = serial_work.iter().map(|work| work.cpu_ns).sum();
        let folded = sum(FoldTimes::cpu_ns) + besides;
        let serial = sum(FoldTimes::serial_ns) + besides;
        Document {
            cpu_s: seconds(cpu),
            wall_s: asked.begin.elapsed().as_secs_f64(),
            threads: folds.iter().map(|fold| fold.threads).max().unwrap_or(1),
            serial_s: seconds(serial),
            serial_share: serial as f64 / folded.max(1) as f64,
            outside_s: seconds(cpu.saturating_sub(folded)),
            serial_work,
            partial_bytes: chunks().map(|chunk| chunk.partial_bytes).max().unwrap_or(0),
            folds,
        }
    }
}

/// Writes the file if it was asked for.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write() -> Result<(), Failure> {
    let Some(asked) = ASKED.get() else {
        return Ok(());
    };
    let path = &asked.path;
    let failure = |error: std::io::Error| Failure::output(format!("{}: {error}", path.display()));
    let text = serde_json::to_string_pretty(&Document::new(asked))
        .map_err(|error| failure(std::io::Error::other(error)))?;
    let place = tracebraid_storage::aside::place(path).map_err(failure)?;
    let mut file = tracebraid_storage::aside::beside(&place).map_err(failure)?;
    writeln!(file, "{text}").map_err(failure)?;
    file.persist(&place).map_err(|error| failure(error.error))?;
    Ok(())
}
