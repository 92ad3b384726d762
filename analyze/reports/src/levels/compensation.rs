//! Subtracts the time of probes from the times of threads.
//!
//! The time of a call is corrected where it is measured (`level_calls`); here that of threads is.

use tracebraid_tables::{Total, Unit};

use crate::levels::{LevelPartial, LevelRules};

/// Subtracted from the active time of all threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Subtracted {
    probes: u64,
    ns: u64,
}

pub(super) fn subtract(rules: &LevelRules, partial: &mut LevelPartial) -> Subtracted {
    let mut all = Subtracted::default();
    for (key, sums) in partial.sums.threads.entries_mut() {
        let cost = u64::from(rules.options.probe_cost(key.trace));
        let ns = sums.probes.saturating_mul(cost).min(sums.active.ns);
        sums.active.ns -= ns;
        // Without a cost, nothing is subtracted.
        if cost > 0 {
            all.probes += sums.probes;
            all.ns += ns;
        }
    }
    all
}

impl Subtracted {
    /// Zero unless the cost of probes is subtracted.
    pub(super) fn totals(self) -> [Total; 2] {
        [
            Total::new("probes", "probes", self.probes.into()).or_one("probe"),
            Total::new("probes_ns", "in probes, subtracted", self.ns.into()).of(Unit::Duration),
        ]
    }
}
