//! What is known of CPUs.

use serde::{Deserialize, Serialize};

use crate::kernel::CpuKey;
use crate::sched::queue::Curve;
use crate::sched::waker::Active;
use crate::stats::Summary;

/// The CPUs, in the order of their keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Cpus(Vec<Cpu>);

/// What is known of a CPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cpu {
    pub(super) key: CpuKey,
    pub(super) irq: Active,
    pub(super) softirq: Active,
    pub(super) current: Current,
    /// The first switch, if none was lost before it: its mark and the place of the thread before.
    pub(super) first: Option<(u64, usize)>,
    /// How many wait for it.
    pub(super) curve: Curve,
    /// Marks at which it is known that events were lost.
    pub(super) losses: Vec<u64>,
    /// Time that threads waited for it, in the range.
    pub(super) queued: u128,
    /// How long those waited that it then ran.
    pub(super) waits: Summary,
}

/// The thread that switches have left on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Current {
    #[default]
    Before,
    /// None that is known.
    Nobody,
    Thread(usize),
}

impl Cpu {
    fn new(key: CpuKey) -> Cpu {
        Cpu {
            key,
            irq: Active::Before,
            softirq: Active::Before,
            current: Current::Before,
            first: None,
            curve: Curve::default(),
            losses: Vec::new(),
            queued: 0,
            waits: Summary::default(),
        }
    }

    /// Losses up to a mark.
    pub(super) fn losses_until(&self, mark: u64) -> usize {
        match self.losses.last() {
            Some(&last) if last > mark => self.losses.partition_point(|&loss| loss <= mark),
            _ => self.losses.len(),
        }
    }
}

impl Cpus {
    /// The CPU, which is made if it is new.
    #[inline]
    pub(super) fn get(&mut self, key: CpuKey) -> &mut Cpu {
        // Most often there is one trace, with all CPUs from 0 on.
        let direct = key.cpu as usize;
        let at = match self.0.get(direct) {
            Some(cpu) if cpu.key == key => direct,
            _ => match self.0.binary_search_by_key(&key, |cpu| cpu.key) {
                Ok(at) => at,
                Err(at) => {
                    self.0.insert(at, Cpu::new(key));
                    at
                }
            },
        };
        &mut self.0[at]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Cpu> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Cpu> {
        self.0.iter_mut()
    }

    pub(super) fn into_vec(self) -> Vec<Cpu> {
        self.0
    }
}
