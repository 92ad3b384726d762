//! Frequencies and sleep of CPUs.

use crate::field::IntField;
use crate::finder::Finder;

/// A CPU runs at another frequency.
#[derive(Clone, Debug)]
pub struct Frequency {
    /// CPU.
    pub cpu: IntField,
    /// In kHz.
    pub frequency: IntField,
}

/// A CPU sleeps or wakes.
#[derive(Clone, Debug)]
pub struct CpuIdle {
    /// CPU.
    pub cpu: IntField,
    /// How deep; 4294967295 (-1) when it wakes.
    pub state: IntField,
}

impl CpuIdle {
    /// State of a CPU that is awake.
    pub const AWAKE: u32 = u32::MAX;

    pub(crate) fn find(finder: &Finder<'_>) -> Option<CpuIdle> {
        let (cpu, state) = find(finder)?;
        Some(CpuIdle { cpu, state })
    }
}

impl Frequency {
    pub(crate) fn find(finder: &Finder<'_>) -> Option<Frequency> {
        let (cpu, frequency) = find(finder)?;
        Some(Frequency { cpu, frequency })
    }
}

fn find(finder: &Finder<'_>) -> Option<(IntField, IntField)> {
    Some((finder.int(&["cpu_id"])?, finder.int(&["state"])?))
}
