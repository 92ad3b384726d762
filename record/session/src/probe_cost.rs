//! The time that a probe takes on this machine, which reports subtract from the times of functions.
//!
//! A child process measures it by recording into a directory of its own, since a process can record
//! into one session only. The events have a text as those of functions; memory is touched for the
//! first time, as in a recorded program. The loop keeps caches warm, so that the result is a lower bound
//! of the cost in programs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Number of batches, of which the median counts, and of events in each.
const BATCHES: usize = 41;
const EVENTS: u32 = 500;

/// Nanoseconds that a probe takes in this process, whose session must record
/// `tracebraid:prof_in`.
pub fn measure_here() -> u64 {
    let batch = |_| {
        let begin = Instant::now();
        for _ in 0..EVENTS {
            tracebraid_probe::standard::prof_in("calibration");
        }
        begin.elapsed().as_nanos()
    };
    let mut batches: Vec<u128> = (0..BATCHES).map(batch).collect();
    batches.sort_unstable();
    let half = u128::from(EVENTS) / 2;
    let median = batches.get(BATCHES / 2).copied().unwrap_or_default();
    ((median + half) / u128::from(EVENTS)) as u64
}

/// Nanoseconds that a probe takes: the output of this program with this argument, whose
/// process calls [`measure_here`]. `None` if it fails.
pub fn measured(program: &Path, argument: &str) -> Option<u64> {
    let name = format!("tracebraid-probe-cost-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).ok()?;
    let output = Command::new(program)
        .arg(argument)
        .env("TRACEBRAID_SESSION", &directory)
        .env_remove("TRACEBRAID_PROBE")
        .env_remove("LD_PRELOAD")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    // A directory that stays does no harm.
    let _ = std::fs::remove_dir_all(&directory);
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    text.trim().parse().ok().filter(|cost| *cost > 0)
}
