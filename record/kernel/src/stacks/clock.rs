//! Perf events that run a BPF program periodically on each CPU.

use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Counter};

/// A perf event of this thread alone. As long as it exists, the kernel watches context switches for
/// perf. Enabling that takes some milliseconds, which a command that samples its own stacks would
/// otherwise have to wait for.
pub(crate) fn readiness() -> io::Result<Counter> {
    Builder::new(Software::DUMMY).enabled(true).build()
}

/// Clocks with a period on all online CPUs among the first `cpus`.
///
/// # Errors
/// If no CPU has a clock.
pub(crate) fn cpu_clocks(cpus: usize, period_ns: u64) -> io::Result<Vec<Counter>> {
    let mut clocks = Vec::new();
    let mut error = None;
    for cpu in 0..cpus {
        let mut builder = Builder::new(Software::CPU_CLOCK);
        builder.any_pid().one_cpu(cpu).include_kernel();
        match builder.sample_period(period_ns).enabled(true).build() {
            Ok(clock) => clocks.push(clock),
            // The CPU is offline.
            Err(source) => error = Some(source),
        }
    }
    match error {
        Some(error) if clocks.is_empty() => Err(error),
        _ => Ok(clocks),
    }
}
