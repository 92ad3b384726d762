//! Runs an analysis for a command: options, progress bar, Ctrl-C.

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

/// Options of the parallel engine.
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

/// A number of bytes, with an optional unit of 1024, 1024² or 1024³.
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
    bytes.ok_or_else(|| format!("{text}: expected a number of bytes, such as 65536, 64K or 4M"))
}

/// Folds with a progress bar on a terminal; event records from `until` on are not needed.
///
/// # Errors
/// When the user interrupts the fold, or an index is wrong.
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

/// As [`run`], but leaves reporting damage to the caller.
///
/// # Errors
/// When the user interrupts the fold, or an index is wrong.
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
    /// The engine's options; event records from `until` on are not needed.
    pub(crate) fn options(&self, until: Option<Timestamp>) -> Options {
        Options {
            threads: self.threads.map_or(0, |threads| threads as usize),
            chunk_bytes: self.chunk_size.unwrap_or(0),
            until,
            ..Options::default()
        }
    }

    /// The options for work whose times are not those of the command.
    pub(crate) fn without_timings(&self) -> FoldArgs {
        FoldArgs {
            threads: self.threads,
            chunk_size: self.chunk_size,
            timings: None,
        }
    }

    /// Collects the times of all work under this control, if `--timings` is given.
    pub(crate) fn time(&self, control: &Control) {
        if let Some(path) = &self.timings {
            timings::collect(path, control);
        }
    }
}

/// Runs `work` with a progress bar on a terminal; Ctrl-C cancels it.
pub(crate) fn watched<T>(args: &FoldArgs, work: impl FnOnce(&Control) -> T) -> T {
    let control = Control::default();
    args.time(&control);
    watched_by(&control, &|| control.cancel(), || work(&control))
}

/// As [`watched`], for work that Ctrl-C must stop by calling `stop`, which is called repeatedly
/// until the work has ended.
pub(crate) fn watched_by<T>(
    control: &Control,
    stop: &(dyn Fn() + Sync),
    work: impl FnOnce() -> T,
) -> T {
    let interrupted = output::interruption();
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(control, stop, &interrupted, &finished));
        // Ends the watcher even if `work` panics; otherwise the scope would wait for it forever.
        let _end = End(&finished, watcher.thread());
        work()
    })
}

/// Ends the watcher when dropped.
struct End<'a>(&'a AtomicBool, &'a Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        self.1.unpark();
    }
}

/// Shows the progress of the fold and passes interrupts on.
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
            // The work that follows reports no progress.
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
