//! Lost events, which make the activity in between unknown.

use serde::{Deserialize, Serialize};

use crate::sources::CpuKey;

/// Number of losses of events, by CPU and by trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Losses {
    cpus: Vec<(CpuKey, u64)>,
    traces: Vec<u64>,
}

impl Losses {
    /// Records a loss of events on a CPU.
    pub fn lose(&mut self, cpu: CpuKey) {
        match self.cpus.iter_mut().find(|of| of.0 == cpu) {
            Some((_, losses)) => *losses += 1,
            None => self.cpus.push((cpu, 1)),
        }
        let trace = cpu.trace as usize;
        if trace >= self.traces.len() {
            self.traces.resize(trace + 1, 0);
        }
        self.traces[trace] += 1;
    }

    /// Losses that make the state of a thread running on this CPU unknown.
    #[inline]
    pub fn of_cpu(&self, cpu: CpuKey) -> u64 {
        let found = self.cpus.iter().find(|of| of.0 == cpu);
        found.map_or(0, |(_, losses)| *losses)
    }

    /// Losses that make the state of a thread that does not run unknown, since it may have been
    /// switched to on any CPU of the trace.
    #[inline]
    pub fn of_trace(&self, cpu: CpuKey) -> u64 {
        self.traces.get(cpu.trace as usize).copied().unwrap_or(0)
    }
}
