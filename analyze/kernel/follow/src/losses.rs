//! Lost events: what was going on meanwhile is not known.

use serde::{Deserialize, Serialize};

use crate::sources::CpuKey;

/// How often events were lost, by CPU and by trace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Losses {
    cpus: Vec<(CpuKey, u64)>,
    traces: Vec<u64>,
}

impl Losses {
    /// Events were lost on that CPU.
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

    /// Those that make unknown what a thread does that runs there.
    #[inline]
    pub fn of_cpu(&self, cpu: CpuKey) -> u64 {
        let found = self.cpus.iter().find(|of| of.0 == cpu);
        found.map_or(0, |(_, losses)| *losses)
    }

    /// Those that make unknown what a thread does that does not run: it may have been switched to
    /// on any CPU.
    #[inline]
    pub fn of_trace(&self, cpu: CpuKey) -> u64 {
        self.traces.get(cpu.trace as usize).copied().unwrap_or(0)
    }
}
