//! Frequencies and idle states of CPUs.

use crate::field::IntField;
use crate::finder::Finder;

/// The frequency of a CPU changes.
#[derive(Clone, Debug)]
pub struct Frequency {
    /// Number of the CPU.
    pub cpu: IntField,
    /// Frequency in kHz.
    pub frequency: IntField,
}

/// A CPU enters or leaves an idle state.
#[derive(Clone, Debug)]
pub struct CpuIdle {
    /// Number of the CPU.
    pub cpu: IntField,
    /// Depth of the idle state; 4294967295 (-1) when the CPU leaves it.
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
