//! What was recorded, where it is, and what to do with it.

use std::path::Path;
use std::time::Duration;

use tracebraid_session::kernel::{Progress, Summary};
use tracebraid_session::{Finished, SessionOptions, SessionSummary};

use super::written::{Written, see_it};
use crate::output::say;
use crate::table::{bytes, duration, grouped, number_of};

/// Says it on standard error, which is not the command's.
pub(super) fn summary(options: &SessionOptions, summary: &SessionSummary, elapsed: Duration) {
    let directory = options.directory.display();
    let elapsed = duration(elapsed.as_nanos() as u64);
    match &summary.kernel {
        Some(kernel) => {
            let Progress {
                events, bytes: size, ..
            } = kernel.total;
            say!(
                "Recorded {} events in {elapsed}: {} in {directory}",
                grouped(events),
                bytes(size)
            );
            warn(kernel);
        }
        None => say!("Recorded for {elapsed} into {directory}"),
    }
    if let Some(probes) = &summary.probes {
        tell(probes, &options.directory);
    }
    let has_loaded = summary
        .probes
        .as_ref()
        .is_some_and(|probes| probes.traces > 0 || !probes.running.is_empty());
    if options.stacks.is_some() && summary.kernel.is_none() && !has_loaded {
        say!(
            "warning: no program loaded the library that takes call stacks (is it static, or setuid?): without it they \
             need CAP_BPF and CAP_PERFMON"
        );
    }
    say!("{}", see_it(&options.directory));
}

fn warn(kernel: &Summary) {
    let lost = kernel.total.lost;
    if lost > 0 {
        let cpus = kernel.lost.iter().enumerate().filter(|(_, lost)| **lost > 0);
        let cpus = cpus.map(|(cpu, lost)| format!("{} on CPU {cpu}", grouped(*lost)));
        say!(
            "warning: {} events found no room ({}): record less, or give more memory by --buffer-size",
            grouped(lost),
            cpus.collect::<Vec<_>>().join(", ")
        );
    }
    if kernel.disk_is_full {
        say!(
            "warning: the disk is full: the kernel's recording has ended, at one time on all CPUs; what was lost before is \
             counted"
        );
    }
    if kernel.unfollowed > 0 {
        say!(
            "warning: {} were not followed: there were too many at once",
            number_of(u64::from(kernel.unfollowed), "process", "processes")
        );
    }
    if !kernel.missing.is_empty() {
        say!(
            "warning: this kernel has no tracepoint {}",
            kernel.missing.join(", ")
        );
    }
}

/// Says what was recorded of programs with probes.
pub(in crate::commands) fn tell(probes: &Finished, directory: &Path) {
    if probes.traces > 0 {
        let processes = number_of(probes.traces as u64, "process", "processes");
        let written = Written::below(&directory.join("ust")).unwrap_or_default();
        say!("Probes of {processes} as well: {written}");
        if written.lost > 0 {
            say!(
                "warning: {} events of probes found no room: give more by --max-size, or record fewer by --probes",
                grouped(written.lost)
            );
        }
    }
    for path in &probes.running {
        say!(
            "warning: {}: its process goes on, and is not recorded any more",
            path.display()
        );
    }
    for (path, error) in &probes.failed {
        say!("warning: {}: {error}", path.display());
    }
}
