//! Running an analysis for a command: options, progress bar, Ctrl-C.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use clap::Args;
use tracebraid_ctf::clock::Timestamp;
use tracebraid_ctf::trace::TraceSet;
use tracebraid_engine::{Analysis, Control, Options, Outcome, fold};

use crate::failure::Failure;
use crate::output;
use crate::progress::Progress;
use crate::timings;
use crate::warnings::Warnings;

/// How to fold.
#[derive(Args, Debug, Default)]
pub(crate) struct FoldArgs {
    /// Number of threads; default: one for each CPU
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Size of the pieces of a trace that threads work on, in bytes (with K, M or G); default:
    /// chosen from the size of the traces
    #[arg(long, value_name = "BYTES", value_parser = size)]
    pub(crate) chunk_size: Option<u64>,
    /// Write the CPU time of each chunk and each merge, and the serial share, to FILE as JSON
    #[arg(long, value_name = "FILE", value_parser = timings::target)]
    pub(crate) timings: Option<PathBuf>,
}

/// Bytes, with an optional unit of 1024, 1024² or 1024³.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1u64),
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .filter(|&bytes| bytes > 0);
    bytes.ok_or_else(|| format!("{text}: a number of bytes is expected, as 65536, 64K or 4M"))
}

/// Folds, showing progress on a terminal; `until` is the time at and behind which nothing matters.
///
/// # Errors
/// When the user interrupted it, or an index is wrong.
pub(crate) fn run<A: Analysis>(
    set: &TraceSet,
    analysis: &A,
    args: &FoldArgs,
    until: Option<Timestamp>,
    warnings: &mut Warnings,
) -> Result<A::Report, Failure> {
    let outcome = run_without_warnings(set, analysis, args, until)?;
    warnings.reading(&outcome.damage);
    Ok(outcome.report)
}

/// As [`run`], but leaves it to the caller to report damage.
///
/// # Errors
/// When the user interrupted it, or an index is wrong.
pub(crate) fn run_without_warnings<A: Analysis>(
    set: &TraceSet,
    analysis: &A,
    args: &FoldArgs,
    until: Option<Timestamp>,
) -> Result<Outcome<A::Report>, Failure> {
    let outcome = watched(args, |control| {
        fold(set, analysis, args.options(until), control)
    });
    outcome.map_err(Failure::from)
}

impl FoldArgs {
    /// What they ask for; `until` is the time at and behind which nothing matters.
    pub(crate) fn options(&self, until: Option<Timestamp>) -> Options {
        Options {
            threads: self.threads.map_or(0, |threads| threads as usize),
            chunk_bytes: self.chunk_size.unwrap_or(0),
            until,
            ..Options::default()
        }
    }

    /// Has the times of what happens under this control written, if they are asked for.
    pub(crate) fn time(&self, control: &Control) {
        if let Some(path) = &self.timings {
            timings::collect(path, control);
        }
    }
}

/// Does something that tells how far it is, showing that on a terminal; Ctrl-C cancels it.
pub(crate) fn watched<T>(args: &FoldArgs, work: impl FnOnce(&Control) -> T) -> T {
    let control = Control::default();
    args.time(&control);
    watched_by(&control, &|| control.cancel(), || work(&control))
}

/// The same of something that Ctrl-C stops in a way of its own, which is done again and again until
/// it has ended.
pub(crate) fn watched_by<T>(
    control: &Control,
    stop: &(dyn Fn() + Sync),
    work: impl FnOnce() -> T,
) -> T {
    let interrupted = output::interruption();
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(control, stop, &interrupted, &finished));
        // Also if it panics: else the watcher would be waited for.
        let _end = End(&finished, watcher.thread());
        work()
    })
}

/// Ends the watcher.
struct End<'a>(&'a AtomicBool, &'a Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

/// Shows how far the fold is and passes interruptions on.
fn watch(control: &Control, stop: &dyn Fn(), interrupted: &Arc<AtomicBool>, finished: &AtomicBool) {
    let mut progress: Option<Progress> = None;
    while !finished.load(Ordering::Relaxed) {
        std::thread::park_timeout(Duration::from_millis(50));
        if interrupted.load(Ordering::Relaxed) {
            stop();
        }
        let total = control.total();
        if total > control.done() {
            progress
                .get_or_insert_with(|| Progress::new(total, false))
                .at(|| control.done());
        } else {
            // What comes now does not tell how far it is.
            progress.take().iter_mut().for_each(Progress::finish);
        }
    }
    progress.iter_mut().for_each(Progress::finish);
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_have_units() {
        assert_eq!(super::size("4M"), Ok(4 << 20));
        assert_eq!(super::size("65536"), Ok(65536));
        assert_eq!(super::size("1k"), Ok(1024));
        for wrong in [
            "",
            "M",
            "-1",
            "0",
            "4T",
            "99999999999999999999",
            "18446744073709551615G",
        ] {
            assert!(super::size(wrong).is_err(), "{wrong}");
        }
    }
}
