//! What was recorded, where it is, and what to do with it.

use std::time::Duration;

use tracebraid_session::kernel::{Progress, Summary};
use tracebraid_session::{ProbeSummary, SessionOptions, SessionSummary};

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
            eprintln!(
                "Recorded {} events in {elapsed}: {} in {directory}",
                grouped(events),
                bytes(size)
            );
            warn(kernel);
        }
        None => eprintln!("Recorded for {elapsed} into {directory}"),
    }
    if let Some(probes) = &summary.probes {
        tell(probes);
    }
    eprintln!("See it by: tracebraid report {directory}");
}

fn warn(kernel: &Summary) {
    let lost = kernel.total.lost;
    if lost > 0 {
        let cpus = kernel.lost.iter().enumerate().filter(|(_, lost)| **lost > 0);
        let cpus = cpus.map(|(cpu, lost)| format!("{} on CPU {cpu}", grouped(*lost)));
        eprintln!(
            "warning: {} events found no room ({}): record less, or give more memory by --buffer-size",
            grouped(lost),
            cpus.collect::<Vec<_>>().join(", ")
        );
    }
    if !kernel.missing.is_empty() {
        eprintln!(
            "warning: this kernel has no tracepoint {}",
            kernel.missing.join(", ")
        );
    }
}

fn tell(probes: &ProbeSummary) {
    if probes.traces > 0 {
        eprintln!(
            "Probes of {} as well",
            number_of(probes.traces as u64, "process", "processes")
        );
    }
    for path in &probes.running {
        eprintln!(
            "warning: {}: its process goes on: the trace ends when it does",
            path.display()
        );
    }
    for (path, error) in &probes.failed {
        eprintln!("warning: {}: {error}", path.display());
    }
}
