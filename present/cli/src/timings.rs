//! `--timings`: the CPU time of a command by phase, and how much of it only one thread could spend
//! at a time.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::Serialize;
use tracebraid_engine::{Control, FoldTimes, SerialWork, Stopwatch, Timings, process_cpu_ns};

use crate::failure::Failure;
use crate::output;

/// Measurements for the file that is written when the command ends.
struct Asked {
    path: PathBuf,
    begin: Instant,
    timings: Arc<Timings>,
}

static ASKED: OnceLock<Asked> = OnceLock::new();

/// Collects the times of all work under this control.
pub(crate) fn collect(path: &Path, control: &Control) {
    let asked = ASKED.get_or_init(|| Asked {
        path: path.to_owned(),
        begin: Instant::now(),
        timings: Arc::default(),
    });
    control.collect(asked.timings.clone());
}

/// Prepares a restart: discards measurements of work that is repeated.
pub(crate) fn restart() {
    if let Some(asked) = ASKED.get() {
        asked.timings.forget();
    }
}

/// Measures the CPU time of serial work outside the folds. `work` returns its result, and the CPU
/// time in nanoseconds of a thread of its own.
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
    /// Time from the beginning of the first fold to the end of the command, in seconds.
    wall_s: f64,
    /// Maximum number of threads of a fold.
    threads: usize,
    /// CPU time in seconds that only one thread can spend at a time: planning, merging, composing
    /// and finishing of folds, and `serial_work`.
    serial_s: f64,
    /// `serial_s` over the CPU time of the folds and of `serial_work`.
    serial_share: f64,
    /// CPU time in seconds outside the folds and `serial_work`: opening the traces, printing the
    /// result.
    outside_s: f64,
    /// Work outside the folds that only one thread can do: writing a database or an index.
    serial_work: Vec<SerialWork>,
    /// Size in bytes of the largest partial state of a chunk.
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

/// First bytes of every file that [`write()`] makes.
const BEGIN: &[u8] = b"{\n  \"cpu_s\": ";

/// Checks that `--timings` may write to a path: a new or empty file, an earlier file of
/// `--timings`, a device or a pipe. Any other file is likely a mistake, such as a file of the trace
/// or the output of the same command.
///
/// # Errors
/// When the path is another file, or cannot be written.
pub(crate) fn target(path: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(path);
    check(&path)?;
    if path
        .metadata()
        .is_ok_and(|about| !about.is_file() && !about.is_dir())
    {
        return Ok(path);
    }
    let aside = tracebraid_storage::aside::place(&path)
        .and_then(|place| tracebraid_storage::aside::beside(&place));
    match aside {
        Ok(_) => Ok(path),
        Err(error) => Err(error.to_string()),
    }
}

fn check(path: &Path) -> Result<(), String> {
    if !path.is_file() {
        return Ok(());
    }
    let mut begin = Vec::with_capacity(BEGIN.len());
    let read =
        File::open(path).and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin));
    match read {
        Ok(_) if begin.is_empty() || begin == BEGIN => Ok(()),
        Ok(_) => {
            Err("the file exists and was not written by --timings; choose another name".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Writes the file if `--timings` was given. Times of an interrupted command are not written, since
/// they cover only a part of it.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn write() -> Result<(), Failure> {
    let Some(asked) = ASKED.get() else {
        return Ok(());
    };
    if output::interruption().load(Ordering::Relaxed) {
        return Ok(());
    }
    let path = &asked.path;
    let failure = |message: String| Failure::output(format!("{}: {message}", path.display()));
    check(path).map_err(failure)?;
    let text = serde_json::to_string_pretty(&Document::new(asked))
        .map_err(|error| failure(error.to_string()))?;
    output::replace(path, format!("{text}\n").as_bytes())
}
