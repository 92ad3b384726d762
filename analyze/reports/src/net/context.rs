//! Whether a CPU is in a softirq.

use serde::{Deserialize, Serialize};

use crate::kernel::CpuKey;

/// In which context something happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Context {
    /// In that in which the CPU was when the chunk began.
    #[default]
    Before,
    /// On behalf of the thread that runs, as far as is known.
    Thread,
    /// In a softirq, whoever runs.
    Softirq,
}

/// The contexts of CPUs.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Contexts(Vec<(CpuKey, Context)>);

impl Contexts {
    pub(super) fn at(&mut self, cpu: CpuKey) -> &mut Context {
        let at = self.0.iter().position(|of| of.0 == cpu).unwrap_or_else(|| {
            self.0.push((cpu, Context::Before));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    /// What was in the context before a later chunk is in this.
    pub(super) fn tell(&mut self, cpu: CpuKey, context: &mut Context) {
        if *context == Context::Before {
            *context = *self.at(cpu);
        }
    }

    pub(super) fn merge(&mut self, later: Contexts) {
        for (cpu, context) in later.0 {
            if context != Context::Before {
                *self.at(cpu) = context;
            }
        }
    }
}
