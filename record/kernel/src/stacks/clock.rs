//! Clocks of CPUs, which call a BPF program again and again.

use std::io;

use perf_event::events::Software;
use perf_event::{Builder, Counter};

/// An event of this thread alone. While there is one, the kernel watches context switches, and
/// begins to do so for nobody else: that takes it some milliseconds, for which a command that takes
/// its own stacks would have to wait.
pub(crate) fn readiness() -> io::Result<Counter> {
    Builder::new(Software::DUMMY).enabled(true).build()
}

/// Clocks of all of so many CPUs that run, with that period.
///
/// # Errors
/// If there are none.
pub(crate) fn cpu_clocks(cpus: usize, period_ns: u64) -> io::Result<Vec<Counter>> {
    let mut clocks = Vec::new();
    let mut error = None;
    for cpu in 0..cpus {
        let mut builder = Builder::new(Software::CPU_CLOCK);
        builder.any_pid().one_cpu(cpu).include_kernel();
        match builder.sample_period(period_ns).enabled(true).build() {
            Ok(clock) => clocks.push(clock),
            // It is switched off.
            Err(source) => error = Some(source),
        }
    }
    match error {
        Some(error) if clocks.is_empty() => Err(error),
        _ => Ok(clocks),
    }
}
